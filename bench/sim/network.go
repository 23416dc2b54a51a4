package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// Config says what to simulate and where the controller is.
type Config struct {
	Topology *Topology
	Version  openflow.Version // V10 or V13
	Network  string           // "tcp" or "unix"; empty is tcp
	Address  string           // HOST:PORT, or a path
	Entries  int              // flow entries that a switch holds; 0 is DefaultEntries
	Groups   int              // groups that a switch holds; 0 is DefaultGroups
}

// Sizes of the tables of a switch if Config does not say.
const (
	DefaultEntries = 4096
	DefaultGroups  = 1024
)

// Network is a number of simulated switches and the links between them. One
// goroutine, that of Run, owns them all; the other methods hand it work and
// wait for the result, so they need Run to be running.
type Network struct {
	cfg     Config
	to      unix.Sockaddr
	nodes   []*node
	epoll   int
	waker   waker
	do      chan func()
	done    chan struct{} // closed when Run has ended
	start   time.Time
	now     int64 // nanoseconds since start, of this turn of the loop
	stamps  stamped
	arrived int64 // when what is being read has arrived; now, but more precise while heartbeats are measured
	sweep   int64 // when to look after idle things next
	yield   int64 // when to let other goroutines run
	dirty   []*node
	load    *load
	beats   *beating
	stats   Stats

	copies int    // of frames that the packet-out at work may still lead to
	in     []byte // what the loop reads into, shared by all switches
	mod    flow.Mod
	out    flow.PacketOut
	groups flow.GroupMod
	body   []byte
}

// Stats counts what the switches have done and seen.
type Stats struct {
	Up          int           // switches whose connection is established and has seen a features request
	Connects    uint64        // connections established
	Lost        uint64        // connections lost
	LastLoss    string        // why the last one was lost
	Received    uint64        // messages from the controller, answers to a load left out
	LastMessage time.Duration // when the last of these came, since New
	ErrorsSent  uint64        // error messages to the controller
	FlowMods    uint64        // other than answers
	PacketOuts  uint64        // other than answers
	PacketIns   uint64        // other than those of a load
	Delivered   uint64        // frames that reached a host's port
	Carried     uint64        // frames that crossed a link
	Dropped     uint64        // frames dropped: no entry, port or link down, too many hops
	Entries     int           // flow entries now
}

// New prepares a network; Run connects it.
func New(cfg Config) (*Network, error) {
	if err := cfg.Topology.Check(); err != nil {
		return nil, err
	}
	if cfg.Version != openflow.V10 && cfg.Version != openflow.V13 {
		return nil, fmt.Errorf("simulated switches speak OpenFlow 1.0 and 1.3, not %v", cfg.Version)
	}
	if cfg.Entries == 0 {
		cfg.Entries = DefaultEntries
	}
	if cfg.Groups == 0 {
		cfg.Groups = DefaultGroups
	}
	to, err := resolve(cfg.Network, cfg.Address)
	if err != nil {
		return nil, err
	}
	n := &Network{cfg: cfg, to: to, do: make(chan func(), 16), done: make(chan struct{}), start: time.Now(), in: make([]byte, 512<<10)}
	for i, s := range cfg.Topology.Switches {
		n.nodes = append(n.nodes, newNode(n, i, s))
	}
	for i, l := range cfg.Topology.Links {
		n.nodes[l.A.Switch].ports[l.A.Port-1].wire(l.B, i)
		n.nodes[l.B.Switch].ports[l.B.Port-1].wire(l.A, i)
	}
	for _, silent := range []bool{false, true} {
		for _, h := range cfg.Topology.Hosts {
			if nd := n.nodes[h.At.Switch]; h.Silent == silent {
				nd.hosts = append(nd.hosts, newEndpoint(h))
			}
		}
		for _, nd := range n.nodes {
			if !silent {
				nd.loud = len(nd.hosts)
			}
		}
	}
	if n.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("simulated network: epoll: %w", err)
	}
	if n.waker.fd, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		unix.Close(n.epoll)
		return nil, fmt.Errorf("simulated network: eventfd: %w", err)
	}
	if err = n.watch(n.waker.fd, -1, unix.EPOLLIN); err != nil {
		unix.Close(n.epoll)
		n.waker.close()
		return nil, fmt.Errorf("simulated network: %w", err)
	}
	return n, nil
}

// resolve returns the socket address of a controller.
func resolve(network, address string) (unix.Sockaddr, error) {
	switch network {
	case "", "tcp":
		a, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			return nil, fmt.Errorf("controller address %q: want HOST:PORT: %w", address, err)
		}
		if a.IP == nil {
			a.IP = net.IPv4(127, 0, 0, 1)
		}
		if ip := a.IP.To4(); ip != nil {
			return &unix.SockaddrInet4{Port: a.Port, Addr: [4]byte(ip)}, nil
		}
		return &unix.SockaddrInet6{Port: a.Port, Addr: [16]byte(a.IP.To16())}, nil
	case "unix":
		return &unix.SockaddrUnix{Name: address}, nil
	}
	return nil, fmt.Errorf("controller network %q: want tcp or unix", network)
}

// watch asks epoll to report events of fd under a number.
func (n *Network) watch(fd, as int, events uint32) error {
	return unix.EpollCtl(n.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(as)})
}

// Times of the loop.
const (
	sweepEvery    = 100 * time.Millisecond
	echoAfter     = 15 * time.Second // of silence
	giveUpAfter   = 40 * time.Second // of silence
	connectWithin = 10 * time.Second
	retryFrom     = 100 * time.Millisecond
	retryTo       = 5 * time.Second
)

// Run connects the switches, keeps them connected and does their work until
// ctx ends. It is called once.
func (n *Network) Run(ctx context.Context) error {
	defer n.close()
	defer context.AfterFunc(ctx, n.waker.wake)()
	events := make([]unix.EpollEvent, 512)
	for ctx.Err() == nil {
		n.now = n.clock()
		if n.now >= n.sweep {
			n.sweep = n.now + int64(sweepEvery)
			n.sweepAll()
		}
		k, err := n.wait(events)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("simulated network: epoll: %w", err)
		}
		n.now = n.clock()
		for _, e := range events[:max(k, 0)] {
			if e.Fd < 0 {
				n.obey()
				continue
			}
			n.nodes[e.Fd].ready(e.Events)
		}
		if n.load != nil {
			n.load.step()
		}
		if n.beats != nil {
			n.beats.step()
		}
		for i := 0; i < len(n.dirty); i++ {
			n.dirty[i].dirty = false
			n.dirty[i].flush()
		}
		n.dirty = n.dirty[:0]
	}
	return nil
}

// Under load the loop gives other goroutines of the process a turn this often,
// and does not sleep for longer either.
const yieldEvery = 2 * time.Millisecond

// wait waits for events.
func (n *Network) wait(events []unix.EpollEvent) (int, error) {
	if n.load == nil && n.beats == nil {
		return unix.EpollWait(n.epoll, events, n.patience())
	}
	if n.now >= n.yield {
		n.yield = n.now + int64(yieldEvery)
		runtime.Gosched()
	}
	return waitBriefly(n.epoll, events, min(n.patience(), int(yieldEvery/time.Millisecond)))
}

// clock returns nanoseconds since the network was made, never 0.
func (n *Network) clock() int64 { return int64(time.Since(n.start)) + 1 }

// patience returns for how long the loop may sleep, in milliseconds.
func (n *Network) patience() int {
	if n.beats != nil {
		return 0
	}
	until := n.sweep
	if n.load != nil {
		if n.load.open() {
			return 0
		}
		until = min(until, n.load.until())
	}
	return int(max(until-n.now+int64(time.Millisecond)-1, 0) / int64(time.Millisecond))
}

// waker makes the loop take a turn.
type waker struct {
	mu sync.Mutex // guards fd, which others must not write to once it is closed
	fd int        // an eventfd; -1 when closed
}

func (w *waker) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd >= 0 {
		_, _ = unix.Write(w.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

func (w *waker) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	unix.Close(w.fd)
	w.fd = -1
}

// obey runs the work of other goroutines.
func (n *Network) obey() {
	var b [8]byte
	_, _ = unix.Read(n.waker.fd, b[:])
	for {
		select {
		case f := <-n.do:
			f()
		default:
			return
		}
	}
}

// ErrStopped is returned by methods of a Network whose Run has ended.
var ErrStopped = errors.New("simulated network: stopped")

// call runs f on the loop and waits for it.
func (n *Network) call(ctx context.Context, f func()) error {
	ran := make(chan struct{})
	select {
	case n.do <- func() { f(); close(ran) }:
		n.waker.wake()
	case <-n.done:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-ran:
		return nil
	case <-n.done:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sweepAll looks after what nothing else wakes the loop for.
func (n *Network) sweepAll() {
	for _, nd := range n.nodes {
		nd.tend()
	}
}

// close ends all connections.
func (n *Network) close() {
	for _, nd := range n.nodes {
		if nd.fd >= 0 {
			unix.Close(nd.fd)
			nd.fd = -1
		}
	}
	unix.Close(n.epoll)
	close(n.done)
	n.waker.close()
}

// Stats returns the counts so far.
func (n *Network) Stats(ctx context.Context) (s Stats, err error) {
	err = n.call(ctx, func() {
		s = n.stats
		for _, nd := range n.nodes {
			s.Entries += len(nd.table.entries)
		}
	})
	return s, err
}

// WaitUp waits until all switches are connected and the controller has asked
// each for its features, and then until no message has come for the given
// time; some controllers never fall silent: ten times that is enough. The
// error says how far it got.
func (n *Network) WaitUp(ctx context.Context, quiet time.Duration) error {
	var last Stats
	up := time.Duration(0)
	for {
		s, err := n.Stats(ctx)
		if err == nil {
			last = s
			now := time.Since(n.start)
			if s.Up == len(n.nodes) && up == 0 {
				up = now
			}
			if s.Up == len(n.nodes) && (now-s.LastMessage >= quiet || now-up >= 10*quiet) {
				return nil
			}
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
				continue
			}
		}
		if ctx.Err() != nil {
			why := ""
			if last.LastLoss != "" {
				why = "; last loss: " + last.LastLoss
			}
			return fmt.Errorf("%d of %d switches up at %s%s: %w", last.Up, len(n.nodes), n.cfg.Address, why, ctx.Err())
		}
		return err
	}
}

// jitter spreads a delay over half to one and a half times itself.
func jitter(d time.Duration) int64 { return int64(d)/2 + rand.Int64N(int64(d)) }

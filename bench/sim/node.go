package sim

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/openflow"
)

// phase is how far a connection has come.
type phase uint8

const (
	phaseDown       phase = iota // to be connected at node.next
	phaseConnecting              // TCP is at work
	phaseHello                   // hello sent, none received
	phaseOpen                    // versions agreed
	phaseUp                      // the controller has asked for the features
)

// node is one simulated switch.
type node struct {
	net   *Network
	index int
	dpid  flow.DPID
	ports []port
	hosts []endpoint // those that are silent last
	loud  int        // how many are not
	table table

	fd      int
	phase   phase
	events  uint32 // that epoll watches for
	next    int64  // when to connect
	losses  int    // of connections, in a row
	heard   int64  // when something was last received
	probed  bool   // an echo request is out
	partial []byte // the start of a message
	pending []byte // what could not be written yet
	dirty   bool   // it is in net.dirty
	version openflow.Version
	xid     uint32

	role        openflow.Role
	generation  uint64
	generations bool // generation has been given
	async       openflow.Async
	missLen     uint16
	flags       uint16

	track tracker
	gen   generator
	beat  beat
}

func newNode(n *Network, index int, s Switch) *node {
	nd := &node{net: n, index: index, dpid: s.DPID, fd: -1, ports: make([]port, s.Ports), version: n.cfg.Version}
	nd.table.init(n.cfg.Entries, n.cfg.Groups)
	for i := range nd.ports {
		nd.ports[i] = newPort(s.DPID, flow.Port(i+1))
	}
	return nd
}

// maxPending is how much may wait to be written before the switch stops
// reading: a controller that does not read is not read either.
const maxPending = 4 << 20

// tend connects, probes and gives up a connection when it is time.
func (nd *node) tend() {
	now := nd.net.now
	switch nd.phase {
	case phaseDown:
		if now >= nd.next {
			nd.connect()
		}
	case phaseConnecting, phaseHello:
		if now-nd.heard > int64(connectWithin) {
			nd.lose(errors.New("no hello in time"))
		}
	default:
		switch idle := now - nd.heard; {
		case idle > int64(giveUpAfter):
			nd.lose(fmt.Errorf("nothing heard for %v", giveUpAfter))
		case idle > int64(echoAfter) && !nd.probed:
			nd.probed = true
			nd.queue(nd.version.AppendEchoRequest(nd.pending, nd.newXid(), nil))
		}
		nd.table.age(nd, now)
	}
}

// connect starts a connection.
func (nd *node) connect() {
	family, proto := unix.AF_INET, unix.IPPROTO_TCP
	switch nd.net.to.(type) {
	case *unix.SockaddrInet6:
		family = unix.AF_INET6
	case *unix.SockaddrUnix:
		family, proto = unix.AF_UNIX, 0
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		nd.lose(fmt.Errorf("socket: %w; is the limit of open files (ulimit -n) too low?", err))
		return
	}
	nd.fd, nd.phase, nd.heard = fd, phaseConnecting, nd.net.now
	if family != unix.AF_UNIX {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
	if err := unix.Connect(fd, nd.net.to); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		nd.lose(err)
		return
	}
	nd.events = unix.EPOLLIN | unix.EPOLLOUT
	if err := nd.net.watch(fd, nd.index, nd.events); err != nil {
		nd.lose(err)
	}
}

// lose ends the connection and plans the next one.
func (nd *node) lose(why error) {
	if nd.fd >= 0 {
		unix.Close(nd.fd)
		nd.fd = -1
	}
	if nd.phase == phaseUp {
		nd.net.stats.Up--
	}
	if nd.net.beats != nil {
		nd.net.beats.lost(nd, nd.net.now)
	}
	if nd.phase >= phaseHello {
		nd.net.stats.Lost++
	}
	nd.net.stats.LastLoss = fmt.Sprintf("switch %v: %v", nd.dpid, why)
	nd.phase, nd.probed, nd.role = phaseDown, false, openflow.RoleEqual
	nd.partial, nd.pending = nd.partial[:0], nd.pending[:0]
	nd.losses++
	nd.next = nd.net.now + int64(backoff.Exponential{First: retryFrom, Last: retryTo}.After(nd.losses))/2 + jitter(retryFrom)
}

// ready does what epoll says can be done.
func (nd *node) ready(events uint32) {
	if nd.fd < 0 {
		return // lost earlier in this turn
	}
	if nd.phase == phaseConnecting {
		if code, err := unix.GetsockoptInt(nd.fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || code != 0 {
			nd.lose(unix.Errno(code))
			return
		}
		if events&unix.EPOLLOUT == 0 {
			return
		}
		nd.greet()
	}
	if events&(unix.EPOLLIN|unix.EPOLLHUP|unix.EPOLLERR) != 0 && !nd.read() {
		return
	}
	nd.flush()
}

// greet sends the hello of a new connection.
func (nd *node) greet() {
	nd.net.stats.Connects++
	nd.phase, nd.heard, nd.version = phaseHello, nd.net.now, nd.net.cfg.Version
	nd.role, nd.generations, nd.missLen, nd.flags = openflow.RoleEqual, false, 128, 0
	nd.async = defaultAsync
	nd.queue(nd.version.AppendHello(nd.pending, nd.newXid(), nd.version), nil)
}

// newXid returns a transaction id of the switch's own.
func (nd *node) newXid() uint32 {
	nd.xid++
	return nd.xid
}

// read takes what has arrived; false if the connection is gone.
func (nd *node) read() bool {
	n := nd.net
	have := copy(n.in, nd.partial)
	n.arrived = n.now
	var k int
	var err unix.Errno
	if n.beats != nil {
		var at int64
		if k, at, err = n.stamps.read(nd.fd, n.in[have:]); at != 0 {
			n.arrived = min(n.now, at-n.start.UnixNano()+1)
		}
	} else {
		k, err = readNow(nd.fd, n.in[have:])
	}
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return true
	case err != 0:
		nd.lose(err)
		return false
	case k == 0:
		nd.lose(errors.New("closed by the controller"))
		return false
	}
	nd.heard, nd.probed = n.now, false
	rest, bad := nd.take(n.in[:have+k])
	if bad != nil {
		nd.flush()
		nd.lose(bad)
		return false
	}
	if nd.fd < 0 {
		return false
	}
	nd.partial = append(nd.partial[:0], rest...)
	return true
}

// take handles the messages in b and returns what is left.
func (nd *node) take(b []byte) ([]byte, error) {
	n := nd.net
	open := nd.phase >= phaseOpen
	for len(b) >= openflow.HeaderLen {
		size := int(binary.BigEndian.Uint16(b[2:]))
		if size < openflow.HeaderLen {
			return nil, fmt.Errorf("message of %d octets: shorter than its header", size)
		}
		if len(b) < size {
			break
		}
		msg := b[:size:size]
		b = b[size:]
		if kind := openflow.Type(msg[1]); open && n.load != nil && msg[0] == byte(nd.version) &&
			(kind == openflow.TypeFlowMod || kind == openflow.TypePacketOut) {
			switch a := n.load.layout.answer(msg); a.kind {
			case byBuffer, byFrame:
				n.load.settle(nd, a, msg)
				continue
			case nameless: // not installed: a load would fill any table
				n.load.counts.Nameless++
				continue
			}
		}
		n.stats.Received++
		n.stats.LastMessage = durationOf(n.now)
		if err := nd.handle(msg); err != nil {
			return nil, err
		}
		if nd.fd < 0 {
			return nil, nil
		}
		open = nd.phase >= phaseOpen
	}
	return b, nil
}

// queue keeps what has been appended to nd.pending for the end of this turn.
// An encoder's error means that the switch has more to say than fits: the
// message is left out.
func (nd *node) queue(pending []byte, err error) {
	if err == nil {
		nd.pending = pending
	}
	if !nd.dirty {
		nd.dirty = true
		nd.net.dirty = append(nd.net.dirty, nd)
	}
}

// flush writes what is pending and, when that is out, packet-ins of the load.
func (nd *node) flush() {
	if nd.fd < 0 || nd.phase == phaseConnecting {
		return
	}
	if len(nd.pending) > 0 {
		k, ok := nd.write(nd.pending)
		if !ok {
			return
		}
		nd.pending = nd.pending[:copy(nd.pending, nd.pending[k:])]
	}
	if len(nd.pending) == 0 && nd.net.load != nil && nd.phase == phaseUp {
		nd.net.load.feed(nd)
	}
	nd.interest()
}

// write writes b as far as the socket takes it; false if the connection is gone.
func (nd *node) write(b []byte) (int, bool) {
	k, err := writeNow(nd.fd, b)
	switch err {
	case 0:
		return k, true
	case unix.EAGAIN, unix.EINTR:
		return 0, true
	}
	nd.lose(err)
	return 0, false
}

// interest tells epoll what the switch waits for.
func (nd *node) interest() {
	if nd.fd < 0 {
		return
	}
	want := uint32(unix.EPOLLIN)
	if len(nd.pending) > 0 {
		want |= unix.EPOLLOUT
	}
	if len(nd.pending) > maxPending {
		want &^= unix.EPOLLIN
	}
	if want != nd.events {
		nd.events = want
		if err := unix.EpollCtl(nd.net.epoll, unix.EPOLL_CTL_MOD, nd.fd, &unix.EpollEvent{Events: want, Fd: int32(nd.index)}); err != nil {
			nd.lose(err)
		}
	}
}

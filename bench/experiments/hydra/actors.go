package hydra

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/services/paths"
	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/grpc"
	"github.com/weft-sdn/weft/transport/inproc"
	"github.com/weft-sdn/weft/transport/rest"
	"github.com/weft-sdn/weft/transport/shm"
	"github.com/weft-sdn/weft/transport/ws"
)

// summarised is the method by which a partition gets the summary of another.
const summarised = "paths.PartitionSummary"

// actor is one partition: a goroutine of its own, which alone touches the area.
// It hears of its links from the experiment and of other partitions by messages
// over a transport, as it would if it were a process.
type actor struct {
	area  *paths.Area
	group *actors
	index int
	mail  chan letter
	peers []transport.Conn // to all others; nil for itself
	close []func() error

	// What it has taken in, as the experiment may see it; written by the actor.
	handled atomic.Uint64   // the last change of links
	version atomic.Uint64   // of its summary
	applied []atomic.Uint64 // by partition: the version of what it has computed with
}

// letter is what an actor gets: a change of links, or a message.
type letter struct {
	change uint64 // its number; 0: a message
	links  []paths.Link
	lost   bool
	octets []byte
}

// actors are all partitions of a network.
type actors struct {
	list    []*actor
	whole   atomic.Bool // everything is computed from nothing
	cancel  context.CancelFunc
	wait    sync.WaitGroup
	changes uint64
	ended   chan time.Time // told when all have converged

	messages, octets atomic.Uint64
	mu               sync.Mutex // guards what is below
	told             []*actor   // whom the change under way was told
	waiting          bool
	failure          error
}

// transportNamed returns a transport and an address to listen at by it.
func transportNamed(name string, index int, network *inproc.Network) (transport.Transport, string, error) {
	const local = "127.0.0.1:0"
	patient := transport.Heartbeat{Interval: 10 * time.Second, Dead: time.Minute} // on a machine that is busy with else
	switch name {
	case "inproc":
		return network, fmt.Sprint("partition-", index), nil
	case "grpc":
		t := grpc.New(nil)
		t.Heartbeat = patient
		return t, local, nil
	case "ws":
		t := ws.New(nil)
		t.Heartbeat = patient
		return t, local, nil
	case "shm":
		t := shm.New(nil)
		t.Heartbeat = patient
		return t, fmt.Sprintf("unix:@weft-hydra-%d-%d", os.Getpid(), index), nil
	case "rest":
		t := rest.New(nil)
		t.Heartbeat = patient
		return t, local, nil
	}
	return nil, "", fmt.Errorf("transport %s: summaries are sent over grpc, ws, rest, shm or inproc here", name)
}

// startActors connects the partitions of a converged hierarchy, each to all
// others by a transport, and starts them.
func startActors(ctx context.Context, h *paths.Hierarchy, name string) (g *actors, err error) {
	ctx, cancel := context.WithCancel(ctx)
	g = &actors{cancel: cancel, ended: make(chan time.Time, 1)}
	defer func() {
		if err != nil {
			g.stop()
		}
	}()
	network := inproc.New()
	var addresses []string
	for i, p := range h.Partitions() {
		a := &actor{area: h.Area(p), group: g, index: i, mail: make(chan letter, 4*len(h.Partitions())), applied: make([]atomic.Uint64, len(h.Partitions()))}
		g.list = append(g.list, a)
		t, address, err := transportNamed(name, i, network)
		if err != nil {
			return g, err
		}
		l, err := t.Listen(address, handler{a, ctx})
		if err != nil {
			return g, err
		}
		a.close = append(a.close, l.Close)
		addresses = append(addresses, l.Address())
	}
	for i, a := range g.list {
		t, _, err := transportNamed(name, i, network)
		if err != nil {
			return g, err
		}
		for j, address := range addresses {
			if i == j {
				a.peers = append(a.peers, nil)
				continue
			}
			conn, err := t.Dial(ctx, address)
			if err != nil {
				return g, err
			}
			a.peers = append(a.peers, conn)
			a.close = append(a.close, conn.Close)
		}
		for j, p := range h.Partitions() {
			a.applied[j].Store(h.Area(p).Summary().Version)
		}
		a.version.Store(a.area.Summary().Version)
	}
	for _, a := range g.list {
		g.wait.Go(func() { a.run(ctx) })
	}
	return g, nil
}

// stop ends the actors and their connections.
func (g *actors) stop() {
	g.cancel()
	for _, a := range g.list {
		for i := range a.close { // connections before the listener
			_ = a.close[len(a.close)-1-i]() // nothing is under way
		}
	}
	g.wait.Wait()
}

// handler takes what peers send to an actor.
type handler struct {
	*actor
	ctx context.Context
}

// Call takes a summary.
func (h handler) Call(_ context.Context, _ string, octets []byte) ([]byte, error) {
	select {
	case h.mail <- letter{octets: bytes.Clone(octets)}:
	case <-h.ctx.Done():
	}
	return nil, h.ctx.Err()
}

// run takes what comes, all that waits at a time.
func (a *actor) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-a.mail:
			if err := a.take(ctx, l); err != nil {
				a.group.fail(fmt.Errorf("partition %s: %w", a.area.Partition(), err))
			}
		}
	}
}

// take takes a letter and all that wait behind it: what they change is computed
// once, and told.
func (a *actor) take(ctx context.Context, first letter) error {
	versions := map[int]uint64{}
	handled := uint64(0)
	for l, more := first, true; more; {
		if l.change == 0 {
			index, version, err := a.learn(l.octets)
			if err != nil {
				return err
			}
			versions[index] = version
		}
		for _, x := range l.links {
			if l.lost {
				a.area.RemoveLink(x.Src, x.Dst)
			} else {
				a.area.SetLink(x)
			}
		}
		handled = max(handled, l.change)
		select {
		case l = <-a.mail:
		default:
			more = false
		}
	}
	if a.group.whole.Load() {
		a.area.Discard()
	}
	if s, changed := a.area.Inside(); changed {
		a.version.Store(s.Version)
		versions[a.index] = s.Version
		delivered, err := a.tell(ctx, s)
		if err != nil {
			return err
		}
		defer delivered.Wait() // before the next summary, so that they come in order
	}
	a.area.Outside()
	for i, v := range versions {
		a.applied[i].Store(v)
	}
	if handled > 0 {
		a.handled.Store(handled)
	}
	a.group.check()
	return nil
}

// learn takes in a message.
func (a *actor) learn(octets []byte) (index int, version uint64, err error) {
	m := &api.PartitionSummary{}
	if err := proto.Unmarshal(octets, m); err != nil {
		return 0, 0, err
	}
	s, err := paths.SummaryOf(m)
	if err != nil {
		return 0, 0, err
	}
	if _, err := a.area.Learn(s); err != nil {
		return 0, 0, err
	}
	for i, other := range a.group.list {
		if other.area.Partition() == s.Partition {
			return i, s.Version, nil
		}
	}
	return 0, 0, fmt.Errorf("a summary of %s, which there is not", s.Partition)
}

// tell sends a summary to all others at once; delivered is done when all have
// it.
func (a *actor) tell(ctx context.Context, s *paths.Summary) (delivered *sync.WaitGroup, err error) {
	octets, err := proto.Marshal(s.Message())
	if err != nil {
		return nil, err
	}
	delivered = &sync.WaitGroup{}
	for _, conn := range a.peers {
		if conn == nil {
			continue
		}
		delivered.Go(func() {
			if _, err := conn.Call(ctx, summarised, octets); err != nil {
				a.group.fail(fmt.Errorf("partition %s: %w", a.area.Partition(), err))
			}
		})
		a.group.messages.Add(1)
		a.group.octets.Add(uint64(len(octets)))
	}
	return delivered, nil
}

// fail ends the wait for convergence with an error.
func (g *actors) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failure == nil {
		g.failure = err
	}
	g.end()
}

// end tells that the wait is over. It is called with the lock.
func (g *actors) end() {
	if g.waiting {
		g.waiting = false
		g.ended <- time.Now()
	}
}

// check tells when all have converged: whom the change was told have handled it,
// and everybody has computed with the last that everybody has told. Every actor
// calls it when it has done something.
func (g *actors) check() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.waiting {
		return
	}
	for _, a := range g.told {
		if a.handled.Load() != g.changes {
			return
		}
	}
	for j, teller := range g.list { // only who was told has anything to tell
		version := teller.version.Load()
		if version != teller.applied[j].Load() {
			return
		}
		for _, a := range g.list {
			if a.applied[j].Load() != version {
				return
			}
		}
	}
	g.end()
}

// convergence is what it took.
type convergence struct {
	took             time.Duration
	messages, octets uint64
}

// change tells the partitions concerned of links that are lost or have come, and
// waits until all have converged.
func (g *actors) change(ctx context.Context, concerned []*paths.Area, links []paths.Link, lost bool) (convergence, error) {
	g.mu.Lock()
	g.changes++
	g.told = nil
	for _, a := range g.list {
		for _, area := range concerned {
			if a.area == area {
				g.told = append(g.told, a)
			}
		}
	}
	g.waiting = true
	told, number := g.told, g.changes
	g.mu.Unlock()
	messages, octets := g.messages.Load(), g.octets.Load()
	began := time.Now()
	for _, a := range told {
		select {
		case a.mail <- letter{change: number, links: links, lost: lost}:
		case <-ctx.Done():
			return convergence{}, ctx.Err()
		}
	}
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	select {
	case at := <-g.ended:
		g.mu.Lock()
		defer g.mu.Unlock()
		return convergence{at.Sub(began), g.messages.Load() - messages, g.octets.Load() - octets}, g.failure
	case <-ctx.Done():
		return convergence{}, ctx.Err()
	case <-limit.C:
		return convergence{}, fmt.Errorf("%d partitions have not converged within a minute", len(g.list))
	}
}

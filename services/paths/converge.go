package paths

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/object"
)

// gatherFor is how long what has been gained waits for more: at start, and
// when a switch returns, links come by the hundred. A loss does not wait, unless
// it follows others so fast that nothing would be done but converge.
const gatherFor = 10 * time.Millisecond

// restFor is how long changes are gathered after a convergence, as a multiple
// of its duration.
const restFor = 3

// A paths service that has just started receives the network from the
// beginning, in many events. Until they have arrived it knows only a part: it
// publishes nothing and answers nothing, because others would act on it. They
// have arrived when none has come for quietFor; if none come at all, after
// heardWithin.
const (
	quietFor    = 50 * time.Millisecond
	heardWithin = time.Second
)

// pathsMax bounds the paths of one answer.
const pathsMax = 64

// convergence turns changes of links into new topologies and publishes them.
type convergence struct {
	part    *part // nil: it computes the paths of the whole network
	publish func(*api.PathsConverged)
	wake    chan struct{}
	heard   chan struct{}   // closed when the network has been received
	over    <-chan struct{} // closed when the service ends

	mu             sync.Mutex // guards writing graph, and all below
	graph          *Graph
	said           statements
	gained, lost   []*api.Link
	since          time.Time // when the first of lost was reported
	resting        time.Time // until then changes are gathered
	told           uint64    // events published
	telling        bool      // heard is closed
	last           time.Time // of the events
	switches, some bool      // there have been events about switches, about links
}

// newConvergence returns one whose topologies have versions from first on.
func newConvergence(first uint64, publish func(*api.PathsConverged)) *convergence {
	return &convergence{publish: publish, wake: make(chan struct{}, 1), heard: make(chan struct{}), graph: newGraph(first)}
}

// listen waits until the network has been received, and publishes it.
func (c *convergence) listen(ctx context.Context) {
	began := time.Now()
	tick := time.NewTicker(quietFor / 5)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			c.mu.Lock()
			if c.switches && c.some && now.Sub(c.last) >= quietFor || now.Sub(began) >= heardWithin {
				c.tell(now)
				c.mu.Unlock()
				return
			}
			c.mu.Unlock()
		}
	}
}

// tell starts publishing and answering. The caller holds the lock.
func (c *convergence) tell(now time.Time) {
	c.telling = true
	c.converge(now)
	close(c.heard)
}

// ready waits until answers are worth giving.
func (c *convergence) ready(ctx context.Context) error {
	return c.await(ctx, c.heard, "the network")
}

// await waits for what a service that has just started does not know yet. It waits no
// longer than the service runs: the caller then asks its successor.
func (c *convergence) await(ctx context.Context, known <-chan struct{}, what string) error {
	select {
	case <-known:
		return nil
	default:
	}
	select {
	case <-known:
		return nil
	case <-c.over:
		return api.Errorf(codes.Unavailable, "paths ends before it knows %s", what)
	case <-ctx.Done():
		return api.Errorf(codes.Unavailable, "paths has just started and does not know %s yet: %w", what, ctx.Err())
	}
}

// gather publishes gains that have waited long enough, until ctx ends.
func (c *convergence) gather(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		if backoff.Sleep(ctx, max(gatherFor, c.rest())) != nil {
			return
		}
		c.mu.Lock()
		c.converge(time.Now())
		c.mu.Unlock()
	}
}

// count returns how many topologies were published.
func (c *convergence) count() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told
}

// rest returns how long changes must still be gathered.
func (c *convergence) rest() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.resting)
}

func (c *convergence) later() { object.Notify(c.wake) }

// converge makes the next topology and publishes it if it has changed. The
// caller holds the lock, so that versions are published in order.
func (c *convergence) converge(began time.Time) {
	if !c.telling {
		return
	}
	if !c.since.IsZero() {
		began = c.since
	}
	start := time.Now()
	defer func() {
		end := time.Now()
		c.resting = end.Add(restFor * end.Sub(start))
	}()
	old := c.graph.Current()
	tree := old.Tree()
	now := c.graph.Snapshot()
	c.part.converge()
	gained, lost := c.gained, c.lost
	c.gained, c.lost, c.since = nil, nil, time.Time{}
	if now == old && len(lost) == 0 && len(gained) == 0 {
		return
	}
	c.told++
	c.publish(&api.PathsConverged{
		Version: now.Version(), Lost: lost, Gained: gained, TreeChanged: now.Tree() != tree,
		TookUs: uint64(time.Since(began).Microseconds()),
	})
}

func (c *convergence) switchChanged(e *api.SwitchChanged) {
	sw, err := flow.ParseDPID(e.Switch.Dpid)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.switches, c.last = true, time.Now()
	if e.Switch.Connected {
		c.graph.AddSwitch(sw)
		c.part.addSwitch(sw)
		c.later()
		return
	}
	c.graph.RemoveSwitch(sw)
	c.part.removeSwitch(sw)
	c.losing(time.Now())
}

func (c *convergence) linkChanged(e *api.LinkChanged, now time.Time) {
	src, dst := e.Link.Src.Flow(), e.Link.Dst.Flow()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.some, c.last = true, now
	c.said.note(e)
	if !e.Removed && (e.Link.Usable() || e.Link.State == "one_way") {
		// The graph itself sees to it that both directions are there.
		if l := (Link{Src: src, Dst: dst, Weight: min(e.Link.Weight, MaxWeight)}); c.graph.SetLink(l) {
			c.part.setLink(l, c.graph)
			c.gained = append(c.gained, e.Link)
			c.later()
		}
		return
	}
	usable := c.graph.usable(src, dst)
	if !c.graph.RemoveLink(src, dst) {
		return
	}
	c.part.removeLink(src, dst, c.graph)
	c.gained = slices.DeleteFunc(c.gained, func(l *api.Link) bool { return l.Src.Flow() == src && l.Dst.Flow() == dst })
	if !usable { // its other direction has gone before, with which both were lost
		return
	}
	back := &api.Link{Src: e.Link.Dst, Dst: e.Link.Src, State: e.Link.State, Weight: e.Link.Weight, Since: e.Link.Since}
	if c.telling {
		c.lost = append(c.lost, e.Link, back)
	}
	c.losing(now)
}

// losing converges after a loss: at once, unless that was just done.
func (c *convergence) losing(now time.Time) {
	if !c.telling {
		return
	}
	if c.since.IsZero() {
		c.since = now
	}
	if now.Before(c.resting) {
		c.later()
		return
	}
	c.converge(now)
}

func (c *convergence) findPath(ctx context.Context, req *api.FindPathRequest) (*api.FindPathResponse, error) {
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	src, err := flow.ParseDPID(req.Src)
	if err == nil && !c.has(src) {
		return nil, api.Errorf(codes.NotFound, "switch %v is not connected", src)
	}
	dst, err2 := flow.ParseDPID(req.Dst)
	if err2 == nil && !c.has(dst) {
		return nil, api.Errorf(codes.NotFound, "switch %v is not connected", dst)
	}
	if err != nil || err2 != nil {
		return nil, api.Errorf(codes.InvalidArgument, "path from %q to %q: want two datapath ids of 16 hex digits", req.Src, req.Dst)
	}
	if req.Count > pathsMax {
		return nil, api.Errorf(codes.InvalidArgument, "count %d: want at most %d", req.Count, pathsMax)
	}
	t := c.graph.Current()
	var found []Path
	switch {
	case req.Kind != "" && req.Kind != "shortest" && req.Kind != "disjoint":
		return nil, api.Errorf(codes.InvalidArgument, "kind %q: want shortest or disjoint", req.Kind)
	case req.Kind == "disjoint":
		found = t.Disjoint(src, dst, max(1, int(req.Count)))
	case req.Count > 1:
		found = t.KShortest(src, dst, int(req.Count))
	case c.part != nil:
		return c.findAcross(ctx, req, src, dst)
	default:
		if p, ok := t.Path(src, dst, req.Hash); ok {
			found = []Path{p}
		}
	}
	resp := &api.FindPathResponse{Version: t.Version()}
	for _, p := range found {
		cost, err := t.Weight(p)
		if err != nil {
			return nil, api.Errorf(codes.Internal, "computed path is not one: %w", err)
		}
		resp.Paths = append(resp.Paths, p.message(cost))
	}
	return resp, nil
}

// message returns the API's form of a path.
func (p Path) message(cost uint64) *api.Path {
	m := &api.Path{Cost: cost, Hops: make([]*api.Hop, len(p))}
	for i, h := range p {
		m.Hops[i] = &api.Hop{Dpid: h.Switch.String(), InPort: uint32(h.In), OutPort: uint32(h.Out)}
	}
	return m
}

func (c *convergence) getTree(ctx context.Context, _ *api.GetTreeRequest) (*api.Tree, error) {
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	t := c.graph.Current()
	resp := &api.Tree{Version: t.Version()}
	tree := t.Tree()
	for _, sw := range tree.Switches() {
		for _, p := range tree.Ports(sw) {
			resp.Ports = append(resp.Ports, api.NewLocation(flow.Location{Switch: sw, Port: p}))
		}
	}
	return resp, nil
}

package chain

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The bounds of a ping.
const (
	pingCount    = 5
	pingCountMax = 100
	pingEvery    = 100 * time.Millisecond
	pingEveryMin = time.Millisecond
	pingEveryMax = 10 * time.Second
	pingPatience = time.Second // for the last
)

// way is one direction through a copy, or the way to a switch and straight back, with
// the probes of one ping. The guard of the store guards it.
type way struct {
	id       uint32
	back     flow.Location // where they come back; without a port: straight
	sent     []time.Time
	received []time.Duration // in the order in which they came
	seen     map[uint32]bool
}

// took notes that a probe has come back.
func (w *way) took(number uint32, at flow.Location) bool {
	if int(number) >= len(w.sent) || w.seen[number] || at.Switch != w.back.Switch || w.back.Port != 0 && at != w.back {
		return false
	}
	w.seen[number] = true
	w.received = append(w.received, time.Since(w.sent[number]))
	return true
}

// ping is what is asked of a chain.
type ping struct {
	ways     map[uint32]*way
	straight map[flow.DPID]*way
	missing  int           // probes that have not come back, and one until all are sent
	all      chan struct{} // closed when none is missing
}

// newPing returns a ping without ways.
func newPing() *ping {
	return &ping{ways: map[uint32]*way{}, straight: map[flow.DPID]*way{}, missing: 1, all: make(chan struct{})}
}

// add adds a way. It is called with the guard held.
func (p *prober) add(g *ping, back flow.Location) *way {
	p.lastID++
	w := &way{id: p.lastID, back: back, seen: map[uint32]bool{}}
	g.ways[w.id], p.pings[w.id] = w, g
	return w
}

// answered takes a probe of a ping. It is called with the guard held.
func (p *prober) answered(id, number uint32, at flow.Location) {
	g := p.pings[id]
	if g == nil || !g.ways[id].took(number, at) {
		return
	}
	g.arrived()
}

// arrived notes that one that was missing is there. It is called with the guard held.
func (g *ping) arrived() {
	if g.missing--; g.missing == 0 {
		close(g.all)
	}
}

// emit appends a probe of a ping.
func (p *prober) emit(d *flow.Decision, g *ping, w *way, sw flow.DPID, in, out flow.Port, to direction) {
	p.out(d, sw, in, out, pinged, to, w.id, uint32(len(w.sent)))
	w.sent = append(w.sent, time.Now())
	g.missing++
}

// pingChain answers api.PingChain.
func (b *store) pingChain(ctx context.Context, q *api.PingChainRequest, send func(context.Context, *flow.Decision) error) (*api.PingChainResponse, error) {
	count, every := int(cmp.Or(q.Count, pingCount)), cmp.Or(time.Duration(q.IntervalUs)*time.Microsecond, pingEvery)
	switch {
	case count > pingCountMax:
		return nil, api.Errorf(codes.InvalidArgument, "count: %d: want 1 to %d", count, pingCountMax)
	case every < pingEveryMin || every > pingEveryMax:
		return nil, api.Errorf(codes.InvalidArgument, "interval: %v: want %v to %v", every, pingEveryMin, pingEveryMax)
	case b.cfg.ProbeInterval == 0:
		return nil, api.Errorf(codes.FailedPrecondition, "chain.probe_interval is 0, with which switches bring no probes back: set it, such as to 50ms")
	}
	b.mu.Lock()
	c := b.chains.Get(q.Name)
	if c == nil {
		b.mu.Unlock()
		return nil, api.Errorf(codes.NotFound, "there is no chain %q; weft chain list shows those that are", q.Name)
	}
	p := b.probes
	g := newPing()
	resp, ways := &api.PingChainResponse{}, map[*api.ChainPing]*way{}
	for i, f := range c.functions {
		for n, of := range f {
			for _, d := range directions {
				r := &api.ChainPing{Function: uint32(i + 1), Copy: uint32(n + 1), In: api.NewLocation(of.enters(d)), Out: api.NewLocation(of.enters(1 - d)), Back: d == back}
				resp.Ways = append(resp.Ways, r)
				ways[r] = p.add(g, of.enters(1-d))
				for _, at := range of.ports() {
					if g.straight[at.Switch] == nil {
						g.straight[at.Switch] = p.add(g, flow.Location{Switch: at.Switch})
					}
				}
			}
		}
	}
	b.mu.Unlock()
	defer p.forget(g)
	for n := range count {
		d := &flow.Decision{}
		b.mu.Lock()
		ends := map[flow.DPID]flow.Port{}
		for _, r := range resp.Ways {
			in, out := r.In.Flow(), r.Out.Flow()
			to := forward
			if r.Back {
				to = back
			}
			p.emit(d, g, ways[r], in.Switch, flow.PortController, in.Port, to)
			ends[in.Switch], ends[out.Switch] = in.Port, out.Port
		}
		for sw, w := range g.straight {
			p.emit(d, g, w, sw, ends[sw], flow.PortController, forward)
		}
		if n == count-1 {
			g.arrived()
		}
		b.mu.Unlock()
		if err := send(ctx, d); err != nil {
			return nil, err
		}
		if n < count-1 {
			if err := pause(ctx, every, nil); err != nil {
				return nil, err
			}
		}
	}
	if err := pause(ctx, pingPatience, g.all); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for r, w := range ways {
		w.report(r, g)
	}
	return resp, nil
}

// report writes what has become of the probes of a way. It is called with the guard held.
func (w *way) report(r *api.ChainPing, g *ping) {
	r.Sent, r.Received = uint32(len(w.sent)), uint32(len(w.received))
	control := (g.straight[r.In.Flow().Switch].least() + g.straight[r.Out.Flow().Switch].least()) / 2
	r.ControlUs = uint32(control.Microseconds())
	for _, t := range w.received {
		r.DelaysUs = append(r.DelaysUs, uint32(max(0, t-control).Microseconds()))
	}
}

// least is the shortest time that a probe took; 0 if none came back.
func (w *way) least() time.Duration {
	if w == nil || len(w.received) == 0 {
		return 0
	}
	return slices.Min(w.received)
}

// pause waits for a time, or until a channel is closed.
func pause(ctx context.Context, d time.Duration, done <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
	case <-t.C:
	}
	return nil
}

// forget lets no more probes of a ping count.
func (p *prober) forget(g *ping) {
	p.guard.Lock()
	defer p.guard.Unlock()
	for id := range g.ways {
		delete(p.pings, id)
	}
}

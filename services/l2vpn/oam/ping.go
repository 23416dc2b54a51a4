package oam

import "github.com/weft-sdn/weft/flow"

// A Ping is some probes that somebody has asked for, through one lane.
type Ping struct {
	lane   *lane
	delays []int64 // ns, by number; -1 has not come back
	sent   []int64
	left   int
	done   chan struct{} // closed when all have come back, or the lane is gone
	ended  bool
}

// NewPing returns a ping of n probes through a lane; nil if there is no such lane.
func (p *Prober) NewPing(id uint32, n int) *Ping {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lanes[id]
	if l == nil {
		return nil
	}
	g := &Ping{lane: l, left: n, done: make(chan struct{}), delays: make([]int64, n), sent: make([]int64, n)}
	for i := range g.delays {
		g.delays[i] = -1
	}
	l.pings = append(l.pings, g)
	return g
}

// Send appends the ping's probe of a number to d, with a frame of a length; the
// label's header counts. The frame is valid until d is sent.
func (p *Prober) Send(now int64, d *flow.Decision, g *Ping, i, length int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g.sent[i] = now
	frame := p.signer.appendFrame(nil, g.lane.Label, probe{kindPing, g.lane.id, uint32(i), now}, length)
	d.PacketOut(g.lane.From, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Data: frame, Actions: d.Actions(flow.ToGroup(g.lane.Group))})
	p.counts.Sent++
}

// arrive enters the return of a probe; false if it is not one of these.
func (g *Ping) arrive(seq uint32, sent, delay int64) bool {
	if int(seq) >= len(g.delays) || g.sent[seq] != sent || g.delays[seq] >= 0 {
		return false
	}
	g.delays[seq] = delay
	if g.left--; g.left == 0 {
		g.end()
	}
	return true
}

func (g *Ping) end() {
	if !g.ended {
		g.ended = true
		close(g.done)
	}
}

// Done is closed when all probes have come back, or the lane is gone.
func (g *Ping) Done() <-chan struct{} { return g.done }

// End returns the delays, in nanoseconds, of the probes; -1 of those that have not
// come back.
func (p *Prober) End(g *Ping) []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, o := range g.lane.pings {
		if o == g {
			g.lane.pings = append(g.lane.pings[:i], g.lane.pings[i+1:]...)
			break
		}
	}
	g.end()
	return g.delays
}

package l2vpn

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/l2vpn/oam"
)

// way is one direction of a circuit, from an end to another, by their indexes.
type way struct {
	circuit  string
	from, to int
}

// An observer has the circuits probed, and says what the probes say.
type observer struct {
	b     *store
	p     *oam.Prober
	now   func() int64
	send  func(context.Context, *flow.Decision) error
	every time.Duration // between two looks at what is due

	lanes map[way]lane // b.mu guards it
}

// lane is a way that is probed.
type lane struct {
	oam.Lane
	id uint32
}

// newObserver returns an observer whose probes nobody else can make: their key is
// of this run, and probes of an earlier one are not ours any more.
func newObserver(b *store, send func(context.Context, *flow.Decision) error) *observer {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	begun := time.Now()
	return &observer{b: b, p: oam.NewProber(b.cfg.probes(), key), send: send, every: probeTick, lanes: map[way]lane{},
		now: func() int64 { return int64(time.Since(begun)) + 1 }}
}

// Times of probing.
const (
	probeTick    = 20 * time.Millisecond // between two batches of probes
	probeTimeout = time.Second           // after which a probe is lost
	judgeEvery   = time.Second
	judgeWindow  = 20 // how many of the last probes a judgement is of
	judgeLeast   = 5  // and how many at least
)

// takes takes a probe back; it returns false for other packets.
func (o *observer) takes(in *flow.PacketIn) bool {
	return in.Key.EthType == flow.EthTypeMPLS && o.p.Packet(o.now(), in)
}

// run sends probes and judges what comes back, until ctx ends.
func (o *observer) run(ctx context.Context) {
	probe(ctx, o.every, func() { o.follow(); o.judge() }, func(d *flow.Decision) { o.p.Due(o.now(), d) }, o.send)
}

// probe sends, at every tick, the probes that are due, and judges now and then what
// comes back, until ctx ends.
func probe(ctx context.Context, every time.Duration, judge func(), due func(*flow.Decision), send func(context.Context, *flow.Decision) error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var judged time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if now.Sub(judged) >= judgeEvery {
				judged = now
				judge()
			}
		}
		d := &flow.Decision{}
		if due(d); len(d.Outs) > 0 {
			_ = send(ctx, d) // a probe that is not sent says nothing
		}
	}
}

// follow probes the ways that there are now.
func (o *observer) follow() {
	b := o.b
	b.mu.Lock()
	defer b.mu.Unlock()
	want := map[way]oam.Lane{}
	for name, s := range b.status {
		o.ways(s, func(i, far int, l oam.Lane) { want[way{name, i, far}] = l })
	}
	for w, l := range o.lanes {
		if want[w] != l.Lane {
			o.p.Remove(l.id)
			delete(o.lanes, w)
		}
	}
	for w, l := range want {
		if _, there := o.lanes[w]; !there {
			o.lanes[w] = lane{l, o.p.Add(l)}
		}
	}
}

// meshed is the largest number of switches of a vpls where every pair is probed. With
// more, each switch is probed to and from the next by number.
const meshed = 16

// ways calls f for each way of a circuit that can be probed: both switches have all
// that belongs to it, and there is a tunnel. It is called with b.mu held.
func (o *observer) ways(s *status, f func(from, to int, l oam.Lane)) {
	c := s.circuit
	edges := c.edges()
	for i, near := range c.ends {
		for far, e := range c.ends {
			if len(edges) > meshed && !adjacent(edges, near.at.Switch, e.at.Switch) || c.first(near.at.Switch) != i || c.first(e.at.Switch) != far {
				continue // others are probed, or other ends have the same way
			}
			if l, ok := o.laneOf(s, i, far); ok {
				f(i, far, l)
			}
		}
	}
}

// laneOf returns the way of a circuit from one end to another; false if there is none that
// can be probed. It is called with b.mu held.
func (o *observer) laneOf(s *status, i, far int) (l oam.Lane, ok bool) {
	b, c := o.b, s.circuit
	group := b.tunnels.groupOf(c, i, far)
	if c.ends[i].at.Switch == c.ends[far].at.Switch || group == 0 {
		return l, false // nothing is between them, or no tunnel
	}
	for _, sw := range c.switches() {
		if !s.confirmed(sw) || !b.net.Info(sw).GetConnected() {
			return l, false
		}
	}
	l = oam.Lane{From: c.ends[i].at.Switch, To: c.ends[far].at.Switch, Group: group, Label: c.Members[far].Label}
	if hops := b.tunnels.between(c, i, far).GetPrimary().GetHops(); len(hops) > 0 {
		l.Out = flow.Port(hops[0].OutPort)
	}
	return l, true
}

// adjacent reports whether two switches follow each other in a list; the first follows
// the last.
func adjacent(list []flow.DPID, a, z flow.DPID) bool {
	i, j := slices.Index(list, a), slices.Index(list, z)
	return (i+1)%len(list) == j || (j+1)%len(list) == i
}

// first returns the first end at a switch.
func (c *circuit) first(sw flow.DPID) int {
	return slices.IndexFunc(c.ends, func(e end) bool { return e.at.Switch == sw })
}

// judge looks at what the last probes say of each circuit, and has those assessed
// of which it is something else than before.
func (o *observer) judge() {
	type sample struct {
		way
		last, long oam.Measure
	}
	b := o.b
	b.mu.Lock()
	lanes := maps.Clone(o.lanes)
	b.mu.Unlock()
	now := o.now()
	samples := make([]sample, 0, len(lanes))
	for w, l := range lanes { // nobody waits for this
		if m, ok := o.p.Measure(now, l.id, judgeWindow); ok {
			long, _ := o.p.Measure(now, l.id, oam.Window)
			samples = append(samples, sample{w, m, long})
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	measures := map[string]*measured{}
	for _, x := range samples {
		w := x.way
		if b.status[w.circuit] == nil {
			continue
		}
		at := measures[w.circuit]
		if at == nil {
			at = &measured{}
			measures[w.circuit] = at
		}
		at.add(x.long)
		at.judge(b.status[w.circuit], w, x.last, b.cfg)
	}
	for name, s := range b.status {
		had := s.measured
		s.measured = measures[name]
		if _, was := b.broken[name]; s.measured == nil || s.measured.bound == "" {
			delete(b.broken, name)
			s.detour = ""
		} else if !was {
			b.broken[name] = b.now()
		}
		if had.why() != s.measured.why() {
			b.assess(s)
		}
	}
}

// measured is what the probes of a circuit say: of all its ways, the worst.
type measured struct {
	delay *api.CircuitDelay
	loss  float64
	down  string // why nothing comes through; empty if something does
	bound string // which bound is broken; empty if none is
}

// why returns what is wrong; empty if nothing is.
func (m *measured) why() string {
	if m == nil {
		return ""
	}
	return m.down + m.bound
}

// add adds a way.
func (m *measured) add(x oam.Measure) {
	if x.Sent == 0 {
		return
	}
	m.loss = max(m.loss, x.Loss)
	if x.Sent > x.Lost && (m.delay == nil || x.P50 > m.delay.P50) {
		m.delay = &api.CircuitDelay{P50: x.P50, P99: x.P99, Max: x.Max, Jitter: x.Jitter}
	}
}

// A bound that is broken is so until what is measured is this much better: else a
// circuit at the bound would come and go.
const healed = 0.8

// judge compares a way with the bounds of its circuit.
func (m *measured) judge(s *status, w way, x oam.Measure, cfg *Config) {
	if x.Sent < judgeLeast {
		if s.measured != nil { // too few since it changed: what was said holds
			m.down, m.bound = s.measured.down, s.measured.bound
		}
		return
	}
	ends := s.circuit.Ends
	was := s.measured.why() != ""
	switch limit, most := cfg.MaxLoss, max(s.circuit.MaxDelayUs, s.circuit.ToleratedDelayUs); {
	case x.Lost == x.Sent:
		m.down = first(m.down, "the last %d probes from %s to %s are lost", x.Sent, ends[w.from], ends[w.to])
	case limit > 0 && (x.Loss > limit || was && x.Loss > limit*healed):
		m.bound = first(m.bound, "from %s to %s more than l2vpn.max_loss, %g, of the probes are lost", ends[w.from], ends[w.to], limit)
	case most > 0 && (x.P50 > most || was && float64(x.P50) > float64(most)*healed):
		m.bound = first(m.bound, "from %s to %s half of the probes take more than max_delay_us or tolerated_delay_us, %d", ends[w.from], ends[w.to], most)
	}
}

// first returns the first of two texts, in their order, so that of several ways the same
// is named each time; had may be empty.
func first(had, format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	if had != "" {
		return min(had, text)
	}
	return text
}

// probed reports whether a switch takes probes out: circuits end there that come
// from others. It is called with mu held.
func (b *store) probed(sw flow.DPID) bool {
	for name := range b.at[sw] {
		if slices.ContainsFunc(b.status[name].circuit.ends, func(e end) bool { return e.at.Switch != sw }) {
			return true
		}
	}
	return false
}

// probes adds the entry that gives the controller the probes of all circuits.
func (s *set) probes() {
	s.enter(0, flow.Entry{Table: flow.TableLabels, Priority: flow.PriorityCircuitProbe,
		Match: flow.Match{}.WithEthType(flow.EthTypeMPLS).WithMPLSBOS(1).WithMPLSTTL(flow.ProbeTTL),
		Apply: []flow.Action{flow.Output(flow.PortController)}})
}

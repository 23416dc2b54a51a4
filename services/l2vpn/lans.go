package l2vpn

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A switching is what is done about a vpls. Its tree changes in three steps, so that
// no frame is sent twice or in a circle: the switches of a new one have all its entries, with
// labels of its own; then the ends send to it; then the entries of the old one go.
type switching struct {
	*lan
	entered []arc   // of the tree that ends send to
	retired [][]arc // trees that they sent to before, still installed
	since   time.Time
	falls   time.Time // since when a tunnel of the tree has been down; zero if none is
	kept    []string  // what is stored of its senders; nil: they have changed
}

// The times of trees.
const (
	linger     = time.Second     // that a tree stays after the ends send to another
	replantGap = 3 * time.Second // that a tunnel of a tree is down before another tree is sought
	learnGap   = 100 * time.Millisecond
	mostTrees  = 4 // that are installed beside the one in use, while switches are away
)

// trees returns the trees that switches have entries of, that in use first.
func (s *switching) trees(c *circuit) (list [][]arc) {
	for _, t := range append([][]arc{s.entered, c.arcs()}, s.retired...) {
		if len(t) > 0 && !slices.ContainsFunc(list, func(o []arc) bool { return slices.Equal(o, t) }) {
			list = append(list, t)
		}
	}
	return list
}

// indexTrees enters the trees of a vpls at their switches, in the labels in use and
// in the tunnels that are wanted, or takes them out. It is called with mu held.
func (b *store) indexTrees(s *status, enter bool) {
	c, l := s.circuit, s.lan
	wished := b.tunnelsOf(c)
	for _, t := range l.trees(c) {
		for _, a := range t {
			note(b.at, a.to, c.Name, enter)
			if enter {
				b.alloc.labels.mark(a.to, a.label)
			} else {
				b.alloc.labels.give(a.to, a.label)
			}
			wished = append(wished, tunnelJoining(c, a.from, a.to))
		}
	}
	if enter {
		for _, sw := range c.edges() {
			note(b.at, sw, c.Name, true)
		}
	}
	b.wish(c, wished, enter)
	for i, m := range c.Members {
		at := tail{c.ends[i].at.Switch, m.Label}
		if b.tails[at] = c.Name; !enter {
			delete(b.tails, at)
		}
	}
}

// A tail is a label of an end at its switch.
type tail struct {
	sw    flow.DPID
	label uint32
}

// fabric returns what the entries of a vpls follow from.
func (s *status) fabric(cfg *Config, tunnels *tunnelTable) *fabric {
	return &fabric{circuit: s.circuit, lan: s.lan.lan, active: s.lan.entered, trees: s.lan.trees(s.circuit), storm: cfg.stormOf(s.circuit),
		group: func(from, to flow.DPID) uint32 {
			return usable(tunnels.known[tunnelJoining(s.circuit, from, to).Name])
		}}
}

// touched returns the switches that have, or should have, entries of a circuit.
func (s *status) touched() []flow.DPID {
	list := s.circuit.switches()
	if s.lan != nil {
		for _, t := range s.lan.trees(s.circuit) {
			for _, a := range t {
				list = append(list, a.to)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// step takes a vpls's change of tree on, if the one before is done. It is called
// with mu held.
func (b *store) step(s *status) {
	l, want := s.lan, s.circuit.arcs()
	settled := func(switches []flow.DPID, away bool) bool {
		return !slices.ContainsFunc(switches, func(sw flow.DPID) bool {
			return !s.confirmed(sw) && (away || b.net.Info(sw).GetConnected())
		})
	}
	switch {
	case s.phase != inForce:
	case !slices.Equal(l.entered, want):
		for _, a := range want {
			if usable(b.tunnels.known[tunnelJoining(s.circuit, a.from, a.to).Name]) == 0 {
				return
			}
		}
		if !settled(s.touched(), false) {
			return
		}
		b.indexTrees(s, false)
		if len(l.entered) > 0 {
			l.retired = append(l.retired, l.entered)
			l.retired = l.retired[max(0, len(l.retired)-mostTrees):]
		}
		l.entered, l.since = want, b.now()
		b.indexTrees(s, true)
		b.again(s)
	case len(l.retired) > 0 && b.now().Sub(l.since) >= linger && settled(s.circuit.edges(), true) && settled(s.touched(), false):
		gone := s.touched()
		b.indexTrees(s, false)
		l.retired = nil
		b.indexTrees(s, true)
		b.again(s)
		for _, sw := range gone {
			b.declare(sw, circuitPiece+s.circuit.Name)
		}
		b.kick()
	}
}

// again has the entries of a circuit declared. It is called with mu held.
func (b *store) again(s *status) {
	s.version++
	s.changed = b.now()
	b.redeclare(s)
}

// findLAN returns the state that a vpls has now, and why it is not up.
func (s *status) findLAN(net *network, tunnels *tunnelTable) (state, reason string) {
	c := s.circuit
	var degraded string
	left := len(c.ends)
	for _, e := range c.ends {
		why := net.unusable(e.at)
		if shut, is := s.lan.blocked[e]; why == "" && is {
			why = fmt.Sprintf("end %v is blocked until %s: %s", e, shut.until.UTC().Format(time.TimeOnly), shut.why)
		}
		if why != "" {
			left--
			degraded = why
		}
	}
	edges, arcs := c.edges(), c.arcs()
	switch {
	case left < 2:
		return "down", degraded
	case len(edges) > 1 && len(arcs) == 0:
		if _, err := net.plant(c); err != nil {
			return "down", err.Error()
		}
		return "requested", "its tree is being made"
	}
	for _, w := range tunnels.wishesOf(c) {
		t := tunnels.known[w.Name]
		switch {
		case t == nil && w.err != nil, t != nil && t.State == "down":
			why := t.GetReason()
			if t == nil {
				why = w.err.Error()
			}
			degraded = fmt.Sprintf("tunnel %s: %s", w.Name, why)
		case t == nil && !s.served:
			return "requested", fmt.Sprintf("tunnel %s is being made", w.Name)
		case t == nil:
			degraded = fmt.Sprintf("tunnel %s is being made", w.Name)
		case t.State == "degraded" && degraded == "":
			degraded = fmt.Sprintf("tunnel %s: %s", w.Name, t.Reason)
		case w.err != nil && degraded == "":
			degraded = fmt.Sprintf("tunnel %s: %v", w.Name, w.err)
		}
	}
	for _, sw := range s.touched() {
		if why := s.refused[sw]; why != "" {
			return "degraded", why
		}
		if !s.confirmed(sw) && net.Info(sw).GetConnected() && (s.state == "" || s.state == "requested") {
			return "requested", fmt.Sprintf("switch %v has not confirmed it yet", sw)
		}
	}
	if !slices.Equal(s.lan.entered, arcs) && degraded == "" {
		degraded = "frames to all ends go by the tree before, until all switches have the new one"
	}
	if degraded = cmp.Or(degraded, s.ring, s.defect); degraded == "" {
		degraded = s.measured.why()
	}
	if degraded != "" {
		return "degraded", degraded
	}
	return "up", ""
}

// withers reports whether the tree of a vpls does not join its ends, or has had a tunnel
// without a path for a while.
func (s *status) withers(tunnels *tunnelTable, now time.Time) bool {
	c, down := s.circuit, false
	for _, a := range c.arcs() {
		t := tunnels.known[tunnelJoining(c, a.from, a.to).Name]
		down = down || t.GetState() == "down"
	}
	switch {
	case !down:
		s.lan.falls = time.Time{}
	case s.lan.falls.IsZero():
		s.lan.falls = now
	}
	return len(c.edges()) > 1 && len(c.TreeLabels) == 0 || down && now.Sub(s.lan.falls) >= replantGap
}

// replant gives vpls new trees whose old ones have withered.
func (b *store) replant(ctx context.Context) {
	b.mu.Lock()
	var list []*circuit
	for _, s := range b.status {
		if s.lan != nil && s.withers(&b.tunnels, b.now()) {
			list = append(list, s.circuit)
		}
	}
	b.mu.Unlock()
	for _, c := range list {
		var undo []func()
		_, _, err := b.circuits.Change(ctx, c.Name, func(old *circuit) (*circuit, error) {
			if old != c {
				return old, nil
			}
			arcs, err := b.net.plant(c)
			if err != nil || slices.EqualFunc(arcs, c.arcs(), arc.same) {
				return old, nil //nolint:nilerr // there is no better tree; findLAN says why
			}
			n := c.copy()
			n.Circuit = proto.CloneOf(c.Circuit)
			n.TreeLabels, err = b.alloc.label(n, arcs, &undo)
			return n, err
		})
		if err != nil {
			b.mu.Lock()
			for _, f := range undo {
				f()
			}
			b.mu.Unlock()
		}
	}
}

// packet is the stage: it learns the senders of a vpls, and of payload ip. What an
// entry of a circuit sends is seen by no stage behind, whether it teaches anything or
// not (a probe of an earlier run): it is no frame of a host of the network.
func (b *store) packet(in *flow.PacketIn) flow.Verdict {
	m := in.Key.TunnelID
	switch {
	case in.Cookie.Owner() != flow.OwnerCircuits:
		return flow.Next
	case in.Key.EthType == flow.EthTypeLLDP && m&lanBit == 0:
		b.mu.Lock()
		defer b.mu.Unlock()
		meet(b, in)
		return flow.Done
	case in.Table != flow.TableCircuits || m&lanBit == 0:
		return flow.Done
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status[b.tails[tail{in.Switch, uint32(m & flow.LabelMax)}]]
	if s != nil && s.devices != nil && s.hear(in.Switch, uint32(m&flow.LabelMax), in.Key.EthSrc, in.Key.EthDst, b.now()) {
		b.learnt[s.circuit.Name] = true
		b.version++
	}
	if s == nil || s.lan == nil {
		return flow.Done
	}
	i := slices.IndexFunc(s.circuit.Members, func(x *api.CircuitMember) bool { return x.Label == uint32(m&flow.LabelMax) })
	for ; i >= 0 && i < len(s.circuit.ends); i++ { // labels are each switch's own
		if e := s.circuit.ends[i]; e.at.Switch == in.Switch && s.circuit.Members[i].Label == uint32(m&flow.LabelMax) {
			if s.lan.learn(in.Key.EthSrc, e, b.now()) {
				b.learnt[s.circuit.Name] = true
			}
			break
		}
	}
	return flow.Done
}

// spread has entries follow what has been learnt; pass is whether time passes for
// all that is known, too.
func (b *store) spread(pass bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if pass {
		now := b.now()
		for name, s := range b.status {
			if s.lan != nil {
				if s.lan.pass(now) {
					b.learnt[name] = true
				}
				b.assess(s)
			}
			if s.devices.pass(now) {
				b.learnt[name] = true
			}
		}
	}
	for name := range b.learnt {
		if s := b.status[name]; s != nil {
			if s.lan != nil {
				s.lan.kept = nil
				b.macs++
			}
			for _, sw := range s.circuit.edges() {
				b.declare(sw, circuitPiece+name)
			}
			b.assess(s)
		}
	}
	clear(b.learnt)
}

package tunnels

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// An overlay is a tunnel whose frames the nodes' own IP routing carries, in VXLAN or
// GRE: they leave by a tunnel port of the head, which the service nodes has made, and
// come in at one of the tail. All tunnels between two switches with the same transport
// share the two ports. Its path is those two switches; there are no entries between them.

// user is whose tunnel ports they are.
const user = "tunnels"

// checkOverlay returns what is wrong with what is wanted of an overlay: no way can be
// chosen for it.
func checkOverlay(m *api.Tunnel) error {
	for _, c := range []struct {
		key   string
		given bool
	}{
		{"reserved_kbps", m.ReservedKbps > 0}, {"max_delay_us", m.MaxDelayUs > 0}, {"max_hops", m.MaxHops > 0}, {"pin", len(m.Pin) > 0},
		{"exclude_nodes", len(m.ExcludeNodes) > 0}, {"exclude_links", len(m.ExcludeLinks) > 0}, {"exclude_risk_groups", len(m.ExcludeRiskGroups) > 0},
		{"include_any", len(m.IncludeAny) > 0}, {"include_all", len(m.IncludeAll) > 0}, {"exclude_any", len(m.ExcludeAny) > 0},
		{"diverse_from", m.DiverseFrom != ""}, {"strategy", m.Strategy != ""},
	} {
		if c.given {
			return fmt.Errorf("%s cannot be had with transport %s, since the nodes' own routing chooses the way: leave it out, or use transport mpls", c.key, m.Transport)
		}
	}
	return nil
}

// carries reports whether the ports of an overlay's path are up. Those of a switch that
// is away count as up unless they are known to be down: nodes cannot tell. So do those of
// which nodes has not published since the start that they wait, until which it waits itself
// for what it has yet to hear. It is called with mu held.
func (b *store) carries(p lsp) bool {
	k, known := b.pairs.pairOf(p)
	switch at := b.pairs.ports[k]; {
	case !known:
		return !b.pairs.answered
	case at.state == portWaiting:
		said := b.net.TunnelPort(nib.TunnelKey{Kind: k.kind, A: flow.Location{Switch: k.a, Port: at.a}, B: flow.Location{Switch: k.b, Port: at.b}})
		return said == nil || b.net.Connected(k.a) == nil || b.net.Connected(k.b) == nil
	default:
		return at.state == portUp
	}
}

// askPorts has nodes make the tunnel ports that are wanted, and remove others, if it has
// not been asked for just those.
func (r *repairer) askPorts(ctx context.Context) error {
	b := r.b
	b.mu.Lock()
	want := b.pairs.wanted()
	same := maps.Equal(want, b.pairs.asked)
	b.mu.Unlock()
	if same {
		return nil
	}
	req := &api.SetTunnelPortsRequest{User: user}
	for k := range want {
		req.Ports = append(req.Ports, &api.TunnelPort{Kind: k.kind, A: &api.Location{Dpid: k.a.String()}, B: &api.Location{Dpid: k.b.String()}})
	}
	slices.SortFunc(req.Ports, func(x, y *api.TunnelPort) int {
		return cmp.Or(cmp.Compare(x.A.Dpid, y.A.Dpid), cmp.Compare(x.B.Dpid, y.B.Dpid), cmp.Compare(x.Kind, y.Kind))
	})
	resp, err := r.ports(ctx, req)
	if err != nil {
		return fmt.Errorf("tunnel ports are not to be had: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pairs.asked = want
	maps.DeleteFunc(b.pairs.ports, func(k pair, _ ports) bool { return !want[k] })
	for _, m := range resp.Ports {
		b.learnPorts(m)
	}
	if !b.pairs.answered {
		b.pairs.answered = true
		for _, s := range b.pairs.overlays {
			b.judge(s)
		}
	}
	return nil
}

// learnPorts takes what nodes says of a pair. It is called with mu held.
func (b *store) learnPorts(m *api.TunnelPort) {
	x, y := m.GetA().Flow(), m.GetB().Flow()
	if y.Switch < x.Switch {
		x, y = y, x
	}
	k, now := newPair(m.GetKind(), x.Switch, y.Switch), ports{x.Port, y.Port, m.State, m.Reason}
	if was, known := b.pairs.ports[k]; known && was == now {
		return
	}
	b.pairs.ports[k] = now
	b.judgePair(k)
}

// tunnelPortChanged follows a tunnel port. What nobody wants here is given back. It is
// called with mu held.
func (b *store) tunnelPortChanged(s nib.Step[nib.TunnelPort]) {
	port := cmp.Or(s.Is, s.Was).Key
	k := newPair(port.Kind, port.A.Switch, port.B.Switch)
	if s.Is == nil {
		delete(b.pairs.ports, k)
		delete(b.pairs.asked, k)
		b.judgePair(k)
		return
	}
	b.pairs.asked[k] = true
	b.learnPorts(s.Is.Is)
	if !b.pairs.wanted()[k] {
		b.kick()
	}
}

// judgePair has the tunnels seen to that lead over a pair, or are to. It is called with
// mu held.
func (b *store) judgePair(k pair) {
	names := maps.Clone(b.at[k.a])
	if names == nil {
		names = map[string]bool{}
	}
	maps.Copy(names, b.at[k.b])
	for _, name := range sorted(names) {
		if s := b.status[name]; newPair(k.kind, s.tunnel.from, s.tunnel.to) == k && (s.tunnel.overlay() || s.entered.primary.overlay()) {
			b.judge(s)
		}
	}
}

// overlays finds the paths of those quests that are overlays, and returns the others.
func (r *repairer) overlays(ctx context.Context, quests []*quest) (others []*quest) {
	var own []*quest
	for _, q := range quests {
		if q.t.overlay() {
			own = append(own, q)
		} else {
			others = append(others, q)
		}
	}
	if len(own) == 0 {
		return others
	}
	err := r.askPorts(ctx)
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range own {
		k := newPair(q.t.wanted.Transport, q.t.from, q.t.to)
		at, known := b.pairs.ports[k]
		p := k.pathOver(q.t, at)
		switch q.found, q.why = nil, ""; {
		case err != nil:
			q.why = err.Error()
		case !known:
			q.why = "its tunnel port has been given back meanwhile"
		case at.state != portUp && !(b.carries(p) && slices.ContainsFunc(q.t.paths(onPrimary), p.sameWay)):
			q.why = "its tunnel port is not up: " + at.reason
		default:
			q.found = []lsp{p}
		}
	}
	return others
}

// foresee says what path a tunnel would have as an overlay, without asking for it: one
// without ports, if they are not there yet and both switches are of hybrid nodes. It is
// called with mu held.
func (b *store) foresee(q *quest) {
	k := newPair(q.t.wanted.Transport, q.t.from, q.t.to)
	if at, known := b.pairs.ports[k]; known {
		if q.found = []lsp{k.pathOver(q.t, at)}; at.state != portUp {
			q.found, q.why = nil, "its tunnel port is not up: "+at.reason
		}
		return
	}
	for _, sw := range []flow.DPID{q.t.from, q.t.to} {
		switch h, _ := flow.ParseHybrid(b.net.Connected(sw).GetDescription()); {
		case b.net.Connected(sw) == nil:
			q.why = fmt.Sprintf("switch %v is away", sw)
			return
		case h == nil:
			q.why = fmt.Sprintf("switch %v does not say that it is a hybrid node, which transport %s needs", sw, k.kind)
			return
		}
	}
	q.found = []lsp{{{sw: q.t.from}, {sw: q.t.to}}}
}

// broken says why neither path of a tunnel carries frames. It is called with mu held.
func (s *status) broken(b *store) string {
	p := s.path(s.active)
	if !p.overlay() {
		return "a link of its path is down"
	}
	k, known := b.pairs.pairOf(p)
	if !known {
		return "its tunnel port is gone"
	}
	return "its tunnel port is not up: " + b.pairs.ports[k].reason
}

// tidy gives back the tunnel ports that no tunnel wants any more.
func (r *repairer) tidy(ctx context.Context) {
	if err := r.askPorts(ctx); err != nil && ctx.Err() == nil {
		r.log.Warn("tunnel ports not given back", "error", err)
	}
}

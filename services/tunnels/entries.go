package tunnels

import (
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// want returns the entries and groups that a switch should have.
func (b *store) want(sw *api.Switch) *api.SetStandingRequest {
	dpid, err := flow.ParseDPID(sw.GetDpid())
	if err != nil || sw.GetOpenflow() == "1.0" {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	req := &api.SetStandingRequest{}
	var groups []flow.Group
	from, out := map[flow.Port]bool{}, map[flow.Port]bool{}
	for _, name := range sorted(b.at[dpid]) {
		s := b.status[name]
		switch {
		case s.entered.from == dpid && s.tunnel.around != nil:
			continue // frames enter by the group of the link
		case s.entered.from == dpid:
			groups = append(groups, s.head(bypassing(sw)))
			if port, ok := s.headBypass(); ok && bypassing(sw) {
				out[port] = true
			}
			continue
		}
		p := s.piece(dpid, bypassing(sw))
		for _, in := range p.from {
			from[in] = true
		}
		for _, port := range p.out {
			out[port] = true
		}
		req.Flows = append(req.Flows, p.transits...)
	}
	for _, in := range sorted(from) {
		req.Flows = append(req.Flows, api.NewFlowEntry(dpid, &flow.Entry{Table: flow.TableIngress, Priority: flow.PriorityLabelled, Cookie: cookie,
			Match: flow.Match{}.WithInPort(in).WithEthType(flow.EthTypeMPLS), Goto: flow.TableLabels}))
	}
	for _, port := range sorted(out) {
		groups = append(groups, b.linkGroup(flow.Location{Switch: dpid, Port: port}))
	}
	if slices.ContainsFunc(groups, hasResort) {
		groups = append(groups, liveGroup())
	}
	for i := range groups {
		req.Groups = append(req.Groups, api.NewGroup(dpid, &groups[i]))
	}
	return req
}

// A piece is what a switch behind the head has of a tunnel: the ports at which its
// frames come in, those whose group sends them on, and the entries. Nobody writes to it.
type piece struct {
	bypassing bool
	from, out []flow.Port
	transits  []*api.FlowEntry
}

// piece returns the piece of a switch, which is kept until the installed paths change
// (index). Bypassing says whether the switch can send frames by a link's bypass.
func (s *status) piece(dpid flow.DPID, bypassing bool) *piece {
	if k := s.pieces[dpid]; k != nil && k.bypassing == bypassing {
		return k
	}
	k := &piece{bypassing: bypassing}
	for _, p := range s.installed() {
		i := slices.IndexFunc(p, func(h lspHop) bool { return h.sw == dpid })
		if i < 0 {
			continue
		}
		k.from = append(k.from, p[i].in)
		if i < len(p)-1 {
			e := transit(p, i)
			if bypassing && s.tunnel.bypassable(p, i) {
				e.Apply = byGroup(e.Apply, p[i].out)
				k.out = append(k.out, p[i].out)
			}
			k.transits = append(k.transits, api.NewFlowEntry(dpid, &e))
		}
	}
	if s.pieces == nil {
		s.pieces = map[flow.DPID]*piece{}
	}
	s.pieces[dpid] = k
	return k
}

var cookie = flow.NewCookie(flow.OwnerLabels, 0, 0)

// transit returns the entry of a hop that is neither head nor tail. It matches
// frames whose label covers another, by that bit: Open vSwitch would else write the
// bit of the first packet into all.
func transit(p lsp, i int) flow.Entry {
	h := p[i]
	acts := []flow.Action{flow.DecMPLSTTL()}
	if next := p[i+1].label; next != 0 {
		acts = append(acts, flow.SetMPLSLabel(next))
	} else {
		acts = append(acts, flow.PopMPLS(flow.EthTypeMPLS))
	}
	out := flow.Output(h.out)
	if h.out == h.in {
		out = flow.Output(flow.PortIn)
	}
	return flow.Entry{Table: flow.TableLabels, Priority: flow.PriorityLabel, Cookie: cookie,
		Match: flow.Match{}.WithEthType(flow.EthTypeMPLS).WithMPLSLabel(h.label).WithMPLSBOS(0),
		Apply: append(append(acts, address(p, i)...), out)}
}

// head returns the group of a tunnel. It fails over by itself where a port of
// its own switch goes down. Without a path it has no bucket and drops; it stays,
// because with a group switches delete all entries that lead to it. Bypassing says
// whether the switch can send frames by a link's bypass.
func (s *status) head(bypassing bool) flow.Group {
	g := flow.Group{Kind: flow.GroupKindFastFailover, ID: s.entered.group}
	for _, p := range s.entered.paths(s.active) {
		g.Buckets = append(g.Buckets, bucket(p))
	}
	if !bypassing {
		return g
	}
	if port, ok := s.headBypass(); ok { // that group has a last resort
		k := &g.Buckets[0]
		k.WatchPort, k.WatchGroup = flow.PortAny, bypassGroup(port)
		k.Actions[len(k.Actions)-1] = flow.ToGroup(k.WatchGroup)
		return g
	}
	return resort(g)
}

// headBypass returns the port by whose group a head sends frames that has one path only.
func (s *status) headBypass() (port flow.Port, ok bool) {
	paths := s.entered.paths(s.active)
	if len(paths) != 1 || !s.tunnel.bypassable(paths[0], 0) {
		return 0, false
	}
	return paths[0][0].out, true
}

// address returns the actions that give a frame the addresses of the link after
// a hop, so that switches in between which know no labels take it there. They
// are made of the switch and the port alone.
func address(p lsp, i int) []flow.Action {
	return []flow.Action{flow.SetEthSrc(flow.TunnelMAC(p[i].sw, p[i].out)), flow.SetEthDst(flow.TunnelMAC(p[i+1].sw, p[i+1].in))}
}

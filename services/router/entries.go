package router

import (
	"net/netip"
	"slices"

	"weft/api"
	"weft/flow"
)

// priorityRouted is that of the entries in flow.TableTranslate, to which the
// length of the destination's prefix is added. It is lower than the balancer's
// and nat's: what is for one of their addresses is theirs.
const priorityRouted = 10000

// want returns the entries that a switch is to have: for each router whose
// neighbours are there, or that is the switch's own, where its packets go.
func (b *book) want(info *api.Switch) *api.SetStandingRequest {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil || !able(info) {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over[sw] = 0
	x := b.index.Load()
	if x == nil {
		return nil
	}
	req := &api.SetStandingRequest{}
	targets := map[uint16][]netip.Prefix{}
	for _, r := range b.sorted() {
		if r.empty() || !b.meets(r, sw) {
			continue
		}
		list, ok := targets[r.vlan]
		if !ok {
			list = b.targets(r.vlan)
			targets[r.vlan] = list
		}
		for _, p := range list {
			if len(req.Flows) >= b.cfg.Entries {
				b.over[sw]++
				continue
			}
			e := b.entry(x, r, p)
			req.Flows = append(req.Flows, api.NewFlowEntry(sw, &e))
		}
	}
	return req
}

// meets reports whether packets for a router come in at a switch. It is called
// with mu held.
func (b *book) meets(r *router, sw flow.DPID) bool {
	if r.sw == sw {
		return true
	}
	for p, s := range b.neighbours.of {
		if s.at.Switch != sw || p.vlan != r.vlan {
			continue
		}
		if _, ok := r.subnet(p.addr); ok {
			return true
		}
	}
	return false
}

// targets returns the destinations that routers of a VLAN tell apart, those of
// short prefixes first: their subnets, addresses and routes, and the neighbours
// in subnets. It is called with mu held.
func (b *book) targets(vlan uint16) []netip.Prefix {
	set := map[netip.Prefix]bool{}
	for _, r := range b.routers {
		if r.vlan != vlan {
			continue
		}
		for _, a := range r.addresses {
			set[a.Masked()], set[one(a.Addr())] = true, true
		}
		for _, s := range r.routes {
			set[s.to] = true
		}
	}
	for p := range b.neighbours.of {
		if p.vlan == vlan && !p.addr.IsLinkLocalUnicast() && b.inSubnet(p) {
			set[one(p.addr)] = true
		}
	}
	list := make([]netip.Prefix, 0, len(set))
	for p := range set {
		list = append(list, p)
	}
	slices.SortFunc(list, func(p, q netip.Prefix) int {
		if p.Bits() != q.Bits() {
			return p.Bits() - q.Bits()
		}
		return p.Addr().Compare(q.Addr())
	})
	return list
}

// entry returns the entry for what is sent to r for p: on to whom it goes, or, if
// that is not known or there is something to answer, to the controller. It is
// called with mu held.
func (b *book) entry(x *index, r *router, p netip.Prefix) flow.Entry {
	m := flow.Match{}.WithEthDst(r.mac).WithIPDst(p)
	if r.vlan == 0 {
		m = m.WithoutVLAN()
	} else {
		m = m.WithVLAN(r.vlan)
	}
	e := flow.Entry{Table: flow.TableTranslate, Priority: priorityRouted + uint16(p.Bits()), Match: m, Cookie: flow.NewCookie(flow.OwnerRouter, 0, 0)}
	w := x.walk(r, p)
	s, known := station{}, false
	if w.end == endNeighbour && w.to.IsValid() {
		s, known = b.known(w.to, r.vlan)
	}
	if !known {
		e.Apply = []flow.Action{flow.Output(flow.PortController)}
		return e
	}
	e.Apply, e.Goto = w.actions(s.mac), flow.TableForward
	return e
}

// actions returns what the routers on a way do with a packet that goes to an
// Ethernet address. Each names itself before it takes from the time to live: by
// that it is known whose answer is due where the last is used up.
func (w *way) actions(mac flow.MAC) []flow.Action {
	list := make([]flow.Action, 0, 2*len(w.hops))
	for i, r := range w.hops {
		if i > 0 {
			list = append(list, flow.SetEthDst(r.mac))
		}
		list = append(list, flow.Action{Kind: flow.ActionDecNwTTL})
	}
	return append(list, flow.SetEthDst(mac))
}

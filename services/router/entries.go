package router

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"weft/api"
	"weft/flow"
)

// priorityRouted is that of the entries in flow.TableTranslate, to which the
// length of the destination's prefix is added. It is lower than the balancer's
// and nat's: what is for one of their addresses is theirs.
const priorityRouted = 10000

// scene is what the entries of a switch are made of, at one moment.
type scene struct {
	x       *index
	routers map[uint16][]*router // those with addresses, by VLAN, in the order of switches
	of      map[place]station
	targets map[uint16][]netip.Prefix // made when they are asked for
}

// scene returns what there is now; entries are made of it without holding up the
// packets that come meanwhile.
func (b *book) scene() *scene {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := b.index.Load()
	if x == nil {
		return nil
	}
	s := &scene{x: x, routers: map[uint16][]*router{}, of: maps.Clone(b.neighbours.of), targets: map[uint16][]netip.Prefix{}}
	for _, r := range b.sorted() {
		if !r.empty() {
			s.routers[r.vlan] = append(s.routers[r.vlan], r)
		}
	}
	return s
}

// want returns the entries that a switch is to have: for each router whose
// neighbours are there, or that is the switch's own, where its packets go.
func (b *book) want(info *api.Switch) *api.SetStandingRequest {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil || !able(info) {
		return nil
	}
	req, over := &api.SetStandingRequest{}, 0
	if s := b.scene(); s != nil {
		for _, vlan := range slices.Sorted(maps.Keys(s.routers)) {
			for _, r := range s.routers[vlan] {
				if !s.meets(r, sw) {
					continue
				}
				for _, p := range s.destinations(vlan) {
					if len(req.Flows) >= b.cfg.Entries {
						over++
						continue
					}
					e := s.entry(r, p)
					req.Flows = append(req.Flows, api.NewFlowEntry(sw, &e))
				}
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over[sw] = over
	return req
}

// meets reports whether packets for a router come in at a switch.
func (s *scene) meets(r *router, sw flow.DPID) bool {
	if r.sw == sw {
		return true
	}
	for p, st := range s.of {
		if st.at.Switch != sw || p.vlan != r.vlan {
			continue
		}
		if _, ok := r.subnet(p.addr); ok {
			return true
		}
	}
	return false
}

// destinations returns those that routers of a VLAN tell apart, those of short
// prefixes first: their subnets, addresses and routes, and the neighbours in
// subnets.
func (s *scene) destinations(vlan uint16) []netip.Prefix {
	if list, done := s.targets[vlan]; done {
		return list
	}
	set := map[netip.Prefix]bool{}
	for _, r := range s.routers[vlan] {
		for _, a := range r.addresses {
			set[a.Masked()], set[one(a.Addr())] = true, true
		}
		for _, x := range r.routes {
			set[x.to] = true
		}
	}
	for p := range s.of {
		if p.vlan != vlan || p.addr.IsLinkLocalUnicast() {
			continue
		}
		if slices.ContainsFunc(s.routers[vlan], func(r *router) bool { _, ok := r.subnet(p.addr); return ok }) {
			set[one(p.addr)] = true
		}
	}
	list := slices.SortedFunc(maps.Keys(set), func(p, q netip.Prefix) int {
		return cmp.Or(cmp.Compare(p.Bits(), q.Bits()), p.Addr().Compare(q.Addr()))
	})
	s.targets[vlan] = list
	return list
}

// entry returns the entry for what is sent to r for p: on to whom it goes, or, if
// that is not known or there is something to answer, to the controller.
func (s *scene) entry(r *router, p netip.Prefix) flow.Entry {
	m := flow.Match{}.WithEthDst(r.mac).WithIPDst(p)
	if r.vlan == 0 {
		m = m.WithoutVLAN()
	} else {
		m = m.WithVLAN(r.vlan &^ flow.VLANPresent)
	}
	e := flow.Entry{Table: flow.TableTranslate, Priority: priorityRouted + uint16(p.Bits()), Match: m, Cookie: flow.NewCookie(flow.OwnerRouter, 0, 0)}
	w := s.x.walk(r, p)
	st, known := station{}, false
	if w.end == endNeighbour && w.to.IsValid() {
		st, known = s.of[place{w.to, r.vlan}]
	}
	if !known {
		e.Apply = []flow.Action{flow.Output(flow.PortController)}
		return e
	}
	e.Apply, e.Goto = w.actions(st.mac), flow.TableForward
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

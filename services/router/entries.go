package router

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/policy"
)

// snapshot is a view from which the entries of switches are made. The entries of
// a router are the same at every switch, and made once.
type snapshot struct {
	x       *index
	version uint64 // of the neighbours
	of      map[place]station
	egress  func(at flow.Location, vlan uint16) (actions []flow.Action, ok bool)

	once    sync.Once // guards making the following
	routers map[uint16][]*router
	targets map[uint16][]netip.Prefix
	at      map[flow.DPID]map[*router]bool // the ingress points of routers' packets
	shared  map[flow.Location]bool         // ports with several neighbours behind them
	near    map[*router]uint32             // number of neighbours in a router's subnets
	made    map[*router]*made
}

// made is the entries of one router: those for every switch, and those for
// packets that leave by their ingress port.
type made struct {
	once  sync.Once // guards making the others
	list  []flow.Entry
	backs map[flow.DPID][]flow.Entry
}

// snapshot returns a snapshot; making entries from it does not delay the packets
// that arrive meanwhile.
func (b *store) snapshot() *snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	x := b.index.Load()
	if x == nil {
		return nil
	}
	if b.last == nil || b.last.x != x || b.last.version != b.neighbours.Version {
		b.last = &snapshot{x: x, version: b.neighbours.Version, of: b.neighbours.Stations(), egress: b.tagging.Egress}
	}
	return b.last
}

// rules returns the entries that a switch should have: those of each router whose
// neighbours are attached there, or that belongs to the switch, and those that keep
// the addresses of all routers.
func (b *store) rules(info *api.Switch) (rules policy.Rules) {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil || !able(info) {
		return rules
	}
	over, room := 0, b.cfg.Load().Entries
	if s := b.snapshot(); s != nil {
		s.once.Do(s.prepare)
		var lists [][]flow.Entry
		for _, r := range slices.SortedFunc(maps.Keys(s.at[sw]), (*router).compare) {
			m := s.entries(r)
			for _, list := range [...][]flow.Entry{m.list, m.backs[sw]} {
				n := min(len(list), room)
				over, room = over+len(list)-n, room-n
				lists = append(lists, list[:n])
			}
		}
		rules.Flows = slices.Concat(append(lists, s.own())...)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over[sw] = over; over > 0 {
		b.reached.Reach(time.Now().UnixNano(), "router.entries", b.cfg.Load().Entries, "switch "+sw.String())
	}
	return rules
}

// own returns the entries by which what is said to routers, or claims their
// addresses, comes to the controller.
func (s *snapshot) own() (list []flow.Entry) {
	seen := map[flow.EntryKey]bool{}
	for _, r := range slices.SortedFunc(maps.Values(s.x.macs), (*router).compare) {
		addresses := make([]netip.Addr, len(r.addresses))
		for i, a := range r.addresses {
			addresses[i] = a.Addr()
		}
		for _, e := range flow.OwnNeighbour(flow.OwnerRouter, flow.PriorityNeighbourVia, r.vlan, r.mac, addresses...) {
			if !seen[e.Key()] { // routers of several switches may have the same address
				seen[e.Key()] = true
				list = append(list, e)
			}
		}
	}
	return list
}

// prepare computes what is the same for all switches: the destinations that the
// routers of a VLAN distinguish, and where packets for a router enter.
func (s *snapshot) prepare() {
	s.routers, s.targets, s.at, s.made = map[uint16][]*router{}, map[uint16][]netip.Prefix{}, map[flow.DPID]map[*router]bool{}, map[*router]*made{}
	comes := func(sw flow.DPID, r *router) {
		if s.at[sw] == nil {
			s.at[sw] = map[*router]bool{}
		}
		s.at[sw][r] = true
	}
	for _, r := range s.x.macs {
		s.routers[r.vlan] = append(s.routers[r.vlan], r)
		s.made[r] = &made{}
		comes(r.sw, r)
	}
	sets := map[uint16]map[netip.Prefix]bool{}
	for vlan, list := range s.routers {
		sets[vlan] = map[netip.Prefix]bool{}
		for _, r := range list {
			for p := range r.table.by {
				sets[vlan][p] = true
			}
			for _, a := range r.addresses {
				sets[vlan][one(a.Addr())] = true
			}
		}
	}
	s.shared, s.near = map[flow.Location]bool{}, map[*router]uint32{}
	behind := map[flow.Location]flow.MAC{}
	for p, st := range s.of {
		if mac, other := behind[st.At]; other && mac != st.MAC {
			s.shared[st.At] = true
		}
		behind[st.At] = st.MAC
		for _, r := range s.routers[p.VLAN] {
			if by, ok := r.lookup(one(p.Addr)); ok && !by.IsValid() && !p.Addr.IsLinkLocalUnicast() {
				sets[p.VLAN][one(p.Addr)] = true
				comes(st.At.Switch, r)
				s.near[r]++
			}
		}
	}
	for vlan, set := range sets {
		s.targets[vlan] = slices.SortedFunc(maps.Keys(set), func(p, q netip.Prefix) int {
			return cmp.Or(cmp.Compare(p.Bits(), q.Bits()), p.Addr().Compare(q.Addr()))
		})
	}
}

// entries returns the entries for packets that are sent to a router, those of
// short prefixes first.
func (s *snapshot) entries(r *router) *made {
	m := s.made[r]
	m.once.Do(func() {
		m.list, m.backs = append(make([]flow.Entry, 0, len(s.targets[r.vlan])+len(unrouted)*2), r.guards()...), map[flow.DPID][]flow.Entry{}
		for _, p := range s.targets[r.vlan] {
			e, st := s.entry(r, p)
			m.list = append(m.list, e)
			tag, leaves := s.egress(st.At, r.vlan)
			if s.shared[st.At] && leaves {
				back := e
				back.Priority, back.Match, back.Goto = e.Priority+1, e.Match.WithInPort(st.At.Port), 0
				back.Apply = append(append(slices.Clone(e.Apply), tag...), flow.Output(flow.PortIn))
				m.backs[st.At.Switch] = append(m.backs[st.At.Switch], back)
			}
		}
	})
	return m
}

// unrouted is the addresses from and to which no router routes: of this network, loopback,
// link-local, groups and those that are reserved (RFC 1812 §5.3.7, RFC 3927 §2.7, RFC 4291
// §2.4 to 2.7).
var unrouted = [...]netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/3"),
	netip.MustParsePrefix("::/127"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8"),
}

// routable reports whether packets from or to an address may be routed.
func routable(a netip.Addr) bool {
	for i := range unrouted {
		if unrouted[i].Contains(a) {
			return false
		}
	}
	return true
}

// guards returns the entries that drop what no router routes, of the versions of IP that
// the router has addresses of.
func (r *router) guards() (list []flow.Entry) {
	has := map[bool]bool{}
	for _, a := range r.addresses {
		has[a.Addr().Is4()] = true
	}
	for _, p := range unrouted {
		if !has[p.Addr().Is4()] {
			continue
		}
		for _, m := range [...]flow.Match{flow.Match{}.WithIPSrc(p), flow.Match{}.WithIPDst(p)} {
			list = append(list, flow.Entry{Table: flow.TableTranslate, Priority: flow.PriorityNotRouted, Match: r.within(m.WithEthDst(r.mac))})
		}
	}
	return list
}

// within is a match in the router's VLAN.
func (r *router) within(m flow.Match) flow.Match {
	if r.vlan == 0 {
		return m.WithoutVLAN()
	}
	return m.WithVLAN(r.vlan &^ flow.VLANPresent)
}

// entry returns the entry for packets to p that are sent to r: on to the next
// neighbour or, if that is unknown or there is something to answer, to the
// controller. It also returns the place of the next neighbour.
func (s *snapshot) entry(r *router, p netip.Prefix) (flow.Entry, station) {
	m := r.within(flow.Match{}.WithEthDst(r.mac).WithIPDst(p))
	e := flow.Entry{Table: flow.TableTranslate, Priority: flow.PriorityRouted + 2*uint16(p.Bits()), Match: m}
	w := s.x.walk(r, p)
	if w.end == endOwn {
		e.Priority = flow.PriorityRouterOwned
	}
	st, known := station{}, false
	if w.end == endNeighbour && w.to.IsValid() {
		st, known = s.of[object.In(w.to, r.vlan)]
	}
	if !known {
		e.Apply = []flow.Action{flow.Output(flow.PortController)}
		return e, station{}
	}
	e.Apply, e.Goto = w.actions(st.MAC), flow.TableForward
	return e, st
}

// actions returns what the routers on a way do with a packet to an Ethernet
// address. Each sets its own address before it decrements the time to live: this
// shows which router must answer if the time to live runs out.
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

package forwarding

import (
	"hash/fnv"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// pair identifies a route: one direction between two hosts as the sender
// addresses it. For a route between subnets dst is the router's address and ip
// that of the destination.
type pair struct {
	src, dst flow.MAC
	vlan     uint16 // as in flow.Key
	ip       netip.Addr
}

// id is the route's number in cookies and groups: the same in every run.
func (p pair) id() uint32 {
	h := fnv.New32a()
	h.Write(p.src[:])
	h.Write(p.dst[:])
	h.Write([]byte{byte(p.vlan >> 8), byte(p.vlan)})
	if p.ip.IsValid() {
		h.Write(p.ip.AsSlice())
	}
	return h.Sum32() & flow.RouteGroupMax // it is also the number of a group
}

// hash spreads routes over paths of equal cost.
func (p pair) hash() uint64 {
	x := uint64(p.id()) * 0x9e3779b97f4a7c15
	return x ^ x>>32
}

// match returns the match of the route's entry for an ingress port.
func (p pair) match(in flow.Port) flow.Match {
	var m flow.Match
	m.Set = flow.FieldInPort.Bit() | flow.FieldEthSrc.Bit() | flow.FieldEthDst.Bit() | flow.FieldVLAN.Bit()
	m.Key.InPort, m.Key.EthSrc, m.Key.EthDst, m.Key.VLAN = in, p.src, p.dst, p.vlan
	switch {
	case p.ip.Is4():
		m.Set |= flow.FieldEthType.Bit() | flow.FieldIPv4Dst.Bit()
		m.Key.EthType, m.Key.IPv4Dst = flow.EthTypeIPv4, p.ip.As4()
	case p.ip.Is6():
		m.Set |= flow.FieldEthType.Bit() | flow.FieldIPv6Dst.Bit()
		m.Key.EthType, m.Key.IPv6Dst = flow.EthTypeIPv6, p.ip.As16()
	}
	return m
}

// pairOf recovers the pair from an entry's match.
func pairOf(m *flow.Match) (p pair, in flow.Port, ok bool) {
	want := flow.FieldInPort.Bit() | flow.FieldEthSrc.Bit() | flow.FieldEthDst.Bit() | flow.FieldVLAN.Bit()
	if m.Set&want != want || m.Masked != 0 {
		return p, 0, false
	}
	p = pair{src: m.Key.EthSrc, dst: m.Key.EthDst, vlan: m.Key.VLAN}
	switch {
	case m.Set.Has(flow.FieldIPv4Dst):
		p.ip = netip.AddrFrom4(m.Key.IPv4Dst)
	case m.Set.Has(flow.FieldIPv6Dst):
		p.ip = netip.AddrFrom16(m.Key.IPv6Dst)
	}
	return p, m.Key.InPort, true
}

// hop is a route's passage through one switch.
type hop struct {
	sw      flow.DPID
	in, out flow.Port
}

// detour is the way around the link after one hop: another bucket at that
// switch, and entries at others.
type detour struct {
	out  flow.Port
	hops []hop
}

// route is one programmed direction between two hosts.
type route struct {
	pair
	hops    []hop // from the sender's switch to the receiver's
	rewrite []flow.Action
	detours []detour // one per hop, with out 0 if there is none; nil if not protected
	since   int64    // ns
	sent    int64    // when it was last programmed, in ns
	moved   uint32   // reroutes
	among   uint32   // replicas.changes when this instance programmed it; 0 if another did
	at      [6]int32 // its indexes in routeShard.by, by its routeKeys
}

func (r *route) first() hop { return r.hops[0] }
func (r *route) last() hop  { return r.hops[len(r.hops)-1] }

// hasDetour reports whether any hop has a detour.
func (r *route) hasDetour() bool {
	for _, d := range r.detours {
		if d.out != 0 {
			return true
		}
	}
	return false
}

// routeTable holds all routes, by pair, by their hosts, and by the ports where
// they leave. It is divided so that switches do not wait for each other.
type routeTable struct{ shards [64]routeShard }

// routeShard is a part of a routeTable.
type routeShard struct {
	mu sync.Mutex // guards all below, and the routes in it
	m  map[pair]*route
	by map[routeKey][]*route

	number  uint32
	changes atomic.Uint32 // changes of routes other than being programmed again
}

// routeKey is a key for finding routes: the address of a host, a virtual
// network, or the port where they leave. Ports may share a key.
type routeKey uint64

func keyOfHost(mac flow.MAC) routeKey { return routeKey(mac.Uint64()) }
func keyOfVLAN(vlan uint16) routeKey  { return 1<<48 | routeKey(vlan) }
func keyOfPort(at flow.Location) routeKey {
	return 1<<63 | routeKey((uint64(at.Switch)*0x9e3779b97f4a7c15+uint64(at.Port))*0x9e3779b97f4a7c15>>1)
}

func newRouteTable() *routeTable {
	t := &routeTable{}
	for i := range t.shards {
		t.shards[i].number = uint32(i)
		t.shards[i].m = map[pair]*route{}
		t.shards[i].by = map[routeKey][]*route{}
	}
	return t
}

// routeKeys are the keys of one route, each once; zero means none.
type routeKeys [len(route{}.at)]routeKey

func (r *route) lookupKeys() (keys routeKeys) {
	n := 0
	add := func(k routeKey) {
		if !slices.Contains(keys[:n], k) {
			keys[n] = k
			n++
		}
	}
	add(keyOfHost(r.src))
	add(keyOfHost(r.dst))
	if len(r.hops) > 0 {
		_, to := r.ends()
		add(keyOfPort(to))
	}
	if r.vlan != 0 {
		add(keyOfVLAN(r.vlan))
	}
	if r.ip.IsValid() {
		to := receiver(r.pair, r.rewrite)
		add(keyOfHost(to.mac))
		if to.vlan != 0 {
			add(keyOfVLAN(to.vlan))
		}
	}
	return keys
}

// put adds a route; it replaces that of the same pair, if there is one.
func (s *routeShard) put(r *route) {
	if old := s.m[r.pair]; old != nil {
		if r.sent < old.sent || r.first() != old.first() || r.last() != old.last() {
			s.changes.Add(1)
		}
		s.remove(old)
	}
	s.m[r.pair] = r
	for i, k := range r.lookupKeys() {
		if k != 0 {
			r.at[i] = int32(len(s.by[k]))
			s.by[k] = append(s.by[k], r)
		}
	}
}

// drop removes the route of a pair, if there is one.
func (s *routeShard) drop(p pair) {
	if r := s.m[p]; r != nil {
		s.changes.Add(1)
		s.remove(r)
	}
}

// remove takes a route out of the shard.
func (s *routeShard) remove(r *route) {
	delete(s.m, r.pair)
	for i, k := range r.lookupKeys() {
		if k == 0 {
			continue
		}
		list := s.by[k]
		last := len(list) - 1
		if last == 0 {
			delete(s.by, k)
			continue
		}
		moved, keys := list[last], list[last].lookupKeys()
		moved.at[slices.Index(keys[:], k)] = r.at[i]
		list[r.at[i]], list[last] = moved, nil
		s.by[k] = list[:last]
	}
}

// with calls f with the shard of p, locked. f does not block.
func (t *routeTable) with(p pair, f func(*routeShard)) {
	s := &t.shards[p.id()%uint32(len(t.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// each calls f for every route, locked. f does not block.
func (t *routeTable) each(f func(*route)) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for _, r := range s.m {
			f(r)
		}
		s.mu.Unlock()
	}
}

// find calls f once for each route that has one of the given keys, locked. f
// does not block.
func (t *routeTable) find(keys []routeKey, f func(*route)) {
	seen := map[*route]bool{}
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for _, k := range keys {
			for _, r := range s.by[k] {
				if !seen[r] {
					seen[r] = true
					f(r)
				}
			}
		}
		s.mu.Unlock()
	}
}

// size returns the number of routes.
func (t *routeTable) size() int {
	n := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += len(s.m)
		s.mu.Unlock()
	}
	return n
}

// ends returns the ports of the sender and of the receiver.
func (r *route) ends() (from, to flow.Location) {
	return flow.Location{Switch: r.first().sw, Port: r.first().in}, flow.Location{Switch: r.last().sw, Port: r.last().out}
}

// sameWay reports whether two routes of a pair have the same entries.
func (r *route) sameWay(o *route) bool {
	return slices.Equal(r.hops, o.hops) && slices.Equal(r.rewrite, o.rewrite) &&
		slices.EqualFunc(r.detours, o.detours, func(a, b detour) bool { return a.out == b.out && slices.Equal(a.hops, b.hops) })
}

// usesLost reports whether a route, or one of its detours, uses one of these
// ports.
func (r *route) usesLost(lost map[flow.Location]bool) bool {
	for _, h := range r.hops[:len(r.hops)-1] {
		if lost[flow.Location{Switch: h.sw, Port: h.out}] {
			return true
		}
	}
	for _, alt := range r.detours {
		for _, h := range alt.hops {
			if lost[flow.Location{Switch: h.sw, Port: h.out}] {
				return true
			}
		}
	}
	return false
}

// message returns a readable description of a route.
func (r *route) message() *api.Route {
	m := &api.Route{
		Src: r.src.String(), Dst: r.dst.String(), Vlan: uint32(r.vlan &^ flow.VLANPresent), Protected: r.hasDetour(),
		Since: time.Unix(0, r.since).UTC().Format(time.RFC3339), Reroutes: r.moved,
	}
	if r.ip.IsValid() {
		m.Dst = r.ip.String()
	}
	for _, h := range r.hops {
		m.Hops = append(m.Hops, &api.Hop{Dpid: h.sw.String(), InPort: uint32(h.in), OutPort: uint32(h.out)})
	}
	return m
}

// receiver returns the host that a route leads to: for a route into another
// subnet, the host to which the last switch readdresses the packets.
func receiver(p pair, rewrite []flow.Action) knownHost {
	k := knownHost{p.dst, p.vlan}
	if !p.ip.IsValid() {
		return k // only the tag on the wire is rewritten
	}
	for _, a := range rewrite {
		switch {
		case a.Kind == flow.ActionPopVLAN:
			k.vlan = 0
		case a.Kind == flow.ActionSetField && a.Field == flow.FieldEthDst:
			copy(k.mac[:], a.Value[:])
		case a.Kind == flow.ActionSetField && a.Field == flow.FieldVLAN:
			k.vlan = flow.VLANPresent | uint16(a.Value[0])<<8 | uint16(a.Value[1])
		}
	}
	return k
}

type knownHost struct {
	mac  flow.MAC
	vlan uint16 // as in flow.Key
}

package hosts

import (
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// touchGap is the resolution, in nanoseconds, of the time when a host was last
// seen: processors would contend for the memory if every packet wrote it.
const touchGap = int64(250 * time.Millisecond)

// A cache remembers the hosts of recent packets of one switch, and what their
// packets need, so that most packets read one line of memory for each.
type cache struct{ recent flow.Recent[id, recentHost] }

// recentHost is a host, as it is until its shard of the index changes.
type recentHost struct {
	host    *host
	at      *place
	changes uint32 // of the shard
	seen    uint16 // when host.seen was last set, in touchGaps modulo 4 hours
	special bool   // it is contested or held
}

// recentOf returns a host as it is now.
func recentOf(h *host, changes uint32) recentHost {
	return recentHost{host: h, at: h.at.Load(), changes: changes, special: h.contested.Load() > 0 || h.held.Load() != 0}
}

// find returns the host with an id, nil if there is none. The result is valid
// until the next find.
func (c *cache) find(t *table, i id) *recentHost {
	hash := i.hash()
	r := c.recent.Get(i, hash)
	if r != nil && r.host != nil && r.changes == t.index.byID[hash>>58].changes.Load() {
		return r
	}
	changes := t.index.byID[hash>>58].changes.Load() // before the host is read
	h := t.index.host(i)
	switch {
	case h == nil:
		return nil
	case r != nil:
		*r = recentOf(h, changes)
		return r
	}
	return c.recent.Put(i, hash, recentOf(h, changes), int(t.places.cacheRoom.Load()))
}

// fetch begins to bring what is known of the hosts of frames into the
// processor's caches.
func (c *cache) fetch(frames [][]byte) {
	for _, f := range frames {
		if len(f) >= 12 {
			c.recent.Fetch(newID(flow.MAC(f[6:12]), 0).hash())
			c.recent.Fetch(newID(flow.MAC(f[0:6]), 0).hash())
		}
	}
}

// heldBy returns the holds that hold the host.
func (r *recentHost) heldBy() uint32 {
	if !r.special {
		return 0
	}
	return r.host.held.Load()
}

// A stage is the hosts' stage of the pipeline for one switch. Only one packet is in it at
// a time.
type stage struct {
	table    *table
	sw       flow.DPID
	log      *slog.Logger
	probes   flow.MAC
	anyBound *atomic.Int32 // how many addresses are bound
	known    cache
	says     []evidence // memory for that of a packet
	full     fullPort
	notes    noteLimiter
}

// open returns the stage for one switch: it learns hosts from edge ports, and
// adds to every packet the places of its sender and destination and the stages
// that hold them. A sender for whom there is no room is a guest: packets to
// hosts that are known get there, but no entry is made for them.
func (t *table) open(sw flow.DPID, log *slog.Logger) func(*flow.PacketIn, *flow.Decision) flow.Verdict {
	s := &stage{table: t, sw: sw, log: log, probes: flow.MACFrom(t.questions.probes), anyBound: &t.bindings.owners.count, notes: noteLimiter{}}
	return s.handle
}

// handle is the stage for one packet.
func (s *stage) handle(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	t := s.table
	s.known.fetch(in.Following)
	k := packet.Headers(in)
	who := newID(k.EthSrc, k.VLAN)
	var held uint32
	guest := false
	if k.TunnelFrame() {
		t.tally.add(tunnel)
		return flow.Drop // a customer's: it is no host's, and nobody else gets it
	}
	switch in.Role {
	case flow.RoleEdge:
		if k.EthSrc.Multicast() || k.EthSrc == (flow.MAC{}) {
			t.tally.add(source)
			return flow.Drop
		}
		r := s.known.find(t, who)
		if k.EthDst.IsLinkLocal() && (r == nil || !announces(k)) {
			return flow.Next // of a bridge: no host
		}
		if r == nil || r.at.Location != (flow.Location{Switch: s.sw, Port: k.InPort}) || carries(k) || r.special && r.host.contested.Load() > 0 {
			var h *host
			why := portLimit
			if r != nil || carries(k) || !s.full.covers(in) || s.identityMatters() {
				h, why = s.examine(in, who, d)
			}
			if h == nil && (why == portLimit || why == tableLimit) {
				if !s.full.covers(in) {
					s.full = fullPort{k.InPort, in.Time, t.bindings.takesGuests(flow.Location{Switch: s.sw, Port: k.InPort})}
				}
				guest = s.full.guests
			}
			if why != accepted {
				s.refuse(why, in)
			}
			if why != accepted && !guest {
				return flow.Drop
			}
			if h != nil {
				in.Src, held = h.at.Load().Location, h.held.Load()
			}
		} else {
			if now := uint16(in.Time / touchGap); r.seen != now {
				r.seen = now
				r.host.seen.Store(in.Time)
			}
			in.Src, held = r.at.Location, r.heldBy()
		}
		if s.anyBound.Load() > 0 && t.bindings.foreignSource(in, who) {
			s.refuse(bound, in)
			return flow.Drop
		}
		if k.EthDst == s.probes {
			return flow.Done // the answer to a question of ours
		}
		if in.IsCopy() {
			return flow.Done
		}
	case flow.RoleLink:
		if r := s.known.find(t, who); r != nil {
			in.Src, held = r.at.Location, r.heldBy()
		} else {
			t.tally.add(onLink)
		}
	case flow.RoleAccess, flow.RoleInternal, flow.RoleTunnel:
		return flow.Drop
	case flow.RoleBlocked:
		t.tally.add(blocked)
		return flow.Drop
	default:
		t.tally.add(unsettled)
		if in.Role == flow.RoleUnsettled && s.notes.room(in) {
			s.note(in, who)
		}
		return flow.Drop
	}
	if to := s.known.destinationHost(t, k); to != nil {
		in.Dst, in.DstMAC = to.at.Location, k.EthDst
		held |= to.heldBy()
	} else if h := s.destination(in, d); h != nil {
		in.Dst, in.DstMAC = h.at.Load().Location, h.id.mac()
		held |= h.held.Load()
	} else if guest {
		return flow.Drop
	}
	if guest && s.identityMatters() {
		held |= t.holds.on(who, flow.Location{Switch: s.sw, Port: k.InPort})
	}
	in.Unapproved, in.HeldBy = guest || held != 0, t.holds.names(held)
	return flow.Next
}

// examine is the slow path of a packet from an edge port: its sender is not
// known there, or it is evidence of addresses.
func (s *stage) examine(in *flow.PacketIn, who id, d *flow.Decision) (*host, refusal) {
	seen, why := s.readSighting(in, who, s.says[:0])
	s.says = seen.says
	if why != accepted {
		return nil, why
	}
	return s.table.observe(seen, d)
}

// readSighting returns the sighting and evidence of a packet; says is memory for it.
func (s *stage) readSighting(in *flow.PacketIn, who id, says []evidence) (seen sighting, why refusal) {
	seen = sighting{now: in.Time, who: who, at: flow.Location{Switch: in.Switch, Port: in.Key.InPort}, source: sourceIP(&in.Key)}
	seen.answer = in.Key.EthDst == s.probes
	seen.says = says
	if s.table.owned.macs[in.Key.EthSrc] {
		return seen, gateway
	}
	seen.says, why = appendEvidence(&in.Key, in.Data, says)
	return seen, why
}

// note notes the sender of a packet from a port that is not settled.
func (s *stage) note(in *flow.PacketIn, who id) {
	seen, why := s.readSighting(in, who, nil)
	if why != accepted || in.Key.EthDst.IsLinkLocal() && (s.table.index.host(who) == nil || !announces(&in.Key)) {
		return
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.table.noted.add(seen)
}

// A fullPort remembers, for fullFor, the port of one switch that last had no
// room for another host: packets of those who come all the same are not each to
// take the table's lock.
type fullPort struct {
	port   flow.Port
	at     int64
	guests bool // it takes them
}

const fullFor = int64(10 * time.Millisecond)

// covers reports whether a packet is from the port, and soon enough that the port is
// still full.
func (f *fullPort) covers(in *flow.PacketIn) bool {
	return f.port == in.Key.InPort && in.Time-f.at < fullFor
}

// identityMatters reports whether there are holds or bindings, so that the sender of
// a packet matters even if it cannot be recorded.
func (s *stage) identityMatters() bool {
	return s.table.holds.stages.Load() != nil || s.table.bindings.owners.count.Load() > 0
}

// takesGuests reports whether the packets of those for whom a port has no room
// may pass: not at one whose hosts are limited by name.
func (b *bindings) takesGuests(at flow.Location) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, secured := b.ports[at]
	return !secured
}

// sourceIP returns the IP source of a packet, not valid if it has none.
func sourceIP(k *flow.Key) netip.Addr {
	switch k.EthType {
	case flow.EthTypeIPv4:
		return netip.AddrFrom4(k.IPv4Src)
	case flow.EthTypeIPv6:
		return netip.AddrFrom16(k.IPv6Src)
	}
	return netip.Addr{}
}

// foreignSource reports whether the IP source of a packet is bound to another
// host, and adds an event about it. Behind ports with routers any source is
// allowed.
func (b *bindings) foreignSource(in *flow.PacketIn, who id) bool {
	ip := sourceIP(&in.Key)
	owner, ok := b.owners.of(ip, who.vlan())
	at := flow.Location{Switch: in.Switch, Port: in.Key.InPort}
	if !ok || owner == who || (*b.routers.Load())[at] {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.violate(in.Time, claim{key: claimKey{who: owner, ip: ip}, by: who, at: at})
	return true
}

// refuse counts a refusal. It logs the first, second, fourth, eighth and so on
// of those that may be an attack.
func (s *stage) refuse(why refusal, in *flow.PacketIn) {
	n := s.table.tally.add(why)
	if why != unverified && n&(n-1) == 0 {
		s.log.Warn("packet refused", "reason", why.String(), "dpid", in.Switch, "port", in.Key.InPort,
			"eth_src", in.Key.EthSrc, "refused", n)
	}
}

// destinationHost returns the host with the Ethernet destination of a packet, or nil
// if there is none or another address decides.
func (c *cache) destinationHost(t *table, k *flow.Key) *recentHost {
	if k.EthDst.Multicast() {
		return nil
	}
	return c.find(t, newID(k.EthDst, k.VLAN))
}

// announces reports whether a frame to a link-local address may be of a host: EAPOL and
// LLDP are, if a host is known by their sender. Others, such as BPDU and LACP, are of
// bridges.
func announces(k *flow.Key) bool {
	return k.EthType == flow.EthTypeEAPOL || k.EthType == flow.EthTypeLLDP
}

// asks reports whether a packet asks for the address of a host: an ARP request
// or a neighbour solicitation.
func asks(k *flow.Key) bool {
	return k.EthType == flow.EthTypeARP && k.ARPOp == 1 ||
		k.EthType == flow.EthTypeIPv6 && k.IPProto == flow.IPProtoICMPv6 && k.ICMPType == flow.ICMPv6Solicit
}

// destination returns the host that has the IP address that a packet asks
// everybody for, or, of a packet to a router, its IP destination; nil if there is
// none. Who asks one host alone, such as for whether it is still there, is to hear
// from that one.
func (s *stage) destination(in *flow.PacketIn, d *flow.Decision) *host {
	k := &in.Key
	switch {
	case asks(k) && k.EthDst.Multicast() && k.EthType == flow.EthTypeARP:
		return s.table.questions.owner(in.Time, netip.AddrFrom4(k.ARPTPA), k.VLAN&0xfff, d)
	case asks(k) && k.EthDst.Multicast():
		return s.table.questions.owner(in.Time, netip.AddrFrom16(k.NDTarget), k.VLAN&0xfff, d)
	case asks(k), k.EthDst.Multicast():
		return nil
	}
	switch k.EthType {
	case flow.EthTypeIPv4:
		return s.table.index.hostInAnyVLAN(netip.AddrFrom4(k.IPv4Dst), k.VLAN&0xfff)
	case flow.EthTypeIPv6:
		return s.table.index.hostInAnyVLAN(netip.AddrFrom16(k.IPv6Dst), k.VLAN&0xfff)
	}
	return nil
}

// heardLately is how old what a host has said of its address may be for a question
// to be passed to it alone without another by Weft itself.
const heardLately = int64(time.Second)

// owner returns the host that is to be asked for an address; nil if everybody is:
// nobody is known to have it, who has it cannot be reached, or has not answered
// Weft's own question. It takes the lock.
func (q *questions) owner(now int64, ip netip.Addr, vlan uint16, d *flow.Decision) *host {
	h := q.index.holder(ip, vlan)
	if h == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	a := h.has(ip)
	switch p := h.at.Load(); {
	case a == nil || !p.isReachable() || p.sw.isAway():
		return nil
	case now-a.confirmed < heardLately:
	case a.asked <= a.confirmed:
		a.asked = now
		q.ask(h, ip, d)
	case now-a.asked >= int64(q.cfg.Verify):
		if now-a.asked >= heardLately { // it may be there again
			a.asked = now
			q.ask(h, ip, d)
		}
		return nil
	}
	return h
}

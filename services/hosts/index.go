package hosts

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-sdn/weft/flow"
)

// An id names a host: Ethernet address and VLAN.
type id uint64

// newID returns the id of an address in the VLAN of flow.Key's form; tags of
// VLAN 0 carry only a priority and count as none.
func newID(m flow.MAC, vlan uint16) id { return id(uint64(vlan&0xfff)<<48 | m.Uint64()) }

func (i id) mac() flow.MAC { return flow.MACFrom(uint64(i)) }
func (i id) vlan() uint16  { return uint16(i >> 48) }

// hash spreads ids over shards and caches.
func (i id) hash() uint64 { return flow.Spread(uint64(i)) }

// A host is the state of one host. Fields that the packet path reads are
// atomic; table.mu guards the rest.
type host struct {
	id   id
	at   atomic.Pointer[place]
	seen atomic.Int64 // when it last sent at its place
	gone atomic.Bool
	// contested counts the claimants in quarantine: if there are any, every
	// packet of the host is examined.
	contested atomic.Int32
	// held are the holds that hold the host, by their bits.
	held atomic.Uint32

	first      int64
	addresses  []address
	source     netip.Addr // of its first packet at its place: it is asked for this one while no address is proven
	moves      uint32
	moved      []int64       // times of the last moves, oldest first
	quarantine int64         // it may not move before then
	asked      int64         // when it was last asked whether it is still there
	answers    bool          // it has answered a question
	called     bool          // it was asked when it was new
	home       flow.Location // until probation it may return to here
	probation  int64
	published  *published
	queued     bool  // in the announcer's queue
	spared     int64 // of an earlier run: not given up for silence before this time
	repeat     bool  // of an earlier run: publish again once its port is present
	page       *page // where it is stored for the next run
	permit     *permit
}

// An address is an IP address of a host, and when the host last said so.
type address struct {
	ip        netip.Addr
	confirmed int64
	used      bool  // the host has sent packets with it
	asked     int64 // when it was first asked for it since
	advert    advertFlags
}

// advertFlags are what a host has said of its IPv6 address in a neighbour advertisement.
type advertFlags struct{ known, router, override bool }

// has returns the entry of an address, nil if the host does not have it.
func (h *host) has(ip netip.Addr) *address {
	for i := range h.addresses {
		if h.addresses[i].ip == ip {
			return &h.addresses[i]
		}
	}
	return nil
}

// An index finds hosts by their addresses. Many may read while one, who holds
// table.mu, writes.
type index struct {
	byID [shards]idShard
	byIP [shards]ipShard

	count atomic.Int64 // of hosts
}

const shards = 64

type idShard struct {
	mu sync.RWMutex // guards m
	m  map[id]*host

	changes atomic.Uint32 // of what recentHost has of its hosts
	_       [28]byte      // keeps shards on cache lines of their own
}

type ipShard struct {
	mu sync.RWMutex // guards m
	m  map[netip.Addr][]*host
	_  [24]byte
}

func newIndex() *index {
	x := &index{}
	for i := range shards {
		x.byID[i].m = map[id]*host{}
		x.byIP[i].m = map[netip.Addr][]*host{}
	}
	return x
}

// size returns the number of hosts.
func (x *index) size() int { return int(x.count.Load()) }

// host returns the host with an id, nil if there is none.
func (x *index) host(i id) *host {
	s := &x.byID[i.hash()>>58]
	s.mu.RLock()
	h := s.m[i]
	s.mu.RUnlock()
	return h
}

func (x *index) put(h *host) {
	s := &x.byID[h.id.hash()>>58]
	s.mu.Lock()
	s.m[h.id] = h
	s.mu.Unlock()
	x.count.Add(1)
}

func (x *index) drop(h *host) {
	s := &x.byID[h.id.hash()>>58]
	s.mu.Lock()
	delete(s.m, h.id)
	s.mu.Unlock()
	x.count.Add(-1)
	x.invalidate(h)
}

// invalidate invalidates a host in all caches. It is called after a change
// of its place, of those who contest or hold it, and when it has gone.
func (x *index) invalidate(h *host) { x.byID[h.id.hash()>>58].changes.Add(1) }

func (x *index) ipShard(ip netip.Addr) *ipShard {
	a := ip.As16()
	n := uint64(a[15]) | uint64(a[14])<<8 | uint64(a[13])<<16 | uint64(a[7])<<24
	return &x.byIP[n*0x9e3779b97f4a7c15>>58]
}

// holder returns the host in a VLAN that has an address.
func (x *index) holder(ip netip.Addr, vlan uint16) *host {
	s := x.ipShard(ip)
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, h := range s.m[ip] {
		if h.id.vlan() == vlan {
			return h
		}
	}
	return nil
}

// hostInAnyVLAN returns the host that has an address in any VLAN, the given one first;
// a link-local address means nothing in another VLAN.
func (x *index) hostInAnyVLAN(ip netip.Addr, vlan uint16) *host {
	s := x.ipShard(ip)
	s.mu.RLock()
	defer s.mu.RUnlock()
	var any *host
	for _, h := range s.m[ip] {
		if h.id.vlan() == vlan {
			return h
		}
		if any == nil && !ip.IsLinkLocalUnicast() {
			any = h
		}
	}
	return any
}

func (x *index) bind(ip netip.Addr, h *host) {
	s := x.ipShard(ip)
	s.mu.Lock()
	s.m[ip] = append(slices.Clip(s.m[ip]), h)
	s.mu.Unlock()
}

func (x *index) unbind(ip netip.Addr, h *host) {
	s := x.ipShard(ip)
	s.mu.Lock()
	defer s.mu.Unlock()
	var rest []*host
	for _, o := range s.m[ip] {
		if o != h {
			rest = append(rest, o)
		}
	}
	if len(rest) == 0 {
		delete(s.m, ip)
	} else {
		s.m[ip] = rest
	}
}

// all calls f for every host.
func (x *index) all(f func(*host)) {
	for i := range x.byID {
		s := &x.byID[i]
		s.mu.RLock()
		list := make([]*host, 0, len(s.m))
		for _, h := range s.m {
			list = append(list, h)
		}
		s.mu.RUnlock()
		for _, h := range list {
			f(h)
		}
	}
}

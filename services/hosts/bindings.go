package hosts

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weft-sdn/weft/flow"
)

// A binding says where an Ethernet address may be and what it owns: the ports
// where it may be, and IP addresses that no other host in its VLAN may have.
type binding struct {
	who    id
	at     []flow.Location // in order; none: any
	ips    []netip.Addr    // in order
	sticky bool
	origin string // config, operator or learnt
	since  int64
}

// The origins of bindings and limits.
const (
	byConfig   = "config"
	byOperator = "operator"
	byLearning = "learnt"
)

// Keys of bindings, and of ports' settings, in the store.
const (
	hostPrefix = "host/"
	portPrefix = "port/"
)

func (one *binding) key() string {
	return fmt.Sprintf("%s%d/%s", hostPrefix, one.who.vlan(), strings.ReplaceAll(one.who.mac().String(), ":", "-"))
}

func portKey(at flow.Location) string {
	return fmt.Sprintf("%s%s/%d", portPrefix, strings.ReplaceAll(at.Switch.String(), ":", ""), uint32(at.Port))
}

// portSettings holds the settings of a port.
type portSettings struct {
	most   int // hosts; 0: Config.PortLimit
	sticky bool
	origin string
}

// bindings holds all bindings and settings of ports. restore, take, unbind, unsetPort,
// changes, size, takesGuests and foreignSource take mu; all else is called with it
// held.
type bindings struct {
	shared
	places  *places // the table's, as claims
	claims  *claims
	owners  *owners                                // which, as routers, need no lock
	routers atomic.Pointer[map[flow.Location]bool] // the ports of RouterPorts
	of      map[id]*binding
	naming  map[flow.Location]map[id]struct{} // the bindings that name a port
	ports   map[flow.Location]portSettings
	dirty   map[string]struct{} // keys to write
	told    map[claim]int64     // when a violation was last published
	count   uint64              // changes of what is bound
}

const (
	maxBindings     = 16_384
	maxPorts        = 16_384
	stickyAddresses = 16 // IP addresses per sticky binding
	boundAddresses  = 256
	boundPorts      = 64
	violationsMost  = 4096
)

// violationInterval is the least time between two events of one violation.
const violationInterval = int64(1e9)

func newBindings(with shared, p *places, c *claims) bindings {
	return bindings{
		shared: with, places: p, claims: c, owners: &owners{m: map[formerKey]id{}}, of: map[id]*binding{}, naming: map[flow.Location]map[id]struct{}{},
		ports: map[flow.Location]portSettings{}, dirty: map[string]struct{}{}, told: map[claim]int64{},
	}
}

// owners finds the Ethernet address that an IP address is bound to. Stages read
// it while others write.
type owners struct {
	count atomic.Int32 // if it is 0 nobody takes the lock

	mu sync.RWMutex // guards m
	m  map[formerKey]id
}

// of returns the host that an address is bound to. It does not take the table's lock.
func (o *owners) of(ip netip.Addr, vlan uint16) (id, bool) {
	if o.count.Load() == 0 {
		return 0, false
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	who, ok := o.m[formerKey{ip, vlan}]
	return who, ok
}

func (o *owners) set(ip netip.Addr, who id) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.m[formerKey{ip, who.vlan()}] = who
	o.count.Store(int32(len(o.m)))
}

func (o *owners) remove(ip netip.Addr, who id) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.m, formerKey{ip, who.vlan()})
	o.count.Store(int32(len(o.m)))
}

// allow reports whether a host may be at a port.
func (b *bindings) allow(who id, at flow.Location) bool {
	one := b.of[who]
	return one == nil || len(one.at) == 0 || slices.Contains(one.at, at)
}

// put adds or replaces a binding.
func (b *bindings) put(one *binding) {
	b.drop(one.who)
	b.count++
	b.of[one.who] = one
	for _, at := range one.at {
		if b.naming[at] == nil {
			b.naming[at] = map[id]struct{}{}
		}
		b.naming[at][one.who] = struct{}{}
	}
	for _, ip := range one.ips {
		b.owners.set(ip, one.who)
	}
	b.note(one.key(), one.origin)
}

// drop removes a binding, if there is one.
func (b *bindings) drop(who id) {
	one := b.of[who]
	if one == nil {
		return
	}
	b.count++
	delete(b.of, who)
	for _, at := range one.at {
		delete(b.naming[at], who)
		if len(b.naming[at]) == 0 {
			delete(b.naming, at)
		}
	}
	for _, ip := range one.ips {
		b.owners.remove(ip, who)
	}
	b.note(one.key(), one.origin)
}

// note marks a key to be written, unless it comes from the configuration.
func (b *bindings) note(key, origin string) {
	if origin != byConfig {
		b.dirty[key] = struct{}{}
	}
}

// room reports whether a host has room at a port. Bound hosts always have; they
// leave less room for others.
func (b *bindings) room(now int64, p *place, who id) refusal {
	if b.places.isCircuits(p, who) {
		return blocked // it came before the switch had the circuit's entries
	}
	named := b.naming[p.Location]
	if _, ok := named[who]; ok {
		return accepted
	}
	set := b.ports[p.Location]
	most := b.cfg.PortLimit
	if set.most > 0 {
		most = set.most
	}
	taken := len(p.hosts)
	for other := range named {
		if h := b.index.host(other); h == nil || h.at.Load() != p {
			taken++
		}
	}
	switch {
	case taken >= most:
		key := "hosts.port_limit"
		if set.most > 0 {
			key = "hosts.ports.max_hosts"
		}
		b.reached.Reach(now, key, most, "port "+placeText(p.Location))
		return portLimit
	case set.sticky && len(b.of) >= maxBindings && b.of[who] == nil:
		b.reached.Reach(now, "the room for bindings", maxBindings, "port "+placeText(p.Location))
		return tableLimit
	}
	return accepted
}

// stick binds a host that has appeared at a port with sticky bindings.
func (b *bindings) stick(now int64, h *host) {
	at := h.at.Load().Location
	if !b.ports[at].sticky || b.of[h.id] != nil {
		return
	}
	one := &binding{who: h.id, at: []flow.Location{at}, sticky: true, origin: byLearning, since: now}
	for _, a := range h.addresses {
		if _, taken := b.owners.of(a.ip, h.id.vlan()); !taken && len(one.ips) < stickyAddresses {
			one.ips = append(one.ips, a.ip)
		}
	}
	b.put(one)
}

// stickAddress adds an address to a host's binding if that is sticky and has
// room.
func (b *bindings) stickAddress(h *host, ip netip.Addr) {
	one := b.of[h.id]
	if one == nil || !one.sticky || len(one.ips) >= stickyAddresses || slices.Contains(one.ips, ip) {
		return
	}
	one.ips = append(one.ips, ip)
	b.count++
	b.owners.set(ip, h.id)
	b.note(one.key(), one.origin)
}

// violate adds an event about a packet that contradicts a binding, at most one
// per violationInterval.
func (b *bindings) violate(now int64, c claim) {
	if now-b.told[c] < violationInterval {
		return
	}
	if len(b.told) >= violationsMost {
		clear(b.told)
	}
	b.told[c] = now
	b.claims.notify(&c, b.index.host(c.key.who), "bound")
}

// enforceBinding removes from hosts the addresses and places that contradict a binding.
func (t *table) enforceBinding(one *binding) {
	if h := t.index.host(one.who); h != nil && !t.bindings.allow(one.who, h.at.Load().Location) {
		t.remove(h)
	}
	for _, ip := range one.ips {
		if h := t.index.holder(ip, one.who.vlan()); h != nil && h.id != one.who {
			t.strip(h, ip)
		}
	}
}

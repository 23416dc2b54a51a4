package router

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Store is durable key-value state; a change is on disk before the call
// returns.
type Store interface {
	// Update sets a value if its revision is still the given one (0: none yet).
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	Delete(ctx context.Context, key string) error
	All(ctx context.Context, f func(key string, value []byte, revision uint64) error) error
}

// book is the routers, the switches and the neighbours.
type book struct {
	cfg     atomic.Pointer[Config]
	store   Store
	count   *counts
	tagging flow.Tagging
	index   atomic.Pointer[index] // of the routers, for the stage; nil: there are none
	post    func(*flow.Decision)  // has something sent that follows from no packet
	changed func()                // has entries declared anew; it may be called with mu held

	writing sync.Mutex // held while a router is written to the store

	mu         sync.Mutex // guards the following
	routers    map[key]*router
	revision   map[key]uint64
	switches   map[flow.DPID]*datapath
	neighbours *neighbours
	last       *scene // that entries were last made of
	waiting    *waiting
	errors     allowances        // has a lock of its own
	asked      map[place]int64   // when a gateway was last asked for
	over       map[flow.DPID]int // entries that a switch was not given, for want of room
}

// datapath is what is known of a switch.
type datapath struct {
	connected bool
	routes    bool // it has the tables and actions to route by itself
	edges     map[flow.Port]bool
}

// index is what the stage looks things up in; it is not changed.
type index struct {
	routers map[key]*router
	macs    map[flow.MAC]*router
	owners  map[place][]*router // by address, in the order of switches
}

func newBook(cfg *Config, store Store) *book {
	b := &book{store: store, count: newCounts(nil), post: func(*flow.Decision) {}, changed: func() {}, routers: map[key]*router{}, revision: map[key]uint64{},
		switches: map[flow.DPID]*datapath{}, neighbours: newNeighbours(), waiting: newWaiting(), asked: map[place]int64{}, over: map[flow.DPID]int{}}
	b.cfg.Store(cfg)
	return b
}

// load reads the routers of earlier runs. What cannot be read is told to bad
// and left out.
func (b *book) load(ctx context.Context, bad func(key string, err error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.store.All(ctx, func(name string, value []byte, revision uint64) error {
		r, err := parseRouter(name, value)
		if err != nil {
			bad(name, err)
			return nil
		}
		b.routers[r.key], b.revision[r.key] = r, revision
		return nil
	})
	b.reindex()
	return err
}

// reindex is called with mu held.
func (b *book) reindex() {
	for _, r := range b.routers {
		if r.table == nil {
			r.table = newTable(r)
		}
	}
	x := &index{routers: maps.Clone(b.routers), macs: map[flow.MAC]*router{}, owners: map[place][]*router{}}
	for _, r := range b.sorted() {
		if r.empty() {
			continue
		}
		x.macs[r.mac] = r
		for _, a := range r.addresses {
			p := place{a.Addr(), r.vlan}
			x.owners[p] = append(x.owners[p], r)
		}
	}
	if len(x.macs) == 0 {
		x = nil
	}
	b.index.Store(x)
}

// sorted returns the routers by switch and VLAN. It is called with mu held.
func (b *book) sorted() []*router {
	return slices.SortedFunc(maps.Values(b.routers), (*router).compare)
}

// owner returns the router in a VLAN that has an address, that of a switch
// first; nil if none has.
func (x *index) owner(p place, sw flow.DPID) *router {
	list := x.owners[p]
	for _, r := range list {
		if r.sw == sw {
			return r
		}
	}
	if len(list) > 0 {
		return list[0]
	}
	return nil
}

// change has a router changed by f, and keeps it, if f says that it has changed.
// A router that there is not is made if that is wished for.
func (b *book) change(ctx context.Context, dpid string, vlan uint32, create bool, f func(*router) (bool, error)) error {
	k, err := newKey(dpid, vlan)
	if err != nil {
		return api.Errorf(codes.InvalidArgument, "%w", err)
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	old, n := b.routers[k], len(b.routers)
	var r *router
	if old != nil {
		r = old.clone()
	} else {
		r = &router{key: k, mac: b.address(k)}
	}
	b.mu.Unlock()
	if old == nil && create && n >= b.cfg.Load().Routers {
		return api.Errorf(codes.ResourceExhausted, "router of switch %v and VLAN %d: there are %d routers already; delete one, or raise router.routers", k.sw, k.number(), n)
	}
	changed, err := f(r)
	if err != nil {
		return fmt.Errorf("router of switch %v and VLAN %d: %w", k.sw, k.number(), err)
	}
	if !changed {
		return nil
	}
	return b.keep(ctx, r)
}

// keep writes a router, and has it in force. One of a VLAN that has nothing left
// is forgotten; of one without, the numbers that it has given are kept. It is
// called with writing held.
func (b *book) keep(ctx context.Context, r *router) error {
	b.mu.Lock()
	revision := b.revision[r.key]
	b.mu.Unlock()
	gone := r.empty() && r.vlan != 0
	var err error
	if gone {
		err = b.store.Delete(ctx, r.key.String())
	} else {
		revision, err = b.store.Update(ctx, r.key.String(), r.marshal(), revision)
	}
	if err != nil {
		return api.Errorf(codes.Unavailable, "router of switch %v and VLAN %d: the change is not kept, so it is not in force: %w", r.sw, r.number(), err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if gone {
		delete(b.routers, r.key)
		delete(b.revision, r.key)
	} else {
		b.routers[r.key], b.revision[r.key] = r, revision
	}
	for p := range b.neighbours.of { // they may be in a subnet now, or in none
		if p.vlan == r.vlan {
			b.neighbours.dirty[p] = true
		}
	}
	b.reindex()
	return nil
}

// address returns an Ethernet address for a router that nobody has, the same for
// the same router but by chance. It is called with mu held.
func (b *book) address(k key) flow.MAC {
	mac, _ := flow.ParseMAC(b.cfg.Load().MACPrefix + ":00:00:00")
	taken := map[flow.MAC]bool{}
	for _, r := range b.routers {
		taken[r.mac] = true
	}
	for salt := 0; ; salt++ {
		h := fnv.New32a()
		_, _ = fmt.Fprintf(h, "%v/%d", k, salt)
		n := h.Sum32()
		mac[3], mac[4], mac[5] = byte(n>>16), byte(n>>8), byte(n)
		if !taken[mac] {
			return mac
		}
	}
}

// switchChanged takes note of a switch that has connected or gone.
func (b *book) switchChanged(e *api.SwitchChanged) {
	sw, err := flow.ParseDPID(e.GetSwitch().GetDpid())
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.datapath(sw)
	if d.connected = e.Switch.Connected; d.connected {
		d.routes = able(e.Switch)
	}
}

// able reports whether a switch has the tables and actions to route by itself.
func able(sw *api.Switch) bool {
	return flow.ForwardTable(sw.GetTables(), sw.GetOpenflow() == "1.0") != 0
}

// datapath is called with mu held.
func (b *book) datapath(sw flow.DPID) *datapath {
	d := b.switches[sw]
	if d == nil {
		d = &datapath{edges: map[flow.Port]bool{}}
		b.switches[sw] = d
	}
	return d
}

// roleChanged takes note of what a port is: who is not known is asked for at
// edge ports.
func (b *book) roleChanged(e *api.PortRoleChanged) {
	at := e.GetPort().GetAt().Flow()
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.datapath(at.Switch)
	if e.GetPort().GetRole() == flow.RoleEdge.String() {
		d.edges[at.Port] = true
	} else {
		delete(d.edges, at.Port)
	}
}

// hostChanged takes note of a host.
func (b *book) hostChanged(e *api.HostChanged) {
	d := &flow.Decision{}
	b.mu.Lock()
	for _, p := range b.neighbours.changed(e) {
		if s, known := b.neighbours.of[p]; known {
			b.release(p, s, d)
		}
		if b.inSubnet(p) {
			b.changed()
		}
	}
	b.mu.Unlock()
	b.post(d)
}

// segmentChanged takes note of a virtual network.
func (b *book) segmentChanged(e *api.SegmentChanged) {
	switch vlan, ports := e.GetSegment().Tagged(); {
	case vlan == 0:
		return
	case e.Removed:
		b.tagging.Remove(vlan)
	default:
		b.tagging.Set(vlan, ports)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = nil // of what leaves by ports as they were
	b.changed()
}

// forget drops the neighbours that only an earlier run knew.
func (b *book) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.neighbours.forget() {
		b.changed()
	}
}

// inSubnet reports whether a router has a subnet that holds an address. It is
// called with mu held.
func (b *book) inSubnet(p place) bool {
	for _, r := range b.routers {
		if r.vlan != p.vlan {
			continue
		}
		if _, ok := r.subnet(p.addr); ok {
			return true
		}
	}
	return false
}

// list returns the routers of a switch, or all, with what is found.
func (b *book) list(dpid string, status func(flow.DPID) (string, error)) ([]*api.VirtualRouter, error) {
	var only flow.DPID
	if dpid != "" {
		var err error
		if only, err = flow.ParseDPID(dpid); err != nil {
			return nil, api.Errorf(codes.InvalidArgument, "%w", err)
		}
	}
	s := b.scene()
	if s == nil {
		return nil, nil
	}
	s.once.Do(s.prepare)
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []*api.VirtualRouter
	for _, r := range b.sorted() {
		if r.empty() || dpid != "" && r.sw != only {
			continue
		}
		m := r.message()
		for i, route := range r.routes {
			if n := s.x.owner(place{route.by, r.vlan}, r.sw); n != nil {
				m.Routes[i].GatewayMac = n.mac.String()
			} else if s, ok := b.neighbours.of[place{route.by, r.vlan}]; ok {
				m.Routes[i].GatewayMac = s.mac.String()
			}
		}
		m.Neighbours = s.near[r]
		m.State, m.Reason = b.state(r, status)
		out = append(out, m)
	}
	return out, nil
}

// state says how a router is. It is called with mu held.
func (b *book) state(r *router, status func(flow.DPID) (string, error)) (state, reason string) {
	d := b.switches[r.sw]
	if d == nil || !d.connected {
		return "away", "its switch is not connected; at others it routes nevertheless"
	}
	if !d.routes {
		return "carried", "the switch has OpenFlow 1.0 or fewer than five tables: the controller routes its packets one by one"
	}
	switch s, err := status(r.sw); s {
	case "in_sync":
	case "failing":
		return "failing", err.Error()
	default:
		return "syncing", ""
	}
	if n := b.over[r.sw]; n > 0 {
		return "up", fmt.Sprintf("%d destinations have no entry at the switch, for it has as many as router.entries allows: the controller routes their packets one by one", n)
	}
	return "up", ""
}

// size returns how many routers there are.
func (b *book) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, r := range b.routers {
		if !r.empty() {
			n++
		}
	}
	return n
}

// known returns the neighbour with an address. It is called with mu held.
func (b *book) known(a netip.Addr, vlan uint16) (station, bool) {
	s, ok := b.neighbours.of[place{a, vlan}]
	return s, ok
}

package router

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/policy"
)

// store is the routers, the switches and the neighbours.
type store struct {
	cfg     atomic.Pointer[Config]
	count   *counts
	tagging flow.Tagging
	reached object.Limits         // of the configuration
	index   atomic.Pointer[index] // of the routers, for the stage; nil: none
	post    func(*flow.Decision)  // sends a decision that follows from no packet
	routers *policy.Policy[*api.VirtualRouter, *router]
	stale   chan struct{}                   // notified when entries are to be declared anew, soon
	status  func(flow.DPID) (string, error) // state of the entries of a switch

	mu         object.Guard // guards the following, and routers
	changes    uint64       // of routers
	net        nib.Snapshot
	neighbours *object.Hosts
	last       *snapshot // that the last entries were made of
	waiting    *waiting
	errors     allowances        // has a lock of its own
	asked      map[place]int64   // when a gateway was last asked for
	over       map[flow.DPID]int // entries that did not fit on a switch
}

// index is the stage's lookup tables; it never changes.
type index struct {
	macs   map[flow.MAC]*router
	owners map[place][]*router // by address, in the order of switches
}

func newStore(cfg *Config) *store {
	b := &store{count: newCounts(nil), post: func(*flow.Decision) {}, stale: make(chan struct{}, 1),
		neighbours: object.NewHosts(), waiting: newWaiting(), asked: map[place]int64{}, over: map[flow.DPID]int{}}
	b.cfg.Store(cfg)
	b.routers = policy.New(b.kind())
	b.status = func(sw flow.DPID) (string, error) {
		own, err := b.routers.Flows().Status(sw)
		if all, why := b.routers.Flows().OverallStatus(); own == "in_sync" && all == "failing" { // others have entries of its subnets, too
			return all, why
		}
		return own, err
	}
	return b
}

// kind describes the routers.
func (b *store) kind() policy.Kind[*api.VirtualRouter, *router] {
	return policy.Kind[*api.VirtualRouter, *router]{
		Owner: flow.OwnerRouter, What: "router", Many: "routers", Bucket: "routers", Guard: &b.mu, Raise: "router.routers",
		Name: nameOf, Said: (*router).message, Format: object.Format[*router]{Format: (*router).marshal, Parse: parseRouter},
		Changed: func(_, _ *router) { b.changes++; b.reindex() }, All: b.rules, Count: b.size,
		Reads: nib.Roles | nib.Hosts | nib.Segments, Network: b.networkChanged,
		Most: func() int { return b.cfg.Load().Routers }, Deadline: func() time.Duration { return b.cfg.Load().Deadline },
	}
}

// moved notifies that entries are to be declared anew.
func (b *store) moved() { object.Notify(b.stale) }

// reindex is called with mu held.
func (b *store) reindex() {
	x := &index{macs: map[flow.MAC]*router{}, owners: map[place][]*router{}}
	for _, r := range b.sorted() {
		if r.empty() {
			continue
		}
		x.macs[r.mac] = r
		for _, a := range r.addresses {
			p := object.In(a.Addr(), r.vlan)
			x.owners[p] = append(x.owners[p], r)
		}
	}
	if len(x.macs) == 0 {
		x = nil
	}
	b.index.Store(x)
}

// sorted returns the routers by switch and VLAN. It is called with mu held.
func (b *store) sorted() []*router {
	return slices.SortedFunc(slices.Values(b.routers.List()), (*router).compare)
}

// owner returns the router in a VLAN that has an address, preferring that of a
// switch; nil if none has.
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

// change stores what f makes of the router that a request names, if f reports a
// change. It deletes a router with a VLAN that has nothing left; a router without
// VLAN stays, to keep the last numbers given.
func (b *store) change(ctx context.Context, q interface {
	GetDpid() string
	GetVlan() uint32
}, f func(*router) (bool, error)) error {
	k, err := newKey(q.GetDpid(), q.GetVlan())
	if err != nil {
		return api.Errorf(codes.InvalidArgument, "%w", err)
	}
	_, _, err = b.routers.Change(ctx, k.String(), func(old *router) (*router, error) {
		var r *router
		if old != nil {
			r = old.clone()
		} else {
			r = &router{key: k, mac: b.address(k)}
		}
		changed, err := f(r)
		switch {
		case err != nil:
			return nil, fmt.Errorf("router of switch %v and VLAN %d: %w", k.sw, k.number(), err)
		case !changed:
			return old, nil
		case r.empty() && r.vlan != 0:
			return nil, nil
		}
		r.table = newTable(r)
		return r, nil
	})
	return err
}

// address returns an unused Ethernet address for a router, the same for the same
// router except by chance. It is called with mu held.
func (b *store) address(k key) flow.MAC {
	mac, _ := flow.ParseMAC(b.cfg.Load().MACPrefix + ":00:00:00")
	taken := map[flow.MAC]bool{}
	for _, r := range b.routers.List() {
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

// able reports whether a switch has the tables and actions to route by itself.
func able(sw *api.Switch) bool {
	return flow.ForwardTable(sw.GetTables(), sw.GetOpenflow() == "1.0") != 0
}

// networkChanged follows a change of the network. Of the neighbours of an earlier run those
// remain of which the service hosts says where they are, once it has said so of all.
func (b *store) networkChanged(c nib.Change) {
	d := &flow.Decision{}
	tagged := c.Tag(&b.tagging)
	b.mu.Lock()
	b.net = c.Is
	for _, h := range c.Hosts() {
		b.hostChanged(h, d)
	}
	if c.Heard(nib.Hosts) && b.neighbours.Forget() {
		b.moved()
	}
	if tagged {
		b.last = nil // of entries by ports as they were
		b.moved()
	}
	b.mu.Unlock()
	b.post(d)
}

// hostChanged records a host. It is called with mu held.
func (b *store) hostChanged(h nib.Step[nib.Host], d *flow.Decision) {
	_, _, moved := b.neighbours.Follow(h)
	for _, p := range moved {
		if s, known := b.neighbours.Station(p); known {
			b.release(p, s, d)
		}
		if b.inSubnet(p) {
			b.moved()
		}
	}
}

// inSubnet reports whether a router has a subnet that contains an address. It is
// called with mu held.
func (b *store) inSubnet(p place) bool {
	for _, r := range b.routers.List() {
		if r.vlan != p.VLAN {
			continue
		}
		if _, ok := r.subnet(p.Addr); ok {
			return true
		}
	}
	return false
}

// list returns the routers of a switch, or all, with their state.
func (b *store) list(_ context.Context, q *api.ListRoutersRequest) (*api.ListRoutersResponse, error) {
	var only flow.DPID
	dpid, out := q.GetDpid(), &api.ListRoutersResponse{}
	if dpid != "" {
		var err error
		if only, err = flow.ParseDPID(dpid); err != nil {
			return nil, api.Errorf(codes.InvalidArgument, "%w", err)
		}
	}
	s := b.snapshot()
	if s == nil {
		return out, nil
	}
	s.once.Do(s.prepare)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.sorted() {
		if r.empty() || dpid != "" && r.sw != only {
			continue
		}
		m := r.message()
		for i, route := range r.routes {
			if n := s.x.owner(object.In(route.by, r.vlan), r.sw); n != nil {
				m.Routes[i].GatewayMac = n.mac.String()
			} else if s, ok := b.neighbours.Station(object.In(route.by, r.vlan)); ok {
				m.Routes[i].GatewayMac = s.MAC.String()
			}
		}
		m.Neighbours = s.near[r]
		m.State, m.Reason = b.state(r)
		out.Routers = append(out.Routers, m)
	}
	return out, nil
}

// state returns the state of a router. It is called with mu held.
func (b *store) state(r *router) (state, reason string) {
	sw := b.net.Connected(r.sw)
	if sw == nil {
		return "away", "its switch is not connected; at others it routes nevertheless"
	}
	if !able(sw) {
		return "carried", fmt.Sprintf("the switch has OpenFlow 1.0 or fewer than %d tables: the controller routes its packets one by one", flow.PipelineTables)
	}
	switch s, err := b.status(r.sw); s {
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

// size returns the number of routers.
func (b *store) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, r := range b.routers.List() {
		if !r.empty() {
			n++
		}
	}
	return n
}

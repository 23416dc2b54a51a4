package tenants

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// book is the tenants, their networks, and what is known of the switches.
type book struct {
	cfg     atomic.Pointer[Config]
	writing sync.Mutex // held while something is written; guards the shelves
	tenant  *shelf
	network *shelf

	mu       sync.Mutex // guards the following
	tenants  map[string]*api.Tenant
	networks map[string]*network
	scene    scene
	holding  holding
	let      map[string]*guestlist // by tenant with a limit of hosts
	carried  map[uint16]*network   // by segment
	told     map[uint16]*api.Segment
}

func newBook(cfg *Config, tenants, networks Store) *book {
	b := &book{tenant: newShelf(tenants), network: newShelf(networks), tenants: map[string]*api.Tenant{},
		networks: map[string]*network{}, scene: newScene(), holding: holding{}, let: map[string]*guestlist{}, carried: map[uint16]*network{}, told: map[uint16]*api.Segment{}}
	b.cfg.Store(cfg)
	return b
}

// load reads what earlier runs have kept.
func (b *book) load(ctx context.Context, bad func(key string, err error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	meters := map[uint32]bool{}
	err := b.tenant.load(ctx, func() proto.Message { return &api.Tenant{} }, func(key string, m proto.Message) error {
		t, err := readTenant(m.(*api.Tenant))
		switch {
		case err != nil:
			return err
		case t.Name != key:
			return fmt.Errorf("describes the tenant %s", t.Name)
		case flow.MeterOwner(t.Meter) != flow.OwnerTenants || meters[t.Meter]:
			return fmt.Errorf("has meter %d", t.Meter)
		}
		meters[t.Meter] = true
		b.tenants[key] = t
		return nil
	}, bad)
	if err != nil {
		return err
	}
	err = b.network.load(ctx, func() proto.Message { return &api.TenantNetwork{} }, func(key string, m proto.Message) error {
		n, err := readNetwork(m.(*api.TenantNetwork))
		if err == nil {
			err = b.fits(n)
		}
		switch {
		case err != nil:
			return err
		case n.key() != key:
			return fmt.Errorf("describes the network %s", n.key())
		case n.segment == 0 || b.tenants[n.said.Tenant] == nil:
			return errors.New("has no segment or no tenant")
		}
		b.networks[key] = n
		return nil
	}, bad)
	b.admit()
	return err
}

// fits says what is wrong with a network beside the others. It is called with
// mu held.
func (b *book) fits(n *network) error {
	if err := n.itself(); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(b.networks)) {
		if key == n.key() {
			continue
		}
		if err := n.clash(b.networks[key]); err != nil {
			return err
		}
	}
	return nil
}

// setTenant keeps a tenant, and reports whether anything has changed.
func (b *book) setTenant(ctx context.Context, m *api.Tenant) (*api.Tenant, bool, error) {
	t, err := readTenant(m)
	if err != nil {
		return nil, false, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	old, count := b.tenants[t.Name], len(b.tenants)
	if old != nil {
		t.Meter = old.Meter
	} else {
		t.Meter = b.freeMeter()
	}
	used := b.membersOf(t.Name, "")
	b.mu.Unlock()
	switch {
	case old != nil && proto.Equal(old, t):
		return old, false, nil
	case old == nil && count >= b.cfg.Load().Tenants:
		return nil, false, api.Errorf(codes.ResourceExhausted, "tenant %s: there are %d tenants already; delete one, or raise tenants.tenants", t.Name, count)
	case t.MaxMembers != 0 && used > int(t.MaxMembers):
		return nil, false, api.Errorf(codes.FailedPrecondition, "tenant %s: max_members %d: its networks have %d members already; take some out first", t.Name, t.MaxMembers, used)
	}
	if err := b.tenant.put(ctx, t.Name, t); err != nil {
		return nil, false, api.Errorf(codes.Unavailable, "tenant %s is not kept, so nothing has changed: %w", t.Name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tenants[t.Name] = t
	b.admit()
	return t, true, nil
}

// freeMeter returns the lowest meter of ours that no tenant has. It is called
// with mu held; there are more meters than tenants.
func (b *book) freeMeter() uint32 {
	used := make(map[uint32]bool, len(b.tenants))
	for _, t := range b.tenants {
		used[t.Meter] = true
	}
	id := flow.TenantMeters
	for used[id] {
		id++
	}
	return id
}

// membersOf returns how many members the networks of a tenant have, but for one;
// of all tenants if tenant is empty. It is called with mu held.
func (b *book) membersOf(tenant, but string) (sum int) {
	for key, n := range b.networks {
		if key != but && (tenant == "" || n.said.Tenant == tenant) {
			sum += n.members()
		}
	}
	return sum
}

// deleteTenant forgets a tenant and its networks.
func (b *book) deleteTenant(ctx context.Context, name string) (*api.DeleteTenantResponse, error) {
	if err := checkName("tenant", name); err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	resp := &api.DeleteTenantResponse{}
	b.mu.Lock()
	var keys []string
	for key, n := range b.networks {
		if n.said.Tenant == name {
			keys = append(keys, key)
		}
	}
	resp.Deleted = b.tenants[name] != nil
	b.mu.Unlock()
	for _, key := range keys {
		if err := b.dropNetwork(ctx, key); err != nil {
			return nil, err
		}
		resp.Networks++
	}
	if !resp.Deleted {
		return resp, nil
	}
	if err := b.tenant.remove(ctx, name); err != nil {
		return nil, api.Errorf(codes.Unavailable, "tenant %s is not deleted, only its networks: %w", name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.tenants, name)
	b.admit()
	return resp, nil
}

// setNetwork keeps a virtual network, and reports whether anything has changed.
func (b *book) setNetwork(ctx context.Context, m *api.TenantNetwork) (*api.TenantNetwork, bool, error) {
	n, err := readNetwork(m)
	if err != nil {
		return nil, false, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	old := b.networks[n.key()]
	err = b.place(n, old)
	b.mu.Unlock()
	if err != nil {
		return nil, false, err
	}
	if old != nil && proto.Equal(old.said, n.said) {
		return old.said, false, nil
	}
	if err := b.network.put(ctx, n.key(), n.said); err != nil {
		return nil, false, api.Errorf(codes.Unavailable, "network %s is not kept, so nothing has changed: %w", n.key(), err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.networks[n.key()] = n
	b.admit()
	return n.said, true, nil
}

// place gives a network its segment and checks that there is room for it. It is
// called with mu held.
func (b *book) place(n, old *network) error {
	t := b.tenants[n.said.Tenant]
	if t == nil {
		return api.Errorf(codes.FailedPrecondition, "network %s: there is no tenant %q; make it first", n.key(), n.said.Tenant)
	}
	if sum := b.membersOf(t.Name, n.key()) + n.members(); t.MaxMembers != 0 && sum > int(t.MaxMembers) {
		return api.Errorf(codes.ResourceExhausted, "network %s: tenant %s would have %d members, and may have %d", n.key(), t.Name, sum, t.MaxMembers)
	}
	if sum := b.membersOf("", n.key()) + n.members(); sum > b.cfg.Load().Members {
		return api.Errorf(codes.ResourceExhausted, "network %s: there would be %d members in all; use fewer, or raise tenants.members", n.key(), sum)
	}
	if n.segment == 0 && old != nil {
		n.segment = old.segment
	}
	if err := b.fits(n); err != nil {
		return api.Errorf(codes.AlreadyExists, "network %s: %w", n.key(), err)
	}
	if n.segment == 0 {
		n.segment = b.freeSegment()
	}
	if n.segment == 0 {
		return api.Errorf(codes.ResourceExhausted, "network %s: the VLANs %d to %d are all in use", n.key(), b.cfg.Load().FirstSegment, b.cfg.Load().LastSegment)
	}
	n.said.Segment = uint32(n.segment)
	return nil
}

// freeSegment returns the lowest VLAN that carries nothing, 0 if there is none.
// It is called with mu held.
func (b *book) freeSegment() uint16 {
	used := b.scene.vlans()
	for _, n := range b.networks {
		used[n.segment] = true
	}
	for v := b.cfg.Load().FirstSegment; v <= b.cfg.Load().LastSegment; v++ {
		if !used[uint16(v)] {
			return uint16(v)
		}
	}
	return 0
}

// deleteNetwork forgets a virtual network, and reports whether there was one.
func (b *book) deleteNetwork(ctx context.Context, tenant, name string) (bool, error) {
	if err := errors.Join(checkName("tenant", tenant), checkName("network", name)); err != nil {
		return false, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	there := b.networks[networkKey(tenant, name)] != nil
	b.mu.Unlock()
	if !there {
		return false, nil
	}
	return true, b.dropNetwork(ctx, networkKey(tenant, name))
}

// dropNetwork forgets a network that there is. It is called with writing held.
func (b *book) dropNetwork(ctx context.Context, key string) error {
	if err := b.network.remove(ctx, key); err != nil {
		return api.Errorf(codes.Unavailable, "network %s is not deleted: %w", key, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.networks, key)
	b.admit()
	return nil
}

// listTenants returns the tenants by name.
func (b *book) listTenants() []*api.Tenant {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []*api.Tenant
	for _, name := range slices.Sorted(maps.Keys(b.tenants)) {
		list = append(list, b.tenants[name])
	}
	return list
}

// listNetworks returns the networks of a tenant, or of all if tenant is empty,
// by tenant and name.
func (b *book) listNetworks(tenant string) []*api.TenantNetwork {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []*api.TenantNetwork
	for _, n := range b.sorted() {
		if tenant == "" || n.said.Tenant == tenant {
			list = append(list, n.said)
		}
	}
	return list
}

// sorted returns the networks by tenant and name. It is called with mu held.
func (b *book) sorted() []*network {
	list := make([]*network, 0, len(b.networks))
	for _, key := range slices.Sorted(maps.Keys(b.networks)) {
		list = append(list, b.networks[key])
	}
	return list
}

package tenants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/policy"
)

// store holds the tenants, their networks, and the known state of the switches.
type store struct {
	cfg      atomic.Pointer[Config]
	tenants  *policy.Policy[*api.Tenant, *api.Tenant]
	networks *policy.Policy[*api.TenantNetwork, *network]
	news     chan struct{} // notified when segments may have changed

	mu        object.Guard // guards the following, tenants and networks
	net       nib.Snapshot
	links     links
	admitted  *admission // nil: to be made
	announced map[uint16]*api.Segment
}

func newStore(cfg *Config) *store {
	b := &store{links: links{}, announced: map[uint16]*api.Segment{}, news: make(chan struct{}, 1)}
	b.cfg.Store(cfg)
	b.tenants, b.networks = policy.New(b.tenantKind()), policy.New(b.networkKind())
	return b
}

// tenantKind describes the tenants, which have no flows of their own.
func (b *store) tenantKind() policy.Kind[*api.Tenant, *api.Tenant] {
	return policy.Kind[*api.Tenant, *api.Tenant]{
		What: "tenant", Many: "tenants", Bucket: "tenants", Guard: &b.mu, Raise: "tenants.tenants",
		Set: api.SetTenant, List: api.ListTenants,
		Check: readTenant, Load: b.parseTenant, Admit: b.admitTenant,
		Changed: func(_, _ *api.Tenant) { b.changed(); b.networks.Recompute() },
		Most:    func() int { return b.cfg.Load().Tenants },
		Settle:  func(ctx context.Context) { b.networks.Settle(ctx) },
	}
}

// networkKind describes the networks, with the flows of all.
func (b *store) networkKind() policy.Kind[*api.TenantNetwork, *network] {
	return policy.Kind[*api.TenantNetwork, *network]{
		Owner: flow.OwnerTenants, What: "network", Many: "networks", Bucket: "networks", Guard: &b.mu,
		Set: api.SetNetwork, Delete: api.DeleteNetwork, List: api.ListNetworks,
		Name: networkName, Check: readNetwork, Load: b.parseNetwork, Said: func(n *network) *api.TenantNetwork { return n.said },
		Admit: b.place, Changed: func(_, _ *network) { b.changed() }, All: b.rules,
		Reads: nib.Roles | nib.Hosts, Network: b.networkChanged,
		Deadline: func() time.Duration { return b.cfg.Load().Deadline },
	}
}

// changed follows a change of tenants or networks. It is called with mu held.
func (b *store) changed() {
	b.admitted = nil
	object.Notify(b.news)
}

// parseTenant returns the stored tenant. It is called with mu held.
func (b *store) parseTenant(m *api.Tenant) (*api.Tenant, error) {
	t, err := readTenant(m)
	if err != nil {
		return nil, err
	}
	if flow.MeterOwner(t.Meter) != flow.OwnerTenants {
		return nil, fmt.Errorf("has meter %d", t.Meter)
	}
	for o := range b.tenants.All() {
		if o.Meter == t.Meter && o.Name != t.Name {
			return nil, fmt.Errorf("has meter %d, as tenant %s has", t.Meter, o.Name)
		}
	}
	return t, nil
}

// parseNetwork returns the stored network. It is called with mu held.
func (b *store) parseNetwork(m *api.TenantNetwork) (*network, error) {
	n, err := readNetwork(m)
	if err == nil {
		err = b.fits(n)
	}
	if err == nil && (n.segment == 0 || b.tenants.Get(n.said.Tenant) == nil) {
		err = errors.New("has no segment or no tenant")
	}
	return n, err
}

// fits returns an error if a network conflicts with the others. It is called with
// mu held.
func (b *store) fits(n *network) error {
	if err := n.itself(); err != nil {
		return err
	}
	for o := range b.networks.All() {
		if o.key() == n.key() {
			continue
		}
		if err := n.clash(o); err != nil {
			return err
		}
	}
	return nil
}

// admitTenant gives a tenant its meter and checks its limits. It is called with mu held.
func (b *store) admitTenant(t, old *api.Tenant) error {
	if old != nil {
		t.Meter = old.Meter
	} else {
		t.Meter = b.freeMeter()
	}
	if used := b.membersOf(t.Name, ""); t.MaxMembers != 0 && used > int(t.MaxMembers) && !proto.Equal(old, t) {
		return api.Errorf(codes.FailedPrecondition, "tenant %s: max_members %d: its networks have %d members already; take some out first", t.Name, t.MaxMembers, used)
	}
	return nil
}

// freeMeter returns the lowest free meter number. It is called with mu held;
// there are more meters than tenants.
func (b *store) freeMeter() uint32 {
	used := map[uint32]bool{}
	for t := range b.tenants.All() {
		used[t.Meter] = true
	}
	id := flow.TenantMeters
	for used[id] {
		id++
	}
	return id
}

// membersOf returns the number of members of a tenant's networks, leaving out the
// network but; of all tenants if tenant is empty. It is called with mu held.
func (b *store) membersOf(tenant, but string) (sum int) {
	for n := range b.networks.All() {
		if n.key() != but && (tenant == "" || n.said.Tenant == tenant) {
			sum += n.members()
		}
	}
	return sum
}

// errMade says that a network has been made while its tenant was to be deleted.
var errMade = errors.New("the tenant has another network meanwhile")

// deleteTenant deletes a tenant and its networks, all or none.
func (b *store) deleteTenant(ctx context.Context, q *api.DeleteTenantRequest) (*api.DeleteTenantResponse, error) {
	name := q.GetName()
	if err := api.CheckName("tenant", name); err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	for {
		gone := map[string]bool{}
		var edits []object.Edit
		for _, key := range b.networksOf(name) {
			gone[key] = true
			edits = append(edits, b.networks.Edit(key, func(*network) (*network, error) { return nil, nil }))
		}
		tenant := b.tenants.Edit(name, func(*api.Tenant) (*api.Tenant, error) {
			for n := range b.networks.All() {
				if n.said.Tenant == name && !gone[n.key()] {
					return nil, errMade
				}
			}
			return nil, nil
		})
		if err := object.Change(ctx, append(edits, tenant)...); !errors.Is(err, errMade) {
			return &api.DeleteTenantResponse{Deleted: tenant.Old != nil, Networks: uint32(len(gone))}, err
		}
	}
}

// place gives a network its segment and checks that there is room for it. It is
// called with mu held.
func (b *store) place(n, old *network) error {
	t := b.tenants.Get(n.said.Tenant)
	if t == nil {
		return api.Errorf(codes.FailedPrecondition, "network %s: there is no tenant %q; make it first", n.key(), n.said.Tenant)
	}
	if err := b.holds(n, old); err != nil {
		return err
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

// holds returns an error if the switch of a port that becomes a member cannot keep the
// border of a network. It is called with mu held.
func (b *store) holds(n, old *network) error {
	var list []*api.Switch
	for _, p := range n.ports {
		if old == nil || !slices.Contains(old.ports, p) {
			list = append(list, b.net.Info(p.at.Switch))
		}
	}
	return api.CheckNeeds("the border of network "+n.key(), "leave its ports out of the members", slices.Values(list), api.NeedTables)
}

// freeSegment returns the lowest unused VLAN, 0 if there is none. It is called
// with mu held.
func (b *store) freeSegment() uint16 {
	used := map[uint16]bool{}
	for v := range b.net.HostVLANs() {
		used[v] = true
	}
	for n := range b.networks.All() {
		used[n.segment] = true
	}
	for v := b.cfg.Load().FirstSegment; v <= b.cfg.Load().LastSegment; v++ {
		if !used[uint16(v)] {
			return uint16(v)
		}
	}
	return 0
}

// networksOf returns the names of a tenant's networks.
func (b *store) networksOf(tenant string) (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := range b.networks.All() {
		if n.said.Tenant == tenant {
			list = append(list, n.key())
		}
	}
	return list
}

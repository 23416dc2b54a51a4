package qos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

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

// book is the policies, the switches and where hosts are.
type book struct {
	cfg   atomic.Pointer[Config]
	store Store

	writing sync.Mutex // held while a policy is written to the store

	mu       sync.Mutex // guards the following
	policies map[string]*policy
	revision map[string]uint64
	order    []*policy // as they count; replaced, not changed
	places   *places
	switches map[flow.DPID]*api.Switch // those that are or were connected
}

func newBook(cfg *Config, store Store) *book {
	b := &book{store: store, policies: map[string]*policy{}, revision: map[string]uint64{}, places: newPlaces(), switches: map[flow.DPID]*api.Switch{}}
	b.cfg.Store(cfg)
	return b
}

// load reads the policies of earlier runs. What cannot be read is told to bad
// and left out.
func (b *book) load(ctx context.Context, bad func(key string, err error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.store.All(ctx, func(key string, value []byte, revision uint64) error {
		m := &api.QosPolicy{}
		p, err := (*policy)(nil), protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(value, m)
		if err == nil {
			p, err = readPolicy(m)
		}
		if err == nil && m.Name != key {
			err = fmt.Errorf("describes the policy %s", m.Name)
		}
		if err == nil && m.Limit != nil && (m.Meter == 0 || m.Meter > meterMax) {
			err = fmt.Errorf("has meter %d", m.Meter)
		}
		if err != nil {
			bad(key, err)
			return nil
		}
		b.policies[key], b.revision[key] = p, revision
		return nil
	})
	b.sort()
	return err
}

// sort is called with mu held.
func (b *book) sort() { b.order = slices.SortedFunc(maps.Values(b.policies), before) }

// set keeps a policy. It returns the policy as it is kept, and the switches
// that it concerns, those of its predecessor included.
func (b *book) set(ctx context.Context, m *api.QosPolicy) (*api.QosPolicy, []flow.DPID, error) {
	p, err := readPolicy(m)
	if err != nil {
		return nil, nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	name := p.said.Name
	b.mu.Lock()
	old, revision := b.policies[name], b.revision[name]
	err = b.admit(p, old)
	b.mu.Unlock()
	if err != nil {
		return nil, nil, err
	}
	if old != nil && old.equal(p) {
		return old.said, nil, nil
	}
	value, err := protojson.Marshal(p.said)
	if err != nil {
		return nil, nil, api.Errorf(codes.Internal, "policy %s: %w", name, err)
	}
	if revision, err = b.store.Update(ctx, name, value, revision); err != nil {
		return nil, nil, api.Errorf(codes.Unavailable, "policy %s is not kept, so it is not in force: %w", name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	concerned := b.concerned(p, old)
	b.policies[name], b.revision[name] = p, revision
	b.sort()
	return p.said, concerned, nil
}

// admit checks that there is room for a policy, and gives it its meter. It is
// called with mu held.
func (b *book) admit(p, old *policy) error {
	name := p.said.Name
	if old == nil && len(b.policies) >= b.cfg.Load().Policies {
		return api.Errorf(codes.ResourceExhausted, "policy %s: there are %d policies already; delete one, or raise qos.policies", name, len(b.policies))
	}
	p.said.Meter = 0
	if p.said.Limit != nil {
		if old != nil {
			p.said.Meter = old.said.Meter
		}
		if p.said.Meter == 0 {
			p.said.Meter = b.freeMeter()
		}
	}
	list := []*policy{p}
	for _, o := range b.order {
		if o != old {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, before)
	for sw := range b.switches {
		if _, err := compile(list, sw, b.places, b.cfg.Load().Entries); err != nil {
			return api.Errorf(codes.ResourceExhausted, "policy %s: %w", name, err)
		}
	}
	return nil
}

// freeMeter returns the lowest number that no policy has. It is called with mu
// held; there are more numbers than policies.
func (b *book) freeMeter() uint32 {
	used := make(map[uint32]bool, len(b.policies))
	for _, p := range b.policies {
		used[p.said.Meter] = true
	}
	id := uint32(1)
	for used[id] {
		id++
	}
	return id
}

// remove forgets a policy. It returns the switches that it concerned.
func (b *book) remove(ctx context.Context, name string) (bool, []flow.DPID, error) {
	if err := checkName(name); err != nil {
		return false, nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	old := b.policies[name]
	b.mu.Unlock()
	if old == nil {
		return false, nil, nil
	}
	if err := b.store.Delete(ctx, name); err != nil {
		return false, nil, api.Errorf(codes.Unavailable, "policy %s is not deleted: %w", name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.policies, name)
	delete(b.revision, name)
	b.sort()
	return true, b.concerned(old), nil
}

// concerned returns the switches at which policies have something to do. It is
// called with mu held.
func (b *book) concerned(list ...*policy) []flow.DPID {
	var switches []flow.DPID
	for sw := range b.switches {
		for _, p := range list {
			if p != nil && len(p.on(sw, b.places)) > 0 {
				switches = append(switches, sw)
				break
			}
		}
	}
	slices.Sort(switches)
	return switches
}

// list returns the policies as they count.
func (b *book) list() []*api.QosPolicy {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]*api.QosPolicy, len(b.order))
	for i, p := range b.order {
		list[i] = p.said
	}
	return list
}

// switchChanged takes the event of the southbound.
func (b *book) switchChanged(e *api.SwitchChanged) {
	sw, err := flow.ParseDPID(e.GetSwitch().GetDpid())
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.switches[sw] = proto.CloneOf(e.Switch)
}

// hostChanged takes the event of hosts, and returns the switches whose entries
// change by it.
func (b *book) hostChanged(e *api.HostChanged) []flow.DPID {
	b.mu.Lock()
	defer b.mu.Unlock()
	was, is := b.places.changed(e)
	if was != nil && is != nil && was.at == is.at && slices.Equal(was.ips, is.ips) {
		return nil
	}
	var switches []flow.DPID
	for _, p := range b.order {
		if !p.host.given() {
			continue
		}
		for _, h := range []*placed{was, is} {
			if h.meets(p.host) && !slices.Contains(switches, h.at.Switch) {
				switches = append(switches, h.at.Switch)
			}
		}
	}
	return switches
}

// refusal returns why a switch cannot enforce policies, "" if it can.
func refusal(sw *api.Switch) string {
	switch {
	case sw.GetOpenflow() == "1.0":
		return "the switch speaks OpenFlow 1.0, which has no meters and one table; policies need OpenFlow 1.3"
	case flow.ForwardTable(sw.GetTables(), false) == 0:
		return fmt.Sprintf("the switch has %d flow tables; policies need %d", sw.GetTables(), flow.PipelineTables)
	}
	return ""
}

// want returns what a switch is to have.
func (b *book) want(sw *api.Switch) *api.SetStandingRequest {
	req := &api.SetStandingRequest{}
	dpid, err := flow.ParseDPID(sw.GetDpid())
	if err != nil || refusal(sw) != "" {
		return req
	}
	b.mu.Lock()
	c, _ := compile(b.order, dpid, b.places, b.cfg.Load().Entries)
	b.mu.Unlock()
	for i := range c.entries {
		req.Flows = append(req.Flows, api.NewFlowEntry(dpid, &c.entries[i]))
	}
	for i := range c.meters {
		req.Meters = append(req.Meters, api.NewMeter(dpid, &c.meters[i]))
	}
	return req
}

// sizes returns the figures for metrics: policies, and entries that all
// switches together are to have.
func (b *book) sizes() (policies, entries, refused int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for sw, m := range b.switches {
		if !m.Connected {
			continue
		}
		if refusal(m) != "" {
			refused++
			continue
		}
		c, _ := compile(b.order, sw, b.places, b.cfg.Load().Entries)
		entries += len(c.entries)
	}
	return len(b.policies), entries, refused
}

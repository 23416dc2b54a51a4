package qos

import (
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
	kit "github.com/weft-sdn/weft/policy"
)

// store is the policies, the switches and where hosts are.
type store struct {
	reached  object.Limits // of the configuration
	cfg      atomic.Pointer[Config]
	policies *kit.Policy[*api.QosPolicy, *policy]

	mu    object.Guard // guards the following, and policies
	order []*policy    // in order of precedence; replaced, not changed
	hosts *object.Hosts
	net   nib.Snapshot
}

func newStore(cfg *Config) *store {
	b := &store{hosts: object.NewHosts()}
	b.cfg.Store(cfg)
	b.policies = kit.New(b.kind())
	return b
}

// kind describes the policies.
func (b *store) kind() kit.Kind[*api.QosPolicy, *policy] {
	return kit.Kind[*api.QosPolicy, *policy]{
		Owner: flow.OwnerQoS, What: "policy", Many: "policies", Bucket: "policies", Guard: &b.mu, Raise: "qos.policies",
		Set: api.QosSetPolicy, Delete: api.QosDeletePolicy, List: api.QosListPolicies,
		Check: readPolicy, Load: parse, Said: func(p *policy) *api.QosPolicy { return p.said },
		Admit: b.admit, Changed: b.changed, Order: before, All: b.rules, On: func(p *policy) []flow.DPID { return b.concerned(p) },
		Reads: nib.Hosts, Network: b.networkChanged,
		Most: func() int { return b.cfg.Load().Policies }, Deadline: func() time.Duration { return b.cfg.Load().Deadline },
	}
}

// parse returns the stored policy.
func parse(m *api.QosPolicy) (*policy, error) {
	p, err := readPolicy(m)
	if err == nil && m.Limit != nil && (m.Meter == 0 || m.Meter > flow.QoSMeterMax) {
		err = fmt.Errorf("has meter %d", m.Meter)
	}
	return p, err
}

// changed follows a change of a policy. It is called with mu held.
func (b *store) changed(_, _ *policy) {
	b.order = slices.SortedFunc(slices.Values(b.policies.List()), before)
}

// admit checks that switches can do what a policy says and have room for it, and gives it its
// meter. It is called with mu held.
func (b *store) admit(p, old *policy) error {
	p.said.Meter = 0
	if p.said.Limit != nil {
		if old != nil {
			p.said.Meter = old.said.Meter
		}
		if p.said.Meter == 0 {
			p.said.Meter = b.freeMeter()
		}
	}
	if old == nil || !proto.Equal(old.said, p.said) {
		if err := b.holds(p); err != nil {
			return err
		}
	}
	list := []*policy{p}
	for _, o := range b.order {
		if o != old {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, before)
	for f := range b.net.Switches() {
		if _, err := b.compile(list, f.Key); err != nil {
			return api.Errorf(codes.ResourceExhausted, "policy %s: %w", p.said.Name, err)
		}
	}
	return nil
}

// freeMeter returns the lowest free number. It is called with mu held; there are
// more numbers than policies.
func (b *store) freeMeter() uint32 {
	used := map[uint32]bool{}
	for _, p := range b.order {
		used[p.said.Meter] = true
	}
	id := uint32(1)
	for used[id] {
		id++
	}
	return id
}

// concerned returns the switches to which policies apply. It is called with mu
// held.
func (b *store) concerned(list ...*policy) []flow.DPID {
	var switches []flow.DPID
	for f := range b.net.Switches() {
		for _, p := range list {
			if p != nil && len(p.on(f.Key, b.hosts, false)) > 0 {
				switches = append(switches, f.Key)
				break
			}
		}
	}
	slices.Sort(switches)
	return switches
}

// networkChanged follows a change of the network.
func (b *store) networkChanged(c nib.Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.net = c.Is
	for _, h := range c.Hosts() {
		b.hostChanged(h)
	}
}

// hostChanged follows a change of a host; the entries of switches follow. It is
// called with mu held.
func (b *store) hostChanged(h nib.Step[nib.Host]) {
	was, is, _ := b.hosts.Follow(h)
	if was != nil && is != nil && was.At == is.At && slices.Equal(was.Addrs, is.Addrs) {
		return
	}
	for _, p := range b.order {
		for _, h := range []*object.Host{was, is} {
			if h != nil && p.host.given() && p.host.is(h) {
				b.policies.Recompute(h.At.Switch)
			}
		}
	}
}

// needs returns what a policy asks of a switch. Later fragments have no ports: a limit by
// ports that does not count them is none.
func (p *policy) needs() []api.Need {
	if p.said.Limit != nil && slices.ContainsFunc(p.match, func(m flow.Match) bool { _, ok := m.LaterFragments(); return ok }) {
		return []api.Need{api.NeedTables, api.NeedFragments}
	}
	return []api.Need{api.NeedTables}
}

// holds returns an error if a switch that is connected cannot do what a policy says. It is
// called with mu held.
func (b *store) holds(p *policy) error {
	var list []*api.Switch
	for f := range b.net.Switches() {
		if len(p.on(f.Key, b.hosts, false)) > 0 {
			list = append(list, f.Is.Switch)
		}
	}
	remedy := "a policy by dpid is for one switch"
	if len(p.needs()) > 1 {
		remedy = "a limit without ports, by host, addresses or protocol, needs no fragments, and a policy by dpid is for one switch"
	}
	return api.CheckNeeds("policy "+p.said.Name, remedy, slices.Values(list), p.needs()...)
}

// rules returns the entries and meters that a switch should have.
func (b *store) rules(sw *api.Switch) kit.Rules {
	dpid, err := flow.ParseDPID(sw.GetDpid())
	if err != nil || sw.Lack(api.NeedTables) != "" {
		return kit.Rules{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c, _ := b.compile(b.order, dpid)
	return kit.Rules{Flows: c.entries, Meters: c.meters}
}

// compile compiles policies for a switch. It is called with mu held.
func (b *store) compile(list []*policy, sw flow.DPID) (*compiled, error) {
	most := b.cfg.Load().Entries
	c, err := compile(list, sw, b.hosts, b.net.Info(sw).GetHardware() == api.OpenVSwitch, most)
	if err != nil {
		b.reached.Reach(time.Now().UnixNano(), "qos.entries", most, "switch "+sw.String())
	}
	return c, err
}

// sizes returns numbers for metrics: the wanted entries of all switches together, and the
// switches that can have none.
func (b *store) sizes() (entries, refused int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for f := range b.net.Switches() {
		sw, m := f.Key, f.Is.Switch
		if !m.Connected {
			continue
		}
		if m.Lack(api.NeedTables) != "" {
			refused++
			continue
		}
		c, _ := b.compile(b.order, sw)
		entries += len(c.entries)
	}
	return entries, refused
}

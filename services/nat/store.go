package nat

import (
	"context"
	"fmt"
	"net/netip"
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

// store is the gateways, the switches and the hosts inside.
type store struct {
	cfg     atomic.Pointer[Config]
	news    chan answer           // of next hops
	index   atomic.Pointer[index] // of the gateways, for the stage; nil: none
	another chan struct{}         // notified when gateways come and go

	reached  object.Limits // of the configuration, and of gateways
	gateways *policy.Policy[*api.NatGateway, *gateway]

	mu       object.Guard // guards the following, and gateways
	changes  uint64       // of gateways
	net      nib.Snapshot
	hosts    *object.Hosts
	counters map[string]*counters
	asked    map[string]int64 // when a next hop was last asked for
	heard    map[string]int64 // when it last answered
	strays   atomic.Uint64    // packets to gateways that the stage dropped
}

// index is the stage's lookup tables; it never changes.
type index struct {
	macs  map[flow.MAC]*gateway
	addrs map[netip.Addr]*gateway // by address inside
	ports map[outside]*gateway
	list  []*gateway
}

// outside is a port to the outside, for one version of IP.
type outside struct {
	at flow.Location
	v6 bool
}

func newStore(cfg *Config) *store {
	b := &store{news: make(chan answer, 64), another: make(chan struct{}, 1), hosts: object.NewHosts(),
		counters: map[string]*counters{}, asked: map[string]int64{}, heard: map[string]int64{}}
	b.cfg.Store(cfg)
	b.gateways = policy.New(b.kind())
	return b
}

// kind describes the gateways.
func (b *store) kind() policy.Kind[*api.NatGateway, *gateway] {
	return policy.Kind[*api.NatGateway, *gateway]{
		Owner: flow.OwnerNAT, What: "gateway", Many: "gateways", Bucket: "gateways", Guard: &b.mu, Raise: "nat.gateways",
		Set: api.SetNat, Delete: api.DeleteNat, List: api.ListNats,
		Check: b.check, Load: b.parse, Said: func(g *gateway) *api.NatGateway { return g.said },
		Admit: b.admit, Changed: b.changed, All: b.rules, Status: b.status,
		Reads: nib.Hosts, Network: b.networkChanged,
		Most: func() int { return b.cfg.Load().Gateways }, Deadline: func() time.Duration { return b.cfg.Load().Deadline },
	}
}

// check returns the gateway of a message as it came.
func (b *store) check(m *api.NatGateway) (*gateway, error) { return readGateway(m, b.cfg.Load()) }

// parse returns the stored gateway.
func (b *store) parse(m *api.NatGateway) (*gateway, error) {
	g, err := readGateway(m, b.cfg.Load())
	if err != nil {
		return nil, err
	}
	if m.Zone == 0 || m.Zone > 0xffff {
		return nil, fmt.Errorf("has zone %d", m.Zone)
	}
	g.zone, g.said.Zone = uint16(m.Zone), m.Zone
	if g.hopMAC, err = flow.ParseMAC(m.NextHopMac); err == nil {
		g.said.NextHopMac = m.NextHopMac
	}
	return g, nil
}

// changed follows a change of a gateway. It is called with mu held.
func (b *store) changed(old, now *gateway) {
	b.changes++
	switch {
	case now == nil:
		delete(b.counters, old.name)
		delete(b.asked, old.name)
		delete(b.heard, old.name)
	case old == nil:
		b.counters[now.name] = &counters{}
	}
	object.Notify(b.another)
	b.reindex()
}

// reindex is called with mu held.
func (b *store) reindex() {
	if b.gateways.Len() == 0 {
		b.index.Store(nil)
		return
	}
	x := &index{macs: map[flow.MAC]*gateway{}, addrs: map[netip.Addr]*gateway{}, ports: map[outside]*gateway{}}
	for _, g := range b.gateways.List() {
		x.list = append(x.list, g)
		x.macs[g.mac], x.addrs[g.addr], x.ports[outside{g.at, g.v6()}] = g, g, g
	}
	b.index.Store(x)
}

// admit checks that a gateway is compatible with its switch and the others, and gives it its
// zone. It is called with mu held.
func (b *store) admit(g, old *gateway) error {
	if old == nil || old.at.Switch != g.at.Switch {
		at := slices.Values([]*api.Switch{b.net.Info(g.at.Switch)})
		if err := api.CheckNeeds("gateway "+g.name, "translate at an Open vSwitch", at, needs...); err != nil {
			return err
		}
	}
	zones := map[uint16]bool{}
	for _, o := range b.gateways.List() {
		if o.name == g.name {
			continue
		}
		if err := g.conflict(o); err != nil {
			return api.Errorf(codes.AlreadyExists, "gateway %s: %w", g.name, err)
		}
		zones[o.zone] = true
	}
	if old != nil {
		g.zone = old.zone
		if old.hop == g.hop && old.at == g.at {
			g.hopMAC = old.hopMAC
		}
	} else {
		for g.zone = 1; zones[g.zone]; g.zone++ {
		}
	}
	g.said.Zone = uint32(g.zone)
	if g.hopMAC != (flow.MAC{}) {
		g.said.NextHopMac = g.hopMAC.String()
	}
	return nil
}

// learnt records the Ethernet address of a next hop, and reports whether it has
// changed.
func (b *store) learnt(ctx context.Context, name string, hop netip.Addr, mac flow.MAC) (bool, error) {
	old, now, err := b.gateways.Change(ctx, name, func(old *gateway) (*gateway, error) {
		if old == nil || old.hop != hop || old.hopMAC == mac {
			return old, nil
		}
		g := *old
		g.said = proto.CloneOf(old.said)
		g.hopMAC, g.said.NextHopMac = mac, mac.String()
		return &g, nil
	})
	return old != now, err
}

// networkChanged follows a change of the network. Of the hosts of an earlier run those
// remain of which the service hosts says where they are, once it has said so of all.
func (b *store) networkChanged(c nib.Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.net = c.Is
	for _, h := range c.Hosts() {
		b.hostChanged(h)
	}
	if c.Heard(nib.Hosts) && b.hosts.Forget() {
		b.gateways.Recompute()
	}
}

// hostChanged records a host; the entries of gateways follow. It is called with mu
// held.
func (b *store) hostChanged(h nib.Step[nib.Host]) {
	_, _, moved := b.hosts.Follow(h)
	for _, a := range moved {
		for _, g := range b.gateways.List() {
			if st, _ := b.hosts.Station(a); g.reaches(a) || st.At == g.at {
				b.gateways.Recompute(g.at.Switch)
			}
		}
	}
}

// needs is what a gateway asks of its switch.
var needs = []api.Need{api.NeedTables, api.NeedTracking}

// unable returns why a switch cannot be a gateway now, nil if it can. Whether it has
// connection tracking shows in the end only when it accepts the entries.
func unable(sw *api.Switch) error {
	if sw == nil {
		return fmt.Errorf("the switch is not connected")
	}
	if why := sw.Lack(needs...); why != "" {
		return fmt.Errorf("the switch %s", why)
	}
	return nil
}

// rules returns the entries that a switch should have.
func (b *store) rules(info *api.Switch) (r policy.Rules) {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil || info.Lack(api.NeedTables) != "" {
		return r
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range b.gateways.List() {
		r.Flows = append(r.Flows, flow.OwnNeighbour(flow.OwnerNAT, flow.PriorityNeighbourNAT, 0, g.mac, g.addr)...)
		if g.at.Switch == sw && unable(info) == nil {
			r.Flows = append(r.Flows, g.entries(b.reach(g), b.outside(g))...)
		}
	}
	return r
}

// outside returns the Ethernet addresses of the next hop and of other hosts at the port of a
// gateway, up to the configured bound. It is called with mu held.
func (b *store) outside(g *gateway) (list []flow.MAC) {
	seen := map[flow.MAC]bool{{}: true, g.mac: true}
	add := func(mac flow.MAC) {
		if !seen[mac] && len(list) < b.cfg.Load().Hosts {
			seen[mac] = true
			list = append(list, mac)
		}
	}
	add(g.hopMAC)
	for _, a := range b.hosts.Addresses() {
		if st, _ := b.hosts.Station(a); st.At == g.at {
			add(st.MAC)
		}
	}
	return list
}

// reach returns the hosts inside of a gateway that it reaches, up to the
// configured bound. It is called with mu held.
func (b *store) reach(g *gateway) map[netip.Addr]flow.MAC {
	out := map[netip.Addr]flow.MAC{}
	for _, a := range b.hosts.Addresses() {
		if !g.reaches(a) || a.Addr == g.addr {
			continue
		}
		if most := b.cfg.Load().Hosts; len(out) >= most {
			b.reached.Reach(time.Now().UnixNano(), "nat.hosts", most, "gateway "+g.name)
			continue
		}
		s, _ := b.hosts.Station(a)
		out[a.Addr] = s.MAC
	}
	return out
}

// status returns the message of a gateway with its state.
func (b *store) status(g *gateway) *api.NatGateway {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.counters[g.name]
	if f == nil {
		f = &counters{} // it has been deleted meanwhile
	}
	m := proto.CloneOf(g.said)
	m.Hosts = uint32(len(b.reach(g)))
	m.ExhaustedPackets, m.PacketsOut, m.PacketsIn = f.refused, f.last[kindOut], f.last[kindIn]
	if f.at != 0 {
		m.ExhaustedAtMs = f.at / 1e6
	}
	m.State, m.Reason = b.state(g, f, now())
	return m
}

// state returns the state of a gateway. It is called with mu held.
func (b *store) state(g *gateway, f *counters, now int64) (state, reason string) {
	if err := unable(b.net.Connected(g.at.Switch)); err != nil {
		return "down", err.Error()
	}
	if s, err := b.gateways.Flows().Status(g.at.Switch); s == "failing" {
		return "down", fmt.Sprintf("the switch does not have its entries, which take Open vSwitch's connection tracking: %v", err)
	} else if s != "in_sync" {
		return "down", "the entries are on their way to the switch"
	}
	if g.hopMAC == (flow.MAC{}) {
		return "down", fmt.Sprintf("the next hop %v does not answer at %v", g.hop, g.at)
	}
	if b.exhausted(f, now) {
		return "exhausted", fmt.Sprintf("no free address and port for a new connection: pool %s, ports %d to %d; widen them", g.said.Pool, g.ports[0], g.ports[1])
	}
	return "up", ""
}

// names returns the names of the gateways.
func (b *store) names() (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range b.gateways.List() {
		list = append(list, g.name)
	}
	return list
}

// sites returns the connected switches that have gateways.
func (b *store) sites() []flow.DPID {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []flow.DPID
	for _, g := range b.gateways.List() {
		if b.net.Connected(g.at.Switch) != nil && !slices.Contains(out, g.at.Switch) {
			out = append(out, g.at.Switch)
		}
	}
	slices.Sort(out)
	return out
}

func now() int64 { return time.Now().UnixNano() }

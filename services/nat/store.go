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
)

// store is the gateways, the switches and the hosts inside.
type store struct {
	cfg     atomic.Pointer[Config]
	news    chan answer           // of next hops
	index   atomic.Pointer[index] // of the gateways, for the stage; nil: none
	declare func(...flow.DPID)    // declares the entries of switches anew

	reached object.Limits // of the configuration, and of gateways

	mu       object.Guard // guards the following
	gateways *object.Store[*gateway]
	changes  uint64 // of gateways
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

func newStore(cfg *Config, bucket object.Bucket, bad func(name string, err error)) *store {
	b := &store{news: make(chan answer, 64), declare: func(...flow.DPID) {}, hosts: object.NewHosts(),
		counters: map[string]*counters{}, asked: map[string]int64{}, heard: map[string]int64{}}
	b.cfg.Store(cfg)
	b.gateways = object.New(&b.mu, bucket, object.Kind[*gateway]{
		What: "gateway", Many: "gateways", Most: func() int { return b.cfg.Load().Gateways }, Raise: "nat.gateways",
		Name:    func(g *gateway) string { return g.name },
		Format:  object.Messages(b.parse, func(g *gateway) *api.NatGateway { return g.said }),
		Changed: b.changed, Bad: bad,
	})
	return b
}

// parse returns the stored gateway.
func (b *store) parse(m *api.NatGateway) (*gateway, error) {
	g, err := readGateway(m, b.cfg.Load())
	if err != nil {
		return nil, err
	}
	if m.Zone == 0 || m.Zone > 0xffff {
		return nil, fmt.Errorf("gateway %s: has zone %d", m.Name, m.Zone)
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
	b.declare()
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

// set stores a gateway, and reports whether anything has changed.
func (b *store) set(ctx context.Context, m *api.NatGateway) (changed bool, err error) {
	g, err := readGateway(m, b.cfg.Load())
	if err != nil {
		return false, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	old, now, err := b.gateways.Change(ctx, g.name, func(old *gateway) (*gateway, error) { return g, b.admit(g, old) })
	return old != now, err
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

// remove deletes a gateway, and reports whether there was one.
func (b *store) remove(ctx context.Context, name string) (bool, error) {
	if err := checkName(name); err != nil {
		return false, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	old, err := b.gateways.Remove(ctx, name)
	return old != nil, err
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

// networkChanged follows a change of the network.
func (b *store) networkChanged(c nib.Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.net = c.Is
	for _, h := range c.Hosts() {
		b.hostChanged(h)
	}
}

// hostChanged records a host; the entries of gateways follow. It is called with mu
// held.
func (b *store) hostChanged(h nib.Step[nib.Host]) {
	_, _, moved := b.hosts.Follow(h)
	for _, a := range moved {
		for _, g := range b.gateways.List() {
			if st, _ := b.hosts.Station(a); g.reaches(a) || st.At == g.at {
				b.declare(g.at.Switch)
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

// want returns the entries that a switch should have.
func (b *store) want(info *api.Switch) *api.SetStandingRequest {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil || info.Lack(api.NeedTables) != "" {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	req := &api.SetStandingRequest{}
	for _, g := range b.gateways.List() {
		own := flow.OwnNeighbour(flow.OwnerNAT, flow.PriorityNeighbourNAT, 0, g.mac, g.addr)
		for i := range own {
			req.Flows = append(req.Flows, api.NewFlowEntry(sw, &own[i]))
		}
		if g.at.Switch == sw && unable(info) == nil {
			req.Flows = append(req.Flows, g.entries(b.reach(g), b.outside(g))...)
		}
	}
	return req
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

// list returns the gateways, all or the one of a name, with their state.
func (b *store) list(name string, now int64, status func(flow.DPID) (string, error)) []*api.NatGateway {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := []*api.NatGateway{}
	for _, g := range b.gateways.List() {
		if name != "" && g.name != name {
			continue
		}
		f := b.counters[g.name]
		m := proto.CloneOf(g.said)
		m.Hosts = uint32(len(b.reach(g)))
		m.ExhaustedPackets, m.PacketsOut, m.PacketsIn = f.refused, f.last[kindOut], f.last[kindIn]
		if f.at != 0 {
			m.ExhaustedAtMs = f.at / 1e6
		}
		m.State, m.Reason = b.state(g, f, now, status)
		out = append(out, m)
	}
	return out
}

// state returns the state of a gateway. It is called with mu held.
func (b *store) state(g *gateway, f *counters, now int64, status func(flow.DPID) (string, error)) (state, reason string) {
	if err := unable(b.net.Connected(g.at.Switch)); err != nil {
		return "down", err.Error()
	}
	if s, err := status(g.at.Switch); s == "failing" {
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

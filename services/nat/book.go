package nat

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
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

// book is the gateways, the switches and the hosts inside.
type book struct {
	cfg   atomic.Pointer[Config]
	store Store
	news  chan answer           // of next hops
	index atomic.Pointer[index] // of the gateways, for the stage; nil: there are none

	writing sync.Mutex // held while a gateway is written to the store

	mu       sync.Mutex // guards the following
	gateways map[string]*gateway
	revision map[string]uint64
	switches map[flow.DPID]*api.Switch // those that are connected
	hosts    *residents
	figures  map[string]*figures
	asked    map[string]int64 // when a next hop was last asked for
	heard    map[string]int64 // when it last answered
	strays   atomic.Uint64    // packets to gateways that were dropped by the stage
}

// index is what the stage looks things up in; it is not changed.
type index struct {
	macs  map[flow.MAC]*gateway
	addrs map[netip.Addr]*gateway // by address inside
	ports map[outside]*gateway
}

// outside is a port to the outside, for one version of IP.
type outside struct {
	at flow.Location
	v6 bool
}

func newBook(cfg *Config, store Store, hosts *residents) *book {
	b := &book{store: store, news: make(chan answer, 64), gateways: map[string]*gateway{}, revision: map[string]uint64{},
		switches: map[flow.DPID]*api.Switch{}, hosts: hosts, figures: map[string]*figures{},
		asked: map[string]int64{}, heard: map[string]int64{}}
	b.cfg.Store(cfg)
	return b
}

// load reads the gateways of earlier runs. What cannot be read is told to bad
// and left out.
func (b *book) load(ctx context.Context, bad func(key string, err error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.store.All(ctx, func(key string, value []byte, revision uint64) error {
		m := &api.NatGateway{}
		g, err := (*gateway)(nil), protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(value, m)
		if err == nil {
			g, err = readGateway(m, b.cfg.Load())
		}
		if err == nil && (m.Name != key || m.Zone == 0 || m.Zone > 0xffff) {
			err = fmt.Errorf("describes the gateway %s with zone %d", m.Name, m.Zone)
		}
		if err != nil {
			bad(key, err)
			return nil
		}
		g.zone, g.said.Zone = uint16(m.Zone), m.Zone
		if g.hopMAC, err = flow.ParseMAC(m.NextHopMac); err == nil {
			g.said.NextHopMac = m.NextHopMac
		}
		b.gateways[key], b.revision[key], b.figures[key] = g, revision, &figures{}
		return nil
	})
	b.reindex()
	return err
}

// reindex is called with mu held.
func (b *book) reindex() {
	if len(b.gateways) == 0 {
		b.index.Store(nil)
		return
	}
	x := &index{map[flow.MAC]*gateway{}, map[netip.Addr]*gateway{}, map[outside]*gateway{}}
	for _, g := range b.gateways {
		x.macs[g.mac], x.addrs[g.addr], x.ports[outside{g.at, g.v6()}] = g, g, g
	}
	b.index.Store(x)
}

// set keeps a gateway. It returns the switches that it concerns.
func (b *book) set(ctx context.Context, m *api.NatGateway) ([]flow.DPID, error) {
	g, err := readGateway(m, b.cfg.Load())
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	old := b.gateways[g.name]
	err = b.admit(g, old)
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if old != nil && proto.Equal(old.said, g.said) {
		return nil, nil
	}
	if err := b.keep(ctx, g); err != nil {
		return nil, err
	}
	concerned := []flow.DPID{g.at.Switch}
	if old != nil && old.at.Switch != g.at.Switch {
		concerned = append(concerned, old.at.Switch)
	}
	return concerned, nil
}

// admit checks that there is room for a gateway beside the others, and gives it
// its zone. It is called with mu held.
func (b *book) admit(g, old *gateway) error {
	if old == nil && len(b.gateways) >= b.cfg.Load().Gateways {
		return api.Errorf(codes.ResourceExhausted, "gateway %s: there are %d gateways already; delete one, or raise nat.gateways", g.name, len(b.gateways))
	}
	zones := map[uint16]bool{}
	for _, o := range b.gateways {
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

// keep writes a gateway, and has it in force. It is called with writing held.
func (b *book) keep(ctx context.Context, g *gateway) error {
	value, err := protojson.Marshal(g.said)
	if err != nil {
		return api.Errorf(codes.Internal, "gateway %s: %w", g.name, err)
	}
	b.mu.Lock()
	revision := b.revision[g.name]
	b.mu.Unlock()
	if revision, err = b.store.Update(ctx, g.name, value, revision); err != nil {
		return api.Errorf(codes.Unavailable, "gateway %s is not kept, so it is not in force: %w", g.name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gateways[g.name], b.revision[g.name] = g, revision
	if b.figures[g.name] == nil {
		b.figures[g.name] = &figures{}
	}
	b.reindex()
	return nil
}

// remove forgets a gateway. It returns its switch.
func (b *book) remove(ctx context.Context, name string) (bool, []flow.DPID, error) {
	if err := checkName(name); err != nil {
		return false, nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	old := b.gateways[name]
	b.mu.Unlock()
	if old == nil {
		return false, nil, nil
	}
	if err := b.store.Delete(ctx, name); err != nil {
		return false, nil, api.Errorf(codes.Unavailable, "gateway %s is not deleted: %w", name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.gateways, name)
	delete(b.revision, name)
	delete(b.figures, name)
	delete(b.asked, name)
	delete(b.heard, name)
	b.reindex()
	return true, []flow.DPID{old.at.Switch}, nil
}

// learnt takes note of the Ethernet address of a next hop, and reports whether
// it is another than before.
func (b *book) learnt(ctx context.Context, name string, hop netip.Addr, mac flow.MAC) (flow.DPID, bool, error) {
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	old := b.gateways[name]
	b.mu.Unlock()
	if old == nil || old.hop != hop || old.hopMAC == mac {
		return 0, false, nil
	}
	g := *old
	g.said = proto.CloneOf(old.said)
	g.hopMAC, g.said.NextHopMac = mac, mac.String()
	return g.at.Switch, true, b.keep(ctx, &g)
}

// switchChanged takes note of a switch that has connected or gone.
func (b *book) switchChanged(ev *api.SwitchChanged) {
	sw, err := flow.ParseDPID(ev.GetSwitch().GetDpid())
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.switches, sw)
	if ev.Switch.Connected {
		b.switches[sw] = proto.CloneOf(ev.Switch)
	}
}

// hostChanged takes note of a host; it returns the switches whose entries may
// be others now.
func (b *book) hostChanged(ev *api.HostChanged) []flow.DPID {
	b.mu.Lock()
	defer b.mu.Unlock()
	var switches []flow.DPID
	for _, a := range b.hosts.changed(ev) {
		for _, g := range b.gateways {
			if g.within(a) && !slices.Contains(switches, g.at.Switch) {
				switches = append(switches, g.at.Switch)
			}
		}
	}
	return switches
}

// unable says why a switch cannot be a gateway, nil if it can. Whether it has
// connection tracking shows when it takes the entries.
func unable(sw *api.Switch) error {
	switch {
	case sw == nil:
		return fmt.Errorf("the switch is not connected")
	case sw.Openflow == "1.0" || sw.Tables != 0 && sw.Tables <= uint32(tableCommitted):
		return fmt.Errorf("the switch has OpenFlow %s and %d tables; NAT needs OpenFlow 1.3, %d tables and Open vSwitch's connection tracking", sw.Openflow, sw.Tables, tableCommitted+1)
	}
	return nil
}

// want returns the entries that a switch is to have.
func (b *book) want(info *api.Switch) *api.SetStandingRequest {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil || unable(info) != nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	req := &api.SetStandingRequest{}
	for _, name := range slices.Sorted(maps.Keys(b.gateways)) {
		if g := b.gateways[name]; g.at.Switch == sw {
			req.Flows = append(req.Flows, g.entries(b.reach(g))...)
		}
	}
	return req
}

// reach returns the hosts inside of a gateway, as many as it reaches. It is
// called with mu held.
func (b *book) reach(g *gateway) map[netip.Addr]flow.MAC {
	out := map[netip.Addr]flow.MAC{}
	for _, a := range b.hosts.addresses() {
		if g.within(a) && a != g.addr && len(out) < b.cfg.Load().Hosts {
			out[a] = b.hosts.of[a]
		}
	}
	return out
}

// list returns the gateways, all or that of a name, with what is found.
func (b *book) list(name string, now int64, status func(flow.DPID) (string, error)) []*api.NatGateway {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := []*api.NatGateway{}
	for _, n := range slices.Sorted(maps.Keys(b.gateways)) {
		if name != "" && n != name {
			continue
		}
		g, f := b.gateways[n], b.figures[n]
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

// state says how a gateway is. It is called with mu held.
func (b *book) state(g *gateway, f *figures, now int64, status func(flow.DPID) (string, error)) (state, reason string) {
	if err := unable(b.switches[g.at.Switch]); err != nil {
		return "down", err.Error()
	}
	if s, err := status(g.at.Switch); s == "failing" {
		return "down", fmt.Sprintf("the switch refuses its entries, which needs Open vSwitch's connection tracking: %v", err)
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
func (b *book) names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.gateways))
}

// size returns how many gateways there are.
func (b *book) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.gateways)
}

// sites returns the connected switches that have gateways.
func (b *book) sites() []flow.DPID {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []flow.DPID
	for _, g := range b.gateways {
		if b.switches[g.at.Switch] != nil && !slices.Contains(out, g.at.Switch) {
			out = append(out, g.at.Switch)
		}
	}
	slices.Sort(out)
	return out
}

// forget drops hosts that only an earlier run knew; it reports whether there
// were any.
func (b *book) forget() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.hosts.forget()) > 0
}

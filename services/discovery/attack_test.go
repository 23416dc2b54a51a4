package discovery

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// The tests of this file are named after the advisories of
// reference/controllers.md §4.3 B, and of A where discovery is concerned.

type number struct{ n float64 }

func (c *number) Add(v float64) { c.n += v }

// A rig is an engine whose clock stands still until it is set, with its stages.
type rig struct {
	*engine
	t      testing.TB
	clock  int64
	stages map[flow.DPID]func(*flow.PacketIn, *flow.Decision) flow.Verdict
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, clock: int64(1e18), stages: map[flow.DPID]func(*flow.PacketIn, *flow.Decision) flow.Verdict{}}
	c := engineConfig{config: DefaultConfig(), key: bytes.Repeat([]byte{7}, keySize), now: func() int64 { return r.clock },
		send:    func(context.Context, *flow.Decision) (map[flow.DPID]bool, error) { return nil, nil },
		echo:    func(context.Context, []string) (map[flow.DPID]int64, error) { return nil, nil },
		publish: func(event) {}, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	c.figures = metrics{sent: &number{}, received: &number{}, failed: &number{}, skipped: &number{}}
	for i := range c.figures.refused {
		c.figures.refused[i] = &number{}
	}
	r.engine = newEngine(c, 1)
	return r
}

// switches connects switches with n ports and lets their ports settle as edge.
func (r *rig) switches(n int, ids ...flow.DPID) {
	w := &world{t: r.t, topo: r.topo, now: r.clock, wires: map[flow.Location][]flow.Location{}, refuse: map[refusal]int{}}
	w.switches(n, ids...)
	w.run(2 * time.Second)
	r.clock = w.now
	for _, id := range ids {
		r.stages[id] = r.open(id)
	}
}

// probe returns the genuine probe of a port, sent now.
func (r *rig) probe(from flow.Location) []byte {
	return newSigner(r.key).appendProbe(nil, newProbe(from, 4), from, r.clock)
}

// packet gives a frame to the stage of a switch and returns the verdict and
// the role that the stage has set.
func (r *rig) packet(to flow.Location, frame []byte) (flow.Verdict, flow.PortRole) {
	in := &flow.PacketIn{Switch: to.Switch, Time: r.clock, Data: frame}
	in.Key.InPort = to.Port
	packet.Parse(frame, &in.Key)
	d := &flow.Decision{}
	v := r.stages[to.Switch](in, d)
	if !d.Empty() {
		r.t.Fatalf("the stage forwards a frame: %+v", d.Ops)
	}
	return v, in.Role
}

// refusedAs gives a frame to the stage and wants it refused for a reason, and consumed.
func (r *rig) refusedAs(why refusal, to flow.Location, frame []byte) {
	r.t.Helper()
	r.refusedBut(flow.Done, why, to, frame)
}

// refusedBut gives a frame to the stage and wants it refused for a reason, with a verdict.
func (r *rig) refusedBut(want flow.Verdict, why refusal, to flow.Location, frame []byte) {
	r.t.Helper()
	c := r.figures.refused[why].(*number)
	before, links := c.n, len(r.topo.links)
	if v, _ := r.packet(to, frame); v != want {
		r.t.Fatalf("verdict %v, want %v", v, want)
	}
	if c.n != before+1 {
		for i := range r.figures.refused {
			r.t.Logf("%v: %v", refusal(i), r.figures.refused[i].(*number).n)
		}
		r.t.Fatalf("not refused as %v", why)
	}
	if len(r.topo.links) != links {
		r.t.Fatal("made a link")
	}
}

func (r *rig) refused(l flow.Location) (n uint64) {
	for _, p := range r.ports().Ports {
		if p.At.Flow() == l {
			n = p.Refused
		}
	}
	return n
}

func (r *rig) accept(to flow.Location, frame []byte) {
	r.t.Helper()
	before := r.figures.received.(*number).n
	r.packet(to, frame)
	if r.figures.received.(*number).n != before+1 {
		r.t.Fatalf("genuine probe refused at %v", to)
	}
}

var data = packet.AppendEthernet(nil, packet.Ether{Dst: flow.Broadcast, Src: flow.MAC{2, 1, 1, 1, 1, 1}}, 0x1234)

func TestCVE_2015_1611_SpoofedLLDP(t *testing.T) {
	r := newRig(t)
	r.switches(3, 1, 2)
	genuine := r.probe(at(1, 1))
	wrong := bytes.Clone(genuine)
	wrong[len(wrong)-3] ^= 1
	r.refusedAs(forged, at(2, 1), wrong)
	otherPort := bytes.Replace(genuine, []byte("00000001\x06"), []byte("00000002\x06"), 1) // port id, then the TTL's head
	if bytes.Equal(otherPort, genuine) {
		t.Fatal("the port id is not where the test looks for it")
	}
	r.refusedAs(forged, at(2, 1), otherPort)
	otherKey := newSigner(bytes.Repeat([]byte{8}, keySize)).appendProbe(nil, newProbe(at(1, 1), 4), at(1, 1), r.clock)
	r.refusedAs(forged, at(2, 1), otherKey)
	r.clock -= ms
	r.refusedAs(stale, at(2, 1), genuine) // from the future
	r.clock += ms + int64(DefaultConfig().MaxAge) + 1
	r.refusedAs(stale, at(2, 1), genuine)
	r.refusedAs(unknown, at(2, 1), r.probe(at(9, 1)))
	r.refusedAs(unknown, at(2, 77), r.probe(at(1, 1)))
	if n := r.refused(at(2, 1)); n != 5 {
		t.Errorf("port shows %d refused, want 5", n)
	}
	if _, role := r.packet(at(2, 1), data); role != flow.RoleEdge {
		t.Errorf("port is %v", role)
	}
}

func TestCVE_2015_1612_RelayedLLDP(t *testing.T) {
	r := newRig(t)
	r.switches(3, 1, 2, 3)
	first := r.probe(at(1, 1))
	r.clock += ms / 10
	r.accept(at(2, 1), first)
	r.refusedAs(replayed, at(2, 1), first)
	r.refusedAs(second, at(3, 3), first) // passed on to another port
	r.clock += ms
	r.refusedAs(second, at(2, 1), r.probe(at(3, 1))) // an own one in the place of the neighbour's
	r.accept(at(2, 1), r.probe(at(1, 1)))
	if l := r.links().Links; len(l) != 1 || l[0].Dst.Flow() != at(2, 1) {
		t.Errorf("links %v", l)
	}
}

// settled makes ports that hosts have been on for long.
func (r *rig) settled(list ...flow.Location) {
	for _, l := range list {
		if _, role := r.packet(l, data); role != flow.RoleEdge {
			r.t.Fatalf("port %v is %v", l, role)
		}
	}
	r.clock += int64(r.config.LockAfter)
}

func TestTopoGuardRelayBetweenHosts(t *testing.T) {
	r := newRig(t)
	r.switches(3, 1, 2)
	r.settled(at(1, 1), at(2, 1))
	p := r.probe(at(1, 1))
	r.clock += ms / 10
	r.refusedAs(hostPort, at(2, 1), p)
	if _, role := r.packet(at(2, 1), data); role != flow.RoleEdge {
		t.Errorf("port is %v after a relayed probe", role)
	}
}

// A relay between ports without hosts waits, however often it is tried. See
// trial_test.go for what becomes of it.
func TestTopoGuardLinkLatency(t *testing.T) {
	r := newRig(t)
	r.switches(3, 1, 2, 3)
	for range 40 { // a cable
		p := r.probe(at(1, 2))
		r.clock += ms / 10
		r.accept(at(2, 2), p)
	}
	for range 20 {
		p := r.probe(at(1, 1))
		r.clock += 5 * ms
		r.refusedAs(waiting, at(3, 1), p)
		r.clock += 100 * ms
	}
}

// Port amnesia: an attacker takes its port down for a moment, so that the
// controller forgets that it is a host's.
func TestTopoGuardPortAmnesia(t *testing.T) {
	r := newRig(t)
	r.switches(3, 1, 2)
	r.settled(at(1, 1), at(2, 1))
	bounce := func(down time.Duration) {
		for _, l := range []flow.Location{at(1, 1), at(2, 1)} {
			r.topo.changePort(r.clock, l.Switch, portMsg(l.Switch, l.Port, false), false)
		}
		r.clock += int64(down)
		for _, l := range []flow.Location{at(1, 1), at(2, 1)} {
			r.topo.changePort(r.clock, l.Switch, portMsg(l.Switch, l.Port, true), false)
		}
	}
	bounce(time.Second)
	r.refusedAs(hostPort, at(2, 1), r.probe(at(1, 1)))
	bounce(4 * time.Second) // longer than the timeout: re-cabled, for all we know
	p := r.probe(at(1, 1))
	r.clock += ms / 10
	r.accept(at(2, 1), p)
}

// Port probing: a host that has moved away must not be impersonated by a port
// whose role is not settled yet; hosts learns from edge ports only.
func TestTopoGuardPortProbing(t *testing.T) {
	r := newRig(t)
	r.switches(3, 1)
	r.topo.changePort(r.clock, 1, portMsg(1, 1, false), false)
	r.topo.changePort(r.clock, 1, portMsg(1, 1, true), false)
	if v, role := r.packet(at(1, 1), data); role != flow.RoleUnsettled || v != flow.Next {
		t.Errorf("role %v, verdict %v just after the port has come up", role, v)
	}
}

func TestCVE_2024_51406_HostSentLLDP(t *testing.T) {
	r := newRig(t)
	r.switches(3, 1)
	own := packet.AppendLLDP(nil, packet.Ether{Dst: packet.LLDPNearestBridge, Src: flow.MAC{2}}, packet.LLDPFields{
		ChassisSubtype: packet.ChassisLocal, ChassisID: []byte("0000000000000002"), PortSubtype: packet.PortLocal, PortID: []byte("00000001"), TTL: 120})
	r.refusedBut(flow.Next, foreign, at(1, 1), own) // of a host: no link, but where the host is
	r.refusedAs(malformed, at(1, 1), own[:20])
	tagged := packet.AppendLLDP(nil, packet.Ether{Dst: packet.LLDPNearestBridge, Src: flow.MAC{2}, VLAN: flow.VLANPresent | 5}, packet.LLDPFields{
		ChassisSubtype: packet.ChassisLocal, ChassisID: []byte("x"), PortSubtype: packet.PortLocal, PortID: []byte("y"), TTL: 120})
	r.refusedBut(flow.Next, foreign, at(1, 1), tagged)
	if _, role := r.packet(at(1, 1), data); role != flow.RoleEdge {
		t.Errorf("port is %v", role)
	}
}

func TestCVE_2024_57672_LinkStateDowngrade(t *testing.T) {
	r := newRig(t)
	r.switches(3, 1, 2)
	for _, d := range [][2]flow.Location{{at(1, 1), at(2, 1)}, {at(2, 1), at(1, 1)}} {
		p := r.probe(d[0])
		r.clock += ms / 10
		r.accept(d[1], p)
	}
	bad := r.probe(at(1, 1))
	bad[len(bad)-5]++
	r.refusedAs(forged, at(2, 1), bad)
	r.refusedAs(foreign, at(2, 1), bddp())
	for _, l := range r.links().Links {
		if l.State != "up" {
			t.Errorf("link %v", l)
		}
	}
}

func bddp() []byte {
	f := packet.AppendLLDP(nil, packet.Ether{Dst: flow.Broadcast, Src: flow.MAC{2}}, packet.LLDPFields{
		ChassisSubtype: packet.ChassisLocal, ChassisID: []byte("ffffffffffffffff"), PortSubtype: packet.PortLocal, PortID: []byte("00000001"), TTL: 120})
	f[12], f[13] = 0x89, 0x42
	return f
}

func TestCVE_2024_57673_BDDPIsNotForwarded(t *testing.T) {
	r := newRig(t)
	r.switches(3, 1)
	r.refusedAs(foreign, at(1, 1), bddp())
	req := baselineFlows(1, false)
	drop := req.Flows[1]
	if drop.Match["eth_type"] != "0x8942" || len(drop.Actions) != 0 || drop.Priority != 65535 {
		t.Errorf("BDDP entry %v", drop)
	}
}

// CVE-2024-37018: no rule of an application may have the probes go elsewhere.
func TestCVE_2024_37018_TrapComesFirst(t *testing.T) {
	sw, e, err := baselineFlows(0xa1, false).Flows[0].Entry()
	if err != nil || sw != 0xa1 || e.Priority != flow.PriorityMax || e.Table != 0 || e.Cookie.Owner() != flow.OwnerDiscovery ||
		len(e.Apply) != 1 || e.Apply[0] != flow.Output(flow.PortController) {
		t.Errorf("LLDP trap %+v, %v", e, err)
	}
}

func TestFloodlight828_LLDPExhaustion(t *testing.T) {
	r := newRig(t)
	r.switches(3, 1, 2)
	flood := r.probe(at(2, 2))
	flood[len(flood)-4]++
	for range 10_000 {
		r.packet(at(1, 1), flood)
	}
	looked := r.figures.refused[forged].(*number).n
	if looked > 60 || r.figures.refused[excessive].(*number).n != 10_000-looked {
		t.Errorf("%v of 10,000 frames in no time looked at", looked)
	}
	p := r.probe(at(2, 1)) // another port of the same switch
	r.accept(at(1, 2), p)
	for range 10_000 {
		r.packet(at(1, 99), flood) // ports that do not exist have one rate together
		r.packet(at(1, 98), flood)
	}
	r.clock += int64(time.Second)
	r.refusedAs(forged, at(1, 1), flood)
}

// A hub joins three switches: no link may freeze, or flap.
func TestFloodlight829_ManyNeighboursOnOnePort(t *testing.T) {
	w := newWorld(t, nil)
	a, b, c := at(1, 1), at(2, 1), at(3, 1)
	w.wires[a], w.wires[b], w.wires[c] = []flow.Location{b, c}, []flow.Location{a, c}, []flow.Location{a, b}
	w.cable(at(1, 2), at(2, 2))
	w.switches(2, 1, 2, 3)
	w.run(2 * time.Second)
	w.linkEvents()
	w.run(time.Minute)
	if log := w.linkEvents(); len(log) != 0 {
		t.Errorf("events %q", log)
	}
	if w.refuse[second] == 0 {
		t.Error("nothing was refused")
	}
	up := 0
	for _, l := range w.topo.listLinks(w.now) {
		if l.State == "up" {
			up++
		}
	}
	if up != 4 {
		t.Errorf("%d links up, want one pair at the hub and one at the cable", up)
	}
}

// The third port at a hub, a loop back to the own switch, and a port whose
// neighbour has fallen silent are no edge ports.
func TestFloodlight873_EdgeMisclassified(t *testing.T) {
	w := newWorld(t, nil)
	a, b, c := at(1, 1), at(2, 1), at(3, 1)
	w.wires[a], w.wires[b], w.wires[c] = []flow.Location{b, c}, []flow.Location{a, c}, []flow.Location{a, b}
	w.cable(at(3, 2), at(3, 3))
	w.wires[at(3, 4)] = []flow.Location{at(3, 4)}
	w.switches(5, 1, 2, 3)
	for range 40 {
		w.run(500 * time.Millisecond)
		blocked := 0
		for _, l := range []flow.Location{a, b, c} {
			switch w.role(l) {
			case flow.RoleEdge:
				t.Fatalf("port %v at the hub is an edge port", l)
			case flow.RoleBlocked:
				blocked++
			}
		}
		if blocked != 1 {
			t.Fatalf("%d ports at the hub blocked, want 1", blocked)
		}
		for _, l := range []flow.Location{at(3, 2), at(3, 3), at(3, 4)} {
			w.wantRole(l, flow.RoleBlocked)
		}
	}
	w.wantRole(at(3, 5), flow.RoleEdge)
}

func TestCVE_2025_29310_BrokenTLVs(t *testing.T) {
	r := newRig(t)
	r.switches(3, 1, 2)
	p := r.probe(at(1, 1))
	r.clock += ms / 10
	r.accept(at(2, 1), p)
	good := r.probe(at(1, 1))
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 20_000 {
		f := bytes.Clone(good)
		for range 1 + rnd.IntN(4) {
			f[14+rnd.IntN(len(f)-14)] = byte(rnd.Uint32())
		}
		if rnd.IntN(3) == 0 {
			f = f[:14+rnd.IntN(len(f)-14)]
		}
		if i%40 == 0 {
			r.clock += int64(time.Second) / 2
			r.topo.links[0].heard = r.clock
			good = r.probe(at(1, 1))
		}
		r.packet(at(2, 2), f)
	}
	if l := r.links().Links; len(l) != 1 || l[0].Dst.Flow() != at(2, 1) {
		t.Errorf("links %v", l)
	}
	r.accept(at(2, 1), r.probe(at(1, 1)))
}

func TestCVE_2025_29311_KeyStrength(t *testing.T) {
	if keySize*8 < 256 {
		t.Errorf("key of %d bits", keySize*8)
	}
	for _, key := range []string{"secret", strings.Repeat("ab", 16), strings.Repeat("zz", 32)} {
		c := DefaultConfig()
		c.Key = key
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "64 hex digits") {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"interval is 0s":            func(c *Config) { c.Interval = 0 },
		"timeout is 1s":             func(c *Config) { c.Timeout = time.Second },
		"liveness.interval is 1ms":  func(c *Config) { c.Liveness.Interval = time.Millisecond },
		"liveness.timeout is 250ms": func(c *Config) { c.Liveness.Interval = time.Second },
		"rate is 0":                 func(c *Config) { c.Rate = 0 },
		"flap.downs is -1":          func(c *Config) { c.Flap.Downs = -1 },
		"flap.max_hold is 1s":       func(c *Config) { c.Flap.MaxHold = time.Second },
	} {
		c := DefaultConfig()
		change(c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func TestMemory(t *testing.T) {
	const s = int64(time.Second)
	ports := map[flow.Port]memory{
		1: {role: flow.RoleEdge, since: 7 * s}, 2: {role: flow.RoleEdge, since: 8 * s, host: true}, 8: {role: flow.RoleEdge, since: 8 * s, quiet: true}, 9: {role: flow.RoleEdge, host: true, quiet: true},
		3: {role: flow.RoleLink, far: at(0xa1, 7)}, 4: {far: at(0xa2, 8)}, 7: {far: at(0xa2, 9), since: 6 * s}, 70000: {role: flow.RoleLink, far: at(2, 1), out: true, latency: 5000, since: 9 * s, held: 10 * s},
		5: {role: flow.RoleLink, far: at(3, 1), out: true, latency: 5000, since: 9 * s, trial: true}, 6: {far: at(3, 2), trial: true},
	}
	got, err := decodePorts(encodePorts(ports))
	if err != nil || !maps.Equal(got, ports) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"1 2", "x edge 1", "1 edge x", "1 edge 1 2", "1 edge host", "1 edge 1 quiet host", "1 link zz 1", "1 link 1 x", "1 link 1 1 1", "1 port 1", "1 was 1 x", "1 was 1 1 x", "1 was 1 1 1 1 1"} {
		if _, err := decodePorts([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzRead(f *testing.F) {
	s := newSigner(make([]byte, keySize))
	f.Add(s.appendProbe(nil, newProbe(at(1, 1), 4), at(1, 1), 5))
	f.Add(bddp())
	f.Fuzz(func(t *testing.T, frame []byte) {
		if at, sent, why := s.read(frame); why == accepted && (at.Switch != 1 || at.Port != 1 || sent != 5) {
			t.Errorf("a forged probe of %v is taken for genuine", at)
		}
	})
}

package tunnels

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// A wire is a network of switches of package oftest that have what the rig's switches
// have confirmed. Each tunnel has a host at either end.
type wire struct {
	*rig
	net   *oftest.Network
	drive map[flow.DPID]*oftest.Driver
	ends  map[string][2]*oftest.Host
	n     uint32
}

const hostPorts flow.Port = 1000

// wired returns that network as it is now. The circuit of the nth tunnel has the label
// CircuitLabels + n, and its hosts are at the ports from hostPorts on.
func (g *rig) wired() *wire {
	w := &wire{rig: g, net: oftest.NewNetwork(nil), drive: map[flow.DPID]*oftest.Driver{}, ends: map[string][2]*oftest.Host{}}
	list := g.b.list()
	for at := range g.cables {
		if w.drive[at.Switch] != nil {
			continue
		}
		d := w.net.Add(oftest.Config{DPID: at.Switch, Ports: int(hostPorts) + 2*len(list), Nicira: true})
		c, detach := oftest.Drive(d)
		w.drive[at.Switch] = c
		g.t.Cleanup(detach)
	}
	for at, far := range g.cables {
		if at.Switch < far.Switch {
			w.net.Link(at, far)
		}
	}
	for sw, c := range w.drive {
		for _, m := range slices.Backward(g.has[sw].GetGroups()) { // what groups lead to first
			_, group, err := m.Group()
			if err != nil {
				g.t.Fatal(err)
			}
			if err := group.Check(); err != nil {
				g.t.Fatal(err)
			}
			c.Group(flow.Add, group)
		}
		for _, f := range g.has[sw].GetFlows() {
			_, e, err := f.Entry()
			if err != nil {
				g.t.Fatal(err)
			}
			if err := e.Match.CheckActions(e.Apply); err != nil {
				g.t.Fatal(err)
			}
			if e.IdleTimeout|e.HardTimeout != 0 {
				g.t.Fatalf("an entry ends by itself while the controller is away: %v", f)
			}
			c.Flow(flow.Add, e)
		}
	}
	for i, m := range list {
		from, _ := flow.ParseDPID(m.From)
		to, _ := flow.ParseDPID(m.To)
		in, out := hostPorts+flow.Port(2*i), hostPorts+flow.Port(2*i+1)
		w.drive[from].Flow(flow.Add, flow.Entry{Priority: flow.PriorityCircuit, Match: flow.Match{}.WithInPort(in).WithEthType(flow.EthTypeMPLS), Apply: []flow.Action{flow.ToGroup(m.Group)}})
		w.drive[to].Flow(flow.Add, flow.Entry{Table: flow.TableLabels, Priority: flow.PriorityCircuitLabel,
			Match: flow.Match{}.WithEthType(flow.EthTypeMPLS).WithMPLSLabel(flow.CircuitLabels + uint32(i)).WithMPLSBOS(1), Apply: []flow.Action{flow.Output(out)}})
		w.ends[m.Name] = [2]*oftest.Host{w.net.Host(flow.Location{Switch: from, Port: in}, nil), w.net.Host(flow.Location{Switch: to, Port: out}, nil)}
	}
	for sw, c := range w.drive {
		if n := c.Refusals(); n > 0 {
			g.t.Fatalf("switch %v refuses %d messages", sw, n)
		}
	}
	return w
}

// sent sends a frame through a tunnel, and returns how often it comes out of it; it
// must come out nowhere else, and not go round in a circle.
func (w *wire) sent(name string) int {
	w.t.Helper()
	i := slices.IndexFunc(w.b.list(), func(m *api.Tunnel) bool { return m.Name == name })
	w.n++
	frame := packet.AppendEthernet(nil, packet.Ether{Dst: flow.MAC{2, 1}, Src: flow.MAC{2, 2}}, flow.EthTypeMPLS)
	frame = binary.BigEndian.AppendUint32(frame, (flow.CircuitLabels+uint32(i))<<12|1<<8|64)
	frame = binary.BigEndian.AppendUint32(frame, w.n)
	label := frame[14:17]
	frame = append(frame, make([]byte, 46)...)
	w.ends[name][0].Send(frame)
	count := 0
	for of, ends := range w.ends {
		for side, h := range ends {
			for _, got := range h.Received() {
				if of != name || side != 1 || !bytes.Equal(got[14:17], label) || binary.BigEndian.Uint32(got[18:]) != w.n {
					w.t.Errorf("a frame of %s comes out of %s: %x", name, of, got)
				}
				count++
			}
		}
	}
	if l := w.net.Loops(); len(l) > 0 {
		w.t.Error(l)
	}
	return count
}

// around reports whether there is a way around a link from the switch before it to the
// one after it.
func (g *rig) wayAround(at flow.Location) bool {
	g.t.Helper()
	d := &api.PathDemand{Src: at.Switch.String(), Dst: g.cables[at].Switch.String(), ExcludeLinks: []*api.Location{api.NewLocation(at)}, ExcludeRiskGroups: g.set[at].GetRiskGroups()}
	resp, err := g.network(context.Background(), &api.ComputePathsRequest{Demands: []*api.PathDemand{d}})
	if err != nil {
		g.t.Fatal(err)
	}
	return len(resp.Answers[0].Paths) > 0
}

// drawnRig returns a random network with tunnels, some links of which share a risk.
func drawnRig(t *testing.T, r *rand.Rand) *rig {
	n := 4 + r.IntN(5)
	cables := ringOf(flow.DPID(n))
	for range r.IntN(n) {
		a, b := flow.DPID(1+r.IntN(n)), flow.DPID(1+r.IntN(n))
		if a != b && !slices.Contains(cables, [2]flow.DPID{a, b}) && !slices.Contains(cables, [2]flow.DPID{b, a}) {
			cables = append(cables, [2]flow.DPID{a, b})
		}
	}
	g := newRig(t, cables...)
	for range r.IntN(3) {
		c := cables[r.IntN(len(cables))]
		a := flow.Location{Switch: c[0], Port: flow.Port(c[1])}
		g.set[a] = &api.LinkSettings{RiskGroups: []string{"\x01"}}
		g.set[g.cables[a]] = g.set[a]
	}
	g.tell()
	for i := range 8 {
		from := 1 + r.IntN(n)
		g.add(fmt.Sprint("t", i), flow.DPID(from), flow.DPID((from+r.IntN(n-1))%n+1), i%2 == 0)
	}
	g.repaired()
	return g
}

// Each link on the path of each tunnel fails, with nobody to repair it: every frame still
// arrives where it should, once, if there is a way around the link.
func TestBypass(t *testing.T) {
	around := 0
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := drawnRig(t, rand.New(rand.NewPCG(seed, 1)))
			w := g.wired()
			list := g.b.list()
			for at := range g.cables {
				w.net.Cut(at)
				for _, m := range list {
					want := 1
					for i, h := range m.Primary.Hops {
						here := flow.Location{Switch: mustDPID(t, h.Dpid), Port: flow.Port(h.OutPort)}
						if here != at && g.cables[here] != at || h.OutPort == 0 {
							continue
						}
						way := g.wayAround(here)
						switch {
						case i == 0 && m.Protect && m.Standby != nil && !slices.ContainsFunc(m.Standby.Hops, func(s *api.LabelHop) bool { return s.Dpid == h.Dpid && s.OutPort == h.OutPort }):
						case i == 0 && m.Protect || !way:
							want = 0
						default:
							around++
						}
						if (i > 0 || !m.Protect) && (len(h.Bypass) > 0) != way {
							t.Errorf("%s: hop %v has the bypass %v; a way around it: %v", m.Name, h, h.Bypass, way)
						}
					}
					if got := w.sent(m.Name); got != want {
						t.Errorf("%s, %v and %v: without the link %v its frame arrives %d times; want %d", m.Name, m.Primary, m.Standby, at, got, want)
					}
				}
				w.net.Mend(at)
			}
		})
	}
	if around < 100 {
		t.Errorf("only %d frames had to take a bypass", around)
	}
}

// BFD sessions that are wrong lose nothing: whichever ports are said to be dead while all
// links are well, every frame arrives.
func TestFalseAlarmLosesNothing(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			g := drawnRig(t, r)
			w := g.wired()
			check := func(which string) {
				t.Helper()
				for _, m := range g.b.list() {
					if got := w.sent(m.Name); got != 1 {
						t.Errorf("%s, %v and %v: with %s said to be dead its frame arrives %d times", m.Name, m.Primary, m.Standby, which, got)
					}
				}
			}
			live := func(part int) {
				for at := range g.cables {
					w.net.Device(at.Switch).SetLive(at.Port, r.IntN(10) >= part)
				}
			}
			live(10)
			check("all ports")
			for range 4 {
				live(5)
				check("half of the ports")
			}
		})
	}
}

func mustDPID(t *testing.T, text string) flow.DPID {
	t.Helper()
	sw, err := flow.ParseDPID(text)
	if err != nil {
		t.Fatal(err)
	}
	return sw
}

// One bypass is for all tunnels over a link, from the first to the last; it moves where
// a link of its own fails, and no label of it is left in the end.
func TestBypassLife(t *testing.T) {
	g := newRig(t, append(ringOf(5), [2]flow.DPID{2, 5})...) // 1-2-3-4-5-1, and 2-5
	g.tell()
	bypass := func(want ...string) {
		t.Helper()
		g.repaired()
		for _, m := range g.b.list() {
			if got := m.Primary.Hops[1].Bypass; !slices.Equal(got, want) {
				t.Errorf("%s: %v; want %v", m.Name, got, want)
			}
		}
	}
	const two, three, four, five, one = "0000000000000002", "0000000000000003", "0000000000000004", "0000000000000005", "0000000000000001"
	for _, name := range []string{"a", "b"} {
		g.want(&api.Tunnel{Name: name, From: "1", To: "3", Pin: []string{"2"}})
	}
	bypass(two, five, four, three)
	if n := len(g.b.bypasses.List()); n != 2 {
		t.Errorf("%d bypasses; want one for each of two links", n)
	}
	g.cut(2, 5, true)
	bypass(two, one, five, four, three)
	g.cut(2, 5, false)
	bypass(two, five, four, three) // it is better again
	g.cut(4, 5, true)
	bypass() // there is none
	m := g.b.get("a")
	g.arrives(m, 1, 2, 3)
	g.cut(4, 5, false)
	for i, name := range []string{"a", "b"} {
		if n := len(g.b.bypasses.List()); n != 2 {
			t.Errorf("%d of two tunnels are deleted: %d bypasses", i, n)
		}
		if _, err := g.b.remove(context.Background(), name, ""); err != nil {
			t.Fatal(err)
		}
		g.repaired()
	}
	if n := len(g.b.bypasses.List()); n != 0 || len(g.b.labels.used) != 0 || len(g.b.status) != 0 {
		t.Errorf("%d bypasses, labels %v, tunnels %v are left", n, g.b.labels.used, g.b.status)
	}
	for sw, has := range g.has {
		if len(has.GetFlows())+len(has.GetGroups()) > 0 {
			t.Errorf("switch %v still has %v", sw, has)
		}
	}
}

// A bypass does not share a risk with its link, also when that is said later.
func TestBypassRisk(t *testing.T) {
	g := newRig(t, append(ringOf(5), [2]flow.DPID{2, 5})...)
	g.tell()
	g.want(&api.Tunnel{Name: "a", From: "1", To: "3", Pin: []string{"2"}})
	for _, way := range []struct {
		risk []string
		want int
	}{{[]string{"\x01"}, 5}, {nil, 4}} {
		for _, l := range [][2]flow.DPID{{2, 5}, {2, 3}} {
			g.setLink(l[0], l[1], &api.LinkSettings{RiskGroups: way.risk})
		}
		g.repaired()
		if got := g.b.get("a").Primary.Hops[1].Bypass; len(got) != way.want {
			t.Errorf("risk %q: bypass %v; want %d switches", way.risk, got, way.want)
		}
	}
}

// A port that leads to several switches has no bypass, since its frames could come out
// at the wrong one; nor has a tunnel port, or a link after a switch that is not Open vSwitch.
func TestNoBypass(t *testing.T) {
	g := newRig(t, ringOf(4)...)
	g.tell()
	m := g.add("a", 1, 3, false)
	near := flow.Location{Switch: mustDPID(t, m.Primary.Hops[1].Dpid), Port: flow.Port(m.Primary.Hops[1].OutPort)}
	if len(m.Primary.Hops[1].Bypass) == 0 || g.b.bypass(near) == nil {
		t.Fatalf("%v", m)
	}
	other := crossing{near, 9}
	note(g.b.crossed.tunnels, other, "x", true)
	note(g.b.crossed.fars, near, other.to, true)
	if g.b.bypass(near) != nil || g.b.crossed.around(near, nil) != nil {
		t.Error("the port leads to two switches, and has a bypass")
	}
	for port, want := range map[flow.Port]bool{0: false, 1: true, flow.TunnelPorts: false, flow.TunnelPortsLast: false, flow.PortLocal: false, flow.PortMax: false, 65279: true} {
		if bypassable(port) != want {
			t.Errorf("port %v: bypass %v; want %v", port, !want, want)
		}
	}
	plain := ovs(near.Switch)
	plain.Hardware = "another"
	req := g.b.want(plain)
	if len(req.Groups) != 0 || len(req.Flows) < 2 {
		t.Errorf("another switch has %v", req)
	}
}

// What is stored of bypasses is read as it was; what is no bypass is refused.
func TestBypassStored(t *testing.T) {
	g := newRig(t, append(ringOf(6), [2]flow.DPID{2, 5})...)
	store := wefttest.NewStore()
	g.start(store)
	g.tell()
	g.add("a", 1, 4, false)
	entries := fmt.Sprint(g.has)
	g.start(store)
	for range 3 {
		g.repair(context.Background())
	}
	for sw := range g.has {
		g.dirty[sw] = true
	}
	g.tell()
	_ = g.confirm(context.Background(), nil)
	if now := fmt.Sprint(g.has); now != entries || len(g.b.bypasses.List()) == 0 {
		t.Errorf("after a restart the entries are %s, before %s", now, entries)
	}
	for _, bad := range []*api.Tunnel{nil, {}, {From: "1", To: "2"}, {To: "2", Around: &api.Location{Dpid: "1"}}, {To: "1", Around: &api.Location{Dpid: "1", Port: 2}},
		{To: "x", Around: &api.Location{Dpid: "1", Port: 2}}, {To: "2", Around: &api.Location{Dpid: "1", Port: uint32(flow.PortMax)}}} {
		if b, err := parseBypass(bad); err == nil {
			t.Errorf("%v is read as %v", bad, b)
		}
	}
	m := g.want(&api.Tunnel{Name: "a", From: "1", To: "4", Around: &api.Location{Dpid: "1", Port: 2}})
	if m.Around != nil || g.b.status["a"].tunnel.around != nil {
		t.Errorf("a client makes a bypass: %v", m)
	}
}

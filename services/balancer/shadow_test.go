package balancer

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// shadow is a VIP at the address and port of h8, served by hosts.
func shadow(hosts ...int) *api.Vip {
	v := web("", hosts...)
	v.Address, v.Shadow = v4(8).String(), true
	return v
}

// edge has a port be one where hosts are.
func (g *rig) edge(at flow.Location, role string) {
	g.feed(&api.PortRoleChanged{Port: &api.PortRole{At: api.NewLocation(at), Role: role}})
}

// standing returns a switch's entries of a priority, as text of their matches.
func (g *rig) standing(sw flow.DPID, priority uint16) (list []string) {
	for _, e := range g.rules(sw).Flows {
		if e.Priority == priority {
			e.Match.Normalize()
			list = append(list, e.Match.String())
		}
	}
	slices.Sort(list)
	return list
}

// TestShadow: what others than members send to the host comes to the controller,
// and members get it; ARP, other ports, and live connections stay the host's.
func TestShadow(t *testing.T) {
	g := newRig(t)
	g.edge(placeOf(1), "edge")
	g.edge(placeOf(5), "edge")
	g.set(shadow(5))
	if v := g.show("web"); v.Open || v.Mac != macOfHost(8).String() {
		t.Errorf("%v", v)
	}
	if trap, own := g.standing(1, flow.PriorityShadow), g.standing(1, flow.PriorityShadowMember); len(trap) != 2 || len(own) != 1 {
		t.Errorf("entries: %v, %v", trap, own)
	}
	verdict, in, d := g.send(1, segment(1, 8, 4000, 80, packet.TCPSyn))
	if verdict != flow.Next || in.Key.IPv4Dst != v4(5).As4() || in.DstMAC != macOfHost(5) || len(mods(d, 1, flow.Add)) != 1 {
		t.Errorf("%v %v", verdict, d.Ops)
	}
	for name, c := range map[string]struct {
		from  int
		frame []byte
	}{
		"a member":     {5, segment(5, 8, 4000, 80, packet.TCPSyn)},
		"another port": {1, segment(1, 8, 4000, 81, packet.TCPSyn)},
		"udp":          {1, packet.AppendUDP(nil, packet.Ether{Dst: macOfHost(8), Src: macOfHost(1)}, packet.IP{Src: v4(1), Dst: v4(8)}, 1, 80, nil)},
		"arp":          {1, packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: macOfHost(1), SenderIP: v4(1), TargetIP: v4(8)})},
		"arp of it":    {8, packet.AppendARPReply(nil, 0, packet.ARPFields{SenderMAC: macOfHost(8), SenderIP: v4(8), TargetMAC: macOfHost(1), TargetIP: v4(1)})},
		"its answer":   {8, segment(8, 1, 80, 4000, packet.TCPAck)},
		"ping":         {1, packet.AppendICMPEcho(nil, packet.Ether{Dst: macOfHost(8), Src: macOfHost(1)}, packet.IP{Src: v4(1), Dst: v4(8)}, packet.Echo{ID: 3, Seq: 4})},
	} {
		was := slices.Clone(c.frame)
		if verdict, in, d := g.send(c.from, c.frame); verdict != flow.Next || !d.Empty() || !slices.Equal(in.Data, was) {
			t.Errorf("%s: %v %v", name, verdict, d.Ops)
		}
	}
	live := segment(2, 8, 4000, 80, packet.TCPAck)
	verdict, in, d = g.send(2, live)
	if there := mods(d, 1, flow.Add); verdict != flow.Next || in.Key.IPv4Dst != v4(8).As4() || len(there) != 1 || len(there[0].Apply) != 0 || there[0].Goto != flow.TableForward || len(d.Ops) != 1 {
		t.Errorf("a live connection of the host: %v %v", verdict, d.Ops)
	}
	g.consistent()
	entries := g.entries()
	delete(entries, 0)
	g.start(g.store)
	for sw, flows := range entries {
		g.observed(sw, flows)
	}
	if d := g.posted(); !d.Empty() || len(g.b.tracker.by) != 2 {
		t.Errorf("after a restart: %d, %v", len(g.b.tracker.by), d.Ops)
	}
	g.consistent()
}

// TestShadowNeeds: a shadow is refused where packets would get past it.
func TestShadowNeeds(t *testing.T) {
	g := newRig(t)
	g.connect(7, 50)
	_, _, err := g.b.vips.Set(context.Background(), shadow(5))
	if api.KindOf(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "switch 0000000000000007 has 50 flow tables") {
		t.Error(err)
	}
	g.connect(7, 51)
	g.set(shadow(5))
	g.connect(7, 50)
	g.set(shadow(5)) // what is there stays
}

// TestShadowOpens: without a member that serves, packets go through to the host.
func TestShadowOpens(t *testing.T) {
	g := newRig(t)
	g.edge(placeOf(1), "edge")
	g.set(shadow(5))
	g.host(5, flow.Location{}, "gone")
	if v := g.show("web"); !v.Open || len(g.standing(1, flow.PriorityShadow)) != 0 {
		t.Errorf("%v", v)
	}
	if verdict, in, _ := g.send(1, segment(1, 8, 4000, 80, packet.TCPSyn)); verdict != flow.Next || in.Key.IPv4Dst != v4(8).As4() {
		t.Errorf("%v to %v", verdict, in.Key.IPv4Dst)
	}
	g.host(5, placeOf(5), "learnt")
	if v := g.show("web"); v.Open || len(g.standing(1, flow.PriorityShadow)) != 2 {
		t.Errorf("%v", v)
	}
	if verdict, in, _ := g.send(1, segment(1, 8, 4001, 80, packet.TCPSyn)); verdict != flow.Next || in.Key.IPv4Dst != v4(5).As4() {
		t.Errorf("%v to %v", verdict, in.Key.IPv4Dst)
	}
	if verdict, in, _ := g.send(1, segment(1, 8, 4000, 80, packet.TCPAck)); verdict != flow.Next || in.Key.IPv4Dst != v4(8).As4() {
		t.Errorf("what began meanwhile: %v to %v", verdict, in.Key.IPv4Dst)
	}
	g.edge(placeOf(1), "link")
	if list := g.standing(1, flow.PriorityShadow); len(list) != 0 {
		t.Errorf("at a link: %v", list)
	}
	g.consistent()
}

// TestShadowTakesOver: connections that the host has when a member begins to serve
// go on until they are idle, and are reset then at both ends, those that began before there
// was a VIP, too; after a while they are reset at once.
func TestShadowTakesOver(t *testing.T) {
	g := newRig(t)
	g.edge(placeOf(1), "edge")
	v := shadow(5)
	v.Takeover = true
	g.set(v)
	send := func(port uint16, flags uint8) (flow.Verdict, netip.Addr, *flow.Decision) {
		t.Helper()
		verdict, in, d := g.send(1, segment(1, 8, port, 80, flags))
		return verdict, netip.AddrFrom4(in.Key.IPv4Dst), d
	}
	goesOn := func(what string, port uint16) {
		t.Helper()
		if verdict, to, d := send(port, packet.TCPAck); verdict != flow.Next || to != v4(8) || len(d.Outs) != 0 || len(mods(d, 1, flow.Add)) != 1 {
			t.Errorf("%s: %v to %v, %v", what, verdict, to, d.Ops)
		}
	}
	idles := func(port uint16) {
		t.Helper()
		c := g.b.tracker.by[connKey{netip.AddrPortFrom(v4(1), port), netip.AddrPortFrom(v4(8), 80), flow.IPProtoTCP, 0}]
		if c == nil || c.kind != through || c.idle != takeoverIdle {
			t.Fatalf("port %d: %+v", port, c)
		}
		g.endHalf(c, false, "idle_timeout")
		if d := g.posted(); len(d.Outs) != 1 {
			t.Errorf("the client is not asked: %v", d.Ops)
		}
		verdict, _, d := send(port, packet.TCPAck)
		if r := resets(d); verdict != flow.Drop || len(r) != 2 {
			t.Errorf("port %d, idle: %v, %v", port, verdict, r)
		}
	}
	g.b.advance(g.now, &flow.Decision{})
	goesOn("from before", 4000)
	if verdict, to, _ := send(4000, packet.TCPAck); verdict != flow.Next || to != v4(8) {
		t.Errorf("busy: %v to %v", verdict, to)
	}
	idles(4000)
	g.host(5, flow.Location{}, "gone")
	g.b.advance(g.now, &flow.Decision{})
	if verdict, to, _ := send(4001, packet.TCPSyn); verdict != flow.Next || to != v4(8) {
		t.Fatalf("nobody serves: %v to %v", verdict, to)
	}
	g.host(5, placeOf(5), "learnt")
	g.b.advance(g.now, &flow.Decision{})
	goesOn("from meanwhile", 4001)
	idles(4001)
	goesOn("later", 4003)
	if verdict, to, _ := send(4002, packet.TCPSyn); verdict != flow.Next || to != v4(5) {
		t.Errorf("again: %v to %v", verdict, to)
	}
	g.now += takeoverTime
	g.b.tidy(g.now)
	for _, port := range []uint16{4003, 4004} {
		if verdict, _, d := send(port, packet.TCPAck); verdict != flow.Drop || len(resets(d)) != 1 {
			t.Errorf("port %d, long after: %v", port, verdict)
		}
	}
	g.consistent()
	v.Shadow, v.Address = false, v4(100).String()
	if _, _, err := g.b.vips.Set(context.Background(), v); api.KindOf(err) != codes.InvalidArgument {
		t.Errorf("without a shadow: %v", err)
	}
}

// TestShadowRefused: what a shadow cannot be.
func TestShadowRefused(t *testing.T) {
	g := newRig(t)
	g.set(shadow(5))
	for name, f := range map[string]func(*api.Vip){
		"stateless":       func(v *api.Vip) { v.Stateless = true },
		"any":             func(v *api.Vip) { v.Protocol, v.Port = "any", 0; v.Pool[0].Port = 0 },
		"icmp":            func(v *api.Vip) { v.Health = &api.HealthCheck{Kind: "icmp"} },
		"its own member":  func(v *api.Vip) { v.Pool[0].Address = v.Address },
		"half a shadow":   func(v *api.Vip) { v.Name, v.Port, v.Shadow = "other", 81, false },
		"pairs of any":    func(v *api.Vip) { v.Per, v.Shadow, v.Protocol, v.Port, v.Pool[0].Port = "pair", false, "any", 0, 0 },
		"unknown per":     func(v *api.Vip) { v.Per = "packet" },
		"unknown again":   func(v *api.Vip) { v.Per, v.Again = "pair", "never" },
		"again":           func(v *api.Vip) { v.Again = "bound" },
		"pairs stateless": func(v *api.Vip) { v.Per, v.Shadow, v.Stateless = "pair", false, true },
	} {
		v := shadow(6)
		f(v)
		if _, _, err := g.b.vips.Set(context.Background(), v); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestShadowChecked: checks by TCP come from the host's address, and an entry leads
// their answers to the controller.
func TestShadowChecked(t *testing.T) {
	g := newRig(t)
	v := shadow(5)
	v.Health = &api.HealthCheck{Kind: "tcp"}
	g.set(v)
	d := &flow.Decision{}
	g.b.advance(g.now, d)
	var k flow.Key
	if len(d.Outs) != 1 {
		t.Fatalf("%v", d.Ops)
	}
	packet.Parse(d.Outs[0].Data, &k)
	if k.EthSrc != macOfHost(8) || k.IPv4Src != v4(8).As4() || k.TPSrc != probePortFirst || len(g.standing(2, flow.PriorityShadowMember)) != 2 {
		t.Errorf("the check: %+v, %v", k, g.standing(2, flow.PriorityShadowMember))
	}
	answer := packet.AppendTCP(nil, packet.Ether{Dst: macOfHost(8), Src: macOfHost(5)}, packet.IP{Src: v4(5), Dst: v4(8)},
		packet.TCPFields{SrcPort: 8080, DstPort: probePortFirst, Flags: packet.TCPSyn | packet.TCPAck, Ack: probePortFirst + 1}, nil)
	if verdict, _, d := g.send(5, answer); verdict != flow.Done || len(resets(d)) != 1 || g.show("web").Pool[0].Health != "up" {
		t.Errorf("%v %v", verdict, g.show("web"))
	}
}

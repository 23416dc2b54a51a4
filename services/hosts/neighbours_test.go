package hosts

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// lets returns the entries that let the hosts of a switch speak, after all that has
// happened.
func (r *rig) lets(sw flow.DPID) (list []flow.Entry) {
	r.t.Helper()
	r.changes()
	info := &api.Switch{Dpid: sw.String()}
	for _, name := range r.permits.pieces(info) {
		if name == answers {
			continue
		}
		for _, f := range r.permits.piece(info, name).GetFlows() {
			of, e, err := f.Entry()
			if err == nil {
				err = e.Match.Check()
			}
			if err != nil || of != sw || e.Table != flow.TableNeighbours || e.Priority != flow.PriorityNeighbour || e.Goto != flow.TableForward || len(e.Apply) != 0 || e.Cookie.Owner() != flow.OwnerNeighbours {
				r.t.Errorf("%v, %v", e, err)
			}
			list = append(list, e)
		}
	}
	if a := r.places.switches[sw]; a != nil && a.permitted != len(list) {
		r.t.Errorf("%d entries, %d are counted", len(list), a.permitted)
	}
	return list
}

// passes reports whether one of some entries lets a frame through that comes in by a port.
func passes(list []flow.Entry, port flow.Port, frame []byte) bool {
	k := flow.Key{InPort: port}
	packet.Parse(frame, &k)
	return slices.ContainsFunc(list, func(e flow.Entry) bool { return e.Match.Matches(&k) })
}

func told(nd packet.NDFields) []byte { return packet.AppendNDAdvert(nil, 0, nd) }

// routerSolicit is what a host says when it comes up, from its link-local address.
func routerSolicit(src flow.MAC, from string, gives flow.MAC) []byte {
	option := append([]byte{0, 0, 0, 0, 1, 1}, gives[:]...)
	return packet.AppendICMP(nil, packet.Ether{Dst: flow.MAC{0x33, 0x33, 0, 0, 0, 2}, Src: src}, packet.IP{Src: ip(from), Dst: ip("ff02::2"), TTL: 255}, flow.ICMPv6RSolicit, 0, option)
}

// TestSpeech: a switch lets through what a known host says of itself to one other, and
// nothing else.
func TestSpeech(t *testing.T) {
	r := newRig(t, nil)
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.2"))
	r.accept(at(1, 1), solicit(mac(1), "fd00::1", "fd00::2"))
	r.accept(at(1, 1), routerSolicit(mac(1), "fe80::1", mac(1)))
	r.refusedAs(spoofed, at(1, 1), routerSolicit(mac(1), "fe80::9", mac(9)))
	r.accept(at(1, 2), arpRequest(mac(2), "10.0.0.2", "10.0.0.1"))
	list := r.lets(1)
	ask := func(from string, gives flow.MAC) []byte {
		return packet.AppendNDSolicit(nil, 0, packet.NDFields{SrcMAC: gives, SrcIP: ip(from), DstMAC: mac(2), DstIP: ip("fd00::2"), Target: ip("fd00::2")})
	}
	for _, c := range []struct {
		what  string
		port  flow.Port
		frame []byte
		pass  bool
	}{
		{"a reply", 1, arpReply(mac(1), "10.0.0.1", mac(2), "10.0.0.2"), true},
		{"an advertisement", 1, told(packet.NDFields{SrcMAC: mac(1), SrcIP: ip("fd00::1"), DstMAC: mac(2), DstIP: ip("fd00::2"), Target: ip("fd00::1")}), true},
		{"a solicitation", 1, ask("fd00::1", mac(1)), true},
		{"a solicitation from its link-local address", 1, ask("fe80::1", mac(1)), true},
		{"a request to all", 1, arpRequest(mac(1), "10.0.0.1", "10.0.0.2"), false},
		{"an advertisement to all", 1, told(packet.NDFields{SrcMAC: mac(1), SrcIP: ip("fd00::1"), Target: ip("fd00::1")}), false},
		{"at another port", 2, arpReply(mac(1), "10.0.0.1", mac(2), "10.0.0.2"), false},
		{"an address of another", 2, arpReply(mac(2), "10.0.0.1", mac(1), "10.0.0.1"), false},
		{"an address that nobody has", 1, arpReply(mac(1), "10.0.0.77", mac(2), "10.0.0.2"), false},
		{"no address: a probe", 1, packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: mac(1), SenderIP: ip("0.0.0.0"), TargetMAC: mac(2), TargetIP: ip("10.0.0.2")}), false},
		{"tagged", 1, packet.AppendARPReply(nil, 7|flow.VLANPresent, packet.ARPFields{SenderMAC: mac(1), SenderIP: ip("10.0.0.1"), TargetMAC: mac(2), TargetIP: ip("10.0.0.2")}), false},
		{"an advertisement of another's Ethernet address", 1, told(packet.NDFields{SrcMAC: mac(1), SrcIP: ip("fd00::1"), DstMAC: mac(2), DstIP: ip("fd00::2"), Target: ip("fd00::1"), TargetMAC: mac(9)}), false},
		{"a solicitation from what nobody has", 1, ask("fd00::9", mac(1)), false},
		{"what is no ARP", 1, udp(mac(1), mac(2), "10.0.0.1", "10.0.0.2"), false},
	} {
		if got := passes(list, c.port, c.frame); got != c.pass {
			t.Errorf("%s: passes %v, want %v", c.what, got, c.pass)
		}
	}
}

// TestAnswersCome: answers to Weft's own questions come to the controller, also from a host
// that may speak to others.
func TestAnswersCome(t *testing.T) {
	r := newRig(t, nil)
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.2"))
	r.changes()
	var list []flow.Entry
	for _, f := range r.permits.piece(&api.Switch{Dpid: "1"}, answers).GetFlows() {
		if _, e, err := f.Entry(); err == nil && e.Priority > flow.PriorityNeighbour && slices.Equal(e.Apply, []flow.Action{flow.Output(flow.PortController)}) {
			list = append(list, e)
		}
	}
	probes := flow.MACFrom(r.questions.probes)
	for _, frame := range [][]byte{
		arpReply(mac(1), "10.0.0.1", probes, "0.0.0.0"),
		packet.AppendARPReply(nil, 7|flow.VLANPresent, packet.ARPFields{SenderMAC: mac(1), SenderIP: ip("10.0.0.1"), TargetMAC: probes, TargetIP: dummy4}),
		told(packet.NDFields{SrcMAC: mac(1), SrcIP: ip("fd00::1"), DstMAC: probes, DstIP: linkLocal(probes), Target: ip("fd00::1")}),
	} {
		if !passes(list, 1, frame) {
			t.Errorf("does not come: %x", frame)
		}
	}
	if passes(list, 1, arpReply(mac(1), "10.0.0.1", mac(2), "10.0.0.2")) {
		t.Error("an answer to another host comes")
	}
	r.permits.routesIn(r.now, 1, 0)
	if names := r.permits.pieces(&api.Switch{Dpid: "1"}); len(names) != 0 {
		t.Errorf("a switch with one table has %v", names)
	}
}

// TestSpeechFollows: what a switch lets through follows where hosts are, whose addresses
// are, who is held, and what is behind the port.
func TestSpeechFollows(t *testing.T) {
	r := newRig(t, nil)
	reply := arpReply(mac(1), "10.0.0.1", mac(9), "10.0.0.9")
	want := func(what string, sw flow.DPID, port flow.Port, pass bool) {
		t.Helper()
		if got := passes(r.lets(sw), port, reply); got != pass {
			t.Errorf("%s: passes at %v %v, want %v", what, at(sw, port), got, pass)
		}
	}
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.2"))
	want("learnt", 1, 1, true)
	if err := r.holds.set(&hold{stage: "admission", approved: map[id]struct{}{}}); err != nil {
		t.Fatal(err)
	}
	want("held", 1, 1, false)
	r.holds.approve("admission", newID(mac(1), 0), true)
	want("approved", 1, 1, true)
	for role, pass := range map[flow.PortRole]bool{flow.RoleBlocked: false, flow.RoleUnsettled: true, flow.RoleEdge: true} {
		r.roleChanged(r.now, at(1, 1), role.String())
		want(role.String(), 1, 1, pass)
	}
	r.roleChanged(r.now, at(1, 1), "edge")
	r.permits.routesIn(r.now, 1, 0)
	want("a switch with one table", 1, 1, false)
	r.permits.routesIn(r.now, 1, flow.TableForward)
	want("a switch with all", 1, 1, true)
	r.switchChanged(r.now, 1, false, nil)
	want("its switch is away", 1, 1, true)
	r.switchChanged(r.now, 1, true, []*api.Port{portMsg(1, 1, true)})

	r.portChanged(r.now, 1, portMsg(1, 1, false), false)
	r.accept(at(2, 3), arpRequest(mac(1), "10.0.0.1", "10.0.0.2"))
	want("moved away", 1, 1, false)
	want("moved", 2, 3, true)
	r.accept(at(2, 3), arpRequest(mac(2), "10.0.0.1", "10.0.0.2")) // beside it: it has the address at once
	want("another has its address", 2, 3, false)
	r.roleChanged(r.now, at(2, 3), "link")
	if list := r.lets(2); len(list) != 0 {
		t.Errorf("behind a link: %v", list)
	}
}

// TestSpeechIsBounded: a switch has so many entries at most; hosts beyond that are told of
// in the health, and have theirs when there is room.
func TestSpeechIsBounded(t *testing.T) {
	r := newRig(t, func(c *Config) { c.NeighbourEntries = 4 })
	for n := byte(1); n <= 6; n++ {
		r.accept(at(1, 1), arpRequest(mac(n), fmt.Sprintf("10.0.0.%d", n), "10.0.0.9"))
	}
	r.accept(at(2, 1), arpRequest(mac(7), "10.0.0.7", "10.0.0.9"))
	r.accept(at(2, 1), advert(mac(7), "fd00::7"))
	r.accept(at(2, 1), advert(mac(7), "fd00::8"))
	if a, b := len(r.lets(1)), len(r.lets(2)); a != 4 || b != 4 {
		t.Errorf("%d and %d entries, want 4 each", a, b)
	}
	limits := r.reached.List(r.now)
	if len(limits) != 2 || limits[0].Key != "hosts.neighbour_entries" || limits[0].Who != "switch "+flow.DPID(1).String() {
		t.Errorf("limits reached: %v", limits)
	}
	gone := r.host(newID(mac(1), 0))
	r.remove(gone)
	r.ageing.moveUp(0)
	r.changes()
	r.step(nil)
	if list := r.lets(1); len(list) != 4 || passes(list, 1, arpReply(mac(1), "10.0.0.1", mac(9), "10.0.0.9")) {
		t.Errorf("after one has gone: %v", list)
	}
	none := *r.cfg
	none.NeighbourEntries = 0
	r.retune(r.now, &none)
	r.step(nil)
	if n := len(r.lets(1)); n != 0 {
		t.Errorf("%d entries, though none are to be", n)
	}
}

// TestSpeechCostsTheSame: a host that changes costs as many pieces as it concerns, however
// many hosts there are.
func TestSpeechCostsTheSame(t *testing.T) {
	r := newRig(t, nil)
	for n := range byte(100) {
		r.accept(at(1, 1), arpRequest(mac(n+1), fmt.Sprintf("10.0.0.%d", n+1), "10.0.0.200"))
	}
	r.changes()
	r.permits.drain()
	r.accept(at(1, 2), arpRequest(mac(150), "10.0.0.150", "10.0.0.200"))
	r.changes()
	if got := r.permits.drain(); len(got) != 1 || !slices.Equal(got[1], []string{pieceName(newID(mac(150), 0))}) {
		t.Errorf("changed: %v", got)
	}
	r.accept(at(1, 2), arpRequest(mac(150), "10.0.0.150", "10.0.0.200"))
	r.changes()
	if got := r.permits.drain(); len(got) != 0 {
		t.Errorf("changed, though nothing has: %v", got)
	}
}

// TestSpeechSurvives: after a restart a switch is declared what its hosts said before,
// at once: nothing that an earlier run let through is withdrawn.
func TestSpeechSurvives(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		var mu sync.Mutex
		var sets []*api.SetStandingRequest
		wefttest.Fake(h, api.SetStanding, func(_ context.Context, r *api.SetStandingRequest) (*api.SetStandingResponse, error) {
			mu.Lock()
			defer mu.Unlock()
			if r.Owner == flow.OwnerNeighbours.String() {
				sets = append(sets, r)
			}
			return &api.SetStandingResponse{}, nil
		})
		wefttest.Fake(h, api.Send, func(context.Context, *flow.Decision) (*api.ApplyResult, error) { return &api.ApplyResult{}, nil })
		declared := func(flows int, whole bool) func() bool {
			return func() bool {
				mu.Lock()
				defer mu.Unlock()
				return slices.ContainsFunc(sets, func(r *api.SetStandingRequest) bool { return len(r.Flows) == flows && (r.Base == 0) == whole })
			}
		}
		connected := &api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(1).String(), Connected: true, Openflow: "1.3", Tables: 254}, Ports: []*api.Port{portMsg(1, 1, true)}}
		wefttest.Publish(h, api.RolesSettledEvent, &api.RolesSettled{Dpid: connected.Switch.Dpid})
		wefttest.Publish(h, api.SwitchChangedEvent, connected)
		testwait.Until(t, "what answers the controller declared", declared(3, true))
		h.Packet(1, 1, arpRequest(mac(1), "10.0.0.1", "10.0.0.2"))
		testwait.Until(t, "the host's entry declared", declared(1, false))
		h.Packet(1, 1, solicit(mac(1), "fd00::1", "fd00::2"))
		testwait.Until(t, "the other address's declared", declared(3, false))
		h.Restart()
		mu.Lock()
		sets = nil
		mu.Unlock()
		wefttest.Publish(h, api.SwitchChangedEvent, connected)
		testwait.Until(t, "declared after a restart", declared(7, true))
		mu.Lock()
		defer mu.Unlock()
		for _, r := range sets {
			if r.Base == 0 && len(r.Flows) != 7 || len(r.Gone) != 0 {
				t.Errorf("something is withdrawn: %v", r)
			}
		}
	})
}

package hosts

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// raw is a frame without an IP address.
func raw(src, dst flow.MAC) []byte {
	return packet.Pad(packet.AppendEthernet(nil, packet.Ether{Src: src, Dst: dst}, 0x1234))
}

// A host that answers no questions, or has no address to be asked for, is not
// taken over by a frame, nor by many, while it is heard at times.
func TestSilentHostKeepsItsPlace(t *testing.T) {
	for name, frame := range map[string]func(flow.MAC) []byte{
		"no address": func(m flow.MAC) []byte { return raw(m, mac(9)) },
		"no answers": func(m flow.MAC) []byte { return arpRequest(m, "10.0.0.1", "10.0.0.9") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			victim, attacker := at(1, 1), at(2, 2)
			r.accept(victim, frame(mac(1)))
			r.run(5*time.Second, nil)
			r.refusedAs(unverified, attacker, frame(mac(1)))
			r.run(time.Hour/60, nil) // one frame, and a minute
			r.wantAt(mac(1), victim)
			r.wantClaims("quarantined " + mac(1).String() + "  " + attacker.String())

			r.refusedAs(unverified, attacker, frame(mac(1)))
			for range 25 { // frames for 25 s
				r.run(time.Second, r.responds(mac(1), attacker, "10.0.0.1"))
				r.refusedAs(quarantined, attacker, frame(mac(1)))
			}
			r.wantClaims("quarantined " + mac(1).String() + "  " + attacker.String())
			if h, _ := r.find(mac(1).String(), 0); h.ClaimedAt.Flow() != attacker {
				t.Errorf("%v does not show the claimant", h)
			}
			r.accept(victim, udp(mac(1), mac(9), "10.0.0.1", "10.0.0.9"))
			r.run(50*time.Millisecond, nil)
			r.wantClaims("refused " + mac(1).String() + "  " + attacker.String())
			r.refusedAs(spoofed, attacker, frame(mac(1)))
			r.wantAt(mac(1), victim)
		})
	}
}

// While a claimant waits, the switch sends what the holder sends by its routes
// to the controller.
func TestClaimedHostIsListenedTo(t *testing.T) {
	r := newRig(t, nil)
	r.permits.routesIn(r.now, 1, 3)
	r.accept(at(1, 1), raw(mac(1), mac(9)))
	r.refusedAs(unverified, at(2, 2), raw(mac(1), mac(9)))
	var d flow.Decision
	for ; len(d.Flows) == 0 && r.now < int64(1e18)+int64(time.Second); r.now += 25 * ms {
		d.Reset()
		r.advance(r.now, &d)
	}
	if len(d.Flows) != 1 {
		t.Fatal("nothing is listened to")
	}
	e := d.Flows[0].Entry
	if d.Ops[0].Switch != 1 || e.Table != 3 || e.Match.Key.InPort != 1 || e.Match.Key.EthSrc != mac(1) ||
		e.HardTimeout < 30 || len(e.Apply) != 1 || flow.Port(e.Apply[0].Arg) != flow.PortController {
		t.Errorf("entry %+v", e)
	}
	r.accept(at(1, 1), raw(mac(1), mac(9)))
	d.Reset()
	r.advance(r.now, &d)
	if len(d.Flows) != 1 || d.Flows[0].Command != flow.DeleteStrict || d.Flows[0].Entry.Match != e.Match || d.Flows[0].Entry.Priority != e.Priority {
		t.Errorf("when it was heard: %+v", d.Flows)
	}
}

// A claimant that goes on for Hold, with nothing heard of the holder, has the
// place; when the holder is heard where it was, it has it back.
func TestTrueOwnerBringsItBack(t *testing.T) {
	r := newRig(t, nil)
	victim, attacker := at(1, 1), at(2, 2)
	frame := arpRequest(mac(1), "10.0.0.1", "10.0.0.9")
	r.accept(victim, frame)
	for r.where(mac(1)) == victim && r.now < int64(1e18)+int64(time.Minute) {
		r.packet(attacker, frame)
		r.run(time.Second, nil)
	}
	r.wantAt(mac(1), attacker)
	if held := time.Duration(r.now - 1e18); held < 30*time.Second || held > 40*time.Second {
		t.Errorf("taken after %v", held)
	}
	r.wantClaims("quarantined "+mac(1).String()+"  "+attacker.String(), "taken "+mac(1).String()+"  "+attacker.String())
	r.run(time.Minute, r.responds(mac(1), attacker, "10.0.0.1"))
	r.accept(victim, frame)
	r.wantAt(mac(1), victim)
	r.wantClaims("returned " + mac(1).String() + "  " + attacker.String())
	r.refusedAs(spoofed, attacker, frame)
	r.run(10*time.Second, nil)
	r.refusedAs(unverified, attacker, frame) // and all begins anew
}

// Port probing: the attacker waits until the port of the host is down.
func TestPortProbing(t *testing.T) {
	r := newRig(t, nil)
	victim, attacker := at(1, 1), at(2, 2)
	frame := arpRequest(mac(1), "10.0.0.1", "10.0.0.9")
	r.accept(victim, frame)
	r.refusedAs(unverified, attacker, frame)
	r.run(5*time.Second, nil)
	r.refusedAs(quarantined, attacker, frame)
	r.portChanged(r.now, 1, portMsg(1, 1, false), false)
	r.run(25*time.Millisecond, nil)
	r.wantAt(mac(1), attacker) // it may have moved, and that is quick
	r.portChanged(r.now, 1, portMsg(1, 1, true), false)
	r.run(30*time.Second, r.responds(mac(1), attacker, "10.0.0.1"))
	r.accept(victim, frame)
	r.wantAt(mac(1), victim)
	r.wantClaims("quarantined "+mac(1).String()+"  "+attacker.String(), "taken "+mac(1).String()+"  "+attacker.String(),
		"returned "+mac(1).String()+"  "+attacker.String())
}

// The same of an address: who lost it because it was silent has it back.
func TestTrueOwnerOfAnAddress(t *testing.T) {
	for _, addr := range []string{"10.0.0.1", "2001:db8::1"} {
		frame := func(m flow.MAC) []byte {
			if ip(addr).Is4() {
				return arpRequest(m, addr, "10.0.0.9")
			}
			return advert(m, addr)
		}
		r := newRig(t, nil)
		r.accept(at(1, 1), frame(mac(1)))
		r.refusedAs(unverified, at(2, 2), frame(mac(2)))
		r.run(20*time.Second, nil)
		if h := r.holder(ip(addr), 0); h.id.mac() != mac(1) {
			t.Errorf("%s is %v's after one frame", addr, h.id.mac())
		}
		for r.holder(ip(addr), 0).id.mac() == mac(1) && r.now < int64(1e18)+int64(time.Minute) {
			r.packet(at(2, 2), frame(mac(2)))
			r.run(time.Second, nil)
		}
		if h := r.holder(ip(addr), 0); h.id.mac() != mac(2) {
			t.Fatalf("%s is %v's still", addr, h.id.mac())
		}
		r.accept(at(1, 1), frame(mac(1)))
		if h := r.holder(ip(addr), 0); h.id.mac() != mac(1) {
			t.Errorf("%s is %v's although its owner is back", addr, h.id.mac())
		}
		r.refusedAs(spoofed, at(2, 2), frame(mac(2)))
	}
}

// A holder that only sends data with its address is heard, too.
func TestDataKeepsAnAddress(t *testing.T) {
	r := newRig(t, nil)
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
	r.refusedAs(unverified, at(2, 2), arpRequest(mac(2), "10.0.0.1", "10.0.0.9"))
	r.run(time.Second, nil)
	r.refusedAs(quarantined, at(2, 2), arpRequest(mac(2), "10.0.0.1", "10.0.0.9"))
	r.accept(at(1, 1), udp(mac(1), mac(9), "10.0.0.1", "10.0.0.9"))
	r.run(50*time.Millisecond, nil)
	r.refusedAs(spoofed, at(2, 2), arpRequest(mac(2), "10.0.0.1", "10.0.0.9"))
}

// One claimant in quarantine does not keep another out.
func TestClaimantsAreApart(t *testing.T) {
	r := newRig(t, nil)
	frame := arpRequest(mac(1), "10.0.0.1", "10.0.0.9")
	r.accept(at(1, 1), frame)
	r.run(3*time.Second, r.alive(mac(1), at(1, 1), "10.0.0.1"))
	r.refusedAs(unverified, at(2, 2), frame)
	r.run(time.Second, nil) // the attacker does not answer; the host is silent now
	r.wantAt(mac(1), at(1, 1))
	r.refusedAs(unverified, at(3, 3), frame)
	there := r.responds(mac(1), at(3, 3), "10.0.0.1")
	r.answerNow(there)
	r.run(time.Second, there)
	r.wantAt(mac(1), at(3, 3))
}

// A host that has only sent IP packets is asked for their source, so that a move
// to another port is known at once although its former port has carrier again.
func TestMoveOfAHostThatOnlyPings(t *testing.T) {
	for _, addr := range []string{"10.0.0.1", "2001:db8::1"} {
		r := newRig(t, nil)
		frame := udp(mac(1), mac(9), addr, map[bool]string{true: "10.0.0.9", false: "2001:db8::9"}[ip(addr).Is4()])
		r.accept(at(1, 3), frame)
		r.run(2*time.Second, r.alive(mac(1), at(1, 3), addr))
		if h := r.host(newID(mac(1), 0)); !h.answers || h.has(ip(addr)) == nil {
			t.Fatalf("%s: answers %v, addresses %v", addr, h.answers, h.addresses)
		}
		there := r.responds(mac(1), at(2, 5), addr)
		r.refusedAs(unverified, at(2, 5), frame)
		r.answerNow(there)
		r.run(350*time.Millisecond, there)
		r.wantAt(mac(1), at(2, 5))
	}
}

// A host that moves on and on, always to a port whose former one is in use by
// another, is not kept out by its own claims.
func TestHostThatMovesOnAndOn(t *testing.T) {
	r := newRig(t, nil)
	r.accept(at(1, 1), raw(mac(1), mac(9))) // never answers
	began := r.now
	for i := flow.Port(0); r.where(mac(1)) == at(1, 1) && r.now < began+int64(time.Minute); i++ {
		r.packet(at(2, 1+i%10), raw(mac(1), mac(9)))
		r.run(time.Second, nil)
	}
	if took := time.Duration(r.now - began); r.where(mac(1)) == at(1, 1) || took > 35*time.Second {
		t.Errorf("at %v after %v", r.where(mac(1)), took)
	}
	if n := r.tally.n[tableLimit].Load(); n != 0 {
		t.Errorf("%d refused because there were too many claims", n)
	}
}

// Many claimants behind one port do not keep one at another port out.
func TestOnePortHasOneClaimant(t *testing.T) {
	r := newRig(t, nil)
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
	r.run(3*time.Second, r.alive(mac(1), at(1, 1), "10.0.0.1"))
	for i := range byte(20) {
		r.refusedAs(unverified, at(2, 2), arpRequest(mac(50+i), "10.0.0.1", "10.0.0.9"))
	}
	if n := len(r.claims.of[claimKey{who: newID(mac(1), 0), ip: ip("10.0.0.1")}]); n != 1 {
		t.Errorf("%d claims of one port", n)
	}
	r.refusedAs(unverified, at(3, 3), arpRequest(mac(2), "10.0.0.1", "10.0.0.9"))
	there := r.responds(mac(2), at(3, 3), "10.0.0.1")
	r.answerNow(there)
	r.run(time.Second, there)
	if h := r.holder(ip("10.0.0.1"), 0); h.id.mac() != mac(2) {
		t.Errorf("10.0.0.1 is %v's", h.id.mac())
	}
}

// A host with another Ethernet address has the IP address of one that is gone,
// or was at its port: the others are sent it.
func TestNewEthernetAddressIsSentToOthers(t *testing.T) {
	for _, addr := range []string{"10.0.0.1", "2001:db8::1"} {
		for _, gone := range []bool{false, true} {
			frame := func(m flow.MAC) []byte {
				if ip(addr).Is4() {
					return arpRequest(m, addr, "10.0.0.9")
				}
				return advert(m, addr)
			}
			r := newRig(t, nil)
			r.accept(at(1, 1), frame(mac(1)))
			r.accept(at(2, 1), raw(mac(2), mac(9)))
			r.accept(at(2, 5), raw(mac(3), mac(9)))
			if gone {
				r.portChanged(r.now, 1, portMsg(1, 1, false), false)
				r.run(11*time.Second, nil)
				r.portChanged(r.now, 1, portMsg(1, 1, true), false)
			}
			r.accept(at(1, 1), frame(mac(4)))
			seen := map[flow.Location]int{}
			for range 200 {
				var d flow.Decision
				r.advance(r.now, &d)
				for i, o := range d.Outs {
					var k flow.Key
					packet.Parse(o.Data, &k)
					if k.EthSrc != mac(4) {
						continue // a question
					}
					if !k.EthDst.Multicast() || k.EthType == flow.EthTypeARP && (k.ARPSHA != mac(4) || k.ARPSPA != ip(addr).As4() || k.ARPTPA != ip(addr).As4()) {
						t.Errorf("%s: sent %+v", addr, k)
					}
					for _, a := range o.Actions {
						seen[at(d.Ops[i].Switch, flow.Port(a.Arg))]++
					}
				}
				r.now += 25 * ms
			}
			if len(seen) != 2 || seen[at(2, 1)] != noticeTimes || seen[at(2, 5)] != noticeTimes {
				t.Errorf("%s, gone %v: sent to %v", addr, gone, seen)
			}
		}
	}
}

// Two hosts that take an address from each other all the time do not flood.
func TestNoticesAreBounded(t *testing.T) {
	r := newRig(t, nil)
	r.accept(at(2, 1), raw(mac(9), mac(8)))
	sent := 0
	for range 4000 { // 10 s
		r.packet(at(1, 1), arpRequest(mac(byte(r.now/ms%2)+1), "10.0.0.1", "10.0.0.9"))
		var d flow.Decision
		r.advance(r.now, &d)
		for _, o := range d.Outs {
			if o.Data[0] == 0xff {
				sent++
			}
		}
		r.now += 5 * ms / 2
	}
	if sent < 5 || sent > 12 {
		t.Errorf("%d announcements of one address in 10 s", sent)
	}
}

// An address passes to another host while its former holder lives: the claim is
// refused, and asked about again, so that it does not have to be made again.
func TestAddressThatIsGivenUpLater(t *testing.T) {
	for _, addr := range []string{"10.0.0.100", "2001:db8::100"} {
		r := newRig(t, nil)
		frame := func(m flow.MAC) []byte {
			if ip(addr).Is4() {
				return arpRequest(m, addr, addr)
			}
			return advert(m, addr)
		}
		one, two := r.responds(mac(1), at(1, 1), addr), r.responds(mac(2), at(2, 2), addr)
		r.accept(at(1, 1), frame(mac(1)))
		r.run(2*time.Second, one)
		r.refusedAs(unverified, at(2, 2), frame(mac(2)))
		both := func(to flow.Location, f []byte) { one(to, f); two(to, f) }
		r.answerNow(both)
		r.run(20*time.Second, both)
		if h := r.holder(ip(addr), 0); h.id.mac() != mac(1) {
			t.Fatalf("%s is %v's although its holder answers", addr, h.id.mac())
		}
		if n := len(r.claims.of); n != 1 {
			t.Fatalf("%s: %d claims are remembered", addr, n)
		}
		gone := r.now
		for r.holder(ip(addr), 0).id.mac() == mac(1) && r.now < gone+int64(time.Minute) {
			r.run(100*time.Millisecond, two)
		}
		if took := time.Duration(r.now - gone); took > 4*time.Second {
			t.Errorf("%s is the claimant's %v after the holder has given it up", addr, took)
		}
		r.accept(at(2, 2), frame(mac(2)))
	}
}

// A claim of an address is forgotten once its claimant was silent for Age.
func TestClaimIsForgotten(t *testing.T) {
	r := newRig(t, nil)
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
	one := r.alive(mac(1), at(1, 1), "10.0.0.1")
	r.run(2*time.Second, one)
	r.refusedAs(unverified, at(2, 2), arpRequest(mac(2), "10.0.0.1", "10.0.0.9"))
	asked := 0
	r.run(9*time.Minute, func(to flow.Location, f []byte) {
		if to == at(1, 1) {
			asked++
			one(to, f)
		}
	})
	if len(r.claims.of) != 1 || asked > 150 {
		t.Errorf("%d claims, %d questions in nine minutes", len(r.claims.of), asked)
	}
	r.run(2*time.Minute, func(to flow.Location, f []byte) {
		if to == at(1, 1) {
			one(to, f)
		}
	})
	if len(r.claims.of) != 0 {
		t.Errorf("%d claims after Age", len(r.claims.of))
	}
}

// A device that has moved probes its address before it uses it: no question is
// such that it must take it for a conflict (RFC 5227 §2.1.1).
func TestQuestionsAreNoConflict(t *testing.T) {
	r := newRig(t, nil)
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
	r.run(2*time.Second, r.alive(mac(1), at(1, 1), "10.0.0.1"))
	probes := 0
	device := func(to flow.Location, frame []byte) {
		if a, ok := packet.ParseARP(frame); to == at(2, 2) && ok && a.SenderIP().IsUnspecified() && a.TargetIP() == ip("10.0.0.1") {
			probes++
		}
	}
	for range 3 {
		r.packet(at(2, 2), arpRequest(mac(1), "0.0.0.0", "10.0.0.1"))
		r.answerNow(device)
		r.run(time.Second, device)
	}
	if probes > 0 {
		t.Fatalf("%d conflicts", probes)
	}
	there := r.responds(mac(1), at(2, 2), "10.0.0.1")
	r.packet(at(2, 2), arpRequest(mac(1), "10.0.0.1", "10.0.0.1")) // it has the address now
	r.answerNow(there)
	r.run(time.Second, there)
	r.wantAt(mac(1), at(2, 2))
}

// What a DHCP server says of its client passes at once, whatever becomes of the
// claim; a former holder that is silent has lost the address.
func TestLeasePassesToAnother(t *testing.T) {
	r := newRig(t, nil)
	server, client := mac(9), mac(2)
	r.accept(at(2, 1), arpRequest(server, "10.0.0.254", "10.0.0.1"))
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.120", "10.0.0.254"))
	r.run(2*time.Second, r.responds(mac(1), at(1, 1), "10.0.0.120"))
	r.accept(at(2, 2), udp(client, flow.Broadcast, "0.0.0.0", "255.255.255.255"))
	ack := packet.AppendDHCPv4(nil, packet.Ether{Src: server, Dst: client}, packet.IP{Src: ip("10.0.0.254"), Dst: ip("10.0.0.120"), TTL: 64},
		packet.DHCPv4Fields{Type: packet.DHCPAck, ClientMAC: client, YourIP: ip("10.0.0.120"), ServerID: ip("10.0.0.254")})
	r.accept(at(2, 1), ack)
	if h := r.holder(ip("10.0.0.120"), 0); h.id.mac() != mac(1) {
		t.Error("the address was given away unasked")
	}
	r.accept(at(2, 1), ack)
	for _, o := range r.asked.Outs {
		if a, ok := packet.ParseARP(o.Data); ok && a.TargetMAC() == client && a.SenderIP().IsUnspecified() {
			t.Error("the client is told of a conflict while it may probe")
		}
	}
	r.run(400*time.Millisecond, nil)
	if h := r.holder(ip("10.0.0.120"), 0); h.id.mac() != client {
		t.Errorf("10.0.0.120 is %v's still", h.id.mac())
	}
	r.accept(at(2, 2), arpRequest(client, "10.0.0.120", "10.0.0.120"))
}

// A router is announced as one: hosts drop routes by a router that says it is none
// (RFC 4861 §7.2.5).
func TestRouterIsAnnouncedAsRouter(t *testing.T) {
	for _, router := range []bool{false, true} {
		r := newRig(t, nil)
		r.accept(at(1, 1), advert(mac(1), "fe80::1"))
		r.accept(at(2, 1), raw(mac(9), mac(8)))
		r.accept(at(1, 1), packet.AppendNDAdvert(nil, 0, packet.NDFields{SrcMAC: mac(2), SrcIP: ip("fe80::1"), Target: ip("fe80::1"), Override: true, Router: router}))
		sent := 0
		r.run(2*time.Second, func(to flow.Location, frame []byte) {
			if nd, ok := packet.ParseND(frame); ok && to == at(2, 1) && nd.Type() == flow.ICMPv6Advert {
				sent++
				if nd.Router() != router || !nd.Override() {
					t.Errorf("router %v, announced as %v", router, nd.Router())
				}
			}
		})
		if sent == 0 {
			t.Error("not announced")
		}
	}
}

// Who asks for an address is led to its owner, unless that cannot be reached or does
// not answer; who asks one host alone is led to that one.
func TestQuestionsGoToTheOwner(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		r := newRig(t, nil)
		addr, ask := "10.0.0.1", func() []byte { return arpRequest(mac(2), "10.0.0.2", "10.0.0.1") }
		if v6 {
			addr, ask = "2001:db8::1", func() []byte { return solicit(mac(2), "2001:db8::2", "2001:db8::1") }
			r.accept(at(1, 1), advert(mac(1), addr))
		} else {
			r.accept(at(1, 1), arpRequest(mac(1), addr, "10.0.0.9"))
		}
		r.now += int64(time.Minute)
		one := r.responds(mac(1), at(1, 1), addr)
		for range 3 {
			if in := r.accept(at(2, 2), ask()); in.Dst != at(1, 1) {
				t.Fatalf("asked of %v", in.Dst)
			}
			r.answerNow(one)
			r.now += int64(2 * time.Second)
		}
		r.accept(at(2, 2), ask()) // the owner is silent now
		r.now += int64(time.Second)
		if in := r.accept(at(2, 2), ask()); in.Dst != (flow.Location{}) {
			t.Errorf("asked of %v, who does not answer", in.Dst)
		}
		one(at(1, 1), r.questions.buildProbe(newID(mac(1), 0), ip(addr), true))
		if in := r.accept(at(2, 2), ask()); in.Dst != at(1, 1) {
			t.Errorf("asked of %v, want who answers again", in.Dst)
		}
		r.switchChanged(r.now, 1, false, nil)
		if in := r.accept(at(2, 2), ask()); in.Dst != (flow.Location{}) {
			t.Errorf("asked of %v, whose switch is away", in.Dst)
		}
		check := ask()
		m := mac(7)
		copy(check, m[:])
		if in := r.accept(at(2, 2), check); in.Dst != (flow.Location{}) {
			t.Errorf("a question to an unknown host is led to %v", in.Dst)
		}
	}
}

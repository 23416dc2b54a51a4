package hosts

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// The tests of this file are named after the advisories of
// reference/controllers.md §4.3 B.

// An attacker sends with the Ethernet address of a host at another port.
func TestCVE_2015_1610_HostHijack(t *testing.T) {
	r := newRig(t, nil)
	victim, attacker := at(1, 1), at(2, 2)
	r.accept(victim, arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
	r.now += int64(time.Minute) // silent, for its traffic flows in the switches
	alive := r.alive(mac(1), victim, "10.0.0.1")

	r.refusedAs(unverified, attacker, udp(mac(1), mac(5), "10.0.0.1", "10.0.0.5"))
	r.answerNow(alive)
	r.run(time.Second, alive)
	r.wantAt(mac(1), victim)
	for range 100 { // and again: refused without another question
		r.now += 10 * ms
		r.refusedAs(spoofed, attacker, udp(mac(1), mac(5), "10.0.0.1", "10.0.0.5"))
		if len(r.asked.Outs) != 0 {
			t.Fatal("a claim that has failed is verified again at once")
		}
	}
	r.accept(victim, udp(mac(1), mac(5), "10.0.0.1", "10.0.0.5"))
	r.wantAt(mac(1), victim)
	if n := r.list().Refused["spoofed"]; n != 100 {
		t.Errorf("%d shown as spoofed", n)
	}
	// When its port is down the victim cannot answer: then it has moved.
	r.portChanged(r.now, 1, portMsg(1, 1, false), false)
	r.accept(attacker, udp(mac(1), mac(5), "10.0.0.1", "10.0.0.5"))
	r.wantAt(mac(1), attacker)
}

// An attacker answers for the address of another host, by ARP and by ND.
func TestCVE_2023_41591_AddressSpoofing(t *testing.T) {
	for _, c := range []struct {
		addr          string
		claim, honest func(flow.MAC) []byte
	}{
		{"10.0.0.1", func(m flow.MAC) []byte { return arpReply(m, "10.0.0.1", mac(7), "10.0.0.7") }, func(m flow.MAC) []byte { return arpRequest(m, "10.0.0.1", "10.0.0.7") }},
		{"2001:db8::1", func(m flow.MAC) []byte { return advert(m, "2001:db8::1") }, func(m flow.MAC) []byte { return advert(m, "2001:db8::1") }},
	} {
		t.Run(c.addr, func(t *testing.T) {
			r := newRig(t, nil)
			victim, attacker := at(1, 1), at(2, 2)
			r.accept(victim, c.honest(mac(1)))
			alive := r.alive(mac(1), victim, c.addr)
			r.now += int64(time.Minute)
			r.refusedAs(unverified, attacker, c.claim(mac(2)))
			r.answerNow(alive)
			r.run(350*time.Millisecond, alive)
			for range 20 {
				r.refusedAs(spoofed, attacker, c.claim(mac(2)))
			}
			if h := r.holder(ip(c.addr), 0); h == nil || h.id.mac() != mac(1) {
				t.Fatalf("%s is %v's", c.addr, h)
			}
			r.wantAt(mac(2), attacker) // a host, but without the address
			if h := r.host(newID(mac(2), 0)); len(h.addresses) != 0 {
				t.Errorf("the attacker has %v", h.addresses)
			}
			// A holder that is gone does not answer any more: then the address
			// is free for a claimant that does.
			r.run(6*time.Second, nil)
			r.refusedAs(unverified, attacker, c.claim(mac(2)))
			claimant := r.responds(mac(2), attacker, c.addr)
			r.answerNow(claimant)
			r.run(400*time.Millisecond, claimant)
			if h := r.holder(ip(c.addr), 0); h == nil || h.id.mac() != mac(2) {
				t.Errorf("%s is not given to who keeps claiming it", c.addr)
			}
		})
	}
}

// An attacker invents hosts.
func TestCVE_2023_41591_FakeHosts(t *testing.T) {
	r := newRig(t, func(c *Config) { c.PortLimit = 100; c.AddressLimit = 10 })
	for i := range uint64(5000) {
		m := flow.MACFrom(0x020000100000 + i)
		if _, v := r.packet(at(1, 1), udp(m, mac(2), "10.0.0.1", "10.0.0.2")); (v == flow.Next) != (i < 100) {
			t.Fatalf("host %d: %v", i, v)
		}
	}
	if n := len(r.list().Hosts); n != 100 || r.list().Refused["port_limit"] != 4900 {
		t.Errorf("%d hosts, refused %v", n, r.list().Refused)
	}
	r.accept(at(1, 2), arpRequest(mac(1), "10.1.0.1", "10.0.0.2")) // the neighbour is unhurt
	for i := range 200 {
		r.packet(at(1, 2), arpRequest(mac(1), fmt.Sprintf("10.2.0.%d", i), "10.0.0.2"))
	}
	if h := r.host(newID(mac(1), 0)); len(h.addresses) != 10 || r.list().Refused["address_limit"] != 191 {
		t.Errorf("%d addresses, refused %v", len(h.addresses), r.list().Refused)
	}
}

func TestARPSpoofer(t *testing.T) {
	r := newRig(t, nil)
	f := arpReply(mac(1), "10.0.0.1", mac(7), "10.0.0.7")
	copy(f[6:12], []byte{2, 0, 0, 0, 0, 2}) // the frame's sender is another than ARP's
	r.refusedAs(spoofed, at(1, 1), f)
	nd := packet.AppendNDAdvert(nil, 0, packet.NDFields{SrcMAC: mac(2), SrcIP: ip("fe80::2"), Target: ip("fe80::1"), TargetMAC: mac(1)})
	r.refusedAs(spoofed, at(1, 1), nd)
	ns := packet.AppendNDSolicit(nil, 0, packet.NDFields{SrcMAC: mac(1), SrcIP: ip("fe80::1"), Target: ip("fe80::9")})
	copy(ns[6:12], []byte{2, 0, 0, 0, 0, 2})
	r.refusedAs(spoofed, at(1, 1), ns)
	if n := len(r.list().Hosts); n != 0 {
		t.Errorf("%d hosts learnt from lies", n)
	}
	for _, m := range []flow.MAC{{}, flow.Broadcast, {1, 0, 0x5e, 0, 0, 1}} {
		r.refusedAs(source, at(1, 1), udp(m, mac(1), "10.0.0.1", "10.0.0.2"))
	}
}

func TestGatewayIsNobodys(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Gateways = []string{"10.0.0.254", "fe80::1", "02:aa:aa:aa:aa:aa"} })
	r.refusedAs(gateway, at(1, 1), arpReply(mac(1), "10.0.0.254", mac(7), "10.0.0.7"))
	r.refusedAs(gateway, at(1, 1), advert(mac(1), "fe80::1"))
	r.refusedAs(gateway, at(1, 1), udp(flow.MAC{2, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa}, mac(1), "10.0.0.1", "10.0.0.2"))
	r.refusedAs(gateway, at(1, 1), udp(flow.MAC{2, 0x57, 0x46, 0, 0, 1}, mac(1), "10.0.0.1", "10.0.0.2"))
	if r.holder(ip("10.0.0.254"), 0) != nil {
		t.Error("the gateway's address is a host's")
	}
}

// Many claims at once: bounded, and the network's own hosts are unhurt.
func TestClaimFlood(t *testing.T) {
	r := newRig(t, func(c *Config) { c.PortLimit = 10_000 })
	for i := range uint64(6000) {
		m := flow.MACFrom(0x020000100000 + i)
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], uint32(0x0a000000+i+1))
		r.packet(at(1, 1), packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: m, SenderIP: ip(fmt.Sprintf("%d.%d.%d.%d", a[0], a[1], a[2], a[3])), TargetIP: ip("10.9.9.9")}))
	}
	for i := range uint64(6000) {
		r.packet(at(2, 2), udp(flow.MACFrom(0x020000100000+i), mac(2), "10.0.0.1", "10.0.0.2"))
	}
	if l := r.reached.List(r.now); len(l) != 1 || l[0].Who != "port 2/2" || l[0].Limit != maxClaims || l[0].Times != 6000-maxClaims {
		t.Errorf("limits reached: %v", l)
	}
	if len(r.claims.of) != maxClaims || r.list().Refused["table_limit"] != 6000-maxClaims {
		t.Errorf("%d claims, refused %v", len(r.claims.of), r.list().Refused)
	}
	r.accept(at(1, 1), udp(flow.MACFrom(0x020000100000), mac(2), "10.0.0.1", "10.0.0.2"))
}

func TestConfigErrors(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"port_limit is 0":  func(c *Config) { c.PortLimit = 0 },
		"age is 1ms":       func(c *Config) { c.Age = time.Millisecond },
		"verify is 1m0s":   func(c *Config) { c.Verify = time.Minute },
		"probe_mac is":     func(c *Config) { c.ProbeMAC = "ff:ff:ff:ff:ff:ff" },
		`gateways[1] is "`: func(c *Config) { c.Gateways = []string{"10.0.0.1", "10.0.0.0/8"} },
		"moves is 0":       func(c *Config) { c.Moves = 0 },
	} {
		c := DefaultConfig()
		change(c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// Behind one port the hosts may settle among themselves who has an address, as
// two routers with a virtual one do: the port is the same.
func TestSamePortTakesOver(t *testing.T) {
	r := newRig(t, nil)
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.254", "10.0.0.9"))
	r.accept(at(1, 1), arpRequest(mac(2), "10.0.0.254", "10.0.0.9"))
	if h := r.holder(ip("10.0.0.254"), 0); h.id.mac() != mac(2) {
		t.Errorf("10.0.0.254 is %v's", h.id.mac())
	}
	if h := r.host(newID(mac(1), 0)); len(h.addresses) != 0 {
		t.Errorf("the first still has %v", h.addresses)
	}
}

// A process that stood still while the answer was under way must not take
// silence for an answer: the holder is asked twice, and given time after each.
func TestStalledProcessMovesNobody(t *testing.T) {
	r := newRig(t, nil)
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
	r.now += ms
	r.refusedAs(unverified, at(2, 2), udp(mac(1), mac(5), "10.0.0.1", "10.0.0.5"))
	r.now += int64(5 * time.Second)
	r.step(r.alive(mac(1), at(1, 1), "10.0.0.1"))
	r.run(time.Second, nil)
	r.wantAt(mac(1), at(1, 1))
}

// A switch whose control channel is held up hears nobody: its hosts' silence moves them only once it has
// answered an echo, and they have not been heard before that.
func TestHeldUpSwitchMovesNobody(t *testing.T) {
	for _, answers := range []bool{false, true} {
		r := newRig(t, nil)
		claim := udp(mac(1), mac(5), "10.0.0.1", "10.0.0.5")
		claimant := r.responds(mac(1), at(2, 2), "10.0.0.1")
		r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
		r.host(newID(mac(1), 0)).answers = true
		r.heldUp = 1
		r.now += ms
		r.refusedAs(unverified, at(2, 2), claim)
		r.answerNow(claimant)
		r.run(10*time.Second, claimant)
		r.wantAt(mac(1), at(1, 1))
		if answers { // what has waited in the channel arrives before the echo's answer
			r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
		}
		r.heldUp = 0
		r.run(time.Second, claimant)
		r.wantAt(mac(1), map[bool]flow.Location{false: at(2, 2), true: at(1, 1)}[answers])
	}
}

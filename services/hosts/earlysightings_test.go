package hosts

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// datagram is a frame that says of its sender no more than that it is there.
func datagram(src, dst flow.MAC) []byte { return udp(src, dst, "10.0.9.1", "10.0.9.2") }

// settle makes a port of unknown kind one of a kind.
func (r *rig) settle(l flow.Location, role flow.PortRole) {
	r.roles[l] = role
	r.roleChanged(r.now, l, role.String())
}

func TestHostsThatSpokeTooEarly(t *testing.T) {
	r := newRig(t, nil)
	r.roles[at(1, 1)], r.roles[at(1, 2)] = flow.RoleUnsettled, flow.RoleUnsettled
	r.refusedAs(unsettled, at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.1"))
	r.refusedAs(unsettled, at(1, 1), datagram(mac(1), mac(9))) // says less: the address is kept
	r.refusedAs(unsettled, at(1, 2), arpRequest(mac(2), "10.0.0.2", "10.0.0.2"))
	r.refusedAs(unsettled, at(1, 2), datagram(flow.MAC{1}, mac(9))) // no host: a multicast address
	r.settle(at(1, 1), flow.RoleEdge)
	r.settle(at(1, 2), flow.RoleLink)
	r.wantAt(mac(1), at(1, 1))
	if h := r.holder(ip("10.0.0.1"), 0); h == nil || h.id.mac() != mac(1) {
		t.Errorf("10.0.0.1 is %v", h)
	}
	r.wantAt(mac(2), flow.Location{}) // a switch is there
	if len(r.noted) != 0 {
		t.Errorf("noted: %v", r.noted)
	}
}

func TestNotesAreForgotten(t *testing.T) {
	r := newRig(t, nil)
	r.accept(at(2, 1), arpRequest(mac(3), "10.0.0.3", "10.0.0.9"))
	r.roles[at(1, 1)] = flow.RoleUnsettled
	r.refusedAs(unsettled, at(1, 1), datagram(mac(1), mac(9)))
	r.refusedAs(unsettled, at(1, 1), datagram(mac(3), mac(9))) // known elsewhere: has to speak again
	r.now += notedFor
	r.refusedAs(unsettled, at(1, 1), datagram(mac(2), mac(9)))
	r.now++
	r.settle(at(1, 1), flow.RoleEdge)
	r.wantAt(mac(1), flow.Location{})
	r.wantAt(mac(2), at(1, 1))
	r.wantAt(mac(3), at(2, 1))
}

// What a host says at a new port before that is settled moves it there: at once if
// its former port is down, else when it has been asked.
func TestMoveThatIsSaidTooEarly(t *testing.T) {
	for _, down := range []bool{true, false} {
		r := newRig(t, nil)
		hello := arpRequest(mac(1), "10.0.0.1", "10.0.0.1")
		r.accept(at(1, 1), hello)
		r.run(2*time.Second, r.alive(mac(1), at(1, 1), "10.0.0.1"))
		if down {
			r.portChanged(r.now, 1, portMsg(1, 1, false), false)
		}
		r.roles[at(2, 2)] = flow.RoleUnsettled
		r.refusedAs(unsettled, at(2, 2), hello)
		r.run(time.Second, nil)
		r.settle(at(2, 2), flow.RoleEdge)
		if down {
			r.wantAt(mac(1), at(2, 2))
			continue
		}
		r.wantAt(mac(1), at(1, 1))
		r.run(400*time.Millisecond, r.responds(mac(1), at(2, 2), "10.0.0.1"))
		r.wantAt(mac(1), at(2, 2))
	}
}

// Whatever is sent to ports that are not settled, little is kept.
func TestNotesAreBounded(t *testing.T) {
	r := newRig(t, nil)
	for port := range flow.Port(notedRates + 10) {
		r.roles[at(1, port+1)] = flow.RoleUnsettled
		for n := range byte(notedMost + 5) {
			r.refusedAs(unsettled, at(1, port+1), datagram(mac(n), mac(99)))
		}
	}
	if n := len(r.noted); n != notedRates {
		t.Errorf("notes of %d ports, want %d", n, notedRates)
	}
	for l, list := range r.noted {
		if len(list) > notedMost {
			t.Fatalf("%d notes of %v", len(list), l)
		}
	}
}

func TestGuests(t *testing.T) {
	r := newRig(t, func(c *Config) { c.PortLimit = 2 })
	for n := range byte(2) {
		r.accept(at(1, 1), arpRequest(mac(n+1), "10.0.0.1", "10.0.0.9"))
	}
	r.accept(at(2, 1), arpRequest(mac(9), "10.0.0.9", "10.0.0.9"))
	for n := range byte(5) {
		in, v := r.packet(at(1, 1), datagram(mac(20+n), mac(9)))
		if v != flow.Next || in.Dst != at(2, 1) || in.Src != (flow.Location{}) || !in.Unapproved || len(in.HeldBy) > 0 {
			t.Errorf("guest %d: %v, from %v to %v, unapproved %v, held by %v", n, v, in.Src, in.Dst, in.Unapproved, in.HeldBy)
		}
		r.wantAt(mac(20+n), flow.Location{})
		r.now += int64(6 * time.Millisecond)
	}
	if n := r.tally.n[portLimit].Load(); n != 5 {
		t.Errorf("%d refused for the limit, want 5", n)
	}
	r.refusedAs(portLimit, at(1, 1), datagram(mac(30), mac(31)))                                 // to nobody who is known
	r.refusedAs(portLimit, at(1, 1), arpRequest(mac(30), "10.0.0.30", "10.0.0.31"))              // likewise
	if in := r.accept(at(1, 1), datagram(mac(1), mac(9))); in.Src != at(1, 1) || in.Unapproved { // no guest
		t.Errorf("from %v, unapproved %v", in.Src, in.Unapproved)
	}
}

// A port whose hosts are limited by name takes no guests.
func TestNoGuestsAtSecuredPorts(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Ports = []PortSecurity{{Port: "1/1", MaxHosts: 1}} })
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
	r.accept(at(2, 1), arpRequest(mac(9), "10.0.0.9", "10.0.0.9"))
	for range 2 {
		r.refusedAs(portLimit, at(1, 1), datagram(mac(2), mac(9)))
	}
}

// A host with more addresses than are known reaches others with all of them, and it
// is said whose limit was reached.
func TestManyAddresses(t *testing.T) {
	r := newRig(t, func(c *Config) { c.AddressLimit, c.PortLimit, c.Limit = 3, 2, 4 })
	for i := range 9 {
		r.accept(at(1, 1), arpRequest(mac(1), "10.0.0."+string(rune('1'+i)), "10.0.1.1"))
	}
	r.accept(at(1, 1), datagram(mac(2), mac(1)))
	r.packet(at(1, 1), datagram(mac(3), mac(1)))
	want := map[string]string{"hosts.address_limit": "host " + mac(1).String() + " at 1/1", "hosts.port_limit": "port 1/1"}
	for _, l := range r.reached.List(r.now) {
		if want[l.Key] != l.Who {
			t.Errorf("%v", l)
		}
		delete(want, l.Key)
	}
	if len(want) > 0 {
		t.Errorf("not said: %v", want)
	}
}

// Frames between bridges make nobody a host and move none: only EAPOL and LLDP of a host
// that is known are taken for its own, at ports that are settled and at others.
func TestFramesBetweenBridges(t *testing.T) {
	frame := func(src flow.MAC, last byte, kind uint16) []byte {
		return packet.Pad(packet.AppendEthernet(nil, packet.Ether{Src: src, Dst: flow.MAC{1, 0x80, 0xc2, 0, 0, last}}, kind))
	}
	r := newRig(t, nil)
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
	r.roles[at(3, 1)] = flow.RoleUnsettled
	for _, kind := range []uint16{0x26, 0x8808, 0x8809, flow.EthTypeEAPOL, flow.EthTypeLLDP} {
		r.accept(at(2, 1), frame(mac(2), 2, kind))
		r.refusedAs(unsettled, at(3, 1), frame(mac(3), 2, kind))
		if kind != flow.EthTypeEAPOL && kind != flow.EthTypeLLDP {
			r.accept(at(2, 1), frame(mac(1), 2, kind))
			continue
		}
		r.refusedAs(unverified, at(2, 1), frame(mac(1), 2, kind))
		r.run(r.cfg.Penalty+time.Second, r.responds(mac(1), at(1, 1), "10.0.0.1"))
	}
	r.settle(at(3, 1), flow.RoleEdge)
	r.wantAt(mac(1), at(1, 1))
	r.wantAt(mac(2), flow.Location{})
	r.wantAt(mac(3), flow.Location{})
}

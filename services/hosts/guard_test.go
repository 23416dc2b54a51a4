package hosts

import (
	"fmt"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// TestGuard: a switch lets through what bound hosts send at their ports, and what
// nobody has bound, and drops IP packets whose source is bound to somebody else or
// somewhere else, whatever route there is.
func TestGuard(t *testing.T) {
	r := newRig(t, func(c *Config) { c.RouterPorts = []string{"1/4"} })
	g := newGuard()
	g.switchChanged(1, []*api.Port{{Port: 1}, {Port: 2}, {Port: 3}, {Port: 4}, {Port: 5}, {Port: uint32(flow.PortLocal)}})
	for port, role := range map[flow.Port]flow.PortRole{1: flow.RoleEdge, 2: flow.RoleEdge, 3: flow.RoleLink, 4: flow.RoleEdge} {
		g.set(at(1, port), role.String())
		g.set(at(1, port), flow.RoleUnsettled.String()) // for a moment
	}
	info := &api.Switch{Dpid: flow.DPID(1).String(), Tables: 254, Openflow: "1.3"}
	if n := len(r.enforcement.request(g, info).Flows); n != 0 {
		t.Errorf("%d entries without bindings", n)
	}
	for _, m := range []*api.HostBinding{
		{Mac: mac(1).String(), At: []*api.Location{api.NewLocation(at(1, 1))}, Ips: []string{"10.0.0.1", "fd00::1"}},
		{Mac: mac(2).String(), Ips: []string{"10.0.0.2"}},
		{Mac: mac(3).String(), At: []*api.Location{api.NewLocation(at(2, 1))}, Ips: []string{"10.0.0.3"}},
		{Mac: mac(1).String(), Vlan: 7, Ips: []string{"10.0.0.9"}},
	} {
		if _, err := r.bindHost(r.now, m); err != nil {
			t.Fatal(err)
		}
	}
	entries := append(r.enforcement.entries(g, 1), flow.Entry{Goto: flow.TableFirewall}) // the last is forwarding's
	passes := func(port flow.Port, frame []byte) bool {
		in := r.packetIn(at(1, port), frame)
		var first *flow.Entry
		for i := range entries {
			e := &entries[i]
			if err := e.Match.Check(); err != nil {
				t.Fatalf("%v: %v", &e.Match, err)
			}
			if !e.Match.Matches(&in.Key) {
				continue
			}
			if first != nil && e.Priority == first.Priority && e.Goto != first.Goto {
				t.Errorf("%v and %v contradict each other", &e.Match, &first.Match)
			}
			if first == nil || e.Priority > first.Priority {
				first = e
			}
		}
		return first.Goto == flow.TableFirewall
	}
	for _, c := range []struct {
		what  string
		port  flow.Port
		frame []byte
		pass  bool
	}{
		{"a bound host at its port", 1, udp(mac(1), mac(9), "10.0.0.1", "10.0.0.8"), true},
		{"by IPv6", 1, udp(mac(1), mac(9), "fd00::1", "fd00::8"), true},
		{"with an address that nobody has bound", 1, udp(mac(1), mac(9), "10.0.0.77", "10.0.0.8"), true},
		{"at another port", 2, udp(mac(1), mac(9), "10.0.0.1", "10.0.0.8"), false},
		{"at another port, with an address that nobody has bound", 2, udp(mac(1), mac(9), "10.0.0.77", "10.0.0.8"), false},
		{"a host that is bound to no port, anywhere", 2, udp(mac(2), mac(9), "10.0.0.2", "10.0.0.8"), true},
		{"with an address of another", 1, udp(mac(1), mac(9), "10.0.0.2", "10.0.0.8"), false},
		{"a stranger with an address of its own", 2, udp(mac(8), mac(9), "10.0.0.8", "10.0.0.9"), true},
		{"a stranger with a bound address", 2, udp(mac(8), mac(9), "10.0.0.1", "10.0.0.9"), false},
		{"the same by IPv6", 2, udp(mac(8), mac(9), "fd00::1", "fd00::9"), false},
		{"with one of a host elsewhere", 2, udp(mac(8), mac(9), "10.0.0.3", "10.0.0.9"), false},
		{"with one that is bound in another VLAN", 2, udp(mac(8), mac(9), "10.0.0.9", "10.0.0.8"), true},
		{"from a link", 3, udp(mac(3), mac(9), "10.0.0.3", "10.0.0.9"), true},
		{"from a port without a role yet", 5, udp(mac(8), mac(9), "10.0.0.1", "10.0.0.9"), false},
		{"from the switch itself", flow.PortLocal, udp(mac(8), mac(9), "10.0.0.1", "10.0.0.9"), true},
		{"from a router's port", 4, udp(mac(8), mac(9), "10.0.0.1", "10.0.0.9"), true},
		{"ARP, which the controller judges", 2, arpRequest(mac(8), "10.0.0.1", "10.0.0.2"), true},
		{"neighbour discovery, too", 2, packet.AppendNDAdvert(nil, 0, packet.NDFields{SrcMAC: mac(8), DstMAC: mac(9), SrcIP: ip("fd00::1"), DstIP: ip("fd00::9"), Target: ip("fd00::1"), TargetMAC: mac(8)}), true},
	} {
		if got := passes(c.port, c.frame); got != c.pass {
			t.Errorf("%s: passes %v, want %v", c.what, got, c.pass)
		}
	}
	if n := len(r.enforcement.request(g, &api.Switch{Dpid: info.Dpid, Tables: 1, Openflow: "1.0"}).Flows); n != 0 {
		t.Errorf("%d entries on a switch with one table", n)
	}
	r.cfg.Guard = false
	if n := len(r.enforcement.entries(g, 1)); n != 0 {
		t.Errorf("%d entries, though guard is off", n)
	}
}

// TestGuardIsBounded: bindings without room are enforced by the controller alone.
func TestGuardIsBounded(t *testing.T) {
	r := newRig(t, nil)
	for i := range maxBindings {
		m := &api.HostBinding{Mac: flow.MACFrom(2<<40 | uint64(i)).String(), Ips: []string{fmt.Sprintf("10.1.%d.%d", i>>8, i&255)}}
		if _, err := r.bindHost(r.now, m); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(r.enforcement.entries(newGuard(), 1)); n > guardMost || n < guardMost-2 {
		t.Errorf("%d entries, want %d at most", n, guardMost)
	}
}

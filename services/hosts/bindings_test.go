package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

func inSync() (string, error) { return "in_sync", nil }

// bind makes a binding as BindHost does.
func (r *rig) bind(m flow.MAC, vlan uint32, ports []flow.Location, ips ...string) {
	r.t.Helper()
	b := &api.HostBinding{Mac: m.String(), Vlan: vlan, Ips: ips}
	for _, l := range ports {
		b.At = append(b.At, api.NewLocation(l))
	}
	if _, err := r.bindHost(r.now, b); err != nil {
		r.t.Fatal(err)
	}
}

// A bound host is at its ports only, whether it answers or not, and before it
// was ever seen.
func TestBoundToPorts(t *testing.T) {
	r := newRig(t, nil)
	r.bind(mac(1), 0, []flow.Location{at(1, 1), at(3, 3)})
	frame := arpRequest(mac(1), "10.0.0.1", "10.0.0.9")
	r.refusedAs(bound, at(2, 2), frame)
	r.wantClaims("bound " + mac(1).String() + "  " + at(2, 2).String())
	if len(r.list().Hosts) != 0 {
		t.Errorf("learnt: %v", r.list().Hosts)
	}
	r.accept(at(1, 1), frame)
	for range 100 {
		r.now += int64(time.Second)
		r.refusedAs(bound, at(2, 2), frame)
		if len(r.asked.Outs) != 0 {
			t.Fatal("asked, although the binding says it")
		}
	}
	if n := len(r.claims.takeEvents()); n != 100 {
		t.Errorf("%d events in 100 s, want one a second", n)
	}
	for range 100 {
		r.refusedAs(bound, at(2, 2), frame)
	}
	r.wantClaims()
	r.portChanged(r.now, 1, portMsg(1, 1, false), false)
	r.refusedAs(bound, at(2, 2), frame) // although its port is down
	r.accept(at(3, 3), frame)           // the other port that it may be at
	r.wantAt(mac(1), at(3, 3))
	tagged := packet.AppendARPRequest(nil, flow.VLANPresent|7, packet.ARPFields{SenderMAC: mac(1), SenderIP: ip("10.0.0.1"), TargetIP: ip("10.0.0.9")})
	r.accept(at(2, 2), tagged) // another VLAN, another host
	if h, _ := r.find(mac(1).String(), 0); h.Bound != "static" {
		t.Errorf("shown as %v", h)
	}
}

// A binding drives out who is where it should not be, at once.
func TestBindingActsAtOnce(t *testing.T) {
	r := newRig(t, nil)
	r.accept(at(2, 2), arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
	r.accept(at(2, 3), arpRequest(mac(2), "10.0.0.2", "10.0.0.9"))
	r.changes()
	r.bind(mac(1), 0, []flow.Location{at(1, 1)}, "10.0.0.1", "10.0.0.2")
	r.wantChanges("gone "+mac(1).String()+" "+at(2, 2).String(), "addresses "+mac(2).String()+" "+at(2, 3).String())
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.2", "10.0.0.9"))
	if h := r.holder(ip("10.0.0.2"), 0); h == nil || h.id.mac() != mac(1) {
		t.Errorf("10.0.0.2 is %v's", h)
	}
}

// Nobody else has a bound address: by ARP, ND, DHCP, or as source of packets.
func TestBoundAddresses(t *testing.T) {
	r := newRig(t, func(c *Config) { c.RouterPorts = []string{"4/4"} })
	r.bind(mac(1), 0, nil, "10.0.0.1", "2001:db8::1")
	other := at(2, 2)
	r.accept(other, arpRequest(mac(2), "10.0.0.2", "10.0.0.9"))
	ack := packet.AppendDHCPv4(nil, packet.Ether{Src: mac(3), Dst: mac(2)}, packet.IP{Src: ip("10.0.0.3"), Dst: ip("10.0.0.1"), TTL: 64},
		packet.DHCPv4Fields{Type: packet.DHCPAck, ClientMAC: mac(2), YourIP: ip("10.0.0.1"), ServerID: ip("10.0.0.3")})
	for name, frame := range map[string][]byte{
		"ARP request": arpRequest(mac(2), "10.0.0.1", "10.0.0.9"),
		"ARP reply":   arpReply(mac(2), "10.0.0.1", mac(9), "10.0.0.9"),
		"NA":          advert(mac(2), "2001:db8::1"),
		"NS":          solicit(mac(2), "2001:db8::1", "2001:db8::9"),
		"DHCP":        ack,
		"IPv4":        udp(mac(2), mac(9), "10.0.0.1", "10.0.0.9"),
		"IPv6":        udp(mac(2), mac(9), "2001:db8::1", "2001:db8::9"),
		"new host":    udp(mac(7), mac(9), "10.0.0.1", "10.0.0.9"),
	} {
		before := r.tally.n[bound].Load()
		if _, v := r.packet(other, frame); v != flow.Drop || r.tally.n[bound].Load() != before+1 {
			t.Errorf("%s: %v, refused %v", name, v, r.tally.list())
		}
	}
	r.accept(other, udp(mac(2), mac(9), "10.0.0.2", "10.0.0.9"))
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
	r.accept(at(1, 1), advert(mac(1), "2001:db8::1:2:3")) // a privacy address: it may have others
	r.accept(at(1, 1), udp(mac(1), mac(9), "10.0.0.1", "10.0.0.9"))
	r.accept(at(4, 4), udp(mac(5), mac(9), "10.0.0.1", "10.0.0.9")) // routed
	tagged := packet.AppendARPRequest(nil, flow.VLANPresent|7, packet.ARPFields{SenderMAC: mac(2), SenderIP: ip("10.0.0.1"), TargetIP: ip("10.0.0.9")})
	r.accept(other, tagged) // another VLAN has addresses of its own
}

// What is learnt first at a sticky port is bound, with its addresses, and is
// there after a restart; a maximum keeps others out, but none that are bound.
func TestStickyPort(t *testing.T) {
	r := newRig(t, nil)
	store := newBucket(t)
	run := r.load(newBucket(t))
	shelf := &bindingPersister{journal{store: store, run: run}}
	if err := shelf.load(t.Context(), &r.bindings, nil); err != nil {
		t.Fatal(err)
	}
	r.accept(at(1, 1), arpRequest(mac(1), "10.0.0.1", "10.0.0.9"))
	if _, err := r.enforcement.setPort(r.now, &api.PortSecurity{Dpid: "1", Port: 1, MaxHosts: 2, Sticky: true}); err != nil {
		t.Fatal(err)
	}
	r.bind(mac(9), 0, []flow.Location{at(1, 1)})
	r.refusedAs(portLimit, at(1, 1), arpRequest(mac(2), "10.0.0.2", "10.0.0.9")) // room is kept for what is bound
	r.accept(at(1, 1), advert(mac(1), "fe80::1"))
	r.accept(at(1, 1), raw(mac(9), mac(8)))
	if err := shelf.save(t.Context(), &r.bindings); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(r.enforcement.listBindings(inSync))

	next := newRig(t, nil)
	again := &bindingPersister{journal{store: store, run: next.load(newBucket(t))}}
	if err := again.load(t.Context(), &next.bindings, func(key string, err error) { t.Error(key, err) }); err != nil {
		t.Fatal(err)
	}
	next.places.place(at(1, 1)).hosts[r.host(newID(mac(1), 0))] = struct{}{} // only for the counts to be equal
	next.places.place(at(1, 1)).hosts[r.host(newID(mac(9), 0))] = struct{}{}
	if got := fmt.Sprint(next.enforcement.listBindings(inSync)); got != want {
		t.Errorf("kept %s\nwant %s", got, want)
	}
	next.refusedAs(bound, at(2, 2), raw(mac(1), mac(9)))
	next.refusedAs(bound, at(2, 2), advert(mac(5), "fe80::1"))
	if m, err := next.bindings.unbind(&api.UnbindHostRequest{Dpid: "1", Port: 1}); err != nil || m.Deleted != 1 {
		t.Errorf("%v, %v: want the sticky one cleared", m, err)
	}
	if err := again.save(t.Context(), &next.bindings); err != nil {
		t.Fatal(err)
	}
	next.accept(at(2, 2), raw(mac(1), mac(9)))
	third := newRig(t, nil)
	if err := (&bindingPersister{journal{store: store, run: third.load(newBucket(t))}}).load(t.Context(), &third.bindings, nil); err != nil || len(third.bindings.of) != 1 {
		t.Errorf("%v, %v: want the static one", err, third.enforcement.listBindings(inSync))
	}
}

// Addresses that change, as those for privacy do, do not fill a sticky binding
// without end.
func TestStickyAddressesAreBounded(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Ports = []PortSecurity{{Port: "1/1", Sticky: true}}; c.AddressLimit = 100 })
	for i := range 50 {
		r.accept(at(1, 1), advert(mac(1), fmt.Sprintf("2001:db8::%x", i+1)))
	}
	if one := r.bindings.of[newID(mac(1), 0)]; one == nil || len(one.ips) != stickyAddresses || !one.sticky {
		t.Errorf("bound %+v", one)
	}
}

// The configuration takes precedence, and what it says no more is gone.
func TestBindingsOfTheConfiguration(t *testing.T) {
	r := newRig(t, nil)
	r.bind(mac(1), 0, []flow.Location{at(9, 9)}, "10.0.0.1")
	next := *DefaultConfig()
	next.Bindings = []Binding{{MAC: mac(1).String(), Ports: []string{"1/1"}, IPs: []string{"10.0.0.1"}}}
	r.retune(r.now, &next)
	r.refusedAs(bound, at(9, 9), raw(mac(1), mac(2)))
	r.accept(at(1, 1), raw(mac(1), mac(2)))
	if _, err := r.bindHost(r.now, &api.HostBinding{Mac: mac(1).String(), Ips: []string{"10.0.0.1"}}); api.KindOf(err).String() != "FailedPrecondition" {
		t.Errorf("the configuration's is changed: %v", err)
	}
	if _, err := r.bindings.unbind(&api.UnbindHostRequest{Mac: mac(1).String()}); api.KindOf(err).String() != "FailedPrecondition" {
		t.Errorf("the configuration's is deleted: %v", err)
	}
	r.retune(r.now, DefaultConfig())
	if len(r.bindings.of) != 0 || len(r.bindings.owners.m) != 0 || len(r.bindings.naming) != 0 {
		t.Errorf("left: %v", r.enforcement.listBindings(inSync))
	}
}

func TestWrongBindings(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Gateways = []string{"10.0.0.254"} })
	r.bind(mac(1), 0, nil, "10.0.0.1")
	long := strings.Repeat("x", 10_000)
	for want, b := range map[string]*api.HostBinding{
		"want a port or an IP":    {Mac: mac(2).String()},
		"want the Ethernet":       {Mac: "ff:ff:ff:ff:ff:ff", Ips: []string{"10.0.0.2"}},
		"mac \"xxx":               {Mac: long, Ips: []string{"10.0.0.2"}},
		"want 1 to 4094":          {Mac: mac(2).String(), Vlan: 5000, Ips: []string{"10.0.0.2"}},
		"bound to":                {Mac: mac(2).String(), Ips: []string{"::ffff:10.0.0.1"}},
		"want the IPv4":           {Mac: mac(2).String(), Ips: []string{"224.0.0.1"}},
		"ip \"xxx":                {Mac: mac(2).String(), Ips: []string{long}},
		"the network's own":       {Mac: mac(2).String(), Ips: []string{"10.0.0.254"}},
		"at most 64 and 256":      {Mac: mac(2).String(), At: slices.Repeat([]*api.Location{api.NewLocation(at(1, 1))}, 65)},
		"port 0 of switch":        {Mac: mac(2).String(), At: []*api.Location{api.NewLocation(at(1, 0))}},
		"address is the network'": {Mac: "02:57:46:00:00:01", Ips: []string{"10.0.0.2"}},
	} {
		_, err := r.bindHost(r.now, b)
		if api.KindOf(err).String() != "InvalidArgument" || !strings.Contains(fmt.Sprint(err), want) || len(fmt.Sprint(err)) > 300 {
			t.Errorf("want %q, got %.300v", want, err)
		}
	}
	for _, c := range []func(*Config){
		func(c *Config) { c.Bindings = []Binding{{MAC: "x"}} },
		func(c *Config) { c.Bindings = []Binding{{MAC: mac(1).String(), Ports: []string{"1"}}} },
		func(c *Config) {
			c.Bindings = []Binding{{MAC: mac(1).String(), IPs: []string{"10.0.0.1"}}, {MAC: mac(2).String(), IPs: []string{"10.0.0.1"}}}
		},
		func(c *Config) { c.Ports = []PortSecurity{{Port: "1/1"}} },
		func(c *Config) { c.RouterPorts = []string{"1/x"} },
		func(c *Config) { c.Hold = -time.Second },
	} {
		cfg := DefaultConfig()
		c(cfg)
		if err := cfg.Validate(); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}

// The calls: what they set is kept before they answer.
func TestBindingCalls(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		b, err := wefttest.Call(h, api.BindHost, &api.BindHostRequest{Binding: &api.HostBinding{Mac: mac(1).String(), At: []*api.Location{api.NewLocation(at(1, 1))}, Ips: []string{"10.0.0.1"}}})
		if err != nil || b.Kind != "static" || b.Origin != "operator" || b.Since == "" {
			t.Fatalf("%v, %v", b, err)
		}
		if _, err := wefttest.Call(h, api.SetPortSecurity, &api.SetPortSecurityRequest{Security: &api.PortSecurity{Dpid: "2", Port: 5, MaxHosts: 1, Sticky: true}}); err != nil {
			t.Fatal(err)
		}
		h.Restart()
		m, err := wefttest.Call(h, api.ListBindings, &api.ListBindingsRequest{})
		if err != nil || len(m.Bindings) != 1 || len(m.Ports) != 1 || m.Bindings[0].Since != b.Since || !m.Ports[0].Sticky {
			t.Fatalf("after a restart: %v, %v", m, err)
		}
		if v, _ := h.Packet(2, 2, arpRequest(mac(1), "10.0.0.1", "10.0.0.2")); v != flow.Drop {
			t.Errorf("verdict %v", v)
		}
		if e := wefttest.Next(h, api.HostClaimedEvent); e.Outcome != "bound" || e.At.Flow() != at(2, 2) {
			t.Errorf("event %v", e)
		}
		u, err := wefttest.Call(h, api.UnbindHost, &api.UnbindHostRequest{Mac: mac(1).String()})
		if err != nil {
			t.Fatalf("%v, %v", u, err)
		}
		if _, err := wefttest.Call(h, api.DeletePortSecurity, &api.DeletePortSecurityRequest{Dpid: "2", Port: 5}); err != nil {
			t.Fatal(err)
		}
		h.Restart()
		if m, err = wefttest.Call(h, api.ListBindings, &api.ListBindingsRequest{}); err != nil || len(m.Bindings)+len(m.Ports) != 0 {
			t.Errorf("deleted, and after a restart: %v, %v", m, err)
		}
	})
}

// TestBindingNeeds: a binding that a connected switch cannot keep is refused, with the reason;
// one that is there when such a switch connects is not in force, and says why.
func TestBindingNeeds(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		var refuse atomic.Bool
		wefttest.Fake(h, api.SetStanding, func(_ context.Context, r *api.SetStandingRequest) (*api.SetStandingResponse, error) {
			if len(r.Flows) > 0 && refuse.Load() {
				return &api.SetStandingResponse{Failed: []*api.WantedFlow{{Flow: r.Flows[0], Reason: "the switch does not have it"}}}, nil
			}
			return &api.SetStandingResponse{}, nil
		})
		h.Start()
		is := func(n flow.DPID, openflow string, tables uint32) {
			s := &api.Switch{Dpid: n.String(), Connected: openflow != "", Openflow: openflow, Tables: tables}
			wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: s})
			wefttest.Publish(h, api.RolesSettledEvent, &api.RolesSettled{Dpid: n.String()})
			h.Settle()
		}
		bind := func(i byte, ip string) error {
			_, err := wefttest.Call(h, api.BindHost, &api.BindHostRequest{Binding: &api.HostBinding{Mac: mac(i).String(), Ips: []string{ip}}})
			return err
		}
		sticky := func(port uint32) error {
			_, err := wefttest.Call(h, api.SetPortSecurity, &api.SetPortSecurityRequest{Security: &api.PortSecurity{Dpid: "1", Port: port, Sticky: true}})
			return err
		}
		listed := func(state, reason string) {
			t.Helper()
			var m *api.ListBindingsResponse
			testwait.Until(t, "the binding is "+state, func() (is bool) {
				var err error
				m, err = wefttest.Call(h, api.ListBindings, &api.ListBindingsRequest{})
				return err == nil && len(m.Bindings) == 1 && m.Bindings[0].State == state && strings.Contains(m.Bindings[0].Reason, reason)
			})
		}
		is(1, "1.3", 254)
		if err := errors.Join(bind(1, "10.0.0.1"), sticky(5)); err != nil {
			t.Fatal(err)
		}
		listed("in force", "")
		for tables, openflow := range map[uint32]string{1: "1.0", 50: "1.3"} {
			is(2, openflow, tables)
			listed("not in force", "switch "+flow.DPID(2).String()+" has ")
			for what, err := range map[string]error{"a binding": bind(2, "10.0.0.2"), "another address": bind(1, "10.0.0.3"), "a sticky port": sticky(6)} {
				if api.KindOf(err) != codes.FailedPrecondition || !strings.Contains(fmt.Sprint(err), "switch "+flow.DPID(2).String()+" has ") {
					t.Errorf("%s, with a switch of %d tables: %v", what, tables, err)
				}
			}
			if err := errors.Join(bind(1, "10.0.0.1"), sticky(5)); err != nil {
				t.Errorf("what is there already: %v", err)
			}
		}
		is(2, "", 0)
		listed("in force", "")
		refuse.Store(true)
		is(3, "1.3", 254)
		listed("not in force", "switch "+flow.DPID(3).String()+": 1 of ")
	})
}

// TestBindingsWithoutRoom: bindings for which a switch has no entries are not in force, nor are those without guard
// said to be kept by switches.
func TestBindingsWithoutRoom(t *testing.T) {
	r := newRig(t, nil)
	for i := range guardMost {
		m := &api.HostBinding{Mac: flow.MACFrom(2<<40 | uint64(i)).String(), Ips: []string{fmt.Sprintf("10.1.%d.%d", i>>8, i&255)}}
		if _, err := r.bindHost(r.now, m); err != nil {
			t.Fatal(err)
		}
	}
	r.enforcement.recordSent(r.bindings.count)
	entries := r.enforcement.entries(newGuard(), 1)
	kept := 0
	for _, b := range r.enforcement.listBindings(inSync).Bindings {
		if b.State == stateInForce {
			kept++
		} else if !strings.Contains(b.Reason, "switch "+flow.DPID(1).String()) {
			t.Fatal(b)
		}
	}
	if kept != (len(entries)-2)/2 {
		t.Errorf("%d bindings in force by %d entries", kept, len(entries))
	}
	r.cfg.Guard = false
	if b := r.enforcement.listBindings(inSync).Bindings[0]; !strings.Contains(b.Reason, "hosts.guard") {
		t.Error(b)
	}
}

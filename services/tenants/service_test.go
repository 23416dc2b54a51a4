package tenants

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

const (
	sw1 = "0000000000000001"
	sw2 = "0000000000000002"
	sw3 = "0000000000000003" // OpenFlow 1.0
)

// rules stands in for flowrules: it keeps what was declared last.
type rules struct {
	mu   sync.Mutex
	sets map[string]*api.SetStandingRequest
}

func fake(h *wefttest.Harness) *rules {
	r := &rules{sets: map[string]*api.SetStandingRequest{}}
	wefttest.Fake(h, api.SetStanding, func(_ context.Context, req *api.SetStandingRequest) (*api.SetStandingResponse, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.sets[req.Dpid] = req
		return &api.SetStandingResponse{}, nil
	})
	return r
}

func (r *rules) of(dpid string) *api.SetStandingRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sets[dpid]
}

// send returns what a switch does with a packet in its first table: the VLAN
// that it has then, and whether it goes on.
func (r *rules) send(t *testing.T, dpid string, k flow.Key) (vlan uint16, passes bool) {
	t.Helper()
	var best *flow.Entry
	for _, f := range r.of(dpid).GetFlows() {
		_, e, err := f.Entry()
		if err != nil {
			t.Fatal(err)
		}
		if e.Match.Matches(&k) && (best == nil || e.Priority > best.Priority) {
			best = &e
		}
	}
	if best == nil {
		return k.VLAN, true
	}
	if best.Goto == 0 {
		return 0, false
	}
	for _, a := range best.Apply {
		if a.Kind == flow.ActionSetField {
			k.VLAN = uint16(a.Value[0])<<8 | uint16(a.Value[1])
		}
	}
	return k.VLAN, best.Goto == flow.TableFirewall
}

func connectAs(h *wefttest.Harness, dpid, version string) {
	wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: dpid, Connected: version != "", Openflow: version, Tables: 254}})
}

func connect(h *wefttest.Harness) {
	for dpid, version := range map[string]string{sw1: "1.3", sw2: "1.3", sw3: "1.0"} {
		connectAs(h, dpid, version)
	}
}

// roles publishes which ports are links, and that port 1 of the switch with one table is not.
func roles(h *wefttest.Harness) {
	role(h, sw1, 9, "link")
	role(h, sw2, 9, "link")
	role(h, sw3, 1, "edge")
}

func role(h *wefttest.Harness, dpid string, port uint32, role string) {
	wefttest.Publish(h, api.PortRoleChangedEvent, &api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: dpid, Port: port}, Role: role}})
}

func host(mac byte, vlan uint32, dpid string, port uint32) *api.HostChanged {
	return &api.HostChanged{Change: "learnt", Host: &api.Host{Mac: fmt.Sprintf("02:00:00:00:00:%02x", mac), Vlan: vlan,
		At: &api.Location{Dpid: dpid, Port: port}, FirstSeen: fmt.Sprintf("2026-01-01T00:00:%02dZ", mac)}}
}

func TestService(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		r := fake(h)
		connect(h)
		roles(h)
		set := func(n *api.TenantNetwork) *api.TenantNetwork {
			t.Helper()
			resp, err := wefttest.Call(h, api.SetNetwork, &api.SetNetworkRequest{Network: n})
			if err != nil {
				t.Fatal(err)
			}
			return resp
		}
		for _, name := range []string{"red", "blue"} {
			if _, err := wefttest.Call(h, api.SetTenant, &api.SetTenantRequest{Tenant: &api.Tenant{Name: name, RateKbps: 1000}}); err != nil {
				t.Fatal(err)
			}
		}
		red := set(&api.TenantNetwork{Tenant: "red", Name: "net", Members: []*api.TenantMember{member1(sw1, 1, 0), member1(sw2, 1, 300)}})
		wide := &api.TenantNetwork{Tenant: "blue", Name: "net", Segment: 77, Members: []*api.TenantMember{member1(sw1, 2, 0), member1(sw2, 9, 0), member1(sw3, 1, 0), {Mac: "02:00:00:00:00:05"}}}
		if _, err := wefttest.Call(h, api.SetNetwork, &api.SetNetworkRequest{Network: wide}); api.KindOf(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "switch "+sw3+" has OpenFlow 1.0") {
			t.Errorf("a member at a switch of OpenFlow 1.0: %v", err)
		}
		connectAs(h, sw3, "") // of a switch that is away it is not known what it will be
		blue := set(wide)
		connectAs(h, sw3, "1.0")
		set(wide) // what is there already stays, whatever the switch has become
		testwait.Until(t, "switch 3 keeps the tags of both networks out", func() bool { return len(r.of(sw3).GetFlows()) == 2 })
		if red.Segment != 2 || blue.Segment != 77 {
			t.Fatalf("segments %d and %d", red.Segment, blue.Segment)
		}
		tag := func(v uint32) uint16 { return uint16(v) | flow.VLANPresent }
		five := flow.MAC{2, 0, 0, 0, 0, 5}
		check := func() {
			t.Helper()
			for _, c := range []struct {
				what   string
				dpid   string
				k      flow.Key
				vlan   uint16
				passes bool
			}{
				{"untagged at a port of red", sw1, flow.Key{InPort: 1}, tag(2), true},
				{"tagged at a port of red", sw1, flow.Key{InPort: 1, VLAN: tag(77)}, 0, false},
				{"untagged at a port of blue", sw1, flow.Key{InPort: 2}, tag(77), true},
				{"untagged at another port", sw1, flow.Key{InPort: 3}, 0, true},
				{"tagged at another port", sw1, flow.Key{InPort: 3, VLAN: tag(9)}, tag(9), true},
				{"tagged as red at another port", sw1, flow.Key{InPort: 3, VLAN: tag(2)}, 0, false},
				{"tagged as red on a link", sw1, flow.Key{InPort: 9, VLAN: tag(2)}, tag(2), true},
				{"untagged on a link", sw1, flow.Key{InPort: 9, EthSrc: five}, 0, true},
				{"a host of blue", sw1, flow.Key{InPort: 3, EthSrc: five}, tag(77), true},
				{"a host of blue, tagged", sw1, flow.Key{InPort: 3, EthSrc: five, VLAN: tag(9)}, 0, false},
				{"a host of blue at a port of red", sw1, flow.Key{InPort: 1, EthSrc: five}, tag(2), true},
				{"tagged member", sw2, flow.Key{InPort: 1, VLAN: tag(300)}, tag(2), true},
				{"tagged member, two tags", sw2, flow.Key{InPort: 1, VLAN: tag(300), EthType: flow.EthTypeVLAN}, 0, false},
				{"tagged member, another tag", sw2, flow.Key{InPort: 1, VLAN: tag(301)}, 0, false},
				{"tagged member, no tag", sw2, flow.Key{InPort: 1}, 0, false},
				{"a member that is a link", sw2, flow.Key{InPort: 9}, 0, true},
				{"one table: the tag of a network", sw3, flow.Key{InPort: 1, VLAN: tag(77)}, 0, false},
				{"one table: no tag", sw3, flow.Key{InPort: 1}, 0, true},
			} {
				if vlan, passes := r.send(t, c.dpid, c.k); passes != c.passes || passes && vlan != c.vlan {
					t.Errorf("%s: VLAN %#x, passes %v; want %#x, %v", c.what, vlan, passes, c.vlan, c.passes)
				}
			}
		}
		check()
		if m := r.of(sw1).Meters; len(m) != 2 || flow.MeterOwner(m[0].Id) != flow.OwnerTenants {
			t.Errorf("meters: %v", m)
		}
		segment := func(v uint32, ports int) *api.SegmentChanged {
			t.Helper()
			return wefttest.Await(h, api.SegmentChangedEvent, func(e *api.SegmentChanged) bool {
				return e.Segment.Vlan == v && !e.Removed && len(e.Segment.Ports) == ports
			})
		}
		if s := segment(2, 2).Segment; s.Tenant != "red" || s.Ports[1].Tag != 300 || s.Ports[0].Tag != 0 {
			t.Errorf("red: %v", s)
		}
		segment(77, 1) // not the link, and not the switch with one table
		wefttest.Publish(h, api.HostChangedEvent, host(5, 77, sw2, 4))
		if s := segment(77, 2).Segment; !s.Ports[1].Shared || s.Ports[1].Port != 4 || len(s.Hosts) != 1 {
			t.Errorf("blue with its host: %v", s)
		}
		st, err := wefttest.Call(h, api.GetTenantsStatus, &api.GetTenantsStatusRequest{})
		if err != nil || st.Switches[0].State != "enforced" || st.Switches[1].State != "failing" || st.Switches[2].State != "refused" {
			t.Errorf("status: %v %v", st, err)
		}

		h.Restart()
		r.mu.Lock()
		clear(r.sets)
		r.mu.Unlock()
		connect(h)
		roles(h)
		testwait.Until(t, "entries after a restart", func() bool {
			_, first := r.send(t, sw1, flow.Key{InPort: 9, VLAN: tag(2)})
			vlan, second := r.send(t, sw2, flow.Key{InPort: 9})
			return first && second && vlan == 0 && len(r.of(sw1).GetFlows()) > 0 && len(r.of(sw2).GetFlows()) > 0 && len(r.of(sw3).GetFlows()) == 2
		})
		segment(2, 2)
		check()
		for name, want := range map[string]uint32{"blue": 1, "nobody": 0} {
			resp, err := wefttest.Call(h, api.DeleteTenant, &api.DeleteTenantRequest{Name: name})
			if err != nil || h.Mode != wefttest.Twice && resp.Networks != want {
				t.Errorf("delete %s: %v %v", name, resp, err)
			}
		}
		wefttest.Await(h, api.SegmentChangedEvent, func(e *api.SegmentChanged) bool { return e.Segment.Vlan == 77 && e.Removed })
		if _, passes := r.send(t, sw1, flow.Key{InPort: 2, VLAN: tag(77)}); !passes {
			t.Error("the port of blue is still closed")
		}
		if n := h.Metric("networks"); n != 1 {
			t.Errorf("%v networks", n)
		}
	})
}

func TestLimits(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		r := fake(h)
		connect(h)
		tenant := func(m *api.Tenant) error {
			m.Name = "red"
			_, err := wefttest.Call(h, api.SetTenant, &api.SetTenantRequest{Tenant: m})
			return err
		}
		network := func(name string, ports ...uint32) error {
			n := &api.TenantNetwork{Tenant: "red", Name: name}
			for _, p := range ports {
				n.Members = append(n.Members, member1(sw1, p, 0))
			}
			_, err := wefttest.Call(h, api.SetNetwork, &api.SetNetworkRequest{Network: n})
			return err
		}
		if err := network("a", 1); api.KindOf(err) != codes.FailedPrecondition {
			t.Errorf("a network of nobody: %v", err)
		}
		if err := tenant(&api.Tenant{MaxHosts: 2, MaxMembers: 3}); err != nil {
			t.Fatal(err)
		}
		if err := network("a", 1, 2); err != nil {
			t.Fatal(err)
		}
		for tenant, want := range map[string]int{"": 1, "red": 1, "blue": 0} {
			if resp, err := wefttest.Call(h, api.ListNetworks, &api.ListNetworksRequest{Tenant: tenant}); err != nil || len(resp.Networks) != want {
				t.Errorf("networks of %q: %v %v", tenant, resp, err)
			}
		}
		for name, want := range map[string]bool{"a": true, "b": false} {
			resp, err := wefttest.Call(h, api.DeleteNetwork, &api.DeleteNetworkRequest{Tenant: "red", Name: name})
			if err != nil || h.Mode != wefttest.Twice && resp.Deleted != want {
				t.Errorf("delete %s: %v %v", name, resp, err)
			}
		}
		if err := network("a", 1, 2); err != nil {
			t.Fatal(err)
		}
		if err := network("b", 3, 4); api.KindOf(err) != codes.ResourceExhausted {
			t.Errorf("a fourth member: %v", err)
		}
		if err := network("b", 1); api.KindOf(err) != codes.AlreadyExists {
			t.Errorf("a port of another network: %v", err)
		}
		if err := tenant(&api.Tenant{MaxHosts: 2, MaxMembers: 1}); api.KindOf(err) != codes.FailedPrecondition {
			t.Errorf("fewer members than there are: %v", err)
		}
		in := func(mac byte, port flow.Port) bool {
			_, passes := r.send(t, sw1, flow.Key{InPort: port, EthSrc: flow.MAC{2, 0, 0, 0, 0, mac}})
			return passes
		}
		if !in(1, 1) || !in(9, 2) {
			t.Error("kept out below the limit")
		}
		for _, mac := range []byte{1, 2, 3} {
			wefttest.Publish(h, api.HostChangedEvent, host(mac, 2, sw1, 1))
		}
		testwait.Until(t, "the third is kept out", func() bool { return in(1, 1) && in(2, 1) && in(1, 2) && !in(3, 1) && !in(9, 2) })
		st, err := wefttest.Call(h, api.GetTenantsStatus, &api.GetTenantsStatusRequest{})
		if u := st.GetTenants()[0]; err != nil || u.Hosts != 2 || u.HostsRefused != 1 || u.Members != 2 {
			t.Errorf("usage: %v %v", u, err)
		}
		gone := host(1, 2, sw1, 1)
		gone.Change = "gone"
		wefttest.Publish(h, api.HostChangedEvent, gone)
		testwait.Until(t, "the third is let in when the first has gone", func() bool { return in(3, 1) && !in(1, 1) })
	})
}

package l2vpn

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// A circuit changes its transport without a gap: frames go by the tunnels that it had
// until both new ones are up and the switches lead there, then those are given back.
func TestChangeOfTransport(t *testing.T) {
	b := newTestStore(t, wefttest.NewStore(), defaults())
	set := func(transport string, rate uint64) {
		t.Helper()
		if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Ends: []string{"1:1", "2:1"}, Transport: transport, RateKbps: rate}}}); err != nil {
			t.Fatal(err)
		}
	}
	next := flow.TunnelGroups
	learn := func(state string, index int) {
		w := b.tunnels.wants[b.tunnels.holds["c"][index]]
		m := w.asked()
		if m.Group, m.User, m.State, m.Reason = next, user, state, "its tunnel port is not up"; state == "up" {
			m.Reason = ""
			m.Primary = &api.LabelSwitchedPath{Hops: []*api.LabelHop{{Dpid: w.From, OutPort: 20001}, {Dpid: w.To, InPort: 20001}}}
		}
		next++
		b.learn([]*api.Tunnel{m}, false)
	}
	confirmed := func() {
		for _, sw := range []flow.DPID{1, 2} {
			wholeOf(b, sw)
			b.answered(sw, nil, nil)
		}
	}
	is := func(state, reason string, groups ...uint32) {
		t.Helper()
		m := b.get("c")
		if m.State != state || !strings.Contains(m.Reason, reason) {
			t.Errorf("%s, %q; want %s, %q", m.State, m.Reason, state, reason)
		}
		c := b.status["c"].circuit
		if now := []uint32{b.tunnels.groupOf(c, 0, 1), b.tunnels.groupOf(c, 1, 0)}; !slices.Equal(now, groups) {
			t.Errorf("it enters groups %#x; want %#x", now, groups)
		}
	}
	set("mpls", 1000)
	learn("up", 0)
	learn("up", 1)
	confirmed()
	is("up", "", next-2, next-1)
	old := slices.Clone(b.tunnels.holds["c"])
	first := next - 2
	set("vxlan", 1000)
	for _, name := range b.tunnels.holds["c"] {
		if m := b.tunnels.wants[name].asked(); m.ReservedKbps != 0 || m.Transport != "vxlan" {
			t.Error(m)
		}
	}
	confirmed()
	is("degraded", "it is being made", first, first+1)
	learn("down", 0)
	learn("down", 1)
	confirmed()
	is("degraded", "its tunnel port is not up", first, first+1)
	learn("up", 0)
	confirmed()
	is("degraded", "tunnel before", next-1, first+1)
	learn("up", 1)
	if b.tunnels.moved(b.status["c"].circuit, &b.status["c"].confirmations); b.tunnels.wants[old[0]] == nil {
		t.Error("the old tunnels are given back before the switches lead frames into the new ones")
	}
	confirmed()
	is("up", "", next-2, next-1)
	if b.tunnels.wants[old[0]] != nil || b.tunnels.wants[old[1]] != nil {
		t.Error("the old tunnels are still wanted")
	}
	set("gre", 0)
	confirmed()
	is("degraded", "", next-2, next-1)
	set("mpls", 0) // before there are ports
	learn("up", 0)
	learn("up", 1)
	confirmed()
	is("up", "", next-2, next-1)
	set("vxlan", 0)
	if err := b.try(&api.SetCircuitsRequest{Delete: []string{"c"}}); err != nil || len(b.tunnels.wants) != 0 {
		t.Error("tunnels of a circuit that is deleted:", b.tunnels.wants, err)
	}
}

// What fits into a circuit over tunnel ports is known from what their nodes report; what needs
// a way to be chosen is refused; the tree of a vpls joins its ends' switches only.
func TestOverlay(t *testing.T) {
	for transport, want := range map[string]uint32{"vxlan": 1900 - 36 - 14 - 18, "gre": 1900 - 28 - 14 - 18} {
		b := newTestStore(t, wefttest.NewStore(), defaults())
		if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Ends: []string{"1:1", "2:1"}, Transport: transport}}}); err != nil {
			t.Fatal(err)
		}
		for _, w := range b.tunnels.wishesOf(b.status["c"].circuit) {
			m := proto.CloneOf(w.Tunnel)
			m.User, m.State, m.Group = user, "up", flow.TunnelGroups
			m.Primary = &api.LabelSwitchedPath{Hops: []*api.LabelHop{{Dpid: w.From, OutPort: 20001}, {Dpid: w.To, InPort: 20001}}}
			b.learn([]*api.Tunnel{m}, false)
		}
		for sw := flow.DPID(1); sw <= 2; sw++ {
			b.node(sw, map[uint32]uint32{1: 9000, 20001: 1900})
		}
		if m := b.get("c"); m.Mtu != want {
			t.Errorf("%s: %d; want %d", transport, m.Mtu, want)
		}
		for key, m := range map[string]*api.Circuit{"max_delay_us": {MaxDelayUs: 1}, "pin": {Pin: []string{"4"}}, "diverse_from": {DiverseFrom: "c"},
			"include_any": {IncludeAny: []string{"x"}}, "include_all": {IncludeAll: []string{"x"}}, "exclude_any": {ExcludeAny: []string{"x"}}} {
			m.Name, m.Ends, m.Transport = "d", []string{"1:2", "2:2"}, transport
			if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{m}}); api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: %v", key, err)
			}
		}
	}
	want := []arc{{from: 3, to: 5}, {from: 3, to: 9}, {from: 5, to: 3}, {from: 9, to: 3}}
	if got := star([]flow.DPID{3, 5, 9}); !slices.Equal(got, want) || len(star(nil)) != 0 {
		t.Error(got)
	}
}

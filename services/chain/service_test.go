package chain

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

func TestService(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		const sw = "0000000000000001"
		declared := make(chan int, 1000) // how many entries
		wefttest.Fake(h, api.SetStanding, func(_ context.Context, r *api.SetStandingRequest) (*api.SetStandingResponse, error) {
			declared <- len(r.Flows)
			return &api.SetStandingResponse{}, nil
		})
		wefttest.Fake(h, api.Send, func(context.Context, *flow.Decision) (*api.ApplyResult, error) { return &api.ApplyResult{}, nil })
		wefttest.Fake(h, api.FindPath, func(context.Context, *api.FindPathRequest) (*api.FindPathResponse, error) {
			return &api.FindPathResponse{}, nil
		})
		h.Start()
		await := func(entries int) {
			t.Helper()
			for n := range declared {
				if n == entries {
					return
				}
			}
		}
		port := func(n uint32, up bool) {
			wefttest.Publish(h, api.PortChangedEvent, &api.PortChanged{Port: &api.Port{Dpid: sw, Port: n, Up: up}})
		}
		network := func() {
			e := &api.SwitchChanged{Switch: &api.Switch{Dpid: sw, Connected: true, Openflow: "1.3", Tables: 254}}
			for n := range uint32(6) {
				e.Ports = append(e.Ports, &api.Port{Dpid: sw, Port: n + 1, Up: true})
			}
			wefttest.Publish(h, api.SwitchChangedEvent, e)
			wefttest.Publish(h, api.PortRoleChangedEvent, &api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: sw, Port: 1}, Role: "edge"}})
			wefttest.Publish(h, api.HostChangedEvent, &api.HostChanged{Host: &api.Host{Mac: "02:00:00:00:00:01", At: &api.Location{Dpid: sw, Port: 1}}})
			far := &api.Location{Dpid: "0000000000000002", Port: 1}
			wefttest.Publish(h, api.LinkChangedEvent, &api.LinkChanged{Link: &api.Link{Src: &api.Location{Dpid: sw, Port: 6}, Dst: far, State: "up"}})
		}
		network()
		h.Settle()
		add := func(name, dst string, in, out uint32, priority uint32) error {
			_, err := wefttest.Call(h, api.SetChain, &api.SetChainRequest{Chain: &api.ServiceChain{
				Name: name, Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": dst}, Priority: priority,
				Functions: []*api.ChainFunction{{Copies: []*api.ChainCopy{{In: &api.Location{Dpid: sw, Port: in}, Out: &api.Location{Dpid: sw, Port: out}}}}},
			}})
			return err
		}
		if err := add("ids", "10.0.0.2", 2, 3, 0); err != nil {
			t.Fatal(err)
		}
		function := func(port uint32, gone bool) {
			t.Helper()
			wefttest.Await(h, api.ChainPortChangedEvent, func(e *api.ChainPortChanged) bool {
				return e.At.Dpid == sw && e.At.Port == port && e.Gone == gone
			})
		}
		function(2, false)
		function(3, false)
		const whole = 2 + 2 + 4 + 6 + 2 + 1 + 6 // in, to the function, back from its ports or dropped, from there to these, probes, to the host, and by the tags of these
		await(whole)
		for what, err := range map[string]struct {
			err  error
			want codes.Code
		}{
			"an overlapping match": {add("b", "10.0.0.0/24", 4, 5, 0), codes.AlreadyExists},
			"a port of another":    {add("b", "10.1.2.3", 4, 3, 0), codes.AlreadyExists},
			"a port of a link":     {add("b", "10.1.2.3", 4, 6, 0), codes.FailedPrecondition},
			"no such port":         {add("b", "10.1.2.3", 4, 77, 0), codes.NotFound},
			"another priority":     {add("c", "10.0.0.0/24", 4, 5, 7), codes.OK},
		} {
			if api.KindOf(err.err) != err.want {
				t.Errorf("%s: %v, want %v", what, err.err, err.want)
			}
		}
		if _, err := wefttest.Call(h, api.DeleteChain, &api.DeleteChainRequest{Name: "c"}); err != nil {
			t.Fatal(err)
		}
		function(4, true)
		function(5, true)
		port(3, false) // the function is bypassed: nothing goes to it, what it still sends goes on
		await(whole - 4)
		list, err := wefttest.Call(h, api.ListChains, &api.ListChainsRequest{})
		if err != nil || len(list.Chains) != 1 || list.Chains[0].State != "degraded" {
			t.Errorf("a dead function: %v, %v", list, err)
		}
		port(3, true)
		await(whole)
		h.Restart() // the bucket stays
		network()
		function(2, false)
		await(whole)
		if _, err := wefttest.Call(h, api.DeleteChain, &api.DeleteChainRequest{Name: "ids"}); err != nil {
			t.Fatal(err)
		}
		function(3, true)
		dropped := flow.Entry{Priority: flow.PriorityChainPort, Match: flow.Match{}.WithInPort(9), Cookie: flow.NewCookie(flow.OwnerChains, 0, 0)}
		wefttest.Publish(h, api.FlowsObservedEvent, &api.FlowsObserved{Dpid: sw, Owner: "chains", Flows: []*api.FlowEntry{api.NewFlowEntry(1, &dropped)}})
		function(9, true) // of a chain that was deleted while the switch was away
		await(0)
	})
}

// TestNeeds: a chain that a switch with hosts cannot carry out is refused, with the reason; one
// that is there when such a switch connects says so.
func TestNeeds(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		wefttest.Fake(h, api.SetStanding, func(context.Context, *api.SetStandingRequest) (*api.SetStandingResponse, error) {
			return &api.SetStandingResponse{}, nil
		})
		wefttest.Fake(h, api.Send, func(context.Context, *flow.Decision) (*api.ApplyResult, error) { return &api.ApplyResult{}, nil })
		wefttest.Fake(h, api.FindPath, func(context.Context, *api.FindPathRequest) (*api.FindPathResponse, error) {
			return &api.FindPathResponse{}, nil
		})
		h.Start()
		const sw, other = "0000000000000001", "0000000000000003"
		is := &api.SwitchChanged{Switch: &api.Switch{Dpid: sw, Connected: true, Openflow: "1.3", Tables: 254}, Ports: []*api.Port{{Dpid: sw, Port: 2, Up: true}, {Dpid: sw, Port: 3, Up: true}}}
		wefttest.Publish(h, api.SwitchChangedEvent, is)
		set := func(name, host, port string) error {
			function, priority := uint32(2), uint32(100)
			if name == "d" {
				function, priority = 3, 50
			}
			m := &api.ServiceChain{Name: name, Priority: priority, Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": host},
				Functions: []*api.ChainFunction{{Copies: []*api.ChainCopy{{In: &api.Location{Dpid: sw, Port: function}}}}}}
			if port != "" {
				m.Match["ip_proto"], m.Match["udp_dst"] = "17", port
			}
			_, err := wefttest.Call(h, api.SetChain, &api.SetChainRequest{Chain: m})
			return err
		}
		for _, x := range []struct {
			is    *api.Switch
			want  string // why it is refused
			ports bool   // only one by ports is
		}{
			{&api.Switch{Openflow: "1.0", Tables: 254}, "switch " + other + " has OpenFlow 1.0", false},
			{&api.Switch{Openflow: "1.3", Tables: 56}, "switch " + other + " has 56 flow tables; it takes 57", false},
			{&api.Switch{Openflow: "1.3", Tables: 254, Hardware: "some"}, "no match on the later fragments", true},
		} {
			x.is.Dpid = other
			if err := set("c", "10.0.0.2", "7000"); err != nil { // as long as the switch is not there
				t.Fatal(err)
			}
			x.is.Connected = true
			wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: x.is})
			role := &api.PortRoleChanged{Port: &api.PortRole{At: &api.Location{Dpid: other, Port: 1}, Role: "edge"}}
			wefttest.Publish(h, api.PortRoleChangedEvent, role)
			h.Settle()
			refused := func(err error) bool {
				return api.KindOf(err) == codes.FailedPrecondition && strings.Contains(err.Error(), x.want)
			}
			if err := set("c", "10.0.0.2", "7001"); !refused(err) {
				t.Errorf("%v: a chain by port: %v", x.is, err)
			}
			if err := set("d", "10.0.0.3", ""); x.ports && err != nil || !x.ports && !refused(err) {
				t.Errorf("%v: a chain by address: %v", x.is, err)
			}
			if err := set("c", "10.0.0.2", "7000"); err != nil {
				t.Errorf("%v: the same chain again: %v", x.is, err)
			}
			list, err := wefttest.Call(h, api.ListChains, &api.ListChainsRequest{})
			if err != nil || list.Chains[0].State != "degraded" || !strings.Contains(list.Chains[0].Reason, x.want) {
				t.Errorf("%v: listed as %v, %v", x.is, list, err)
			}
			role.Gone, role.Port.Role = true, ""
			wefttest.Publish(h, api.PortRoleChangedEvent, role)
			wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: other}})
			h.Settle()
		}
	})
}

package hosts

import (
	"context"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

func TestService(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("verify: 100ms\npenalty: 200ms\nport_grace: 50ms\nhold: 400ms")
		asked := make(chan flow.DPID, 100)
		wefttest.Fake(h, api.EchoSwitches, func(_ context.Context, r *api.EchoSwitchesRequest) (*api.EchoSwitchesResponse, error) {
			return &api.EchoSwitchesResponse{Echoes: make([]*api.SwitchEcho, len(r.Dpids))}, nil
		})
		wefttest.Fake(h, api.Send, func(_ context.Context, d *flow.Decision) (*api.ApplyResult, error) {
			select {
			case asked <- d.Ops[0].Switch:
			default: // enough of them
			}
			return &api.ApplyResult{}, nil
		})
		frame := arpRequest(mac(1), "10.0.0.1", "10.0.0.2")
		wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(1).String(), Connected: true}, Ports: []*api.Port{portMsg(1, 1, true)}})
		if v, _ := h.Packet(1, 1, frame); v != flow.Next {
			t.Fatalf("verdict %v", v)
		}
		e := wefttest.Next(h, api.HostChangedEvent)
		if e.Change != "learnt" || e.Host.Mac != mac(1).String() || e.Host.At.Flow() != at(1, 1) || len(e.Host.Ipv4) != 1 {
			t.Errorf("event %v", e)
		}

		// A claim from another port: the first questions are in the decision, the
		// second are sent; nobody answers, so the claimant waits for hold.
		v, d := h.Packet(2, 2, frame)
		if v != flow.Drop || len(d.Outs) != 2 || d.Ops[0].Switch != 1 || d.Ops[1].Switch != 2 {
			t.Errorf("claim: verdict %v, %+v", v, d.Ops)
		}
		select {
		case sw := <-asked:
			if sw != 1 {
				t.Errorf("asked at switch %v", sw)
			}
		case <-time.After(h.Timeout):
			t.Fatal("not asked a second time")
		}
		if c := wefttest.Next(h, api.HostClaimedEvent); c.Outcome != "quarantined" || c.Mac != mac(1).String() || c.At.Flow() != at(2, 2) || c.Holder.Flow() != at(1, 1) {
			t.Errorf("event %v", c)
		}
		for moved := false; !moved; {
			h.Packet(2, 2, frame)
			r, err := wefttest.Call(h, api.FindHost, &api.FindHostRequest{Address: "10.0.0.1", Vlan: -1})
			moved = err == nil && r.At.Flow() == at(2, 2)
		}
		e = wefttest.Next(h, api.HostChangedEvent)
		if e.Change != "moved" || e.From.Flow() != at(1, 1) || e.Host.At.Flow() != at(2, 2) {
			t.Errorf("event %v", e)
		}
		r, err := wefttest.Call(h, api.ListHosts, &api.ListHostsRequest{})
		if err != nil || len(r.Hosts) != 1 || r.Refused["unverified"] == 0 {
			t.Errorf("hosts %v, %v", r, err)
		}
		if n := h.Metric("refused_total", "reason", "unverified"); n == 0 {
			t.Errorf("metric %v", n)
		}
		host, err := wefttest.Call(h, api.FindHost, &api.FindHostRequest{Address: "10.0.0.1", Vlan: -1})
		if err != nil || host.Mac != mac(1).String() || host.Moves != 1 {
			t.Errorf("found %v, %v", host, err)
		}

		wefttest.Publish(h, api.PortChangedEvent, &api.PortChanged{Port: portMsg(2, 2, false)})
		if e = wefttest.Next(h, api.HostChangedEvent); e.Change != "gone" {
			t.Errorf("event %v", e)
		}
		h.Packet(3, 1, frame)
		wefttest.Next(h, api.HostChangedEvent)
		wefttest.Publish(h, api.PortRoleChangedEvent, &api.PortRoleChanged{Port: &api.PortRole{At: api.NewLocation(at(3, 1)), Role: "link"}})
		if e = wefttest.Next(h, api.HostChangedEvent); e.Change != "gone" {
			t.Errorf("event %v", e)
		}
	})
}

// TestManyHosts has many hosts come at once: each is published.
func TestManyHosts(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("port_limit: 3000")
		known := map[string]bool{}
		for i := range uint64(3000) {
			f := packet.Pad(packet.AppendEthernet(nil, packet.Ether{Src: flow.MACFrom(0x020000000000 + i), Dst: mac(1)}, 0x1234))
			if v, _ := h.Packet(1, 1, f); v != flow.Next {
				t.Fatalf("host %d: %v", i, v)
			}
		}
		for len(known) < 3000 {
			known[wefttest.Next(h, api.HostChangedEvent).Host.Mac] = true
		}
		if n := h.Metric("hosts"); n != 3000 {
			t.Errorf("%v hosts", n)
		}
	})
}

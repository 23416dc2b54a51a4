package discovery

import (
	"context"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// A frame is one that the service has sent out of a port.
type frame struct {
	from flow.Location
	data []byte
}

// fakes answers the service's calls; frames that it sends go to the channel.
func fakes(h *wefttest.Harness) (frames chan frame, traps chan string) {
	frames, traps = make(chan frame, 1000), make(chan string, 100)
	wefttest.Fake(h, api.Send, func(_ context.Context, d *flow.Decision) (*api.ApplyResult, error) {
		for i, o := range d.Outs {
			f := frame{flow.Location{Switch: d.Ops[i].Switch, Port: flow.Port(o.Actions[0].Arg)}, append([]byte(nil), o.Data...)}
			select {
			case frames <- f:
			default: // nobody reads them; the southbound takes them all the same
			}
		}
		return &api.ApplyResult{}, nil
	})
	wefttest.Fake(h, api.SetStanding, func(_ context.Context, r *api.SetStandingRequest) (*api.SetStandingResponse, error) {
		traps <- r.Dpid
		return &api.SetStandingResponse{Sent: 2}, nil
	})
	return frames, traps
}

func connected(sw flow.DPID, ports ...flow.Port) *api.SwitchChanged {
	m := &api.SwitchChanged{Switch: &api.Switch{Dpid: sw.String(), Connected: true}}
	for _, p := range ports {
		m.Ports = append(m.Ports, portMsg(sw, p, true))
	}
	return m
}

// carry carries frames over a cable until it has carried n.
func carry(t *testing.T, h *wefttest.Harness, frames chan frame, a, b flow.Location, n int) (last frame) {
	t.Helper()
	timeout := time.After(testwait.Limit)
	for n > 0 {
		select {
		case f := <-frames:
			to := flow.Location{}
			switch f.from {
			case a:
				to = b
			case b:
				to = a
			default:
				continue
			}
			if v, d := h.Packet(to.Switch, to.Port, f.data); v != flow.Done || !d.Empty() {
				t.Fatalf("a probe gets %v and %v", v, d.Ops)
			}
			last = f
			n--
		case <-timeout:
			t.Fatalf("%d probes not sent", n)
		}
	}
	return last
}

func TestService(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("settle: 200ms\ninterval: 100ms\ntimeout: 2m")
		frames, traps := fakes(h)
		a, b := at(1, 1), at(0xb, 2)
		wefttest.Publish(h, api.SwitchChangedEvent, connected(1, 1, 2))
		wefttest.Publish(h, api.SwitchChangedEvent, connected(0xb, 2))
		for range 2 {
			<-traps
		}
		last := carry(t, h, frames, a, b, 4)
		up := wefttest.Await(h, api.LinkChangedEvent, func(e *api.LinkChanged) bool { return e.Link.State == "up" })
		if up.Cause != "probe" || up.Removed {
			t.Errorf("event %v", up)
		}
		if r, err := wefttest.Call(h, api.ListLinks, &api.ListLinksRequest{}); err != nil || len(r.Links) != 2 || r.Links[0].State != "up" {
			t.Errorf("links %v, %v", r, err)
		}
		wefttest.Await(h, api.PortRoleChangedEvent, func(e *api.PortRoleChanged) bool {
			return e.Port.At.Flow() == at(1, 2) && e.Port.Role == "edge"
		})

		in := wefttest.NewPacketIn(1, 2, data)
		if v, _ := h.PacketIn(in); v != flow.Next || in.Role != flow.RoleEdge && h.Mode == wefttest.Pointer {
			t.Errorf("packet of a host: verdict %v, role %v", v, in.Role)
		}
		last.data[len(last.data)-3] ^= 1
		h.Packet(1, 2, last.data)
		if n := h.Metric("refused_total", "reason", "forged"); n != 1 {
			t.Errorf("%v forged frames counted, want 1", n)
		}
		r, err := wefttest.Call(h, api.ListPortRoles, &api.ListPortRolesRequest{})
		if err != nil || len(r.Ports) != 3 || r.Ports[1].Refused != 1 || r.Ports[1].Role != "edge" {
			t.Errorf("ports %v, %v", r, err)
		}

		down := time.Now()
		wefttest.Publish(h, api.PortChangedEvent, &api.PortChanged{Port: portMsg(1, 1, false)})
		gone := wefttest.Await(h, api.LinkChangedEvent, func(e *api.LinkChanged) bool { return e.Removed && e.Link.Src.Flow() == b })
		if gone.Cause != "port_status" {
			t.Errorf("event %v", gone)
		}
		t.Logf("port down to LinkChanged: %v", time.Since(down))
	})
}

// TestTrapIsRetried has flowrules fail at first.
func TestTrapIsRetried(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		_, _ = fakes(h)
		calls := make(chan int, 10)
		n := 0
		wefttest.Fake(h, api.SetStanding, func(_ context.Context, r *api.SetStandingRequest) (*api.SetStandingResponse, error) {
			n++
			calls <- n
			switch n {
			case 1:
				return nil, api.Errorf(14, "flowrules is busy")
			case 2:
				return &api.SetStandingResponse{Failed: []*api.WantedFlow{{Reason: "table full"}}}, nil
			}
			return &api.SetStandingResponse{}, nil
		})
		wefttest.Publish(h, api.SwitchChangedEvent, connected(1, 1))
		for want := 1; want <= 3; want++ {
			select {
			case <-calls:
			case <-time.After(testwait.Limit):
				t.Fatalf("call %d does not come", want)
			}
		}
		wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: flow.DPID(1).String()}})
	})
}

// TestPortFlood has a switch change a port all the time: the service keeps up,
// and its queue of events is bounded.
func TestPortFlood(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		_, _ = fakes(h)
		wefttest.Publish(h, api.SwitchChangedEvent, connected(1, 1, 2))
		for i := range 20_000 {
			wefttest.PublishAsync(h, api.PortChangedEvent, &api.PortChanged{Port: portMsg(1, 1, i%2 == 1)})
		}
		h.Settle()
		wefttest.Await(h, api.PortRoleChangedEvent, func(e *api.PortRoleChanged) bool {
			return e.Port.At.Port == 1 && e.Port.Role == "edge"
		})
		if got := wefttest.Taken(h, api.LinkChangedEvent); len(got) != 0 {
			t.Errorf("%d link events", len(got))
		}
	})
}

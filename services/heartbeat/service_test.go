package heartbeat

import (
	"context"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/wefttest"
)

// TestService asks by calls, tells by events, and is listed.
func TestService(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		h.Configure("rate: 20\nlost_after: 2\n")
		wefttest.Fake(h, api.EchoSwitches, func(_ context.Context, req *api.EchoSwitchesRequest) (*api.EchoSwitchesResponse, error) {
			resp := &api.EchoSwitchesResponse{}
			for _, d := range req.Dpids {
				e := &api.SwitchEcho{RttUs: 100}
				if d == "0000000000000002" {
					e = &api.SwitchEcho{Error: "no answer within 50ms"}
				}
				resp.Echoes = append(resp.Echoes, e)
			}
			return resp, nil
		})
		h.Start()
		for _, d := range []string{"1", "2"} {
			wefttest.Publish(h, api.SwitchChangedEvent, &api.SwitchChanged{Switch: &api.Switch{Dpid: d, Connected: true}})
		}
		wefttest.Await(h, api.HeartbeatChangedEvent, func(e *api.HeartbeatChanged) bool {
			return e.Dpid == "0000000000000002" && e.State == "lost" && e.Reason != ""
		})
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			resp, err := wefttest.Call(h, api.ListHeartbeats, &api.ListHeartbeatsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if len(resp.Switches) == 2 && resp.Switches[0].State == "alive" && resp.Switches[1].State == "lost" && resp.Switches[0].P99Us > 0 && resp.Rate == 20 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%v", resp)
			}
		}
		if h.Metric("missed_total") == 0 || h.Metric("beats_total") == 0 || h.Metric("switches", "state", "lost") != 1 {
			t.Error("not counted")
		}
	})
}

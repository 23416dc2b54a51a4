package southbound

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/wefttest"
)

// TestForgetSwitch shows that a switch that is gone is listed no more, and that
// one which is connected stays.
func TestForgetSwitch(t *testing.T) {
	t.Parallel()
	inAllModes(t, "echo_interval: 100ms\ndead_after: 1s", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		w.device(oftest.Config{DPID: 2}).SetFaults(oftest.Faults{Silent: true})
		w.down(2)
		for _, c := range []struct {
			dpid             string
			known, connected bool
		}{{"1", true, true}, {"2", true, false}, {"2", false, false}} {
			m, err := wefttest.Call(w.h, api.ForgetSwitch, &api.ForgetSwitchRequest{Dpid: c.dpid})
			if err != nil || m.Known != c.known || m.Connected != c.connected {
				t.Errorf("switch %s: %v, %v; want known %v, connected %v", c.dpid, m, err, c.known, c.connected)
			}
		}
		if s := w.info(2); s != nil {
			t.Errorf("%v is listed", s)
		}
		w.works(1)
		if _, err := wefttest.Call(w.h, api.ForgetSwitch, &api.ForgetSwitchRequest{Dpid: "x"}); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("a switch of no number: %v", err)
		}
	})
}

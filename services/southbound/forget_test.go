package southbound

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/services/southbound/mastership"
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

// Whoever makes up datapath ids has a bounded number of switches remembered: those
// that left first are forgotten, by all, and those that are connected stay.
func TestAwaySwitchesAreBounded(t *testing.T) {
	t.Parallel()
	h := newHub(*defaults(), &mastership.Fence{}, slog.New(slog.DiscardHandler))
	var told []string
	h.forgotten = func(e *api.SwitchForgotten) { told = append(told, e.Dpid) }
	const more = 7
	for i := range awayMost + more {
		sw := flow.DPID(i + 1)
		h.record(sw)
		h.recordLeave(sw)
	}
	if len(h.records) != awayMost || h.away.Len() != awayMost || len(told) != more || told[0] != flow.DPID(1).String() {
		t.Errorf("%d records, %d away, %v forgotten", len(h.records), h.away.Len(), told)
	}
	h.recordJoin(more + 1)
	if resp := h.forget(more + 2); !resp.Known {
		t.Error("it is not known")
	}
	for i := range 2 * awayMost {
		sw := flow.DPID(1<<32 + i)
		h.record(sw)
		h.recordLeave(sw)
	}
	if len(h.records) != awayMost+1 || h.records[more+1] == nil {
		t.Errorf("%d records; that of a connected switch: %v", len(h.records), h.records[more+1])
	}
}

// TestStandingSwitchesAreNotRemembered: a switch that only stood by, of which
// nothing is known, leaves nothing behind.
func TestStandingSwitchesAreNotRemembered(t *testing.T) {
	t.Parallel()
	p := &process{name: "standby", address: t.TempDir() + "/s", ledger: &sharedLedger{t: mastership.Tenure{Holder: "a", Run: "a", Epoch: 1, Lasts: 60_000}, rev: 1}}
	p.begin(t, 1, nil)
	over, stop := context.WithCancel(t.Context())
	var connections sync.WaitGroup
	j := &judge{t: t, dpid: 1, conns: map[*judged]bool{}}
	connections.Go(func() { j.connect(over, p.address) })
	records := func() int {
		p.hub.mu.Lock()
		defer p.hub.mu.Unlock()
		return len(p.hub.records)
	}
	testwait.Until(t, "the switch stands by", func() bool { return p.hub.countStandby() == 1 })
	stop()
	connections.Wait()
	testwait.Until(t, "nothing is left of it", func() bool { return p.hub.countStandby() == 0 && records() == 0 })
	p.cancel()
	<-p.ended
}

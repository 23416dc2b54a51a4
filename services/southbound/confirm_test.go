package southbound

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/wefttest"
)

// TestWatchedConfirmations: of the decision about a packet that somebody watches,
// each change is told with what its switch has said to it: that it is done, that it
// is refused, which the refused service hears of as usual, or nothing in time. The
// decision is carried out, sent and applied as others are.
func TestWatchedConfirmations(t *testing.T) {
	t.Parallel()
	inAllModes(t, "confirm_timeout: 1s", func(t *testing.T, w *world) {
		frames := make(chan oftest.Frame, 10)
		program := func(d *flow.Decision) {
			addFlow(d, 2, 20)
			addFlow(d, 2, 23)
			addFlow(d, 3, 30)
			addFlow(d, 1, 10)
			addFlow(d, 77, 1) // there is no such switch
		}
		w.h.Stage(func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
			program(d)
			d.PacketOut(1, flow.PacketOut{BufferID: flow.BufferNone, InPort: in.Key.InPort, Actions: d.Actions(flow.Output(2)), Data: in.Data})
			return flow.Done
		})
		one := oftest.NewDevice(oftest.Config{DPID: 1}, func(f oftest.Frame) { frames <- f })
		w.dial(one)
		w.up(1)
		w.device(oftest.Config{DPID: 2, Refuse: func(m *flow.Mod) *openflow.Error {
			if m.Entry.Priority == 23 {
				return &openflow.Error{Type: openflow.ErrFlowModFailed, Code: openflow.FlowModFailedTableFull}
			}
			return nil
		}})
		three := w.device(oftest.Config{DPID: 3})
		d := &flow.Decision{}
		d.AddFlow(1).Entry.Apply = []flow.Action{flow.Output(flow.PortController)}
		if r := w.apply(d); len(r.Failures) != 0 {
			t.Fatal(r.Failures)
		}
		three.SetFaults(oftest.Faults{BarrierDelay: time.Minute})

		order := &api.WatchOrder{Asker: 1, Watches: []*api.PacketWatch{{Id: 7, Wanted: &api.WatchPacketsRequest{}}}}
		// told waits for what is told of a decision; of those before it more may come, as
		// every call is made twice in one of the modes.
		told := func(trace uint64, entries map[string]string) {
			t.Helper()
			got := map[string]string{}
			w.eventually(fmt.Sprintf("%d changes are told", len(entries)), func() bool {
				answer := w.h.Watch(order)
				order.After = answer.Next
				for _, s := range answer.Spans {
					if trace != 0 && s.Trace != trace {
						continue
					}
					for n, e := range s.Entries {
						got[fmt.Sprint(e.Dpid[15:], ".", n)] = e.State
						if e.Operation == "" || (e.Error == "") != (e.State == "confirmed") {
							t.Errorf("%v", e)
						}
					}
				}
				return len(got) == len(entries)
			})
			if !maps.Equal(got, entries) {
				t.Errorf("told %v, want %v", got, entries)
			}
		}
		want := map[string]string{"1.0": "confirmed", "2.0": "confirmed", "2.1": "refused", "3.0": "late", "d.0": "lost"}
		w.h.Watch(order)
		one.Do(func(s *oftest.Switch) oftest.Effects { return s.Receive(3, make([]byte, 60)) })
		select {
		case <-frames:
		case <-time.After(testwait.Limit):
			t.Fatal("the packet did not go out")
		}
		told(0, want)
		if e := wefttest.Next(w.h, api.SwitchErrorEvent); e.Dpid != flow.DPID(2).String() {
			t.Errorf("%v", e)
		}

		sent := &flow.Decision{Trace: 1<<63 | 5}
		program(sent)
		r, err := wefttest.Call(w.h, api.Send, sent)
		if err != nil || len(r.Failures) != 1 || r.Failures[0].Op != 4 || !r.Failures[0].Transient {
			t.Errorf("%v %v", r, err)
		}
		told(sent.Trace, want)

		three.SetFaults(oftest.Faults{})
		applied := &flow.Decision{Trace: 1<<63 | 6}
		addFlow(applied, 1, 11)
		addFlow(applied, 2, 23)
		if r := w.apply(applied); len(r.Failures) != 1 {
			t.Errorf("%v", r)
		}
		told(applied.Trace, map[string]string{"1.0": "confirmed", "2.0": "refused"})
	})
}

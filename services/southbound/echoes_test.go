package southbound

import (
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/wefttest"
)

// TestEchoSwitches: one call, an answer for each switch; those that do not
// answer, or are not there, say so, and cost the others nothing.
func TestEchoSwitches(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		w.device(oftest.Config{DPID: 2})
		w.joined(9) // does not answer
		ask := func(deadline uint64, dpids ...string) *api.EchoSwitchesResponse {
			t.Helper()
			resp, err := wefttest.Call(w.h, api.EchoSwitches, &api.EchoSwitchesRequest{Dpids: dpids, DeadlineUs: deadline})
			if err != nil {
				t.Fatal(err)
			}
			return resp
		}
		resp := ask(60e6, "1", "2", "77", "x")
		if e := resp.Echoes; len(e) != 4 || e[0].RttUs == 0 || e[1].RttUs == 0 || e[0].Error != "" || e[2].Error == "" || e[3].Error == "" {
			t.Errorf("%v", e)
		}
		w.eventually("one that does not answer is named, and the other has answered", func() bool {
			e := ask(50_000, "9", "1").Echoes
			if !strings.Contains(e[0].Error, "50ms") {
				t.Fatalf("%v", e)
			}
			return e[1].Error == ""
		})
		if e := ask(50_000).Echoes; len(e) != 0 {
			t.Errorf("%v", e)
		}
		if _, err := wefttest.Call(w.h, api.EchoSwitches, &api.EchoSwitchesRequest{}); err == nil {
			t.Error("no deadline is accepted")
		}
		if w.info(1).EchoUs == 0 {
			t.Error("the switch's last echo is not known")
		}
	})
}

// TestEchoBeforeBulk: an echo request is sent before the messages that are queued
// for a switch that reads slowly.
func TestEchoBeforeBulk(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		w := newWorld(t, h, "write_timeout: 1h")
		c := w.joined(9)
		bulk := &flow.Decision{}
		data := make([]byte, 1400)
		for range 2000 {
			bulk.PacketOut(9, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: bulk.Actions(flow.Output(1)), Data: data})
		}
		queued := 0
		for range 20 { // until the socket is full and more than one block waits
			r, err := wefttest.Call(h, api.Send, bulk)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Failures) > 0 {
				break
			}
			queued++
		}
		// It is queued when the call returns, for whose answer nobody waits.
		if _, err := wefttest.Call(h, api.EchoSwitches, &api.EchoSwitchesRequest{Dpids: []string{"9"}, DeadlineUs: 1}); err != nil {
			t.Fatal(err)
		}
		before := 0
		for asked := false; !asked; {
			msg, err := c.read(testwait.Limit)
			if err != nil {
				t.Fatal(err)
			}
			switch head, _ := openflow.ParseHeader(msg); head.Type {
			case openflow.TypeEchoRequest:
				asked = true
			case openflow.TypePacketOut:
				before++
			default:
				t.Fatalf("%v", head)
			}
		}
		if all := 2000 * queued; before > all*9/10 {
			t.Errorf("%d of %d messages were sent before the echo request", before, all)
		}
	})
}

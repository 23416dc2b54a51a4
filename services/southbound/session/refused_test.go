package session

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// TestRefusalsAreRareEvents: what is refused again and again is an event once a minute,
// with the number of those between.
func TestRefusalsAreRareEvents(t *testing.T) {
	var r refusals
	now, events, more := int64(0), 0, uint64(0)
	for range 600 { // ten minutes, one each second from each of two ports
		now += int64(time.Second)
		for port := range uint32(2) {
			e := &api.SwitchError{Type: 1, Code: 11, Port: port + 1}
			if r.admits(e, now) {
				events++
				more += e.More
			}
		}
	}
	if events != 20 || more != 1200-20-2*59 {
		t.Errorf("%d events, %d more", events, more)
	}
	for n := range uint32(10_000) {
		r.admits(&api.SwitchError{Port: n}, now)
	}
	if len(r) > refusalMost+1 {
		t.Errorf("%d are remembered", len(r))
	}
}

// TestRefusedPort: the port is that of the only output of a refused packet-out.
func TestRefusedPort(t *testing.T) {
	for _, v := range []openflow.Version{openflow.V10, openflow.V13} {
		for _, test := range []struct {
			actions []flow.Action
			want    flow.Port
		}{
			{[]flow.Action{flow.Output(9)}, 9},
			{[]flow.Action{flow.Output(9), flow.Output(10)}, 0},
			{[]flow.Action{flow.Output(flow.PortFlood)}, 0},
			{nil, 0},
		} {
			msg, err := v.AppendPacketOut(nil, 7, &flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: test.actions, Data: make([]byte, 200)})
			if err != nil {
				t.Fatal(err)
			}
			if got := refusedPort(v, msg[:64]); got != test.want {
				t.Errorf("%v %v: port %v", v, test.actions, got)
			}
			for n := range 64 {
				refusedPort(v, msg[:n]) // what is cut short says nothing, and harms nothing
			}
		}
	}
}

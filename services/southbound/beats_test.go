package southbound

import (
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/wefttest"
)

// order gives the standing order for beats.
func (w *world) order(every time.Duration, lostAfter uint32) *api.BeatCounts {
	w.t.Helper()
	us := uint64(every.Microseconds())
	r, err := wefttest.Call(w.h, api.OrderBeats, &api.OrderBeatsRequest{IntervalUs: us, DeadlineUs: us, LostAfter: lostAfter})
	if err != nil {
		w.t.Fatal(err)
	}
	return r.GetCounts()
}

// beats waits until a switch is in a state.
func (w *world) beats(dpid, state string) *api.BeatChanged {
	w.t.Helper()
	return wefttest.Await(w.h, api.BeatChangedEvent, func(e *api.BeatChanged) bool { return e.Dpid == dpid && e.State == state })
}

// TestBeats: switches are asked from the order on, those that connect later, too;
// one that does not answer is lost, whatever else it says, and alive when it does.
func TestBeats(t *testing.T) {
	const one, two = "0000000000000001", "0000000000000009"
	inAllModes(t, "", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		w.order(50*time.Millisecond, 3)
		w.beats(one, "alive")
		c := w.joined(9)
		var answers atomic.Bool
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				msg, err := c.read(testwait.Limit)
				if err != nil {
					return
				}
				if h, _ := openflow.ParseHeader(msg); h.Type == openflow.TypeEchoRequest && answers.Load() {
					reply, err := v13.AppendEchoReply(nil, h.Xid, msg[openflow.HeaderLen:])
					c.send(reply, err)
					c.send(reply, err) // twice
				} else if h.Type == openflow.TypeEchoRequest {
					reply, err := v13.AppendEchoReply(nil, h.Xid+100, nil) // to another
					c.send(reply, err)
				}
			}
		}()
		if e := w.beats(two, "lost"); e.Reason == "" || e.MissedInRow < 3 {
			t.Errorf("%v", e)
		}
		answers.Store(true)
		w.beats(two, "alive")
		r, err := wefttest.Call(w.h, api.ListBeats, &api.ListBeatsRequest{})
		if err != nil || len(r.Switches) != 2 || r.Switches[0].Dpid != one || r.Switches[0].P50Us == 0 || r.Switches[1].Missed < 3 || r.Switches[1].Beats < 4 {
			t.Errorf("%v, %v", r, err)
		}
		if c := w.order(50*time.Millisecond, 3); c.Beats < 4 || c.Missed < 3 || c.Missed >= c.Beats || len(c.Buckets) != len(api.BeatBounds)+1 {
			t.Errorf("%v", c)
		}
		if w.info(1).EchoUs == 0 {
			t.Error("the switch's last echo is not known")
		}
		for dpid, kind := range map[string]codes.Code{"77": codes.NotFound, "x": codes.InvalidArgument} {
			if _, err := wefttest.Call(w.h, api.ListBeats, &api.ListBeatsRequest{Dpid: dpid}); api.KindOf(err) != kind {
				t.Errorf("%q: %v", dpid, err)
			}
		}
		if _, err := wefttest.Call(w.h, api.OrderBeats, &api.OrderBeatsRequest{IntervalUs: 1}); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("an order that makes no sense: %v", err)
		}
		c.conn.Close()
		w.beats(two, "away")
		<-ended
	})
}

// TestBeatsWhileBusy: a switch is asked, and its answers count, while a packet-in
// of its own is being dealt with, however long that takes.
func TestBeatsWhileBusy(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		w, c, _, goOn := atWork(t, h, "")
		defer goOn()
		w.order(100*time.Millisecond, 1000)
		for range 5 {
			msg := c.want(openflow.TypeEchoRequest)
			reply, err := v13.AppendEchoReply(nil, xidOf(msg), nil)
			c.send(reply, err)
		}
		w.eventually("the answers count", func() bool {
			r, err := wefttest.Call(w.h, api.ListBeats, &api.ListBeatsRequest{Dpid: "9"})
			return err == nil && r.Switches[0].LastUs > 0 && r.Switches[0].Beats > 0
		})
	})
}

// TestBeatsEnd: after a restart there is no order until it is given again.
func TestBeatsEnd(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		w := newWorld(t, h, "")
		w.order(10*time.Millisecond, 3)
		first := w.joined(9)
		first.want(openflow.TypeEchoRequest)
		h.Restart()
		c := w.joined(9)
		c.quiet()
		w.order(10*time.Millisecond, 3)
		c.want(openflow.TypeEchoRequest)
	})
}

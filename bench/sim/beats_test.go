package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
)

// TestBeatsAreAnswered: heartbeats go out at their rate beside a load, each is
// answered once, and each has a latency.
func TestBeatsAreAnswered(t *testing.T) {
	each(t, func(t *testing.T, v openflow.Version) {
		n := start(t, Config{Topology: isolated(t, 8, 8, 4), Version: v, Address: startFloor(t)})
		ctx := within(t, testwait.Limit)
		if err := n.WaitUp(ctx, 0); err != nil {
			t.Fatal(err)
		}
		loaded := make(chan error, 1)
		go func() {
			r, err := n.Measure(ctx, Load{Window: 64, Rate: 5000, Duration: 150 * time.Millisecond, Patience: testwait.Limit})
			if err == nil && (r.Lost+r.Wrong != 0 || r.Answered == 0) {
				t.Errorf("%+v", r.Counts)
			}
			loaded <- err
		}()
		r, err := n.MeasureBeats(ctx, Beats{Rate: 200, Warm: 20 * time.Millisecond, Duration: 100 * time.Millisecond, Patience: testwait.Limit})
		if err == nil {
			err = <-loaded
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Answered != r.Due || r.Lost+r.Wrong != 0 || r.Due < 8*19 || r.Due > 8*21 {
			t.Errorf("%d answered of %d, %d lost, %d wrong; want about 160, all answered", r.Answered, r.Due, r.Lost, r.Wrong)
		}
		if got := uint64(r.Latency.TotalCount()); got != r.Due {
			t.Errorf("%d latencies of %d", got, r.Due)
		}
	})
}

// TestBeatsNotAnswered: a controller that is slow, or silent, is waited for in
// vain, and every heartbeat that was due in the meantime counts with as long.
func TestBeatsNotAnswered(t *testing.T) {
	c := newController(t)
	n := start(t, Config{Topology: isolated(t, 1, 2, 2), Version: openflow.V13, Address: c.address()})
	s := c.open(openflow.V13)
	result := make(chan *BeatResult, 1)
	go func() {
		r, err := n.MeasureBeats(within(t, testwait.Limit), Beats{Rate: 100, Duration: 100 * time.Millisecond, Patience: 2 * time.Second})
		if err != nil {
			t.Error(err)
		}
		result <- r
	}()
	first := s.expect(openflow.TypeEchoRequest)
	time.Sleep(20 * time.Millisecond)
	h, _ := openflow.ParseHeader(first)
	s.send(s.v.AppendEchoReply(nil, h.Xid, first[openflow.HeaderLen:]))
	s.send(s.v.AppendEchoReply(nil, h.Xid, first[openflow.HeaderLen:])) // again
	r := <-result
	if r.Answered != 1 || r.Wrong != 1 || r.Lost != 9 || r.Due != 10 {
		t.Errorf("%+v; want one of ten answered, one wrong answer", r)
	}
	if got := time.Duration(r.Latency.Min()); got < 19*time.Millisecond {
		t.Errorf("the one that was answered took %v, want 20 ms", got)
	}
	if got := time.Duration(r.Latency.Max()); got < 190*time.Millisecond {
		t.Errorf("the first that was not answered waited for %v, want 190 ms", got)
	}
}

// TestAsked: how late the simulation is to answer is told of what it answers in the
// measured time.
func TestAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &beating{net: &Network{start: time.Now()}, from: int64(10 * time.Millisecond), to: int64(20 * time.Millisecond)}
		b.result.Asked = NewHistogram()
		for range 3 {
			time.Sleep(8 * time.Millisecond)
			b.asked(b.net.clock() - int64(2*time.Millisecond))
		}
		if n, max := b.result.Asked.TotalCount(), time.Duration(b.result.Asked.Max()); n != 1 || max.Round(100*time.Microsecond) != 2*time.Millisecond {
			t.Errorf("%d answers, after %v at most; want one, after 2 ms", n, max)
		}
	})
}

// TestImpossibleBeats: what makes no sense is said.
func TestImpossibleBeats(t *testing.T) {
	n := start(t, Config{Topology: isolated(t, 1, 2, 2), Version: openflow.V13, Address: startFloor(t)})
	for _, b := range []Beats{{Duration: time.Second}, {Rate: 1e6, Duration: time.Second}, {Rate: 1}, {Rate: 1, Duration: 1, Patience: -1}} {
		if _, err := n.MeasureBeats(t.Context(), b); err == nil {
			t.Errorf("%+v is measured", b)
		}
	}
}

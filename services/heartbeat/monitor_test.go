package heartbeat

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/api"
)

// bench is a monitor whose southbound is the test's.
type bench struct {
	*monitor
	t            *testing.T
	mu           sync.Mutex // guards what follows
	orders       []*api.OrderBeatsRequest
	events       []*api.HeartbeatChanged
	counts       *api.BeatCounts
	rows         []*api.SwitchHeartbeat
	fail         error
	beats, miss  float64
	observations []float64
}

func newBench(t *testing.T, cfg Config) *bench {
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	b := &bench{monitor: newMonitor(cfg, slog.New(slog.DiscardHandler)), t: t, counts: &api.BeatCounts{Since: 1}}
	b.monitor.publish = func(e *api.HeartbeatChanged) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.events = append(b.events, e)
	}
	b.monitor.order = func(_ context.Context, r *api.OrderBeatsRequest) (*api.BeatCounts, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.orders = append(b.orders, r)
		return b.counts, b.fail
	}
	b.monitor.ask = func(context.Context, string) (*api.ListBeatsResponse, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return &api.ListBeatsResponse{Switches: b.rows, Counts: b.counts}, b.fail
	}
	b.figures = figures{
		latency: func(s float64) { b.observations = append(b.observations, s) },
		beats:   func(n float64) { b.beats += n }, missed: func(n float64) { b.miss += n },
	}
	return b
}

// begin runs the monitor until the test ends.
func (b *bench) begin() {
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(b.t.Context())
	running.Go(func() { b.run(ctx) })
	b.t.Cleanup(func() { cancel(); running.Wait() })
	synctest.Wait()
}

// become has the southbound report a state.
func (b *bench) become(dpid, state string) {
	b.beatChanged(&api.BeatChanged{Dpid: dpid, State: state, Reason: "because"})
}

// published returns the events so far.
func (b *bench) published() []*api.HeartbeatChanged {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.events)
}

// given returns the orders so far.
func (b *bench) given() []*api.OrderBeatsRequest {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.orders)
}

// told returns the states that were published of a switch.
func (b *bench) told(dpid string) (list []string) {
	for _, e := range b.published() {
		if e.Dpid == dpid {
			list = append(list, e.State)
		}
	}
	return list
}

// TestOrder: the order is given at once, again each second, and at once when the
// configuration is another.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{Rate: 10, Deadline: 50 * time.Millisecond, LostAfter: 4})
		b.begin()
		if len(b.given()) != 1 || b.given()[0].IntervalUs != 100_000 || b.given()[0].DeadlineUs != 50_000 || b.given()[0].LostAfter != 4 {
			t.Errorf("%v", b.given())
		}
		time.Sleep(3*time.Second + time.Millisecond)
		synctest.Wait()
		if len(b.given()) != 4 {
			t.Errorf("%d orders within 3 s", len(b.given()))
		}
		b.configure(Config{Rate: 100, LostAfter: 1})
		synctest.Wait()
		if n := len(b.given()); n != 5 || b.given()[4].IntervalUs != 10_000 || b.given()[4].DeadlineUs != 10_000 || b.given()[4].LostAfter != 1 {
			t.Errorf("%v", b.given())
		}
	})
}

// TestStates: what the southbound reports is published, and counted; the same
// again is no news, and a switch that was never known does not go away.
func TestStates(t *testing.T) {
	b := newBench(t, *defaults())
	for _, s := range []string{away, waiting, alive, alive, late, lost, alive, away, away, waiting, alive} {
		b.become("1", s)
	}
	if told, want := b.told("1"), []string{alive, late, lost, alive, away, alive}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	b.become("2", waiting)
	if b.count(waiting) != 1 || b.count(alive) != 1 || b.count(away) != 0 {
		t.Error("not counted")
	}
}

// TestSouthboundAway: while the southbound does not answer all switches are lost;
// when it does again they are what they are.
func TestSouthboundAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, *defaults())
		for _, d := range []string{"1", "2"} {
			b.become(d, alive)
		}
		b.begin()
		b.mu.Lock()
		b.fail = errors.New("away")
		b.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if e := b.published(); len(e) != 2 {
			t.Errorf("%v, too early", e[2:])
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		for _, d := range []string{"1", "2"} {
			if told := b.told(d); !slices.Equal(told, []string{alive, lost}) {
				t.Errorf("%s: told %q", d, told)
			}
		}
		if e := b.published(); e[len(e)-1].Reason != "away" {
			t.Errorf("%v", e)
		}
		b.mu.Lock()
		b.fail, b.rows = nil, []*api.SwitchHeartbeat{{Dpid: "1", State: alive}, {Dpid: "2", State: lost}}
		b.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if told := b.told("1"); !slices.Equal(told, []string{alive, lost, alive}) {
			t.Errorf("told %q", told)
		}
		if told := b.told("2"); !slices.Equal(told, []string{alive, lost}) {
			t.Errorf("of one that is lost: %q", told)
		}
	})
}

// buckets returns those of a distribution.
func buckets(at map[int]*api.BeatBucket) []*api.BeatBucket {
	list := make([]*api.BeatBucket, len(api.BeatBounds)+1)
	for i := range list {
		if list[i] = at[i]; list[i] == nil {
			list[i] = &api.BeatBucket{}
		}
	}
	return list
}

// TestCounted: the metrics get what has been counted since the last time, whether
// or not the southbound or this service has begun anew, and nothing twice.
func TestCounted(t *testing.T) {
	b := newBench(t, *defaults())
	want := func(beats, missed float64, observations ...float64) {
		t.Helper()
		same := slices.EqualFunc(b.observations, observations, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
		if b.beats != beats || b.miss != missed || !same {
			t.Fatalf("%v beats, %v missed, %v; want %v, %v, %v", b.beats, b.miss, b.observations, beats, missed, observations)
		}
	}
	first := &api.BeatCounts{Since: 5, Beats: 100, Missed: 1, Buckets: buckets(map[int]*api.BeatBucket{3: {Count: 99, SumUs: 99 * 700}})}
	b.counted(first) // counted before this service began
	want(0, 0)
	next := &api.BeatCounts{Since: 5, Beats: 104, Missed: 2, Buckets: buckets(map[int]*api.BeatBucket{3: {Count: 101, SumUs: 99*700 + 1500}, 6: {Count: 1, SumUs: 9000}, 13: {Count: 1, SumUs: 2e6}})}
	for range 2 {
		b.counted(next)
		want(4, 1, .00075, .00075, .009, 2)
	}
	b.counted(first) // overtaken
	want(4, 1, .00075, .00075, .009, 2)
	again := &api.BeatCounts{Since: 6, Beats: 2, Missed: 1, Buckets: buckets(map[int]*api.BeatBucket{0: {Count: 1, SumUs: 50}})}
	b.counted(again) // another southbound
	want(6, 2, .00075, .00075, .009, 2, .00005)
	b.counted(next) // of the former one
	want(6, 2, .00075, .00075, .009, 2, .00005)
}

// TestMean: a mean stays in its bucket, so that it is counted there.
func TestMean(t *testing.T) {
	for i := range len(api.BeatBounds) + 1 {
		for _, us := range []uint64{0, 1, 100, 10_000, 5e6} {
			s := mean(i, &api.BeatBucket{}, &api.BeatBucket{Count: 1, SumUs: us})
			if i > 0 && s <= api.BeatBounds[i-1] || i < len(api.BeatBounds) && s > api.BeatBounds[i] {
				t.Errorf("%d µs in bucket %d count as %v s", us, i, s)
			}
		}
	}
}

// TestConfig refuses what makes no sense.
func TestConfig(t *testing.T) {
	for _, c := range []Config{{0, 0, 3}, {101, 0, 3}, {1, 2 * time.Second, 3}, {100, 20 * time.Millisecond, 3}, {1, time.Microsecond, 3}, {1, 0, 0}} {
		if c.Validate() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

package heartbeat

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// bench is a monitor whose southbound is the test's.
type bench struct {
	*monitor
	t      *testing.T
	mu     sync.Mutex // guards what follows
	calls  []call
	events []*api.HeartbeatChanged
	answer func(dpid string, n int) *api.SwitchEcho // n: how often the switch was asked before
	after  time.Duration                            // how long a call takes
	fail   error
	asked  map[string]int
}

type call struct {
	at    time.Time
	dpids []string
}

func newBench(t *testing.T, cfg Config) *bench {
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	b := &bench{monitor: newMonitor(cfg, slog.New(slog.DiscardHandler)), t: t, asked: map[string]int{}, after: time.Millisecond}
	b.answer = func(string, int) *api.SwitchEcho { return &api.SwitchEcho{RttUs: 500} }
	b.monitor.publish = func(e *api.HeartbeatChanged) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.events = append(b.events, e)
	}
	b.monitor.ask = func(_ context.Context, dpids []string, deadline time.Duration) ([]*api.SwitchEcho, error) {
		b.mu.Lock()
		b.calls = append(b.calls, call{time.Now(), dpids})
		after, there, fail := b.after, 500*time.Microsecond, b.fail
		var list []*api.SwitchEcho
		for _, d := range dpids {
			e := b.answer(d, b.asked[d])
			if e.Error != "" {
				after, there = deadline+time.Millisecond, deadline
			}
			list = append(list, e)
			b.asked[d]++
		}
		for _, e := range list {
			e.CallUs = max(e.CallUs, micros(there))
		}
		b.mu.Unlock()
		time.Sleep(after)
		return list, fail
	}
	return b
}

func (b *bench) connect(n int) {
	for i := range n {
		b.switchChanged(&api.Switch{Dpid: flow.DPID(i + 1).String(), Connected: true, Since: "then", Address: "a"}, time.Now())
	}
}

// during runs the monitor for a time.
func (b *bench) during(d time.Duration) {
	ctx, cancel := context.WithCancel(b.t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.run(ctx) })
	time.Sleep(d)
	cancel()
	running.Wait()
	synctest.Wait()
}

func (b *bench) of(sw flow.DPID) *api.SwitchHeartbeat {
	resp, err := b.list(b.t.Context(), &api.ListHeartbeatsRequest{Dpid: sw.String()})
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.Switches[0]
}

// TestSpread: 2,560 switches are asked once a second each, by few calls that are
// evenly spread over the second.
func TestSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, *defaults())
		b.connect(2560)
		b.during(10*time.Second + 10*time.Millisecond)
		for d, n := range b.asked {
			if n < 10 || n > 11 {
				t.Fatalf("%s asked %d times within 10 s", d, n)
			}
		}
		if n := len(b.calls); n > 10*slotsMost+1 {
			t.Errorf("%d calls within 10 s, want at most %d", n, 10*slotsMost+1)
		}
		for i := 1; i < len(b.calls); i++ {
			if gap := b.calls[i].at.Sub(b.calls[i-1].at); gap != 20*time.Millisecond {
				t.Fatalf("%v between two calls, want 20ms", gap)
			}
			if n := len(b.calls[i].dpids); n > 52 {
				t.Fatalf("a call for %d switches", n)
			}
		}
	})
}

// TestRates: a switch is asked as often as configured.
func TestRates(t *testing.T) {
	for _, rate := range []float64{1, 3, 10, 100} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Config{Rate: rate, LostAfter: 3})
			b.connect(3)
			b.during(10*time.Second + time.Millisecond)
			for d, n := range b.asked {
				if float64(n) < 10*rate-1 || float64(n) > 10*rate+2 {
					t.Errorf("rate %v: %s asked %d times within 10 s", rate, d, n)
				}
			}
			if s := b.of(1); s.Missed != 0 || s.State != "alive" || s.P50Us < 900 || s.P50Us > 1100 {
				t.Errorf("rate %v: %v", rate, s)
			}
		})
	}
}

// TestStates: one miss makes a switch late, three in a row lost, an answer
// alive again; each change is told once, and others are not concerned.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{Rate: 10, Deadline: 50 * time.Millisecond, LostAfter: 3})
		b.answer = func(d string, n int) *api.SwitchEcho {
			if d == flow.DPID(1).String() && (n == 2 || n >= 10 && n < 15) {
				return &api.SwitchEcho{Error: "no answer within 100ms"}
			}
			return &api.SwitchEcho{RttUs: 200}
		}
		b.connect(2)
		b.during(3 * time.Second)
		var told []string
		for _, e := range b.events {
			if e.Dpid == flow.DPID(1).String() {
				told = append(told, e.State)
			} else if e.State != "alive" {
				t.Errorf("the other switch is told to be %s", e.State)
			}
		}
		if want := []string{"alive", "late", "alive", "late", "lost", "alive"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		if s := b.of(1); s.Missed != 6 || s.MissedInRow != 0 {
			t.Errorf("%v", s)
		}
		if s := b.of(2); s.Missed != 0 {
			t.Errorf("%v", s)
		}
	})
}

// TestDeadNeighbour: a switch that does not answer, and is asked together with
// others, costs these nothing.
func TestDeadNeighbour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{Rate: 100, LostAfter: 3})
		b.answer = func(d string, _ int) *api.SwitchEcho {
			if d == flow.DPID(3).String() {
				return &api.SwitchEcho{Error: "no answer"}
			}
			return &api.SwitchEcho{RttUs: 200}
		}
		b.connect(8) // in two slots
		b.during(5 * time.Second)
		for sw := range flow.DPID(8) {
			if s := b.of(sw + 1); (s.Missed == 0) == (sw+1 == 3) || s.Beats < 490 {
				t.Errorf("%v", s)
			}
		}
	})
}

// TestSouthboundAway: calls that fail, or do not return, are beats missed by
// all, and as many calls wait as there are slots, at most.
func TestSouthboundAway(t *testing.T) {
	for _, hung := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, Config{Rate: 10, LostAfter: 3})
			b.fail = errors.New("away")
			if hung {
				b.after = 10 * time.Second
			}
			b.connect(5)
			b.during(2 * time.Second)
			if s := b.of(3); s.State != "lost" || s.Missed < 15 {
				t.Errorf("hung %v: %v", hung, s)
			}
			if most := 5 * b.cfg.Load().askingMost(); hung && len(b.calls) > most {
				t.Errorf("%d calls wait", len(b.calls))
			}
		})
	}
}

// TestOverdue: of beats that were due while the process did not run only those are
// missed that can no more be answered in time.
func TestOverdue(t *testing.T) {
	const interval = 10 * time.Millisecond
	for _, c := range []struct {
		turn, slots int
		over        time.Duration
		want        []int
	}{
		{0, 2, 1, []int{1, 0}},
		{1, 2, 4999 * time.Microsecond, []int{0, 1}},
		{1, 2, 5 * time.Millisecond, []int{1, 1}},
		{4, 2, 31 * time.Millisecond, []int{4, 3}},
		{7, 3, 9999999, []int{1, 1, 1}}, // 10 ms are not three times a whole number of ns
		{2, 4, 15 * time.Millisecond, []int{2, 1, 2, 2}},
		{0, 1, time.Hour, []int{360_001}},
	} {
		if got := overdue(c.turn, c.slots, c.over, interval); !slices.Equal(got, c.want) {
			t.Errorf("turn %d of %d slots, over by %v: %v are missed, want %v", c.turn, c.slots, c.over, got, c.want)
		}
	}
}

// TestHeldCalls: calls that return long after their answers have come keep no beats
// from being asked.
func TestHeldCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{Rate: 100, LostAfter: 3})
		b.after = 90 * time.Millisecond
		b.answer = func(string, int) *api.SwitchEcho { return &api.SwitchEcho{RttUs: 1000, CallUs: 90_000} }
		b.connect(2)
		b.during(time.Second)
		if s := b.of(1); s.Missed != 0 || s.Beats < 85 {
			t.Errorf("%v", s)
		}
	})
}

// TestTooLate: an answer that was there within the deadline but whose call came
// back after it has missed it.
func TestTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{Rate: 10, Deadline: 20 * time.Millisecond, LostAfter: 3})
		b.after = 30 * time.Millisecond
		b.connect(1)
		b.during(time.Second)
		if s := b.of(1); s.State != "lost" || s.Missed != s.Beats {
			t.Errorf("%v", s)
		}
	})
}

// TestArrival: what counts is when an answer was read, however long the call went on
// afterwards, for others or for want of the processor's time.
func TestArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{Rate: 10, Deadline: 20 * time.Millisecond, LostAfter: 3})
		b.after = 30 * time.Millisecond // one of it on the way
		b.answer = func(d string, _ int) *api.SwitchEcho {
			rtt := uint64(2000)
			if d == flow.DPID(2).String() {
				rtt = 18_001
			}
			return &api.SwitchEcho{AskedUs: 1000, RttUs: rtt, CallUs: 29_000}
		}
		b.connect(2)
		b.slots = make([]slot, 1) // both by one call
		for _, r := range b.switches {
			r.slot = 0
			b.slots[0].members = append(b.slots[0].members, r)
		}
		b.during(time.Second)
		if s := b.of(1); s.State != "alive" || s.Missed != 0 || s.LastUs != 4000 {
			t.Errorf("answered after 4 ms: %v", s)
		}
		if s := b.of(2); s.State != "lost" || s.Missed != s.Beats {
			t.Errorf("answered after 20.001 ms: %v", s)
		}
	})
}

// TestComeAndGo: what was measured is forgotten when a switch connects anew, and
// nobody is asked who is not connected.
func TestComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, *defaults())
		b.connect(3)
		b.during(3 * time.Second)
		b.connect(3) // told again: no news
		if s := b.of(2); s.Beats < 2 {
			t.Errorf("forgotten: %v", s)
		}
		b.switchChanged(&api.Switch{Dpid: "2", Connected: true, Since: "later", Address: "a"}, time.Now())
		if s := b.of(2); s.Beats != 0 || s.State != "waiting" {
			t.Errorf("%v", s)
		}
		for i := range 3 {
			b.switchChanged(&api.Switch{Dpid: flow.DPID(i + 1).String(), Reason: "closed"}, time.Now())
		}
		calls := len(b.calls)
		b.during(3 * time.Second)
		if len(b.calls) != calls {
			t.Error("switches that have gone are asked")
		}
		if e := b.events[len(b.events)-1]; e.State != "away" || e.Reason != "closed" {
			t.Errorf("last told: %v", e)
		}
		if _, err := b.list(t.Context(), &api.ListHeartbeatsRequest{Dpid: "2"}); err == nil {
			t.Error("a switch that has gone is listed")
		}
	})
}

// TestLatencies: quantiles are at most 1/16 too large and never too small.
func TestLatencies(t *testing.T) {
	for step := range steps {
		if got := stepOf(most(step)); most(step) <= longest && got != step {
			t.Fatalf("step %d ends at %d, which is in step %d", step, most(step), got)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var l latencies
	var all []time.Duration
	for range 10_000 {
		d := time.Duration(rng.ExpFloat64() * float64(3*time.Millisecond)).Truncate(time.Microsecond)
		l.add(d)
		all = append(all, d)
	}
	slices.Sort(all)
	for _, q := range []float64{0, .5, .9, .99, 1} {
		want := all[int(q*float64(len(all)-1))]
		if got := l.quantile(q); got < want || got > want+want/15+time.Microsecond {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if l.add(time.Hour); l.max != time.Hour || l.quantile(1) > time.Hour {
		t.Errorf("%v", l.max)
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

// BenchmarkRound measures what a beat of 2,560 switches costs without the calls.
func BenchmarkRound(b *testing.B) {
	m := newMonitor(*defaults(), slog.New(slog.DiscardHandler))
	echoes := make([]*api.SwitchEcho, 52)
	for i := range echoes {
		echoes[i] = &api.SwitchEcho{RttUs: 300}
	}
	m.ask = func(_ context.Context, dpids []string, _ time.Duration) ([]*api.SwitchEcho, error) {
		return echoes[:len(dpids)], nil
	}
	for i := range 2560 {
		m.switchChanged(&api.Switch{Dpid: flow.DPID(i + 1).String(), Connected: true}, time.Now())
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range m.slots {
			m.round(b.Context(), m.slots[i].members, time.Now())
		}
	}
}

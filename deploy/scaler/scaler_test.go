package scaler

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/plan/size"
)

var begin = time.Unix(1_000_000, 0)

// bounds are 1 to 4 replicas for 20 ms: up to 77 % of a replica that takes 1 ms.
func bounds() plan.Autoscale {
	return plan.Autoscale{Min: 1, Max: 4, Target: 20 * time.Millisecond, Percentile: 99, Cooldown: 30 * time.Second}
}

// world is a worker under a load, at which each replica takes 1 ms. Replicas
// that are added are ready after start.
type world struct {
	a       plan.Autoscale
	s       State
	now     time.Time
	n       int
	ready   int
	readyAt time.Time
	start   time.Duration
	never   bool // replicas beyond the first are never ready
	changes []int
	last    Decision
}

// second lets a second pass with a rate.
func (w *world) second(rate float64) {
	w.now = w.now.Add(time.Second)
	if !w.never && !w.now.Before(w.readyAt) {
		w.ready = w.n
	}
	f := Figures{Taken: w.now, Rate: rate, Service: 0.001, ServiceSCV: 1, Replicas: w.n, Ready: w.ready, Start: w.start, Utilisation: rate * 0.001 / float64(w.ready)}
	w.last, w.s = Decide(w.a, w.s, f, w.now)
	if w.last.To != w.n {
		w.n = w.last.To
		w.changes = append(w.changes, w.n)
		w.readyAt = w.now.Add(w.start)
		w.ready = min(w.ready, w.n)
	}
}

func newWorld() *world { return &world{a: bounds(), now: begin, n: 1, ready: 1, start: time.Second} }

func TestOutAtOnceInSlowly(t *testing.T) {
	w := newWorld()
	w.second(100)
	if w.n != 1 {
		t.Fatalf("%d replicas for 10 %% of one: %s", w.n, w.last.Reason)
	}
	w.second(3000) // 3 processors
	if w.n != 4 {
		t.Errorf("%d replicas, want 4 at once: %s", w.n, w.last.Reason)
	}
	for i := range 29 {
		if w.second(100); w.n != 4 {
			t.Fatalf("%d replicas after %d s of little load", w.n, i)
		}
	}
	var at []int
	for i := 30; i < 200 && w.n > 1; i++ {
		before := w.n
		if w.second(100); w.n < before {
			if before-w.n != 1 {
				t.Errorf("from %d to %d at once", before, w.n)
			}
			at = append(at, i)
		}
	}
	if len(at) != 3 || at[1]-at[0] < 30 || at[2]-at[1] < 30 {
		t.Errorf("replicas were removed after %v s, want one in 30 s", at)
	}
}

// TestTargetAndGuard checks numbers against M/M/1: the 99th percentile of the
// time is S ln(100)/(1-rho).
func TestTargetAndGuard(t *testing.T) {
	for _, c := range []struct {
		rate   float64
		target time.Duration
		want   int
	}{
		{400, 10 * time.Millisecond, 1}, // 7.7 ms
		{600, 10 * time.Millisecond, 2}, // 11.5 ms with one
		{790, time.Second, 1},           // the target is far
		{810, time.Second, 2},           // but 81 % is above the guard
		{3900, time.Second, 4},          // above it with four: no more are allowed
		{1000, time.Millisecond, 4},     // not to be reached: the nearest
	} {
		a := bounds()
		a.Target = c.target
		d, _ := Decide(a, State{}, Figures{Taken: begin, Rate: c.rate, Service: 0.001, ServiceSCV: 1, Replicas: 1, Ready: 1}, begin)
		if d.To != c.want || d.Wanted != c.want || d.Reason == "" {
			t.Errorf("%v/s for %v: %+v, want %d", c.rate, c.target, d, c.want)
		}
		if c.target == 10*time.Millisecond {
			rho := c.rate * 0.001 / float64(c.want)
			if exact := 0.001 * math.Log(100) / (1 - rho); math.Abs(d.Time/exact-1) > 0.01 {
				t.Errorf("%v/s: predicted %v s, want %v s", c.rate, d.Time, exact)
			}
		}
	}
}

func TestStaleFigures(t *testing.T) {
	f := Figures{Taken: begin, Rate: 3000, Service: 0.001, Replicas: 1, Ready: 1}
	d, _ := Decide(bounds(), State{}, f, begin.Add(5*time.Second))
	if d.To == 1 {
		t.Errorf("nothing is done by figures of 5 s: %s", d.Reason)
	}
	d, _ = Decide(bounds(), State{}, f, begin.Add(5100*time.Millisecond))
	if d.To != 1 || !strings.Contains(d.Reason, "5.1s old") {
		t.Errorf("%+v", d)
	}
}

func TestBacklogAndBursts(t *testing.T) {
	f := Figures{Taken: begin, Rate: 100, Service: 0.001, ServiceSCV: 1, Replicas: 1, Ready: 1, Backlog: 1000}
	if d, _ := Decide(bounds(), State{}, f, begin); d.To < 2 || !strings.Contains(d.Reason, "1000 waiting") {
		t.Errorf("a backlog of 1000: %+v", d)
	}
	f = Figures{Taken: begin, Rate: 900, Service: 0.0005, ServiceSCV: 1, Replicas: 1, Ready: 1}
	calm, _ := Decide(bounds(), State{}, f, begin)
	f.Dispersion = []size.MeasuredDispersion{{Time: 0.01, Index: 30}, {Time: 0.1, Index: 100}}
	bursty, _ := Decide(bounds(), State{}, f, begin)
	if calm.To != 1 || bursty.To <= calm.To {
		t.Errorf("%d replicas for Poisson arrivals, %d for bursts of the same rate", calm.To, bursty.To)
	}
	f = Figures{Taken: begin, Rate: 300, Service: 0.0005, Replicas: 1, Ready: 1, Utilisation: 0.95}
	if d, _ := Decide(bounds(), State{}, f, begin); d.To != 2 || !strings.Contains(d.Reason, "busiest is busy for 95 %") {
		t.Errorf("the model sees no load, but the processor is busy: %+v", d)
	}
}

// TestFlappingLoad: a load that comes and goes faster than the cooldown changes
// nothing after the first rise; a slower one changes it a bounded number of
// times.
func TestFlappingLoad(t *testing.T) {
	for _, c := range []struct{ period, most int }{{4, 1}, {20, 1}, {50, 1}, {120, 120}} {
		w := newWorld()
		for i := range 3600 {
			rate := 100.0
			if i%c.period < c.period/2 {
				rate = 1500
			}
			w.second(rate)
		}
		if len(w.changes) > c.most {
			t.Errorf("period of %d s: %d changes in an hour, want at most %d", c.period, len(w.changes), c.most)
		}
	}
}

// TestNeverReady: replicas that are never ready are not added without end, and
// the decision says so.
func TestNeverReady(t *testing.T) {
	w := newWorld()
	w.never = true
	for range 600 {
		w.second(1500)
	}
	if len(w.changes) != 1 || w.n > 4 {
		t.Errorf("changes %v, want one within the bounds", w.changes)
	}
	if !w.last.Late || !strings.Contains(w.last.Reason, "1 of ") {
		t.Errorf("%+v", w.last)
	}
}

// TestBoundsOfThePlan: another plan with other bounds counts at once, and a
// plan with another number of replicas is where the next decision begins.
func TestBoundsOfThePlan(t *testing.T) {
	f := Figures{Taken: begin, Rate: 10, Service: 0.001, Replicas: 7, Ready: 7}
	if d, _ := Decide(bounds(), State{}, f, begin); d.To != 4 {
		t.Errorf("%+v, want the most that the bounds allow", d)
	}
	a := bounds()
	a.Min = 2
	f.Replicas = 1
	if d, _ := Decide(a, State{}, f, begin); d.To != 2 {
		t.Errorf("%+v, want the least that the bounds allow", d)
	}
	f = Figures{Taken: begin, Replicas: 3, Ready: 3}
	if d, s := Decide(bounds(), State{}, f, begin); d.To != 3 || s.Since.IsZero() || !strings.Contains(d.Reason, "no load") {
		t.Errorf("without load: %+v, %+v", d, s)
	}
	f.Rate = 50
	if d, _ := Decide(bounds(), State{}, f, begin); d.To != 3 || !strings.Contains(d.Reason, "not known yet") {
		t.Errorf("without service times: %+v", d)
	}
}

// TestForecast: with a season, replicas are there before the load that comes
// each day; without, they come after it.
func TestForecast(t *testing.T) {
	late := func(season time.Duration) (seconds int) {
		w := newWorld()
		w.a.Season, w.start = season, 20*time.Second
		for i := range 3 * 1200 {
			phase := i % 1200
			rate := 100.0
			if phase >= 600 && phase < 900 {
				rate = 1500
			}
			if w.second(rate); i >= 1200 && rate > 1000*0.8*float64(w.ready) {
				seconds++
			}
		}
		return seconds
	}
	reactive, proactive := late(0), late(20*time.Minute)
	if reactive < 30 || proactive > reactive/10 {
		t.Errorf("overloaded for %d s without a forecast, %d s with one", reactive, proactive)
	}
}

// TestForecastFollows: after a season that is another, the forecast follows, and
// a gap of figures of more than a season begins it anew.
func TestForecastFollows(t *testing.T) {
	season := 2 * time.Minute
	var f Forecast
	now := begin
	feed := func(seconds int, rate func(phase float64) float64) {
		for range seconds {
			now = now.Add(time.Second)
			f = f.observe(season, rate(math.Mod(now.Sub(begin).Seconds(), 120)/120), now)
		}
	}
	wave := func(phase float64) float64 { return 1000 + 500*math.Sin(2*math.Pi*phase) }
	feed(119, wave)
	if got := f.highest(now, 0); got != 0 {
		t.Errorf("%v is forecast before a season is over", got)
	}
	feed(5*120+1, wave)
	for range 10 {
		feed(12, wave)
		if got, want := f.highest(now, 0), wave(math.Mod(now.Sub(begin).Seconds()+1, 120)/120); math.Abs(got-want) > 80 {
			t.Errorf("forecast %v, want about %v", got, want)
		}
	}
	feed(10*120, func(phase float64) float64 { return 3 * wave(phase) })
	if got := f.highest(now, 60*time.Second); got < 4000 || got > 5000 {
		t.Errorf("forecast %v of a wave of up to 4500", got)
	}
	now = now.Add(time.Hour)
	if feed(1, wave); f.highest(now, 0) != 0 {
		t.Error("forecast from before a gap of an hour")
	}
}

// BenchmarkDecide measures a decision about up to 16 replicas.
func BenchmarkDecide(b *testing.B) {
	a := bounds()
	a.Max = 16
	f := Figures{Taken: begin, Rate: 9000, Service: 0.001, ServiceSCV: 1, Replicas: 4, Ready: 4, Dispersion: []size.MeasuredDispersion{{Time: 0.01, Index: 2}, {Time: 0.1, Index: 3}}}
	for b.Loop() {
		Decide(a, State{}, f, begin)
	}
}

// TestUnreachable: where no number reaches the target, replicas are not added for a small
// gain, and that is news once, and again when it has ended.
func TestUnreachable(t *testing.T) {
	a := plan.Autoscale{Min: 1, Max: 4, Target: 5 * time.Millisecond, Percentile: 99, Cooldown: 10 * time.Second}
	s, now, news := State{}, begin, []string{}
	f := Figures{Rate: 142, Service: 0.00115, ServiceSCV: 1, Replicas: 1, Ready: 1, Utilisation: 0.16}
	second := func() Decision {
		now = now.Add(time.Second)
		f.Taken = now
		var d Decision
		if d, s = Decide(a, s, f, now); d.News {
			news = append(news, d.Unreachable)
		}
		return d
	}
	for range 60 {
		d := second()
		if d.To != 1 || d.Unreachable == "" || !strings.Contains(d.Reason, "no number reaches 5ms: the service alone takes 5.3 ms at p99") || math.Abs(d.Now-0.00633) > 0.0002 {
			t.Fatalf("%+v", d)
		}
	}
	f.Rate = 600 // now two more gain much, and a fourth would not
	if d := second(); d.To != 3 {
		t.Errorf("%+v", d)
	}
	f.Service, f.Rate = 0.0005, 100
	for range 10 {
		if d := second(); d.Unreachable != "" || d.Now == 0 {
			t.Fatalf("%+v", d)
		}
	}
	if len(news) != 2 || news[0] == "" || news[1] != "" {
		t.Errorf("news %q", news)
	}
}

// TestRisingService: a service time that rises because replicas were added adds no more, and a
// supposed one takes none away.
func TestRisingService(t *testing.T) {
	w := newWorld()
	s := State{}
	f := Figures{Taken: begin, Rate: 900, Service: 0.001, ServiceSCV: 1, Replicas: 1, Ready: 1}
	d, s := Decide(w.a, s, f, begin)
	if d.To != 2 {
		t.Fatalf("%+v", d)
	}
	f.Replicas, f.Ready, f.Service = 2, 2, 0.004
	if d, s = Decide(w.a, s, f, begin); d.To != 2 || !strings.Contains(d.Reason, "more than 1 replicas the service time rose from 1 to 4 ms") {
		t.Errorf("%+v", d)
	}
	f.Replicas, f.Ready, f.Rate = 1, 1, 300
	if d, _ = Decide(w.a, s, f, begin); d.To == 1 {
		t.Errorf("with one replica it is what the load takes: %+v", d)
	}
	f = Figures{Taken: begin, Rate: 900, Service: 0.00008, ServiceSCV: 1, Supposed: true, Replicas: 3, Ready: 3, Utilisation: 0.5}
	if d, s := Decide(w.a, State{}, f, begin); d.Wanted != 3 || !s.Since.IsZero() || !strings.Contains(d.Reason, "none is taken away") {
		t.Errorf("%+v", d)
	}
	f.Supposed = false
	if d, _ := Decide(w.a, State{}, f, begin); d.Wanted != 1 {
		t.Errorf("%+v", d)
	}
}

// TestErrors: predictions are compared with what is measured minute by minute, over an hour.
func TestErrors(t *testing.T) {
	var e Errors
	now := begin
	for minute := range 100 {
		for range 60 {
			now = now.Add(time.Second)
			e.Times(0.001, 0.002, 9)
			if minute%2 == 0 {
				e.Times(0.004, 0.005, 1)
			}
			e.Decided(99, 0.003, now)
		}
	}
	off, n := e.Median()
	if n < 58 || n > 61 || off < 0.3 || off > 0.6 || e.Count < 500 || e.Measured < 0.0019 || e.Measured > 0.005 {
		t.Errorf("off by %v in %d minutes, measured %v of %d", off, n, e.Measured, e.Count)
	}
	for range 120 {
		now = now.Add(time.Second)
		e.Times(0.001, 0.002, 1)
		e.Decided(99, 0.003, now)
	}
	if _, again := e.Median(); again > n-1 {
		t.Errorf("%d minutes, of which some have few times", again)
	}
	if v, _ := quantile(map[bucket]uint64{{1, 3}: 5, {3, 5}: 5}, 0); v != 3 {
		t.Errorf("the mean is %v", v)
	}
}

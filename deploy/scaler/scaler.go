// Package scaler decides how many replicas a worker should have, from live
// figures, by the queueing formulas of plan/size. It is pure: time and figures
// are passed in, and what it remembers is a value.
//
// Only deploy imports it.
package scaler

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/plan/simulate"
	"github.com/weft-sdn/weft/plan/size"
)

// Figures are live figures of a worker.
type Figures struct {
	// Taken is when the oldest of them were taken.
	Taken time.Time
	// Rate is arrivals per second at all replicas.
	Rate float64
	// Service is the time of one replica for an arrival in seconds; 0 if it is
	// not known yet.
	Service    float64
	ServiceSCV float64 // squared coefficient of variation of Service
	// Supposed says that Service is not by processor time yet: too little to take
	// replicas away by.
	Supposed bool
	// Dispersion is the index of dispersion of all arrivals; nil: Poisson.
	Dispersion []size.MeasuredDispersion
	// Backlog is how many arrivals wait.
	Backlog float64
	// Utilisation is the share of its processor time that the busiest replica
	// uses.
	Utilisation float64
	// Replicas is how many the plan in force has, Ready how many of them work.
	Replicas, Ready int
	// Start is how long a replica takes to be ready.
	Start time.Duration
}

// Bounds of what the scaler does.
const (
	// StaleAfter is how old figures may be.
	StaleAfter = 5 * time.Second
	// outGuard is the utilisation above which replicas are added whatever the
	// target, and inGuard the one that must not be exceeded after a removal.
	outGuard, inGuard = 0.8, 0.7
	// drainTime is how soon a backlog is to be worked off.
	drainTime = time.Second
	// unreadyAfter is how long replicas may take to be ready before Decision
	// says that they are late.
	unreadyAfter = 30 * time.Second
	// gain is by which share one more replica has to shorten the time, if no number
	// reaches the target.
	gain = 0.1
	// rise is by which factor the service time may rise when replicas are added, and
	// still counts: it rises where replicas are in each other's way, and more of them
	// would not help.
	rise = 1.5
	// certain is how many decisions one after the other must find that no number
	// reaches the target, or that one does, for that to be news.
	certain = 5
)

// State is what the scaler remembers of a worker. The zero State is that of one
// that was never looked at.
type State struct {
	// Since is the beginning of the time over which fewer replicas would have
	// done, and Most the largest number that was wanted in it.
	Since time.Time
	Most  int
	// Unready is since when not all replicas are ready; zero: they are.
	Unready  time.Time
	Forecast Forecast
	// Alone is the service time with AloneOf replicas, before any were added; 0: none
	// were.
	Alone   float64
	AloneOf int
	// Unreachable is whether it was news last that no number reaches the target, and
	// Other how many decisions since have found otherwise.
	Unreachable bool
	Other       int
}

// Decision is what the scaler wants of a worker.
type Decision struct {
	From, To int // replicas; equal if nothing is to be done
	// Wanted is how many the model wants, whatever the cooldown.
	Wanted int
	Reason string
	// Rate is arrivals per second that the decision counts with: what is forecast
	// and the backlog included. Time is what the model predicts for Wanted, in
	// seconds, and Utilisation the share of time that they would work.
	Rate, Time, Utilisation float64
	// Now is what the model predicts for the replicas that there are, in seconds; 0 if
	// nothing, or infinite.
	Now float64
	// Forecast is the rate that is forecast; 0 if none is.
	Forecast float64
	Late     bool // replicas are not ready in time
	// Unreachable is why no number reaches the target; empty if one does. News says
	// that this has begun, or has ended.
	Unreachable string
	News        bool
}

// Decide decides about a worker, and returns what is to be remembered.
func Decide(a plan.Autoscale, s State, f Figures, now time.Time) (Decision, State) {
	d := Decision{From: f.Replicas, To: f.Replicas, Wanted: f.Replicas}
	if old := now.Sub(f.Taken); old > StaleAfter {
		d.Reason = fmt.Sprintf("the figures are %v old: nothing is done by figures older than %v", old.Round(100*time.Millisecond), StaleAfter)
		s.Since = time.Time{}
		return d, s
	}
	if s.Forecast = s.Forecast.observe(a.Season, f.Rate, now); a.Season > 0 {
		d.Forecast = s.Forecast.highest(now, f.Start)
	}
	switch {
	case f.Ready >= f.Replicas:
		s.Unready = time.Time{}
	case s.Unready.IsZero():
		s.Unready = now
	}
	d.Late = !s.Unready.IsZero() && now.Sub(s.Unready) > max(unreadyAfter, 3*f.Start)
	risen := s.before(&f)
	d.want(a, f)
	fewer := d.Wanted
	switch {
	case d.Wanted >= f.Replicas || d.Rate <= 0 || f.Service <= 0:
	case f.Supposed && f.Utilisation > busyEnough:
		d.Wanted, fewer = f.Replicas, f.Replicas
		d.Reason += "; the service time is only that of the stage yet: none is taken away by it"
	default: // what would do, with room to spare
		fewer = least(a, f, d.Rate, inGuard).n
	}
	d.Reason += risen
	s.reached(&d)
	switch {
	case f.Replicas < a.Min || f.Replicas > a.Max:
		d.To = min(max(f.Replicas, a.Min), a.Max)
		d.Reason = fmt.Sprintf("the bounds are %d to %d", a.Min, a.Max)
		s.Since = time.Time{}
	case d.Wanted > f.Replicas:
		if s.Alone == 0 {
			s.Alone, s.AloneOf = f.Service, f.Replicas
		}
		d.To = d.Wanted
		s.Since = time.Time{}
	case fewer >= f.Replicas:
		s.Since = time.Time{}
	case s.Since.IsZero():
		s.Since, s.Most = now, fewer
		d.Reason += fmt.Sprintf("; fewer from now on for %v would remove one", a.Cooldown)
	default:
		s.Most = max(s.Most, fewer)
		if left := a.Cooldown - now.Sub(s.Since); left > 0 {
			d.Reason += fmt.Sprintf("; fewer for another %v would remove one", left.Round(time.Second))
			break
		}
		d.To = f.Replicas - 1
		d.Reason += fmt.Sprintf("; %d would have done for %v", s.Most, a.Cooldown)
		s.Since = time.Time{}
	}
	if d.Late {
		d.Reason += fmt.Sprintf("; %d of %d replicas are ready, since %v", f.Ready, f.Replicas, now.Sub(s.Unready).Round(time.Second))
	}
	return d, s
}

// before has the service time count that was measured before replicas were added, if it has
// risen much since. It returns that as the end of a reason.
func (s *State) before(f *Figures) string {
	if f.Replicas <= s.AloneOf {
		s.Alone, s.AloneOf = 0, 0
	}
	if s.Alone == 0 || f.Supposed || f.Service <= rise*s.Alone {
		return ""
	}
	text := fmt.Sprintf("; with more than %d replicas the service time rose from %s to %s ms, and counts as before", s.AloneOf, plain(1000*s.Alone), plain(1000*f.Service))
	f.Service = s.Alone
	return text
}

// reached notes whether a number of replicas reaches the target, and whether that is news.
func (s *State) reached(d *Decision) {
	if (d.Unreachable != "") == s.Unreachable {
		s.Other = 0
		return
	}
	if s.Other++; s.Other >= certain {
		s.Unreachable, s.Other, d.News = !s.Unreachable, 0, true
	}
}

// want sets how many replicas the model wants, and why.
func (d *Decision) want(a plan.Autoscale, f Figures) {
	d.Rate = max(f.Rate, d.Forecast)
	why := plain(f.Rate) + "/s"
	if d.Forecast > f.Rate {
		why += fmt.Sprintf(", %s/s forecast", plain(d.Forecast))
	}
	// What waits beyond those that the target lets wait is to be worked off.
	if extra := f.Backlog - f.Rate*a.Target.Seconds(); extra > 1 {
		d.Rate += extra / drainTime.Seconds()
		why += fmt.Sprintf(", %s waiting", plain(f.Backlog))
	}
	if f.Service <= 0 || d.Rate <= 0 {
		d.Wanted = a.Min
		d.Reason = "no load"
		if f.Service <= 0 && d.Rate > 0 {
			d.Wanted = min(max(f.Replicas, a.Min), a.Max)
			d.Reason = why + ": service times are not known yet"
		}
		return
	}
	c := least(a, f, d.Rate, outGuard)
	d.Wanted, d.Time, d.Utilisation, d.Now, d.Unreachable = c.n, c.time, c.utilisation, c.now, c.unreachable
	d.Reason = fmt.Sprintf("%s of %s ms each: %d would take %s, busy for %.0f %%", why, plain(1000*f.Service), c.n, milliseconds(c.time), 100*c.utilisation)
	if c.why != "" {
		d.Reason += "; " + c.why
	}
	if f.Utilisation > outGuard && f.Ready >= f.Replicas && d.Wanted <= f.Replicas && f.Replicas < a.Max {
		d.Wanted = f.Replicas + 1
		d.Reason += fmt.Sprintf("; but the busiest is busy for %.0f %%", 100*f.Utilisation)
	}
}

func milliseconds(seconds float64) string {
	if math.IsInf(seconds, 1) {
		return "for ever"
	}
	return plain(1000*seconds) + " ms"
}

// plain writes a figure with three digits, or with all that are before the point.
func plain(v float64) string {
	if math.Abs(v) >= 999.5 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// choice is a number of replicas, and what the model says of it.
type choice struct {
	n                 int
	time, utilisation float64
	now               float64 // time with the replicas that there are; 0 if it has none
	why               string  // what is not plain
	unreachable       string  // why no number reaches the target
}

// least returns the fewest replicas that reach the target with a utilisation
// below guard. If no number reaches the target, it returns the first to which one more replica
// adds little.
func least(a plan.Autoscale, f Figures, rate, guard float64) choice {
	q := size.Question{
		Rate: rate, ArrivalSCV: 1, Service: f.Service, ServiceSCV: min(f.ServiceSCV, 100), Dispersion: f.Dispersion,
		Percentile: a.Percentile, Forms: []size.Form{size.Copies}, Processors: []int{0}, Dispatch: simulate.Random,
	}
	for n := min(a.Min, f.Replicas); n <= max(a.Max, f.Replicas); n++ {
		q.Counts = append(q.Counts, max(n, 1))
	}
	answer, _ := size.Solve(q) // an error says that all are overloaded, as the curve does
	curve, c := answer.Curve, choice{}
	if i := slices.IndexFunc(curve, func(p size.Point) bool { return p.N == f.Replicas }); i >= 0 && !math.IsInf(curve[i].Formula.Time, 1) {
		c.now = curve[i].Formula.Time
	}
	curve = slices.DeleteFunc(curve, func(p size.Point) bool { return p.N < a.Min || p.N > a.Max })
	shortest := math.Inf(1)
	for _, p := range curve {
		shortest = min(shortest, p.Formula.Time)
	}
	target := a.Target.Seconds()
	if shortest > target {
		c.why = unreachable(a, f)
	}
	for i, p := range curve {
		good := p.Formula.Time <= target
		if c.why != "" {
			good = i == len(curve)-1 || curve[i+1].Formula.Time > (1-gain)*p.Formula.Time
		}
		if good && p.Utilisation <= guard && !math.IsInf(p.Formula.Time, 1) {
			c.n, c.time, c.utilisation, c.unreachable = p.N, p.Formula.Time, p.Utilisation, c.why
			return c
		}
	}
	c.n, c.time, c.utilisation, c.why = a.Max, math.Inf(1), rate*f.Service/float64(a.Max), "more than the bounds allow are needed"
	if n := len(curve); n > 0 {
		c.time = curve[n-1].Formula.Time
	}
	c.unreachable = c.why
	return c
}

// unreachable says why no number of replicas reaches the target.
func unreachable(a plan.Autoscale, f Figures) string {
	alone, of := f.Service, "on average"
	if a.Percentile > 0 {
		alone, of = size.Percentile(a.Percentile, f.Service, f.Service*f.Service*f.ServiceSCV), fmt.Sprintf("at p%g", a.Percentile)
	}
	if alone > a.Target.Seconds() {
		return fmt.Sprintf("no number reaches %v: the service alone takes %s %s", a.Target, milliseconds(alone), of)
	}
	return fmt.Sprintf("nothing up to %d replicas reaches the target of %v", a.Max, a.Target)
}

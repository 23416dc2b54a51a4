// Package scaler decides how many replicas a worker should have, from live
// figures, by the queueing formulas of plan/size. It is pure: time and figures
// are passed in, and what it remembers is a value.
//
// Only deploy imports it.
package scaler

import (
	"fmt"
	"math"
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
	// near is by which share a time may be longer than the least that can be
	// reached, if the target cannot.
	near = 0.1
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
	// Forecast is the rate that is forecast; 0 if none is.
	Forecast float64
	Late     bool // replicas are not ready in time
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
	d.want(a, f)
	fewer := d.Wanted
	if d.Wanted < f.Replicas && d.Rate > 0 && f.Service > 0 { // what would do, with room to spare
		fewer = least(a, f, d.Rate, inGuard).n
	}
	switch {
	case f.Replicas < a.Min || f.Replicas > a.Max:
		d.To = min(max(f.Replicas, a.Min), a.Max)
		d.Reason = fmt.Sprintf("the bounds are %d to %d", a.Min, a.Max)
		s.Since = time.Time{}
	case d.Wanted > f.Replicas:
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
	d.Wanted, d.Time, d.Utilisation = c.n, c.time, c.utilisation
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
	why               string // what is not plain
}

// least returns the fewest replicas that reach the target with a utilisation
// below guard; the nearest to that if none do.
func least(a plan.Autoscale, f Figures, rate, guard float64) choice {
	q := size.Question{
		Rate: rate, ArrivalSCV: 1, Service: f.Service, ServiceSCV: min(f.ServiceSCV, 100), Dispersion: f.Dispersion,
		Percentile: a.Percentile, Forms: []size.Form{size.Copies}, Processors: []int{0}, Dispatch: simulate.Random,
	}
	for n := a.Min; n <= a.Max; n++ {
		q.Counts = append(q.Counts, n)
	}
	answer, _ := size.Solve(q) // an error says that all are overloaded, as the curve does
	shortest := math.Inf(1)
	for _, p := range answer.Curve {
		shortest = min(shortest, p.Formula.Time)
	}
	target, why := a.Target.Seconds(), ""
	if shortest > target {
		target = shortest * (1 + near)
		why = fmt.Sprintf("nothing reaches the target of %v", a.Target)
	}
	for _, p := range answer.Curve {
		if p.Formula.Time <= target && p.Utilisation <= guard {
			return choice{p.N, p.Formula.Time, p.Utilisation, why}
		}
	}
	c := choice{n: a.Max, time: math.Inf(1), utilisation: rate * f.Service / float64(a.Max), why: "more than the bounds allow are needed"}
	if n := len(answer.Curve); n > 0 {
		c.time = answer.Curve[n-1].Formula.Time
	}
	return c
}

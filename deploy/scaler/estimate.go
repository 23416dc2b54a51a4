package scaler

import "time"

// Estimate is the service time of a replica for an arrival, by the processor
// time that replicas have used. The zero Estimate knows none.
type Estimate struct {
	Seconds float64 // 0: not known
	// measured says that Seconds is by processor time.
	measured bool
	// most is arrivals per second of what has counted; it sinks slowly.
	most float64
}

const (
	// busyEnough is the utilisation above which the processor time per arrival is
	// taken for the service time: below, it is mostly that of other work.
	busyEnough = 0.1
	// fewestArrivals is how many a span must have to count.
	fewestArrivals = 20
	// news is the weight of a span that counts.
	news = 0.3
	// forgetting is the share of most that is left after a busy second that did not
	// count.
	forgetting = 0.98
)

// Measured reports whether the service time is by processor time, and not only supposed.
func (e Estimate) Measured() bool { return e.measured }

// Remembered returns an estimate that an earlier process had measured.
func Remembered(seconds float64) Estimate { return Estimate{Seconds: seconds, measured: seconds > 0} }

// Supposed returns the estimate with a service time that counts until one is
// measured.
func (e Estimate) Supposed(seconds float64) Estimate {
	if e.Seconds == 0 {
		e.Seconds = seconds
	}
	return e
}

// Used returns the estimate after a span in which replicas had arrivals, and
// worked for so many seconds in all. The span counts if they were busy, with half
// as many arrivals as in the spans before at least: with fewer, as when a load
// has ended, they are busy with other work, such as entries that expire. A load of
// fewer arrivals counts when it has lasted for a while.
func (e Estimate) Used(span time.Duration, arrivals, worked, utilisation float64) Estimate {
	if span <= 0 || arrivals < fewestArrivals || worked <= 0 || utilisation <= busyEnough {
		return e
	}
	rate := arrivals / span.Seconds()
	if rate < e.most/2 {
		e.most *= forgetting
		return e
	}
	e.most = max(rate, e.most*forgetting)
	if each := worked / arrivals; e.measured {
		e.Seconds += news * (each - e.Seconds)
	} else {
		e.Seconds, e.measured = each, true
	}
	return e
}

package nf

import (
	"math"
	"math/rand/v2"
	"time"
)

// shape is a load over time: packet-ins per second at each second of a period.
type shape struct {
	name string
	// at returns the share of the highest rate at a share of the period.
	at func(phase float64) float64
	// long is the period of a full run.
	long time.Duration
}

// The rates: lowRate is less than one replica carries, highRate nearly what all
// of them carry together.
const (
	lowRate  = 120.0
	highRate = 1200.0
	// quickPeriod is the period of all loads in a quick run, the shortest that can
	// be forecast.
	quickPeriod = time.Minute
)

func shapes() []shape {
	return []shape{
		{"ramp", func(p float64) float64 { return 1 - math.Abs(2*p-1) }, 2 * time.Minute},
		// A day: low at night, with a peak in the morning and a higher one in the evening.
		{"day", func(p float64) float64 {
			peak := func(at, width, height float64) float64 { return height * math.Exp(-(p-at)*(p-at)/(2*width*width)) }
			return min(1, peak(0.4, 0.09, 0.7)+peak(0.75, 0.08, 1))
		}, 10 * time.Minute},
		{"step", func(p float64) float64 {
			if p < 0.25 || p >= 0.75 {
				return 0
			}
			return 1
		}, 2 * time.Minute},
		{"burst", func(p float64) float64 {
			if p >= 0.3 && p < 0.36 || p >= 0.7 && p < 0.76 {
				return 1
			}
			return 0
		}, 2 * time.Minute},
	}
}

// period returns how long the load takes.
func (s shape) period(quick bool) time.Duration {
	if quick {
		return quickPeriod
	}
	return s.long
}

// rates returns the packet-ins of each second of a period; two periods of one day
// differ by a tenth at most.
func (s shape) rates(seed uint64, quick bool) []int {
	rng := rand.New(rand.NewPCG(seed, uint64(len(s.name))))
	list := make([]int, int(s.period(quick).Seconds()))
	for i := range list {
		r := lowRate + (highRate-lowRate)*s.at((float64(i)+0.5)/float64(len(list)))
		if s.name == "day" {
			r *= 0.95 + 0.1*rng.Float64()
		}
		list[i] = int(r)
	}
	return list
}

// sourcePorts is how many ports the simulated switch has.
const sourcePorts = 16

// hostsFor returns how many hosts have so many flows between them.
func hostsFor(flows int) int {
	n := 4 * sourcePorts
	for n*n*(sourcePorts-1)/sourcePorts-n < flows {
		n += sourcePorts
	}
	return n
}

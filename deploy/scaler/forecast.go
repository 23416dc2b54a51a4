package scaler

import (
	"slices"
	"time"
)

// Forecast predicts a rate with a season by the additive method of Holt and
// Winters (Winters, Forecasting sales by exponentially weighted moving averages,
// 1960). It predicts nothing before it has seen a whole season.
type Forecast struct {
	step         time.Duration
	began        time.Time // of the first step
	steps        int       // that are complete
	sum          float64   // of the rates of the step under way
	count        int
	level, trend float64
	seasonal     []float64
}

// stepsOfSeason is into how many steps a season is divided.
const stepsOfSeason = 120

// The weights of what is new.
const (
	levelWeight, trendWeight, seasonWeight = 0.05, 0.01, 0.4
)

// observe returns the forecast with a rate taken into account; the zero one if
// there is no season.
func (f Forecast) observe(season time.Duration, rate float64, now time.Time) Forecast {
	if season <= 0 {
		return Forecast{}
	}
	if step := season / stepsOfSeason; f.step != step || now.Before(f.began) || now.Sub(f.began) > 1000*season {
		f = Forecast{step: step, began: now}
	}
	at := int(now.Sub(f.began) / f.step)
	if at > f.steps && f.count > 0 {
		f.seasonal = slices.Clone(f.seasonal)
		mean := f.sum / float64(f.count)
		if at-f.steps > stepsOfSeason { // nothing was seen for a season: begin again
			return Forecast{step: f.step, began: now, sum: rate, count: 1}
		}
		for f.steps < at { // one for each step, also of those without figures
			f.complete(mean)
		}
		f.sum, f.count = 0, 0
	}
	f.sum += rate
	f.count++
	return f
}

// complete takes the rate of a step into account.
func (f *Forecast) complete(rate float64) {
	if len(f.seasonal) < stepsOfSeason { // the first season
		f.seasonal = append(f.seasonal, rate)
		f.steps++
		if len(f.seasonal) == stepsOfSeason {
			for _, r := range f.seasonal {
				f.level += r / stepsOfSeason
			}
			for i := range f.seasonal {
				f.seasonal[i] -= f.level
			}
		}
		return
	}
	i := f.steps % stepsOfSeason
	before := f.level
	f.level = levelWeight*(rate-f.seasonal[i]) + (1-levelWeight)*(f.level+f.trend)
	f.trend = trendWeight*(f.level-before) + (1-trendWeight)*f.trend
	f.seasonal[i] = seasonWeight*(rate-f.level) + (1-seasonWeight)*f.seasonal[i]
	f.steps++
}

// highest returns the highest rate that is forecast from now until a replica
// that is started now has worked for a step; 0 if nothing is forecast.
func (f Forecast) highest(now time.Time, start time.Duration) (rate float64) {
	if f.step == 0 || f.steps < stepsOfSeason {
		return 0
	}
	last := int(now.Add(start+f.step).Sub(f.began) / f.step)
	for at := f.steps; at <= min(last, f.steps+stepsOfSeason); at++ {
		rate = max(rate, f.level+float64(at-f.steps+1)*f.trend+f.seasonal[at%stepsOfSeason])
	}
	return rate
}

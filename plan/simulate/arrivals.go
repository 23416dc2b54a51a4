package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Bursts make arrivals come in bursts: several at the same time, or at a rate that
// rises and falls.
type Bursts struct {
	Batch Batch
	// Waves are independent of each other. With any, packets or batches are a Poisson
	// process of the rate that they make, whatever the law of the arrivals.
	Waves []Wave
}

// Batch is how many packets come at the same time: a geometric number, or always
// about the same one.
type Batch struct {
	Mean     float64 // 0 and 1: packets come one by one
	Constant bool    // the mean, or the numbers next to it
}

// Wave has the rate of packets change between two values, by shares of the mean
// rate above and below it, after exponential times: it is above for a mean of
// Time·(Up+Down)/Up, and below for one of Time·(Up+Down)/Down. Time is the constant
// with which the correlation of the rate decays.
type Wave struct {
	Up, Down float64
	Time     float64
}

// Excess is the squared coefficient of variation of the number of packets that come
// together.
func (b Batch) Excess() float64 {
	if b.Mean <= 1 {
		return 0
	}
	if b.Constant {
		part := b.Mean - math.Floor(b.Mean)
		return part * (1 - part) / (b.Mean * b.Mean)
	}
	return 1 - 1/b.Mean
}

// Size is the mean number of packets that come together.
func (b Batch) Size() float64 { return max(1, b.Mean) }

// Index is the index of dispersion over a time: the variance of the packets that
// come in it, to their mean; exact for packets at a rate in Poisson batches.
func (b Bursts) Index(rate, time float64) float64 {
	index := b.Batch.Size() * (1 + b.Batch.Excess())
	for _, w := range b.Waves {
		index += w.Up * w.Down * rate * w.rise(time)
	}
	return index
}

// rise is what a wave adds to the index over a time, for a rate and a variance of 1.
func (w Wave) rise(time float64) float64 {
	x := time / w.Time
	if x < 1e-4 {
		return time
	}
	return 2 * w.Time * (1 - (1-math.Exp(-x))/x)
}

// check says what is wrong with bursts.
func (b *Bursts) check() error {
	if b == nil {
		return nil
	}
	if m := b.Batch.Mean; m != 0 && !(m >= 1 && m <= 1e6) {
		return fmt.Errorf("batches of %v: want 1 to 1e6 packets on average", m)
	}
	down := 0.0
	for _, w := range b.Waves {
		if down += w.Down; !(w.Up > 0 && w.Down > 0 && w.Time > 0) || math.IsInf(w.Up+w.Time, 0) {
			return fmt.Errorf("wave of %v and %v over %v: want numbers above 0", w.Up, w.Down, w.Time)
		}
	}
	if down > 1+exact {
		return fmt.Errorf("waves of %v below the mean rate: want at most 1", down)
	}
	return nil
}

// arrivals draws the times between packets.
type arrivals struct {
	*sampler // of the times between batches
	bursts   *Bursts
	rate     float64 // of batches, on average
	high     []bool  // which of the waves are
	now      float64 // the share of rate at which batches come
	changes  float64 // how many of the waves change in a unit of time
	left     int     // of the packets that came with the last
	batch    Batch
	copies   int // packets are dealt to so many, and these are those of one; 0: these are all
	turns    bool
}

func newArrivals(l Law, b *Bursts, source rand.Source) *arrivals {
	a := &arrivals{bursts: b}
	if b != nil {
		a.batch = b.Batch
	}
	l.Mean *= a.batch.Size()
	a.sampler, a.rate = newSampler(l, source), 1/l.Mean
	if a.waves() {
		for _, w := range b.Waves {
			a.high = append(a.high, a.random.Float64()*(w.Up+w.Down) < w.Down)
		}
		a.turned()
	}
	return a
}

func (a *arrivals) waves() bool { return a.bursts != nil && len(a.bursts.Waves) > 0 }

// turned adds up the waves.
func (a *arrivals) turned() {
	a.now, a.changes = 1, 0
	for i, w := range a.bursts.Waves {
		if a.high[i] {
			a.now += w.Up
		} else {
			a.now -= w.Down
		}
		a.changes += w.change(a.high[i])
	}
	a.now = max(0, a.now)
}

// change is how often a wave falls or rises, in a unit of time in which it could.
func (w Wave) change(high bool) float64 {
	if high {
		return w.Up / (w.Up + w.Down) / w.Time
	}
	return w.Down / (w.Up + w.Down) / w.Time
}

// deal makes the arrivals those of one of several copies, and returns their law.
func (a *arrivals) deal(copies int, d Dispatch) Law {
	n, l := float64(copies), Law{Mean: a.mean / a.batch.Size(), SCV: a.scv}
	if a.turns = d == RoundRobin; a.turns {
		a.copies = copies
		return Law{Mean: n * l.Mean, SCV: l.SCV / n}
	}
	if poisson := a.kind == exponential || a.waves(); poisson && (a.batch.Size() == 1 || !a.batch.Constant) {
		// Of a Poisson process a share is one again, and of a geometric number, too.
		whole := a.batch.Size()
		a.batch.Mean = 1 + (whole-1)/n
		a.mean *= n * a.batch.Mean / whole
		a.rate = 1 / a.mean
	} else {
		a.copies = copies
	}
	return Law{Mean: n * l.Mean, SCV: 1 + (l.SCV-1)/n}
}

// draw returns the time to the next packet.
func (a *arrivals) draw() float64 {
	between := a.one()
	switch {
	case a.copies == 0:
	case a.turns:
		for range a.copies - 1 {
			between += a.one()
		}
	default:
		for a.random.IntN(a.copies) > 0 {
			between += a.one()
		}
	}
	return between
}

// one returns the time to the next packet, whichever copy gets it.
func (a *arrivals) one() float64 {
	if a.left > 0 {
		a.left--
		return 0
	}
	if a.batch.Mean > 1 {
		a.left = a.following()
	}
	if a.waves() {
		return a.next()
	}
	return a.sampler.draw()
}

// following returns how many packets come with the first of a batch.
func (a *arrivals) following() int {
	if a.batch.Constant {
		n, part := math.Modf(a.batch.Mean)
		if a.random.Float64() < part {
			n++
		}
		return int(n) - 1
	}
	return int(math.Log(1-a.random.Float64()) / math.Log(1-1/a.batch.Mean))
}

// next returns the time to the next packet or batch, on the waves.
func (a *arrivals) next() (between float64) {
	for {
		rate := a.rate * a.now
		between += a.random.ExpFloat64() / (rate + a.changes)
		x := a.random.Float64() * (rate + a.changes)
		if x < rate {
			return between
		}
		x -= rate
		for i, w := range a.bursts.Waves {
			if x -= w.change(a.high[i]); x < 0 || i == len(a.high)-1 {
				a.high[i] = !a.high[i]
				a.turned()
				break
			}
		}
	}
}

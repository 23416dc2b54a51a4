package nf

import (
	"math"
	"time"
)

// threshold scales by a threshold of processor use, as the horizontal autoscaler
// of Kubernetes does: replicas are wanted in proportion to use, unless it is
// within a tenth of the threshold; of what was wanted during the cooldown the
// most counts for fewer.
type threshold struct {
	at       float64 // share of the replicas' processor time
	min, max int
	cooldown time.Duration
	wishes   []wish
}

// wish is what was wanted at a time.
type wish struct {
	at time.Duration
	n  int
}

// tolerance is by how much use may differ from the threshold.
const tolerance = 0.1

// decide returns how many replicas there should be, by the mean use of those that
// there are.
func (t *threshold) decide(now time.Duration, replicas int, use float64) int {
	want := replicas
	if ratio := use / t.at; math.Abs(ratio-1) > tolerance {
		want = int(math.Ceil(float64(replicas)*ratio - 1e-9))
	}
	want = min(max(want, t.min), t.max)
	t.wishes = append(t.wishes, wish{now, want})
	for len(t.wishes) > 1 && now-t.wishes[0].at > t.cooldown {
		t.wishes = t.wishes[1:]
	}
	most := want
	for _, w := range t.wishes {
		most = max(most, w.n)
	}
	if want < replicas {
		return min(replicas, most)
	}
	return want
}

// world is what the threshold is tuned with: replicas of a capacity, in packets
// a second, that are ready a while after they are wanted.
type world struct {
	capacity float64
	start    time.Duration
	target   time.Duration
}

// play simulates a load, second by second, as a flow of packets into one queue.
// It returns the packets that take longer than the target, and the seconds of
// replicas.
func (w world) play(rates []int, t threshold) (late, instanceSeconds float64) {
	n, backlog := t.min, 0.0
	ready := []time.Duration{0} // of the replicas, when each is
	for len(ready) < n {
		ready = append(ready, 0)
	}
	for i, rate := range rates {
		now := time.Duration(i) * time.Second
		working := 0.0
		for _, at := range ready {
			working += min(1, max(0, (now+time.Second-at).Seconds()))
		}
		working = max(working, 1)
		can := working * w.capacity
		load := float64(rate) + backlog
		left := max(0, load-can)
		if left > 0 || backlog > can*w.target.Seconds() {
			late += float64(rate) // all of this second wait behind others
		} else { // the tail of one queue of random packets each
			late += float64(rate) * math.Exp(-(w.capacity-load/working)*w.target.Seconds())
		}
		backlog = left
		instanceSeconds += float64(n)
		want := t.decide(now, n, min(1, load/can))
		for len(ready) < want {
			ready = append(ready, now+time.Second+w.start)
		}
		ready = ready[:max(want, 1)]
		n = want
	}
	return late, instanceSeconds
}

// thresholds are those that are tried.
func thresholds() []float64 { return []float64{0.4, 0.5, 0.6, 0.7, 0.8, 0.9} }

// tune returns the threshold with the least product of late packets, of which a
// hundredth of all count always, and seconds of replicas.
func (w world) tune(rates []int, t threshold) threshold {
	all := 0.0
	for _, r := range rates {
		all += float64(r)
	}
	best, least := t, math.Inf(1)
	for _, at := range thresholds() {
		try := t
		try.at = at
		late, seconds := w.play(rates, try)
		if cost := max(late, all/100) * seconds; cost < least {
			best, least = try, cost
		}
	}
	return best
}

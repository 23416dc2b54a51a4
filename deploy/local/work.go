package local

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/internal/loglinear"
)

// Work counts the work of one kind: the packets of a stage, or the calls of a
// method. It counts every arrival and measures the time of about one in 64.
type Work struct {
	count    atomic.Uint64
	arrivals atomic.Pointer[arrivals] // nil before the first

	mu       sync.Mutex // guards what follows
	times    Times
	services histogram
	passages histogram // of packets whose first stage here this is, from arrival to the end of the last
}

// histogram counts times; nil before the first.
type histogram struct{ buckets *[loglinear.Buckets]uint32 }

// add counts a time.
func (h *histogram) add(d time.Duration) {
	if h.buckets == nil {
		h.buckets = new([loglinear.Buckets]uint32)
	}
	if n := &h.buckets[loglinear.Of(d)]; *n < math.MaxUint32 {
		*n++
	}
}

// list returns the buckets that have times.
func (h *histogram) list() (list []Bucket) {
	if h.buckets == nil {
		return nil
	}
	for i, n := range h.buckets {
		if n > 0 {
			from, to := loglinear.Bounds(i)
			list = append(list, Bucket{from, to, n})
		}
	}
	return list
}

// Times are sums over the arrivals that were measured. Units are seconds.
type Times struct {
	Count   uint64
	Sum     float64
	Squares float64
	// Waits counts the measurements of waiting time, between the arrival of a
	// packet in this process and its first stage here; WaitSum is their sum.
	Waits   uint64
	WaitSum float64
}

// Since returns the sums of what was measured after an earlier time.
func (t Times) Since(before Times) Times {
	return Times{t.Count - before.Count, t.Sum - before.Sum, t.Squares - before.Squares, t.Waits - before.Waits, t.WaitSum - before.WaitSum}
}

// Mean returns the mean service time in seconds; 0 if nothing was measured.
func (t Times) Mean() float64 {
	if t.Count == 0 {
		return 0
	}
	return t.Sum / float64(t.Count)
}

// SCV returns the squared coefficient of variation of the service time; 0 if
// fewer than two were measured.
func (t Times) SCV() float64 {
	m := t.Mean()
	if t.Count < 2 || m == 0 {
		return 0
	}
	return max(0, t.Squares/float64(t.Count)/(m*m)-1)
}

// sampleShift selects one number of 64 on average, without a period that the
// size of batches could share.
const sampleShift = 58

// chosen reports whether the time of the nth arrival is measured.
func chosen(n uint64) bool { return n*0x9e3779b97f4a7c15>>sampleShift == 0 }

// arrive counts an arrival whose time is not known, and reports whether its
// service is to be measured.
func (w *Work) arrive() bool { return chosen(w.count.Add(1)) }

// arriveAt counts n arrivals at a time, in nanoseconds since 1970.
func (w *Work) arriveAt(n uint64, at int64) {
	w.count.Add(n)
	a := w.arrivals.Load()
	if a == nil {
		w.arrivals.CompareAndSwap(nil, &arrivals{began: at / slotLength})
		a = w.arrivals.Load()
	}
	a.add(at/slotLength, n)
}

// took records a measured service time.
func (w *Work) took(d time.Duration) {
	s := d.Seconds()
	w.mu.Lock()
	w.times.Count++
	w.times.Sum += s
	w.times.Squares += s * s
	w.services.add(d)
	w.mu.Unlock()
}

// passed records how long a packet was in this process.
func (w *Work) passed(d time.Duration) {
	w.mu.Lock()
	w.passages.add(d)
	w.mu.Unlock()
}

// Bucket is how many times of a histogram were from one to another.
type Bucket struct {
	From, To time.Duration
	Count    uint32
}

// Histograms returns the measured service times, and how long packets were in this process
// whose first stage this is; without empty buckets.
func (w *Work) Histograms() (services, passages []Bucket) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.services.list(), w.passages.list()
}

// waited records a measured waiting time. One below zero, after a step of the
// clock, counts as none.
func (w *Work) waited(d time.Duration) {
	w.mu.Lock()
	w.times.Waits++
	w.times.WaitSum += max(0, d.Seconds())
	w.mu.Unlock()
}

// Count returns the number of arrivals.
func (w *Work) Count() uint64 { return w.count.Load() }

// Times returns what was measured so far.
func (w *Work) Times() Times {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.times
}

// Rate returns the arrivals per second over the span before now; false if their
// times are not known.
func (w *Work) Rate(now time.Time, span time.Duration) (float64, bool) {
	a := w.arrivals.Load()
	if a == nil {
		return 0, false
	}
	counts := a.read(now.UnixNano()/slotLength, int(int64(span)/slotLength))
	var sum float64
	for _, c := range counts {
		sum += float64(c)
	}
	return sum / span.Seconds(), true
}

// Dispersion is the index of dispersion of arrivals over windows of a length:
// the variance of their number to its mean. It is 1 for Poisson arrivals. The
// variance is that of neighbouring windows, so that a rate that changes slowly
// does not count.
type Dispersion struct {
	Over  time.Duration
	Index float64
}

// Dispersion returns the indices of dispersion of the last 40 s, for those
// windows of 10 ms to 10 s that fit in four times since the first arrival.
func (w *Work) Dispersion(now time.Time) []Dispersion {
	a := w.arrivals.Load()
	if a == nil {
		return nil
	}
	return dispersion(a.read(now.UnixNano()/slotLength, slots-1))
}

// slotLength is the shortest window of arrivals in nanoseconds, and slots the
// number of windows kept: about 41 s.
const (
	slotLength = int64(10 * time.Millisecond)
	slots      = 4096
	slotBits   = 24 // of a slot: the count; above it the number of the window
)

// arrivals counts the arrivals in windows of slotLength. A window replaces the
// one a lap before.
type arrivals struct {
	began int64 // first window
	slots [slots]atomic.Uint64
}

func (a *arrivals) add(window int64, n uint64) {
	at := &a.slots[uint64(window)%slots]
	for {
		old := at.Load()
		next := uint64(window)<<slotBits | min(n, 1<<slotBits-1)
		if old>>slotBits == uint64(window)&(1<<(64-slotBits)-1) {
			next = old + min(n, 1<<slotBits-1-old&(1<<slotBits-1))
		}
		if at.CompareAndSwap(old, next) {
			return
		}
	}
}

// read returns the counts of the windows before one, oldest first: those since
// the first arrival, at most n.
func (a *arrivals) read(before int64, n int) []uint32 {
	n = max(0, int(min(int64(n), slots-1, before-a.began)))
	counts := make([]uint32, n)
	for i := range counts {
		window := uint64(before - int64(n-i))
		if v := a.slots[window%slots].Load(); v>>slotBits == window&(1<<(64-slotBits)-1) {
			counts[i] = uint32(v & (1<<slotBits - 1))
		}
	}
	return counts
}

// dispersion computes indices of dispersion from counts of consecutive windows;
// longer windows overlap by three quarters.
func dispersion(counts []uint32) (list []Dispersion) {
	sums := make([]float64, len(counts)+1)
	for i, c := range counts {
		sums[i+1] = sums[i] + float64(c)
	}
	for length := 1; length <= 1000 && 4*length <= len(counts); length *= 10 {
		var sum, squares float64
		for from := 0; from+2*length <= len(counts); from += max(1, length/4) {
			one, next := sums[from+length]-sums[from], sums[from+2*length]-sums[from+length]
			sum += one + next
			squares += (next - one) * (next - one)
		}
		if sum > 0 {
			list = append(list, Dispersion{time.Duration(int64(length) * slotLength), squares / sum})
		}
	}
	return list
}

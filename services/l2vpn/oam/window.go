package oam

import "slices"

// Window is how many probes of a lane are looked at: the last ones.
const Window = 128

// A Measure is what the probes of a window say. Times are in microseconds.
type Measure struct {
	Sent   int // probes whose fate is known
	Lost   int
	P50    uint32
	P99    uint32
	Max    uint32
	Jitter uint32  // the mean difference between one and the next (RFC 3393, 3550)
	Loss   float64 // 0 to 1
}

// The states of a probe in a window; others are its delay in microseconds.
const (
	unsent  int32 = -1 - iota
	waiting       // sent, not come back
	lost
	void // its fate says nothing about the circuit
)

// window is the last probes of a lane, by their sequence numbers.
type window struct {
	next   uint32 // sequence number
	oldest uint32 // the first that may still be waiting
	delay  [Window]int32
	sent   [Window]int64
}

func (w *window) clear() {
	for i := range w.delay {
		w.delay[i] = unsent
	}
	w.oldest = w.next
}

// send enters a probe and returns its sequence number.
func (w *window) send(now int64) uint32 {
	seq := w.next
	w.next++
	if w.next-w.oldest > Window { // it has waited for a whole window
		if w.delay[w.oldest%Window] == waiting {
			w.delay[w.oldest%Window] = void
		}
		w.oldest++
	}
	w.delay[seq%Window], w.sent[seq%Window] = waiting, now
	return seq
}

// arrive enters the return of a probe after a time; false if none of that number
// and time is waited for: it comes twice, or too late.
func (w *window) arrive(seq uint32, sent, delay int64) bool {
	i := seq % Window
	if w.next-seq-1 >= Window || w.delay[i] != waiting || w.sent[i] != sent {
		return false
	}
	w.delay[i] = int32(min(max(delay/1000, 0), 1<<30))
	return true
}

// expire gives up probes sent before a time: those sent until answered are lost,
// and of the others nothing can be said. It returns how many are lost.
func (w *window) expire(before, answered int64) (n uint64) {
	for ; w.oldest != w.next; w.oldest++ {
		i := w.oldest % Window
		if w.delay[i] != waiting {
			continue
		}
		if w.sent[i] >= before {
			return n
		}
		if w.delay[i] = void; w.sent[i] <= answered {
			w.delay[i] = lost
			n++
		}
	}
	return n
}

// last returns what the last n probes say whose fate is known.
func (w *window) last(n int) (m Measure) {
	var delays [Window]int32
	k, before, differences, steps := 0, int32(-1), int64(0), int64(0)
	for back := uint32(1); back <= Window && m.Sent < n; back++ {
		switch d := w.delay[(w.next-back)%Window]; {
		case d >= 0:
			if before >= 0 {
				differences += int64(max(d-before, before-d))
				steps++
			}
			before = d
			delays[k] = d
			k++
			m.Sent++
		case d == lost:
			m.Sent++
			m.Lost++
		}
	}
	if m.Sent > 0 {
		m.Loss = float64(m.Lost) / float64(m.Sent)
	}
	if k > 0 {
		list := delays[:k]
		slices.Sort(list)
		m.P50, m.P99, m.Max = uint32(list[(k-1)/2]), uint32(list[(99*k+99)/100-1]), uint32(list[k-1])
	}
	if steps > 0 {
		m.Jitter = uint32(differences / steps)
	}
	return m
}

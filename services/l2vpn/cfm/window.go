package cfm

import "slices"

// kept is how many delay messages are looked at: the last ones.
const kept = 64

// A window is the last delay messages to an end point.
type window struct {
	list []probe // in the order of sending
	any  bool    // one has been answered
}

// A probe is a delay message.
type probe struct {
	sent  int64
	delay int64 // nanoseconds; waiting, or lost
}

const (
	waiting = -1
	lost    = -2
)

// send enters a message, and gives those up that are older than a time.
func (w *window) send(now, patience int64) {
	for i := range w.list {
		if p := &w.list[i]; p.delay == waiting && now-p.sent >= patience {
			p.delay = lost
		}
	}
	w.list = append(w.list, probe{now, waiting})
	w.list = w.list[max(0, len(w.list)-kept):]
}

// arrive enters the answer to the message that was sent at a time.
func (w *window) arrive(sent, delay int64) {
	for i := range w.list {
		if p := &w.list[i]; p.sent == sent && p.delay == waiting {
			p.delay, w.any = max(0, delay), true
		}
	}
}

// measure returns what the messages say; nothing of one that never answers any.
func (w *window) measure() (m Measure) {
	var delays []uint32
	var differences, before int64
	for _, p := range w.list {
		switch {
		case !w.any || p.delay == waiting:
			continue
		case p.delay == lost:
			m.Lost++
		default:
			if len(delays) > 0 {
				differences += max(p.delay-before, before-p.delay)
			}
			before = p.delay
			delays = append(delays, uint32(min(p.delay/1000, 1<<31)))
		}
		m.Sent++
	}
	n := len(delays)
	if n == 0 {
		return m
	}
	if n > 1 {
		m.Jitter = uint32(differences / int64(n-1) / 1000)
	}
	slices.Sort(delays)
	m.P50, m.P99, m.Max = delays[(n-1)/2], delays[(99*n+99)/100-1], delays[n-1]
	return m
}

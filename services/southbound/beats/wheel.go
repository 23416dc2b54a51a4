package beats

import "time"

// wheel is a timing wheel that turns once per interval. Its members are divided
// evenly among slots, which are due one after the other, so that each member is
// due once per interval and the work is spread.
type wheel struct {
	interval int64 // ns; 0: the wheel does not turn
	slots    [][]*Beat
}

// Bounds of slots: more of them spread the work better and cost more timers.
const (
	slotsMost = 50
	slotLeast = 2 * time.Millisecond
)

// newWheel returns a wheel without members.
func newWheel(interval time.Duration) wheel {
	return wheel{interval: int64(interval), slots: make([][]*Beat, min(slotsMost, max(1, int(interval/slotLeast))))}
}

// add adds a member to the slot that has fewest.
func (w *wheel) add(m *Beat) {
	m.slot = 0
	for i := range w.slots {
		if len(w.slots[i]) < len(w.slots[m.slot]) {
			m.slot = i
		}
	}
	m.place = len(w.slots[m.slot])
	w.slots[m.slot] = append(w.slots[m.slot], m)
}

// drop removes a member.
func (w *wheel) drop(m *Beat) {
	s := w.slots[m.slot]
	last := len(s) - 1
	moved := s[last]
	s[m.place], s[last] = moved, nil
	moved.place = m.place
	w.slots[m.slot] = s[:last]
}

// hand points at the slot that is due next, in ns of the clock.
type hand struct {
	start int64 // of this revolution
	slot  int
}

// due returns when the slot is due.
func (h *hand) due(w *wheel) int64 {
	return h.start + w.interval*int64(h.slot)/int64(len(w.slots))
}

// next moves on to the next slot.
func (h *hand) next(w *wheel) {
	if h.slot++; h.slot == len(w.slots) {
		h.slot, h.start = 0, h.start+w.interval
	}
}

// skip moves on by whole revolutions until the hand is less than one behind
// at, and returns by how many.
func (h *hand) skip(w *wheel, at int64) int64 {
	n := max(0, (at-h.due(w))/w.interval)
	h.start += n * w.interval
	return n
}

// first returns when the first slot with members is due, from a hand on; never
// if there is none.
func (w *wheel) first(h hand) int64 {
	for range w.slots {
		if len(w.slots[h.slot]) > 0 {
			return h.due(w)
		}
		h.next(w)
	}
	return never
}

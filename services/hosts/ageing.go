package hosts

import (
	"math"
	"net/netip"

	"weft/flow"
)

// advance does what happens by itself by now: claims are decided, hosts at lost
// places and silent ones given up. Questions to hosts go into d. It returns
// when there is something to do again.
func (t *table) advance(now int64, d *flow.Decision) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now < t.deadline {
		return t.deadline
	}
	t.deadline = math.MaxInt64
	t.judge(now, d)
	t.evict(now)
	t.age(now, d)
	return t.deadline
}

// age gives up hosts that have been silent for Age, and asks those that have
// been for four fifths and nine tenths of it.
func (t *table) age(now int64, d *flow.Decision) {
	age := int64(t.cfg.Age)
	t.all(func(h *host) {
		seen := h.seen.Load()
		silent := now - seen
		if silent >= age {
			t.remove(h)
			return
		}
		next := seen + age*8/10
		if silent >= age*8/10 {
			if now-h.asked >= age/10 {
				h.asked = now
				t.ask(h, netip.Addr{}, d)
			}
			next = min(h.asked+age/10, seen+age)
		}
		t.due(max(next, now+age/100))
	})
}

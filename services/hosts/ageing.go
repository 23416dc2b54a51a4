package hosts

import (
	"net/netip"

	"github.com/weft-sdn/weft/flow"
)

// advance does the work that is due by time: it decides claims, and gives up
// silent hosts and those at lost places. Questions and announcements to hosts
// go into d, which is empty.
func (t *table) advance(now int64, d *flow.Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.asking.Empty() {
		*d, t.asking = t.asking, *d
	}
	t.notices.send(now, d)
	if t.questions.due.hasPassed(now) {
		t.questions.askNewHosts(now, d)
	}
	if t.claims.due.hasPassed(now) {
		t.decideClaims(now, d)
	}
	if t.places.evicting.hasPassed(now) {
		t.places.evict(now, t.claims.at, t.vacate)
	}
	if t.ageing.hasPassed(now) {
		t.age(now, d)
	}
}

// age gives up hosts that have been silent for Age, and asks those that have
// been silent for four fifths and nine tenths of it.
func (t *table) age(now int64, d *flow.Decision) {
	age := int64(t.cfg.Age)
	t.index.all(func(h *host) {
		seen := max(h.seen.Load(), h.spared)
		silent := now - seen
		if silent >= age {
			t.remove(h)
			return
		}
		if s := h.permit; s == nil || len(s.ips) < len(h.addresses) || s.sw.permitted > t.cfg.NeighbourEntries {
			t.permits.update(now, h) // there may be room now, or none any more
		}
		next := seen + age*8/10
		if silent >= age*8/10 {
			if now-h.asked >= age/10 {
				h.asked = now
				t.questions.ask(h, netip.Addr{}, d)
			}
			next = min(h.asked+age/10, seen+age)
		}
		t.ageing.moveUp(max(next, now+age/100))
	})
}

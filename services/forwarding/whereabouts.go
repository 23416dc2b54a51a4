package forwarding

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// whereabouts holds the places of hosts, as the hosts service reports them.
type whereabouts struct {
	mu    sync.Mutex // guards all below
	at    map[knownHost]flow.Location
	gone  map[knownHost]bool // hosts reported gone, up to goneMax
	held  map[knownHost]bool // those of at that a stage holds; they have no routes
	fresh []knownHost        // not yet connected to the others, in proactive mode
	moved []movedHost        // whose routes must be looked at once more

	anyHeld atomic.Bool // held is not empty
}

// movedHost is a host whose routes may have been computed with a former place.
type movedHost struct {
	mac flow.MAC
	at  time.Time
}

// goneMax bounds the remembered hosts that have gone.
const goneMax = 1 << 16

func newWhereabouts() *whereabouts {
	return &whereabouts{at: map[knownHost]flow.Location{}, gone: map[knownHost]bool{}, held: map[knownHost]bool{}}
}

func vlanKey(vlan uint32) uint16 {
	if vlan == 0 {
		return 0
	}
	return uint16(vlan) | flow.VLANPresent
}

// update records an event about a host. It reports whether the host may have
// routes from now on, and whether it no longer may have any.
func (w *whereabouts) update(k knownHost, ev *api.HostChanged) (free, held bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.anyHeld.Store(len(w.held) > 0) }()
	_, known := w.at[k]
	was := w.held[k]
	if ev.Change == "gone" {
		delete(w.at, k)
		delete(w.held, k)
		if len(w.gone) >= goneMax {
			clear(w.gone)
		}
		w.gone[k] = true
		return false, false
	}
	delete(w.gone, k)
	w.at[k] = ev.Host.At.Flow()
	if len(ev.Host.HeldBy) > 0 {
		w.held[k] = true
		return false, !was
	}
	delete(w.held, k)
	return !known || was, false
}

// holds reports whether a stage holds one of the hosts of a route.
func (w *whereabouts) holds(p pair, rewrite []flow.Action) bool {
	if !w.anyHeld.Load() {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held[knownHost{p.src, p.vlan}] || w.held[receiver(p, rewrite)]
}

// lacks reports whether one of the hosts of a route was reported gone. Its next
// packet must come to the controller, so that it is found again.
func (w *whereabouts) lacks(p pair, rewrite []flow.Action) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone[knownHost{p.src, p.vlan}] || w.gone[receiver(p, rewrite)]
}

// ends returns the places of the hosts of a route, if they are known; equal
// places if one of them is gone.
func (w *whereabouts) ends(r *route) (from, to flow.Location) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from, to = r.ends()
	src, dst := knownHost{r.src, r.vlan}, receiver(r.pair, r.rewrite)
	if w.gone[src] || w.gone[dst] {
		return from, from
	}
	if at, known := w.at[src]; known {
		from = at
	}
	if at, known := w.at[dst]; known {
		to = at
	}
	return from, to
}

// agree reports whether a route connects the present places of its hosts.
func (w *whereabouts) agree(r *route, from, to flow.Location) bool {
	f, t := w.ends(r)
	return f == from && t == to
}

// agreeOnEnds reports whether a route connects the present places of its hosts by its
// own first and last port.
func (w *whereabouts) agreeOnEnds(r *route) bool {
	from, to := r.ends()
	return w.agree(r, from, to)
}

// place returns the place of a host.
func (w *whereabouts) place(k knownHost) (at flow.Location, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, known = w.at[k]
	return at, known
}

// lookAgain has the routes of hosts looked at once more after a second: a packet
// or another instance may have programmed one with a former place meanwhile.
func (w *whereabouts) lookAgain(now time.Time, hosts ...flow.MAC) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, mac := range hosts {
		w.moved = append(w.moved, movedHost{mac, now})
	}
}

// takeDue removes and returns the hosts whose routes must be checked now.
func (w *whereabouts) takeDue(now time.Time) (list []routeKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.moved) > 0 && now.Sub(w.moved[0].at) >= againSoon {
		list = append(list, keyOfHost(w.moved[0].mac))
		w.moved = w.moved[1:]
	}
	if len(w.moved) == 0 {
		w.moved = nil
	}
	return list
}

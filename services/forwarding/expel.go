package forwarding

import (
	"sync"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// expulsion is the routes that were removed because a stage holds one of their
// hosts. A packet that was decided on before may still have them programmed
// when it comes back, so they are removed once more, and again when no packet
// can be on its way any more.
type expulsion struct {
	mu   sync.Mutex // guards list
	list []expelled
}

type expelled struct {
	r    *route
	at   time.Time
	once bool // it was removed once more
}

// When routes are removed once more: packets take that long at most, and a
// packet that waits for a process that is away is given up after 10 s.
const (
	expelSoon  = time.Second
	expelLater = 15 * time.Second
)

// expel removes the routes of a host that a stage holds. Only the owner of a
// route has its entries removed.
func (e *engine) expel(host knownHost) {
	var own, others []*route
	e.routes.find([]routeKey{keyOfHost(host.mac)}, func(r *route) {
		if (knownHost{r.src, r.vlan}) != host && receiver(r.pair, r.rewrite) != host {
			return
		}
		if e.replicas.owns(r.pair) {
			own = append(own, r)
		} else {
			others = append(others, r)
		}
	})
	for _, r := range others {
		e.replace(r, nil)
	}
	now := e.now()
	e.move(relocation{routes: own, began: now, reason: "host held", ends: func(r *route) (from, to flow.Location) {
		from, _ = r.ends()
		return from, from
	}})
	e.expelled.add(own, now)
}

// expelLate removes routes of hosts that are held, which another instance has
// programmed before it heard of that.
func (e *engine) expelLate(list []*route, now time.Time) {
	d := &flow.Decision{}
	for _, r := range list {
		e.program.remove(d, r, nil)
	}
	e.sendExpelled(d)
	e.expelled.add(list, now)
}

func (x *expulsion) add(list []*route, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range list {
		x.list = append(x.list, expelled{r: r, at: now})
	}
}

// due returns the routes that are to be removed once more.
func (x *expulsion) due(now time.Time) (list []*route) {
	x.mu.Lock()
	defer x.mu.Unlock()
	left := x.list[:0]
	for _, one := range x.list {
		age := now.Sub(one.at)
		if age >= expelSoon && !one.once || age >= expelLater {
			one.once = true
			list = append(list, one.r)
		}
		if age < expelLater {
			left = append(left, one)
		}
	}
	clear(x.list[len(left):])
	x.list = left
	return list
}

// expelAgain removes the entries of expelled routes once more, unless their
// hosts have been approved meanwhile.
func (e *engine) expelAgain(now time.Time) {
	d := &flow.Decision{}
	for _, r := range e.expelled.due(now) {
		if e.hosts.holds(r.pair, r.rewrite) {
			e.program.remove(d, r, nil)
		}
	}
	e.sendExpelled(d)
}

func (e *engine) sendExpelled(d *flow.Decision) {
	if d.Empty() {
		return
	}
	if _, err := e.send(d); err != nil {
		e.log.Error("routes of held hosts not removed", "error", err)
	}
}

package chain

import (
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// holdMost is how long the entries of a switch are left as they are at most, while what
// they depend on is not known; and quiet how long no news of it comes when all is.
const (
	holdMost = time.Minute
	quiet    = 500 * time.Millisecond
)

// held are switches that have connected before the service knew the roles of their
// ports, the hosts and the ways to functions, as after a restart: the entries that they have hold until
// then, for a set that lacks some would let packets past the functions.
type held struct {
	mu  sync.Mutex // guards the following
	all map[flow.DPID]waiting
}

type waiting struct {
	ev    *api.SwitchChanged
	since time.Time
}

func (h *held) keep(sw flow.DPID, e *api.SwitchChanged, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	since := now
	if w, is := h.all[sw]; is {
		since = w.since
	}
	h.all[sw] = waiting{e, since}
}

func (h *held) drop(sw flow.DPID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, sw)
}

// release returns the news of the switches that need not wait any longer; rest reports
// whether there are others.
func (h *held) release(ready func(flow.DPID, time.Time) bool, now time.Time) (list []*api.SwitchChanged, rest bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for sw, w := range h.all {
		if ready(sw, now) || now.Sub(w.since) >= holdMost {
			list = append(list, w.ev)
			delete(h.all, sw)
		}
	}
	return list, len(h.all) > 0
}

// keysOf returns the keys of entries, as switches and services tell them.
func keysOf(list []*api.FlowEntry) map[flow.EntryKey]bool {
	all := map[flow.EntryKey]bool{}
	for _, m := range list {
		if _, e, err := m.Entry(); err == nil {
			all[e.Key()] = true
		}
	}
	return all
}

// flowsObserved takes what entries of chains a switch has.
func (b *store) flowsObserved(e *api.FlowsObserved) {
	sw, err := flow.ParseDPID(e.GetDpid())
	if err != nil || e.Owner != flow.OwnerChains.String() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.observed[sw] = keysOf(e.Flows); len(e.Flows) == 0 {
		delete(b.observed, sw)
	}
	object.Notify(b.ways)
}

// disown has it published that ports are of no function which an entry of a switch names as
// those of one: their chain was deleted while the switch was away.
func (b *store) disown(e *api.FlowsObserved) {
	if e.GetOwner() != flow.OwnerChains.String() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range e.Flows {
		sw, entry, err := m.Entry()
		if at := (flow.Location{Switch: sw, Port: entry.Match.Key.InPort}); err == nil && entry.Priority == flow.PriorityChainPort && !b.taken[at] {
			b.said[at] = true
			object.Notify(b.news)
		}
	}
}

// knows reports whether the hosts and the ways to functions are known since the start. It
// is called with mu held.
func (b *store) knows(now time.Time) bool {
	b.settled = b.settled || b.whole && len(b.at) > 0 && now.Sub(b.told) >= quiet
	return b.settled
}

// ready reports whether the entries of a switch can be whole: all that it has are
// among those that it is to have, as far as it has told them.
func (b *store) ready(sw flow.DPID, now time.Time) bool {
	b.mu.Lock()
	none, known := b.chains.Len() == 0, b.knows(now) && b.roles[sw]
	has, info := b.observed[sw], b.net.Info(sw)
	b.mu.Unlock()
	if none || !known || len(has) == 0 {
		return none || known
	}
	wanted := keysOf(b.want(info).GetFlows())
	for p := range has {
		if !wanted[p] {
			return false
		}
	}
	return true
}

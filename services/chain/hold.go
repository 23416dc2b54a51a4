package chain

import (
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// The entries of a switch hold for holdMost at most, while it is not known what they
// depend on. quiet is how long no news of that comes once all is known: hosts and ways
// follow the links and roles of ports, and nobody says when they have.
const (
	holdMost = time.Minute
	quiet    = 500 * time.Millisecond
)

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

// flowsObserved takes what entries of chains a switch has. Ports that these name as those
// of functions, and that are of none, are published as such: their chain was deleted while
// the switch was away.
func (b *store) flowsObserved(e *api.FlowsObserved) {
	sw, err := flow.ParseDPID(e.GetDpid())
	if err != nil || e.Owner != flow.OwnerChains.String() {
		return
	}
	damaged := b.damaged()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.observed[sw] = keysOf(e.Flows)
	for p := range b.observed[sw] {
		if at := (flow.Location{Switch: sw, Port: p.Match.Key.InPort}); p.Priority == flow.PriorityChainPort && !b.taken[at] && !damaged {
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

// hold returns how much longer a switch that has connected keeps its entries, as after a
// restart: a set that lacks some would let packets past the functions. It is given its set
// when all that it has, as far as it has told, is in it.
func (b *store) hold(info *api.Switch) time.Duration {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil {
		return 0
	}
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := b.held[sw].Sub(now)
	switch {
	case rest <= 0:
		return 0
	case b.chains.Len() == 0:
	case !b.whole || len(b.at) == 0 || b.net.RolesLen(sw) == 0:
		return rest
	case !b.knows(now):
		return min(rest, b.told.Add(quiet).Sub(now))
	case len(b.observed[sw]) > 0:
		var list []*api.FlowEntry
		for _, e := range b.entries(sw, info) {
			list = append(list, api.NewFlowEntry(sw, &e))
		}
		wanted := keysOf(list)
		for p := range b.observed[sw] {
			if !wanted[p] {
				return rest
			}
		}
	}
	b.held[sw] = time.Time{}
	return 0
}

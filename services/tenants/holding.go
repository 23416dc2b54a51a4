package tenants

import (
	"strconv"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// holding is the switches that have connected and of which is not known yet
// what an earlier run has left there: to declare their entries now could take
// links out of use for a moment, as what is a link is known by those entries.
type holding map[flow.DPID]held

type held struct {
	event *api.SwitchChanged
	until time.Time
}

// holdMax is how long a switch is waited for.
const holdMax = 3 * time.Second

// switchChanged takes the event of the southbound, and reports whether it is
// to be acted upon now.
func (b *book) switchChanged(now time.Time, e *api.SwitchChanged) bool {
	sw, err := flow.ParseDPID(e.GetSwitch().GetDpid())
	if err != nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.scene.switches[sw]
	b.scene.switchChanged(e)
	if !e.Switch.Connected {
		delete(b.holding, sw)
		return true
	}
	if old.GetConnected() {
		if h, waits := b.holding[sw]; waits {
			b.holding[sw] = held{e, h.until}
			return false
		}
		return true
	}
	b.holding[sw] = held{e, now.Add(holdMax)}
	return false
}

// observed takes what flowrules has read of a switch, and returns the event
// that was held back for it, if any.
func (b *book) observed(now time.Time, e *api.FlowsObserved) *api.SwitchChanged {
	sw, err := flow.ParseDPID(e.GetDpid())
	if err != nil || e.Owner != flow.OwnerTenants.String() {
		return nil
	}
	var links []flow.Port
	for _, f := range e.Flows {
		if port, err := strconv.ParseUint(f.Match["in_port"], 10, 32); err == nil && f.Table == uint32(flow.TableIngress) && f.Priority == flow.PriorityTenantLink {
			links = append(links, flow.Port(port))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scene.presume(now, sw, links)
	h := b.holding[sw]
	delete(b.holding, sw)
	return h.event
}

// due returns the events that have been held back for long enough; of switches
// whose ports are known, all if settled is said. And the switches of which
// something else is wanted now.
func (b *book) due(now time.Time, settled bool) (events []*api.SwitchChanged, changed []flow.DPID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for sw, h := range b.holding {
		if now.After(h.until) || settled && b.scene.settled(sw) {
			delete(b.holding, sw)
			events = append(events, h.event)
		}
	}
	return events, b.scene.expire(now)
}

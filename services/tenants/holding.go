package tenants

import (
	"strconv"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// holding is the connected switches whose entries of an earlier run are not known
// yet. To declare their entries now could disable links for a moment, because
// those entries show which ports are links.
type holding map[flow.DPID]held

type held struct {
	event *api.SwitchChanged
	until time.Time
}

// holdMax is how long to wait for a switch.
const holdMax = 3 * time.Second

// switchChanged handles the southbound's event, and reports whether to act on it
// now.
func (b *store) switchChanged(now time.Time, e *api.SwitchChanged) bool {
	sw, err := flow.ParseDPID(e.GetSwitch().GetDpid())
	if err != nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.view.switches[sw]
	b.view.switchChanged(e)
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

// observed handles flowrules' reading of a switch, and returns the event held
// back for it, if any.
func (b *store) observed(now time.Time, e *api.FlowsObserved) *api.SwitchChanged {
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
	b.view.presume(now, sw, links)
	h := b.holding[sw]
	delete(b.holding, sw)
	return h.event
}

// due returns the events that have been held back for long enough; with settled,
// all events of switches whose ports are known. It also returns the switches
// whose wanted entries have changed.
func (b *store) due(now time.Time, settled bool) (events []*api.SwitchChanged, changed []flow.DPID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for sw, h := range b.holding {
		if now.After(h.until) || settled && b.view.settled(sw) {
			delete(b.holding, sw)
			events = append(events, h.event)
		}
	}
	return events, b.view.expire(now)
}

package tenants

import (
	"cmp"
	"strconv"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// holding is the connected switches whose entries of an earlier run are not known
// yet. To declare their entries now could disable links for a moment, because
// those entries show which ports are links.
type holding map[flow.DPID]held

type held struct {
	event *api.SwitchChanged
	until time.Time
}

// session is one connection of a switch. flowrules reports the entries of a switch in
// each; the southbound's event about it may come earlier or later.
type session struct{ since, address string }

// holdMax is how long to wait for a switch.
const holdMax = 3 * time.Second

// effects are what follows from a change of the network.
type effects struct {
	switches []*api.SwitchChanged // to act on now
	entries  []flow.DPID          // switches whose entries are to be declared anew
	all      bool                 // or those of all
	segments bool                 // segments may have changed
}

// networkChanged follows a change of the network.
func (b *store) networkChanged(now time.Time, c nib.Change) (e effects) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.view.net = c.Is
	for _, s := range c.Switches() {
		e.segments = true
		e.switches = append(e.switches, b.switchChanged(now, s)...)
	}
	for _, r := range c.Roles() {
		at := cmp.Or(r.Is, r.Was).Key
		if b.view.roleChanged(now, at, roleOf(r.Was), roleOf(r.Is)) {
			e.segments = true
			e.entries = append(e.entries, at.Switch)
		}
	}
	for _, h := range c.Hosts() {
		admission, segment := b.hostChanged(h)
		e.all, e.segments = e.all || admission, e.segments || segment
	}
	return e
}

// switchChanged follows a change of a switch, and returns the events to act on
// now. It is called with mu held.
func (b *store) switchChanged(now time.Time, s nib.Step[nib.Switch]) []*api.SwitchChanged {
	if s.Is == nil {
		return nil // nobody says anything of it any more
	}
	sw, is := s.Is.Key, s.Is.Is
	switch h, waits := b.holding[sw]; {
	case !is.Switch.Connected:
		delete(b.holding, sw)
		return []*api.SwitchChanged{is}
	case nib.Anew(s) || !s.Was.Is.Switch.Connected:
		var list []*api.SwitchChanged
		if s.Was != nil { // it was gone meanwhile
			list = append(list, &api.SwitchChanged{Switch: &api.Switch{Dpid: is.Switch.Dpid}})
		}
		if is.Switch.Since != "" && b.reported[sw] == (session{is.Switch.Since, is.Switch.Address}) {
			return append(list, is) // its entries are known already
		}
		b.holding[sw] = held{is, now.Add(holdMax)}
		return list
	case waits:
		b.holding[sw] = held{is, h.until}
		return nil
	}
	return []*api.SwitchChanged{is}
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
	b.reported[sw] = session{e.Since, e.Address}
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

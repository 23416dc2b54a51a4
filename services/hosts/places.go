package hosts

import (
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A place is a port where hosts live. table.mu guards it, except its location,
// which never changes.
type place struct {
	flow.Location
	sw    *attached
	down  bool
	since int64 // of down
	role  flow.PortRole
	ofEnd bool // it is the whole end of a circuit: who is there is the circuit's
	hosts map[*host]struct{}

	leaving bool // it is in table.leaving
}

// attached is a switch.
type attached struct {
	gone      bool
	awaited   bool  // hosts of an earlier run are there, and it has not connected yet
	since     int64 // since when it is gone, or awaited
	places    map[flow.Port]*place
	macs      map[flow.Port]string // MAC addresses of its ports when it last connected
	table     uint8                // flow table for routes
	permitted int                  // entries of its hosts' permits
	leaving   bool                 // it is in table.leaving
}

// away reports whether hosts at the switch will be given up if this lasts.
func (a *attached) away() bool { return a.gone || a.awaited }

// alive reports whether hosts at the place can be heard and reached.
func (p *place) alive() bool {
	return !p.down && !p.sw.gone && !p.ofEnd && p.role != flow.RoleLink && p.role != flow.RoleBlocked && !p.role.OfHybrid()
}

// lost reports whether hosts at the place must be given up.
func (p *place) lost(cfg *Config, now int64) bool {
	switch {
	case p.ofEnd || p.role == flow.RoleLink || p.role.OfHybrid():
		return true
	case p.sw.away():
		return now-p.sw.since >= int64(cfg.SwitchGrace)
	case p.down:
		return now-p.since >= int64(cfg.PortGrace)
	}
	return false
}

// attached returns the record of a switch; it makes one if there is none.
func (t *table) attached(sw flow.DPID) *attached {
	a := t.switches[sw]
	if a == nil {
		a = &attached{places: map[flow.Port]*place{}, table: flow.TableForward}
		t.switches[sw] = a
		t.shareCaches()
	}
	return a
}

// place returns the record of a port; it makes one if there is none.
func (t *table) place(at flow.Location) *place {
	a := t.attached(at.Switch)
	p := a.places[at.Port]
	if p == nil {
		p = &place{Location: at, sw: a, role: flow.RoleEdge, ofEnd: t.ends[at], hosts: map[*host]struct{}{}}
		if t.links[at] {
			p.role = flow.RoleLink
		}
		a.places[at.Port] = p
	}
	return p
}

// settled returns the record of a port, nil if no hosts live there.
func (t *table) settled(at flow.Location) *place {
	if a := t.switches[at.Switch]; a != nil {
		return a.places[at.Port]
	}
	return nil
}

// switchChanged handles a switch that has connected, with its ports, or is
// gone.
func (t *table) switchChanged(now int64, sw flow.DPID, connected bool, ports []*api.Port) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.attached(sw)
	if a.gone == connected || a.awaited {
		a.gone, a.awaited, a.since = !connected, false, now
	}
	if !connected {
		t.awaitSwitch(now+int64(t.cfg.SwitchGrace), sw, a)
		return
	}
	listed, macs := map[flow.Port]bool{}, make(map[flow.Port]string, len(ports))
	for _, p := range ports {
		n := flow.Port(p.GetPort())
		listed[n], macs[n] = true, p.GetMac()
		if was, known := a.macs[n]; known && was != macs[n] {
			t.vacate(a.places[n])
		}
		t.portLocked(now, sw, p, false)
	}
	a.macs = macs
	for n, p := range a.places {
		if !listed[n] {
			t.lower(now, p)
		}
		t.repeat(now, p)
	}
}

// vacate gives up the hosts at a port that now is another device. p may be nil.
func (t *table) vacate(p *place) {
	if p == nil {
		return
	}
	for h := range p.hosts {
		t.remove(h)
	}
}

// forgetSwitch gives up the hosts at a switch.
func (t *table) forgetSwitch(sw flow.DPID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.switches[sw]
	if a == nil {
		return
	}
	for _, p := range a.places {
		t.vacate(p)
	}
	if a.away() {
		delete(t.switches, sw)
		t.shareCaches()
	}
}

// routesIn records the table in which a switch has its routes.
func (t *table) routesIn(now int64, sw flow.DPID, table uint8) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.attached(sw)
	if a.table == table {
		return
	}
	a.table = table
	for _, p := range a.places {
		t.updatePermitsAt(now, p)
	}
}

// repeat publishes the hosts of an earlier run again once their port is
// present.
func (t *table) repeat(now int64, p *place) {
	if !p.alive() || p.sw.awaited {
		return
	}
	for h := range p.hosts {
		if h.repeat {
			t.news.add(h)
			t.call(now, h)
		}
	}
}

// portChanged handles a port that was added, modified or removed.
func (t *table) portChanged(now int64, sw flow.DPID, p *api.Port, removed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.portLocked(now, sw, p, removed)
}

func (t *table) portLocked(now int64, sw flow.DPID, msg *api.Port, removed bool) {
	p := t.attached(sw).places[flow.Port(msg.GetPort())]
	switch {
	case p == nil: // no host there: nothing to remember
	case removed || !msg.GetUp():
		t.lower(now, p)
	default:
		p.down = false
		t.repeat(now, p)
	}
}

// lower handles a port that has gone down.
func (t *table) lower(now int64, p *place) {
	if !p.down {
		p.down, p.since = true, now
		t.judging.at(now)
	}
	t.awaitPort(p.since+int64(t.cfg.PortGrace), p)
}

// roleChanged handles a new role of a port: hosts are not on links.
func (t *table) roleChanged(now int64, at flow.Location, role string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if role == flow.RoleLink.String() {
		t.links[at] = true
	} else {
		delete(t.links, at)
	}
	t.admit(now, at, role == flow.RoleEdge.String())
	p := t.attached(at.Switch).places[at.Port]
	if p == nil {
		return
	}
	if r, known := flow.ParsePortRole(role); known {
		p.role = r
	}
	if p.role == flow.RoleLink || p.role.OfHybrid() {
		t.vacate(p)
	}
	t.updatePermitsAt(now, p)
	t.repeat(now, p)
}

// endChanged handles that a port is the whole end of a circuit, or is no more.
func (t *table) endChanged(now int64, at flow.Location, is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.ends, at); is {
		t.ends[at] = true
	}
	p := t.attached(at.Switch).places[at.Port]
	if p == nil {
		return
	}
	if p.ofEnd = is; is {
		t.vacate(p)
	}
	t.updatePermitsAt(now, p)
}

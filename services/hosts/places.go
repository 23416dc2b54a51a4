package hosts

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A place is a port where hosts live. table.mu guards it, except its location,
// which never changes.
type place struct {
	flow.Location
	sw    *switchState
	down  bool
	since int64 // of down
	role  flow.PortRole
	hosts map[*host]struct{}

	leaving bool // it is in places.leaving
}

// placeText returns a port as SWITCH/PORT.
func placeText(at flow.Location) string {
	return fmt.Sprintf("%x/%d", uint64(at.Switch), uint32(at.Port))
}

// switchState is the state of a switch.
type switchState struct {
	gone      bool
	awaited   bool  // hosts of an earlier run are there, and it has not connected yet
	since     int64 // since when it is gone, or awaited
	connected int64 // when it last connected
	places    map[flow.Port]*place
	macs      map[flow.Port]string // MAC addresses of its ports when it last connected
	table     uint8                // flow table for routes
	permitted int                  // entries of its hosts' permits
	leaving   bool                 // it is in places.leaving
}

// isAway reports whether the hosts at the switch will be given up if it stays so.
func (a *switchState) isAway() bool { return a.gone || a.awaited }

// isReachable reports whether hosts at the place can send and receive.
func (p *place) isReachable() bool {
	return !p.down && !p.sw.gone && p.role != flow.RoleLink && p.role != flow.RoleBlocked && !p.role.OfHybrid()
}

// isLost reports whether hosts at the place must be given up.
func (p *place) isLost(cfg *Config, now int64) bool {
	switch {
	case p.role == flow.RoleLink || p.role.OfHybrid():
		return true
	case p.sw.isAway():
		return now-p.sw.since >= int64(cfg.SwitchGrace)
	case p.down:
		return now-p.since >= int64(cfg.PortGrace)
	}
	return false
}

// places holds the switches, the ports where hosts live, and which of them are soon to be
// checked or forgotten. table.mu guards it, except cacheRoom.
type places struct {
	cfg       *Config      // the table's
	cacheRoom atomic.Int64 // how many recent hosts of a switch are remembered
	switches  map[flow.DPID]*switchState
	links     map[flow.Location]bool            // ports that are links
	ends      map[flow.Location]map[uint16]bool // VLAN identifiers at ports whose frames are circuits'; 0: all frames
	leaving   leavings
	empty     map[*place]struct{} // without hosts
	evicting  deadline            // of leaving and empty
}

func newPlaces(cfg *Config) places {
	return places{
		cfg: cfg, switches: map[flow.DPID]*switchState{}, links: map[flow.Location]bool{}, ends: map[flow.Location]map[uint16]bool{},
		empty: map[*place]struct{}{}, evicting: math.MaxInt64,
	}
}

// cacheMost bounds the hosts that a cache remembers, and thus its memory at 256
// KiB, for switches with so many. cachesMost bounds those of all together.
const (
	cacheMost  = 8192
	cachesMost = 1 << 19
)

// switchOf returns the state of a switch, and creates it if there is none.
func (s *places) switchOf(sw flow.DPID) *switchState {
	a := s.switches[sw]
	if a == nil {
		a = &switchState{places: map[flow.Port]*place{}, table: flow.TableForward}
		s.switches[sw] = a
		s.shareCaches()
	}
	return a
}

// shareCaches divides the room for recent hosts among the switches; mu is held.
func (s *places) shareCaches() {
	s.cacheRoom.Store(int64(min(cacheMost, cachesMost/max(1, len(s.switches)))))
}

// place returns the record of a port; it makes one if there is none.
func (s *places) place(at flow.Location) *place {
	a := s.switchOf(at.Switch)
	p := a.places[at.Port]
	if p == nil {
		p = &place{Location: at, sw: a, role: flow.RoleEdge, hosts: map[*host]struct{}{}}
		if s.links[at] {
			p.role = flow.RoleLink
		}
		a.places[at.Port] = p
	}
	return p
}

// placeAt returns the place at a port, or nil if no hosts live there.
func (s *places) placeAt(at flow.Location) *place {
	if a := s.switches[at.Switch]; a != nil {
		return a.places[at.Port]
	}
	return nil
}

// setEnd is table.setCircuitEnd. It returns the place whose hosts may be a circuit's now,
// nil if there is none.
func (s *places) setEnd(at flow.Location, vlan uint16, is bool) *place {
	if !is {
		if delete(s.ends[at], vlan); len(s.ends[at]) == 0 {
			delete(s.ends, at)
		}
		return nil
	}
	if s.ends[at] == nil {
		s.ends[at] = map[uint16]bool{}
	}
	s.ends[at][vlan] = true
	return s.switchOf(at.Switch).places[at.Port]
}

// isCircuits reports whether what a host sends from a place is a circuit's.
func (s *places) isCircuits(p *place, who id) bool {
	of := s.ends[p.Location]
	return of[0] || of[who.vlan()&^flow.VLANPresent]
}

// switchChanged handles a switch that has connected, with its ports, or is
// gone.
func (t *table) switchChanged(now int64, sw flow.DPID, connected bool, ports []*api.Port) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.places.switchOf(sw)
	if a.gone == connected || a.awaited {
		a.gone, a.awaited, a.since = !connected, false, now
	}
	t.silences.forget(sw)
	if !connected {
		t.places.awaitSwitch(now+int64(t.cfg.SwitchGrace), sw, a)
		return
	}
	a.connected = now
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
		if !listed[n] && t.places.lower(now, p) {
			t.claims.due.moveUp(now)
		}
		repeat(now, p, t.news, &t.questions)
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
	a := t.places.switches[sw]
	if a == nil {
		return
	}
	for _, p := range a.places {
		t.vacate(p)
	}
	t.silences.forget(sw)
	if a.isAway() {
		delete(t.places.switches, sw)
		t.places.shareCaches()
	}
}

// repeat publishes the hosts of an earlier run again once their port is
// present.
func repeat(now int64, p *place, news *announcer, q *questions) {
	if p.sw.awaited || !p.isReachable() && (p.role != flow.RoleBlocked || p.down || p.sw.gone) {
		return
	}
	for h := range p.hosts {
		if h.repeat {
			news.add(h)
			if p.isReachable() {
				q.call(now, h)
			}
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
	p := t.places.switchOf(sw).places[flow.Port(msg.GetPort())]
	switch {
	case p == nil: // no host there: nothing to remember
	case removed || !msg.GetUp():
		if t.places.lower(now, p) {
			t.claims.due.moveUp(now)
		}
	default:
		p.down = false
		repeat(now, p, t.news, &t.questions)
	}
}

// lower handles a port that has gone down, and reports whether it was not before.
func (s *places) lower(now int64, p *place) bool {
	was := p.down
	if !was {
		p.down, p.since = true, now
	}
	s.awaitPort(p.since+int64(s.cfg.PortGrace), p)
	return !was
}

// roleChanged handles a new role of a port: hosts are not on links.
func (t *table) roleChanged(now int64, at flow.Location, role string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if role == flow.RoleLink.String() {
		t.places.links[at] = true
	} else {
		delete(t.places.links, at)
	}
	t.learnNoted(now, at, role == flow.RoleEdge.String())
	p := t.places.switchOf(at.Switch).places[at.Port]
	if p == nil {
		return
	}
	if r, known := flow.ParsePortRole(role); known {
		p.role = r
	}
	if p.role == flow.RoleLink || p.role.OfHybrid() {
		t.vacate(p)
	}
	t.permits.updateAt(now, p)
	repeat(now, p, t.news, &t.questions)
}

// setCircuitEnd records that all frames of a port, or with a VLAN identifier those of a VLAN
// there, are a circuit's, or are no more.
func (t *table) setCircuitEnd(at flow.Location, vlan uint16, is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.places.setEnd(at, vlan, is); p != nil {
		for h := range p.hosts {
			if t.places.isCircuits(p, h.id) {
				t.remove(h)
			}
		}
	}
}

package hosts

import (
	"container/heap"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// leavings holds the places and switches that are away, by the time when they
// are due for a check; each occurs once. Its cost depends on how many are away,
// not on how many exist. table.mu guards it.
type leavings []*leaving

// leaving is a place, or a switch, that is away.
type leaving struct {
	due int64
	p   *place // nil: the switch
	sw  flow.DPID
	a   *switchState
}

func (l leavings) Len() int           { return len(l) }
func (l leavings) Less(i, j int) bool { return l[i].due < l[j].due }
func (l leavings) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *leavings) Push(x any)        { *l = append(*l, x.(*leaving)) }
func (l *leavings) Pop() any {
	old := *l
	n := len(old) - 1
	x := old[n]
	old[n] = nil
	*l = old[:n]
	return x
}

// awaitPort schedules the check of a place for when it will be lost.
func (s *places) awaitPort(due int64, p *place) {
	if p.leaving {
		return // it is checked again then
	}
	p.leaving = true
	s.await(&leaving{due: due, p: p})
}

// awaitSwitch schedules the check of a switch for when it will be lost.
func (s *places) awaitSwitch(due int64, sw flow.DPID, a *switchState) {
	if a.leaving {
		return
	}
	a.leaving = true
	s.await(&leaving{due: due, sw: sw, a: a})
}

func (s *places) await(one *leaving) {
	heap.Push(&s.leaving, one)
	s.evicting.moveUp(s.leaving[0].due)
}

// popDue takes out the next that is to be checked, nil if none is due.
func (s *places) popDue(now int64) *leaving {
	if len(s.leaving) == 0 {
		return nil
	}
	if due := s.leaving[0].due; due > now {
		s.evicting.moveUp(due)
		return nil
	}
	return heap.Pop(&s.leaving).(*leaving)
}

// scheduleRemoval schedules the removal of a place without hosts.
func (s *places) scheduleRemoval(p *place) {
	if len(p.hosts) == 0 {
		s.empty[p] = struct{}{}
		s.evicting.moveUp(0)
	}
}

// removeEmpty forgets the places that have neither hosts nor claims.
func (s *places) removeEmpty(claimed map[flow.Location]int) {
	for p := range s.empty {
		if len(p.hosts) == 0 && claimed[p.Location] == 0 && p.sw.places[p.Port] == p {
			delete(p.sw.places, p.Port)
		}
	}
	clear(s.empty)
}

// forgetAfter is how long a lost switch without hosts is remembered.
const forgetAfter = int64(time.Minute)

// evict gives up the hosts at places that are lost, and forgets places
// without hosts and switches without places.
func (t *table) evict(now int64) {
	for one := t.places.popDue(now); one != nil; one = t.places.popDue(now) {
		if one.p != nil {
			t.evictPort(now, one.p)
		} else {
			t.evictSwitch(now, one.sw, one.a)
		}
	}
	t.places.removeEmpty(t.claims.at)
}

// evictPort checks a place that is due. evictSwitch handles places of a switch
// that is away; if the switch returns with the port still down, lower schedules
// the check anew.
func (t *table) evictPort(now int64, p *place) {
	p.leaving = false
	if p.isLost(t.cfg, now) {
		t.vacate(p)
		t.places.scheduleRemoval(p)
	} else if p.down && !p.sw.isAway() {
		t.places.awaitPort(p.since+int64(t.cfg.PortGrace), p)
	}
}

func (t *table) evictSwitch(now int64, sw flow.DPID, a *switchState) {
	a.leaving = false
	switch grace := int64(t.cfg.SwitchGrace); {
	case !a.isAway() || t.places.switches[sw] != a:
	case now-a.since < grace:
		t.places.awaitSwitch(a.since+grace, sw, a)
	case now-a.since > grace+forgetAfter && len(a.places) == 0:
		delete(t.places.switches, sw)
		t.places.shareCaches()
	default:
		for _, p := range a.places {
			t.vacate(p)
			t.places.scheduleRemoval(p)
		}
		t.places.awaitSwitch(now+forgetAfter+1, sw, a)
	}
}

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

// scheduleRemoval schedules the removal of a place without hosts.
func (s *places) scheduleRemoval(p *place) {
	if len(p.hosts) == 0 {
		s.empty[p] = struct{}{}
		s.evicting.moveUp(0)
	}
}

// forgetAfter is how long a lost switch without hosts is remembered.
const forgetAfter = int64(time.Minute)

// evict calls lost for places that are lost, whose hosts are to be given up, and forgets
// places without hosts and claims, and switches without places.
func (s *places) evict(now int64, claimed map[flow.Location]int, lost func(*place)) {
	for len(s.leaving) > 0 && s.leaving[0].due <= now {
		one := heap.Pop(&s.leaving).(*leaving)
		if one.p != nil {
			s.evictPort(now, one.p, lost)
		} else {
			s.evictSwitch(now, one.sw, one.a, lost)
		}
	}
	for p := range s.empty {
		if len(p.hosts) == 0 && claimed[p.Location] == 0 && p.sw.places[p.Port] == p {
			delete(p.sw.places, p.Port)
		}
	}
	clear(s.empty)
	if len(s.leaving) > 0 {
		s.evicting.moveUp(s.leaving[0].due)
	}
}

// evictPort checks a place that is due. evictSwitch handles places of a switch
// that is away; if the switch returns with the port still down, lower schedules
// the check anew.
func (s *places) evictPort(now int64, p *place, lost func(*place)) {
	p.leaving = false
	if p.isLost(s.cfg, now) {
		lost(p)
		s.scheduleRemoval(p)
	} else if p.down && !p.sw.isAway() {
		s.awaitPort(p.since+int64(s.cfg.PortGrace), p)
	}
}

func (s *places) evictSwitch(now int64, sw flow.DPID, a *switchState, lost func(*place)) {
	a.leaving = false
	switch grace := int64(s.cfg.SwitchGrace); {
	case !a.isAway() || s.switches[sw] != a:
	case now-a.since < grace:
		s.awaitSwitch(a.since+grace, sw, a)
	case now-a.since > grace+forgetAfter && len(a.places) == 0:
		delete(s.switches, sw)
		s.shareCaches()
	default:
		for _, p := range a.places {
			lost(p)
			s.scheduleRemoval(p)
		}
		s.awaitSwitch(now+forgetAfter+1, sw, a)
	}
}

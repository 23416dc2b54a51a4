package firewall

import (
	"sync"

	"github.com/weft-sdn/weft/flow"
)

// ruleset is all rules in force at a moment, for lookups. A published ruleset
// never changes.
type ruleset struct {
	version  uint64
	all      *classifier               // rules for wherever packets enter the network
	own      map[flow.DPID]*classifier // rules of one switch
	fallback string                    // the action for packets that meet no rule
	ownBack  map[flow.DPID]string      // the same, of one switch
	rules    int

	once   sync.Once // guards the entries compiled for switches without rules of their own
	common *program
}

// view is a ruleset as one switch applies it.
type view struct {
	set      *ruleset
	all, own *classifier
	deny     bool // packets that meet no rule
	block    bool // all packets
	local    bool // the switch has rules or a default of its own: packets from links are judged, too
	idle     bool // nothing is ever denied, and there is no rule
}

// view returns the rules of a switch.
func (s *ruleset) view(sw flow.DPID) view {
	v := view{set: s, all: s.all, own: s.own[sw]}
	fallback := s.fallback
	if f, ok := s.ownBack[sw]; ok {
		fallback, v.local = f, true
	}
	v.local = v.local || v.own != nil && v.own.size > 0
	v.deny, v.block = fallback != actionAllow, fallback == actionBlock
	v.idle = !v.deny && s.all.size == 0 && (v.own == nil || v.own.size == 0)
	return v
}

// judge returns the condition that decides on a packet, nil if none does, and
// whether the packet is denied. If trace is not nil, judge adds the bits that
// this depends on.
func (v *view) judge(s *search, w *words, trace *words) (*cond, bool) {
	if v.block {
		return nil, true
	}
	s.begin(w, trace)
	v.own.lookup(s)
	v.all.lookup(s)
	if s.best == nil {
		return nil, v.deny
	}
	return s.best, s.best.deny
}

// used returns what judge may look at in packets of a kind.
func (v *view) used(kind int) words {
	u := v.all.used[kind]
	if v.own != nil {
		u.add(&v.own.used[kind])
	}
	return u
}

// size returns how many rules' conditions apply.
func (v *view) size() int {
	n := v.all.size
	if v.own != nil {
		n += v.own.size
	}
	return n
}

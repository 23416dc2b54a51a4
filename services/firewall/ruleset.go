package firewall

import (
	"sync"

	"github.com/weft-sdn/weft/flow"
)

// ruleset is all rules in force at a moment, for lookups. It is not changed once
// it is published.
type ruleset struct {
	version  uint64
	all      *classifier               // rules for wherever packets enter the network
	own      map[flow.DPID]*classifier // rules of one switch
	fallback string                    // what becomes of packets that no rule is about
	ownBack  map[flow.DPID]string      // the same, of one switch
	rules    int

	once   sync.Once // guards what is compiled for switches without rules of their own
	common *program
}

// view is what a ruleset says of one switch.
type view struct {
	set      *ruleset
	all, own *classifier
	deny     bool // packets that no rule is about
	block    bool // all packets
	local    bool // the switch has rules or a default of its own: packets from links are judged, too
	idle     bool // nothing is ever denied, and there is no rule
}

// view returns what the rules say of a switch.
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
// whether the packet is denied. If trace is not nil, the bits that this depends
// on are added to it.
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

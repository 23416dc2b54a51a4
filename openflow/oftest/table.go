package oftest

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// entry is a flow entry with what the switch knows of it.
type entry struct {
	flow.Entry
	legacy  bool // added by OpenFlow 1.0, whose actions are more forgiving
	created time.Time
	used    time.Time
	packets uint64
	bytes   uint64
}

// miss reports whether e is a table-miss entry (§5.4).
func (e *entry) miss() bool { return e.Priority == 0 && e.Match.Set == 0 }

// table is one flow table, from the highest priority to the lowest, entries of
// one priority in the order in which they were added.
type table struct {
	entries []*entry
	lookups uint64
	matched uint64
}

// lookup returns the entry that a packet with these fields matches, nil if none does.
func (t *table) lookup(k *flow.Key, fields flow.FieldSet) *entry {
	t.lookups++
	for _, e := range t.entries {
		if e.Match.Set&^fields == 0 && e.Match.Matches(k) {
			t.matched++
			return e
		}
	}
	return nil
}

// find returns the entry of a match and priority, nil if there is none.
func (t *table) find(m *flow.Match, priority uint16) *entry {
	for _, e := range t.entries {
		if e.Priority == priority && e.Match == *m {
			return e
		}
	}
	return nil
}

// overlaps reports whether some packet could match both an entry of the same
// priority and m (§6.4, OFPFF_CHECK_OVERLAP).
func (t *table) overlaps(m *flow.Match, priority uint16) bool {
	for _, e := range t.entries {
		if e.Priority == priority && e.Match.Overlaps(m) {
			return true
		}
	}
	return false
}

// insert puts an entry behind all of its priority.
func (t *table) insert(e *entry) {
	i := 0
	for i < len(t.entries) && t.entries[i].Priority >= e.Priority {
		i++
	}
	t.entries = slices.Insert(t.entries, i, e)
}

// count counts a packet on an entry.
func (s *Switch) count(e *entry, octets int) {
	e.used = s.now
	if e.Flags&flow.FlagNoPackets == 0 {
		e.packets++
	}
	if e.Flags&flow.FlagNoBytes == 0 {
		e.bytes += uint64(octets)
	}
}

// stats returns an entry with its counters.
func (s *Switch) stats(e *entry) openflow.FlowStats {
	st := openflow.FlowStats{Entry: e.Clone(), Packets: e.packets, Bytes: e.bytes}
	st.DurationSec, st.DurationNsec = s.sinceParts(e.created)
	return st
}

// expire removes the entries whose time is up (§5.5).
func (s *Switch) expire() {
	over := func(since time.Time, seconds uint16) bool {
		return seconds > 0 && !s.now.Before(since.Add(time.Duration(seconds)*time.Second))
	}
	for t := range s.tables {
		s.tables[t].remove(func(e *entry) bool {
			switch {
			case over(e.created, e.HardTimeout):
				s.tellRemoved(e, openflow.RemovedHardTimeout)
			case over(e.used, e.IdleTimeout):
				s.tellRemoved(e, openflow.RemovedIdleTimeout)
			default:
				return false
			}
			return true
		})
	}
}

// remove removes the entries that gone asks it to.
func (t *table) remove(gone func(*entry) bool) { t.entries = slices.DeleteFunc(t.entries, gone) }

// removeUsing removes the entries that refer to a group or meter which is
// deleted (§6.5, §6.6).
func (s *Switch) removeUsing(uses func(*entry) bool, reason openflow.RemovedReason) {
	for t := range s.tables {
		s.tables[t].remove(func(e *entry) bool {
			if !uses(e) {
				return false
			}
			s.changed("entry", e.Entry, nil)
			s.tellRemoved(e, reason)
			return true
		})
	}
}

// tellRemoved sends a flow-removed where the entry asks for it (§7.4.2).
func (s *Switch) tellRemoved(e *entry, reason openflow.RemovedReason) {
	if e.Flags&flow.FlagSendRem == 0 {
		return
	}
	r := openflow.FlowRemoved{
		Reason: reason, Table: e.Table, Priority: e.Priority, IdleTimeout: e.IdleTimeout, HardTimeout: e.HardTimeout,
		Cookie: e.Cookie, Packets: e.packets, Bytes: e.bytes, Match: e.Match,
	}
	r.DurationSec, r.DurationNsec = s.sinceParts(e.created)
	for _, c := range s.listeners(func(a *openflow.Async) *[2]uint32 { return &a.FlowRemoved }, uint8(reason)) {
		r := r
		if c.version == openflow.V10 && reason == openflow.RemovedGroupDelete {
			r.Reason = openflow.RemovedDelete
		}
		if msg, err := c.version.AppendFlowRemoved(nil, s.nextXid(), &r); err == nil {
			s.send(c, msg)
		}
	}
}

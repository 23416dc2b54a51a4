package oftest

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
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

// remove removes the entries that gone asks it to.
func (t *table) remove(gone func(*entry) bool) { t.entries = slices.DeleteFunc(t.entries, gone) }

// leadsTo reports whether the entry has an output to a port and one to a
// group; PortAny and GroupAny are always true.
func (e *entry) leadsTo(p flow.Port, group uint32) bool {
	has := func(kind flow.ActionKind, arg uint32) bool {
		for _, list := range [][]flow.Action{e.Apply, e.Write} {
			for i := range list {
				if list[i].Kind == kind && list[i].Arg == arg {
					return true
				}
			}
		}
		return false
	}
	return (p == flow.PortAny || has(flow.ActionOutput, uint32(p))) && (group == flow.GroupAny || has(flow.ActionGroup, group))
}

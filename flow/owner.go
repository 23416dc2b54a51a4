package flow

import (
	"fmt"
	"slices"
)

// Table is a flow table of Weft's switches.
type Table struct {
	Number uint8
	Last   uint8 // of several, from Number; 0 if it is one
	Was    uint8 // its number before there were gaps; 0 if that is the same
	Name   string
	Doc    string
	Way    bool // packets pass it: an entry of lowest priority, forwarding's, leads to the next
	Closed bool // no app may write there
}

// Owner numbers the writer of entries. Zero is nobody of ours.
type Owner uint8

// Writer is an owner of flow entries, groups and meters.
type Writer struct {
	Owner      Owner
	Name       string
	Service    string // that writes them
	Stage      bool   // the service is a stage of the packet-in pipeline
	Standing   bool   // it may have standing entries, by flowrules.SetStanding
	Observed   bool   // its entries are made known by FlowsObserved
	Policy     bool   // its entries follow from what operators have set
	Hybrid     bool   // hybrid nodes have them, too
	Priorities []Priorities
	Groups     Range
	Meters     Range
}

// Priorities is a band of priorities in a table, from Base to Top.
type Priorities struct {
	Table     uint8
	Base, Top uint16
	Doc       string
	With      Owner // that has it, too; OwnerForeign if none
	Apps      bool  // apps may have entries there, too
}

// Range is numbers of groups or meters, from First to Last; the zero Range is none.
type Range struct{ First, Last uint32 }

func (r Range) has(n uint32) bool { return n != 0 && n >= r.First && n <= r.Last }

// Tables returns the tables, in the order in which packets pass them.
func Tables() []Table { return slices.Clone(tables) }

// Writers returns the owners, in the order in which their services see a packet.
func Writers() []Writer { return slices.Clone(writers) }

// ReservedWriters returns owners to come, whose numbers nobody else may have.
func ReservedWriters() []Writer { return slices.Clone(reserved) }

// Owners returns the owners for whose declaration a condition holds.
func Owners(holds func(*Writer) bool) (list []Owner) {
	for i := range writers {
		if w := &writers[i]; w.Owner != OwnerForeign && holds(w) {
			list = append(list, w.Owner)
		}
	}
	return list
}

// Stages returns the services that are stages of the packet-in pipeline, in order.
func Stages() (names []string) {
	for i := range writers {
		if writers[i].Stage {
			names = append(names, writers[i].Service)
		}
	}
	return names
}

// String returns the owner's name.
func (o Owner) String() string {
	if o == OwnerForeign {
		return "foreign"
	}
	for i := range writers {
		if writers[i].Owner == o {
			return writers[i].Name
		}
	}
	return fmt.Sprintf("owner-%d", uint8(o))
}

// Policy reports whether the owner's entries follow from what operators have set.
func (o Owner) Policy() bool {
	return slices.ContainsFunc(writers, func(w Writer) bool { return w.Owner == o && w.Policy })
}

// OnHybrid reports whether hybrid nodes, whose IP packets are not Weft's, have
// the owner's entries.
func (o Owner) OnHybrid() bool {
	return slices.ContainsFunc(writers, func(w Writer) bool { return w.Owner == o && w.Hybrid })
}

// GroupOwner returns the owner whose numbers this group's is among;
// OwnerForeign if it is nobody's, or an app's.
func GroupOwner(id uint32) Owner {
	for i := range writers {
		if writers[i].Groups.has(id) {
			return writers[i].Owner
		}
	}
	return OwnerForeign
}

// MeterOwner returns the owner whose numbers this meter's is among;
// OwnerForeign if it is nobody's.
func MeterOwner(id uint32) Owner {
	for i := range writers {
		if writers[i].Meters.has(id) {
			return writers[i].Owner
		}
	}
	return OwnerForeign
}

// NextTable returns the table to which a packet goes from t when nothing is
// decided there; t itself from the last, or if packets do not pass it.
func NextTable(t uint8) uint8 {
	passed := false
	for i := range tables {
		switch {
		case !tables[i].Way:
		case passed:
			return tables[i].Number
		default:
			passed = tables[i].Number == t
		}
	}
	return t
}

// MovedTable returns the number of a table that was t before there were gaps.
func MovedTable(t uint8) uint8 {
	for i := range tables {
		if tables[i].Was == t && t != 0 {
			return tables[i].Number
		}
	}
	return t
}

// ForwardTable returns the table of routes on a switch with so many tables
// (0 is not known) and that OpenFlow version.
func ForwardTable(tables uint32, openflow10 bool) uint8 {
	if openflow10 || tables < PipelineTables {
		return 0
	}
	return TableForward
}

// TableMiss reports whether an entry would be the table miss of a table that
// packets pass, which is forwarding's.
func (e *Entry) TableMiss() bool {
	return e.Priority == PriorityMiss && e.Match.Set == 0 && slices.ContainsFunc(tables, func(t Table) bool { return t.Way && t.Number == e.Table })
}

// Reserved reports whether an entry is in a place of Weft's services, so that an
// app's could replace one of theirs.
func (e *Entry) Reserved() bool {
	if e.TableMiss() || slices.ContainsFunc(tables, func(t Table) bool { return t.Closed && t.Number == e.Table }) {
		return true
	}
	for i := range writers {
		for _, p := range writers[i].Priorities {
			if p.Table == e.Table && !p.Apps && e.Priority != PriorityMiss && e.Priority >= p.Base && e.Priority <= p.Top {
				return true
			}
		}
	}
	return false
}

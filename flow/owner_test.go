package flow

import (
	"fmt"
	"slices"
	"testing"
)

// TestTablesInOrder: packets go to higher tables only.
func TestTablesInOrder(t *testing.T) {
	names := map[string]bool{}
	for i, x := range tables {
		if i > 0 && x.Number <= max(tables[i-1].Number, tables[i-1].Last) || x.Last > 253 {
			t.Errorf("table %d, %s, does not follow those before it", x.Number, x.Name)
		}
		if names[x.Name] || x.Doc == "" {
			t.Errorf("table %d, %s: want a name of its own and what is there", x.Number, x.Name)
		}
		names[x.Name] = true
	}
	var way []uint8
	for n := TableIngress; ; n = NextTable(n) {
		way = append(way, n)
		if n == NextTable(n) {
			break
		}
	}
	if want := []uint8{TableIngress, TableFirewall, TableQoS, TableTranslate, TableNeighbours, TableForward}; !slices.Equal(way, want) {
		t.Errorf("packets pass the tables %v, want %v", way, want)
	}
	if NextTable(TableTracked) != TableTracked || ForwardTable(PipelineTables, false) != TableForward || ForwardTable(PipelineTables-1, false) != 0 {
		t.Error("tables beside the way, or on switches with few")
	}
}

// overlaps returns what two of the writers have both without saying so.
func overlaps(list []Writer) (both []string) {
	type band struct {
		*Writer
		Priorities
	}
	var bands []band
	for i := range list {
		for _, p := range list[i].Priorities {
			if p.Table == TableForward {
				p.Table = TableIngress // as on switches with one table
			}
			for _, o := range bands {
				if o.Table == p.Table && o.Base <= p.Top && p.Base <= o.Top && p.With != o.Owner && o.With != list[i].Owner {
					both = append(both, fmt.Sprintf("priorities %s %s", o.Name, list[i].Name))
				}
			}
			bands = append(bands, band{&list[i], p})
		}
		for j := range i {
			a, b := &list[i], &list[j]
			if a.Groups.First <= b.Groups.Last && b.Groups.First <= a.Groups.Last && a.Groups.Last*b.Groups.Last != 0 {
				both = append(both, fmt.Sprintf("groups %s %s", b.Name, a.Name))
			}
			if a.Meters.First <= b.Meters.Last && b.Meters.First <= a.Meters.Last && a.Meters.Last*b.Meters.Last != 0 {
				both = append(both, fmt.Sprintf("meters %s %s", b.Name, a.Name))
			}
			if a.Owner == b.Owner && a.Owner != OwnerForeign || a.Name == b.Name {
				both = append(both, fmt.Sprintf("names %s %s", b.Name, a.Name))
			}
		}
	}
	return both
}

// TestNothingTwice: no two owners have the same priorities, groups or meters.
func TestNothingTwice(t *testing.T) {
	if both := overlaps(slices.Concat(writers, reserved)); len(both) > 0 {
		t.Errorf("have the same: %q", both)
	}
	for _, w := range writers {
		for _, p := range w.Priorities {
			if p.Base > p.Top || p.Doc == "" || !slices.ContainsFunc(tables, func(x Table) bool { return x.Number == p.Table }) {
				t.Errorf("%s: %+v: want Base up to Top, in one of the tables, and what is there", w.Name, p)
			}
		}
		for _, r := range []Range{w.Groups, w.Meters} {
			if r != (Range{}) && (r.First > r.Last || r.First == 0) {
				t.Errorf("%s: the numbers %+v: want First up to Last, without 0", w.Name, r)
			}
		}
		if o := GroupOwner(w.Groups.Last); o != w.Owner && w.Groups != (Range{}) {
			t.Errorf("%s: group %d is %v's", w.Name, w.Groups.Last, o)
		}
		if o := MeterOwner(w.Meters.Last); o != w.Owner && w.Meters != (Range{}) {
			t.Errorf("%s: meter %d is %v's", w.Name, w.Meters.Last, o)
		}
		if w.Owner.String() != w.Name && w.Owner != OwnerForeign {
			t.Errorf("%s is called %v", w.Name, w.Owner)
		}
	}
	a := Writer{Owner: 1, Name: "a", Priorities: []Priorities{{Table: 7, Base: 5, Top: 9}}, Groups: Range{1, 5}, Meters: Range{1, 5}}
	for want, b := range map[string]Writer{
		"":               {Priorities: []Priorities{{Table: 7, Base: 10, Top: 12}, {Table: 8, Base: 5, Top: 9}, {Table: 7, Base: 5, Top: 5, With: 1}}, Groups: Range{6, 9}, Meters: Range{6, 9}},
		"priorities a b": {Priorities: []Priorities{{Table: 7, Base: 1, Top: 5}}},
		"groups a b":     {Groups: Range{5, 9}},
		"meters a b":     {Meters: Range{3, 4}},
		"names a b":      {Owner: 1},
	} {
		b.Name, b.Owner = "b", max(b.Owner, 2)
		if want == "names a b" {
			b.Owner = 1
		}
		if got := fmt.Sprint(overlaps([]Writer{a, b})); got != "["+want+"]" {
			t.Errorf("got %s, want [%s]", got, want)
		}
	}
}

// TestReserved: apps have the places that services have not.
func TestReserved(t *testing.T) {
	for _, c := range []struct {
		table    uint8
		priority uint16
		want     bool
	}{
		{TableIngress, PriorityMax, true}, {TableIngress, 25000, true}, {TableIngress, 22999, false}, {TableIngress, 29001, false},
		{TableIngress, PriorityBindingSource, false}, {TableIngress, PrioritySingleDrop, false}, {TableIngress, 0, true},
		{TableFirewall, 5, true}, {TableQoS, 65000, true}, {TableTranslate, 0, true}, {TableTranslate, PriorityRouterOwned, true}, {TableTranslate, PriorityRouterOwned + 1, false},
		{TableTranslate, PriorityNATSelf, true}, {TableForward, PriorityRoute, true}, {TableForward, 10001, false}, {TableForward, 45001, true},
		{TableTracked, 0, false}, {TableTracked, 30, true}, {TableTracked, 31, false}, {99, 5, false},
	} {
		if e := (&Entry{Table: c.table, Priority: c.priority}); e.Reserved() != c.want {
			t.Errorf("table %d, priority %d: reserved is not %v", c.table, c.priority, c.want)
		}
	}
	if e := (&Entry{Match: Match{}.WithInPort(1)}); e.Reserved() {
		t.Error("an entry of table 0 that matches something is no table miss")
	}
}

package flow

import (
	"fmt"
	"slices"
	"strings"
)

// Rest stands, in a list of switches, for those in no other list.
const Rest = "rest"

// DPIDRange is a range of DPIDs, both ends included.
type DPIDRange struct{ First, Last DPID }

// Has reports whether a switch is in the range.
func (r DPIDRange) Has(d DPID) bool { return r.First <= d && d <= r.Last }

// String returns the range as ParseDPIDRange reads it.
func (r DPIDRange) String() string {
	if r.First == r.Last {
		return r.First.String()
	}
	return r.First.String() + "-" + r.Last.String()
}

// ParseDPIDRange reads one DPID or two with a dash between them, in hexadecimal
// digits as ParseDPID does: "10", "1-8", "00:00:00:00:00:00:00:01 - 2".
func ParseDPIDRange(s string) (DPIDRange, error) { return parseRange(s, "") }

// parseRange is ParseDPIDRange; or is what else is allowed there.
func parseRange(s, or string) (DPIDRange, error) {
	from, to, isRange := strings.Cut(s, "-")
	if !isRange {
		to = from
	}
	from, to = strings.TrimSpace(from), strings.TrimSpace(to)
	first, err := ParseDPID(from)
	last, err2 := ParseDPID(to)
	switch {
	case err != nil || err2 != nil:
		return DPIDRange{}, fmt.Errorf("%q: want a switch or a range of switches in hexadecimal digits, such as 10 or 1-8%s", s, or)
	case last < first:
		return DPIDRange{}, fmt.Errorf("%q: the range is empty, its end is before its beginning; write %s-%s", s, to, from)
	}
	return DPIDRange{first, last}, nil
}

// SwitchList is a list of switches in the partitions of a plan, and in the
// configuration of the services that work for one of them. The zero value is
// empty.
type SwitchList struct {
	Ranges []DPIDRange // as they were added
	Rest   bool        // and all that are in no other list
}

// ParseSwitchList reads a list whose items are DPIDs, ranges of them, or rest.
func ParseSwitchList(items []string) (SwitchList, error) {
	var l SwitchList
	for _, item := range items {
		if err := l.Add(item); err != nil {
			return SwitchList{}, err
		}
	}
	return l, nil
}

// Add reads one item: what ParseDPIDRange does, or rest.
func (l *SwitchList) Add(item string) error {
	if item == Rest {
		l.Rest = true
		return nil
	}
	r, err := parseRange(item, ", or "+Rest)
	if err != nil {
		return err
	}
	l.Ranges = append(l.Ranges, r)
	return nil
}

// Names reports whether a switch is in one of the ranges. Only a holder of all
// lists knows whether it is one of the rest.
func (l *SwitchList) Names(d DPID) bool {
	return slices.ContainsFunc(l.Ranges, func(r DPIDRange) bool { return r.Has(d) })
}

// Items returns the list as ParseSwitchList reads it, rest last.
func (l *SwitchList) Items() []string {
	var items []string
	for _, r := range l.Ranges {
		items = append(items, r.String())
	}
	if l.Rest {
		items = append(items, Rest)
	}
	return items
}

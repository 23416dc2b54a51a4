package southbound

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/flow"
)

// everyOther stands, in a list of switches, for those in no other list, as in
// the partitions of a plan.
const everyOther = "rest"

// span is a range of DPIDs, both ends included.
type span struct{ first, last dpid }

// switchList is a list of switches.
type switchList struct {
	text  string // as configured
	spans []span
	rest  bool
}

// parseList reads a list in the notation of a plan's partitions: DPIDs, ranges
// of them, or rest.
func parseList(list []string) (switchList, error) {
	s := switchList{text: strings.Join(list, ", ")}
	for _, item := range list {
		if item == everyOther {
			s.rest = true
			continue
		}
		from, to, isRange := strings.Cut(item, "-")
		if !isRange {
			to = from
		}
		first, err := flow.ParseDPID(strings.TrimSpace(from))
		last, err2 := flow.ParseDPID(strings.TrimSpace(to))
		if err != nil || err2 != nil || last < first {
			return s, fmt.Errorf("%q: want a switch or a range of switches in hexadecimal digits, such as 10 or 1-8, or %s", item, everyOther)
		}
		s.spans = append(s.spans, span{first, last})
	}
	return s, nil
}

func (s *switchList) has(sw dpid) bool {
	return slices.ContainsFunc(s.spans, func(r span) bool { return r.first <= sw && sw <= r.last })
}

// partition is which switches are received, and where the others belong.
type partition struct {
	own       switchList // nothing in it means all that belong nowhere else
	elsewhere []neighbour
}

// neighbour is another partition.
type neighbour struct {
	name string
	switchList
}

// partition reads the switches of the configuration.
func (c *Config) partition() (p partition, err error) {
	if p.own, err = parseList(c.Switches); err != nil {
		return p, fmt.Errorf("switches: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Elsewhere)) {
		s, err := parseList(c.Elsewhere[name])
		if err != nil {
			return p, fmt.Errorf("elsewhere: %s: %w", name, err)
		}
		p.elsewhere = append(p.elsewhere, neighbour{name, s})
	}
	return p, nil
}

// ownerOf returns the name of the other partition that a switch is of, empty if
// it is not known.
func (p *partition) ownerOf(sw dpid) string {
	for _, n := range p.elsewhere {
		if n.has(sw) {
			return n.name
		}
	}
	for _, n := range p.elsewhere {
		if n.rest {
			return n.name
		}
	}
	return ""
}

// admits reports whether a switch is to be received; the error says where it
// belongs and what to do.
func (p *partition) admits(sw dpid) error {
	if p.own.has(sw) {
		return nil
	}
	at := slices.IndexFunc(p.elsewhere, func(n neighbour) bool { return n.has(sw) })
	switch {
	case at >= 0:
	case p.own.rest || p.own.text == "":
		return nil
	default:
		at = slices.IndexFunc(p.elsewhere, func(n neighbour) bool { return n.rest })
	}
	if at < 0 {
		return fmt.Errorf("switch %v is none of those received here (%s): point its bridge at another controller (ovs-vsctl set-controller), or add it to southbound.switches", sw, p.own.text)
	}
	return fmt.Errorf("switch %v is of partition %s, not of the one here: point its bridge at the southbound of %[2]s (ovs-vsctl set-controller), or move it in the plan's partitions and apply the plan", sw, p.elsewhere[at].name)
}

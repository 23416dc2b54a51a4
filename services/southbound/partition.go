package southbound

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/flow"
)

// switchList is a list of switches.
type switchList struct {
	text string // as configured
	flow.SwitchList
}

// parseList reads a list in the notation of a plan's partitions.
func parseList(items []string) (switchList, error) {
	list, err := flow.ParseSwitchList(items)
	return switchList{strings.Join(items, ", "), list}, err
}

// partition lists the switches of this partition and of the others.
type partition struct {
	own       switchList // empty means all that belong to no other
	elsewhere []neighbour
}

// neighbour is another partition.
type neighbour struct {
	name string
	switchList
}

// parsePartition parses the switches of this partition, and of others by their
// names.
func parsePartition(own []string, elsewhere map[string][]string) (p partition, err error) {
	if p.own, err = parseList(own); err != nil {
		return p, fmt.Errorf("switches: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(elsewhere)) {
		s, err := parseList(elsewhere[name])
		if err != nil {
			return p, fmt.Errorf("elsewhere: %s: %w", name, err)
		}
		p.elsewhere = append(p.elsewhere, neighbour{name, s})
	}
	return p, nil
}

// ownerOf returns the name of the other partition that a switch belongs to,
// empty if it is unknown.
func (p *partition) ownerOf(sw dpid) string {
	for _, n := range p.elsewhere {
		if n.Names(sw) {
			return n.name
		}
	}
	for _, n := range p.elsewhere {
		if n.Rest {
			return n.name
		}
	}
	return ""
}

// alone reports whether there is no other partition.
func (p *partition) alone() bool { return len(p.elsewhere) == 0 }

// admits returns nil if the switch may connect here; the error says where it
// belongs and what to do.
func (p *partition) admits(sw dpid) error {
	if p.own.Names(sw) {
		return nil
	}
	at := slices.IndexFunc(p.elsewhere, func(n neighbour) bool { return n.Names(sw) })
	switch {
	case at >= 0:
	case p.own.Rest || p.own.text == "":
		return nil
	default:
		at = slices.IndexFunc(p.elsewhere, func(n neighbour) bool { return n.Rest })
	}
	if at < 0 {
		return fmt.Errorf("switch %v is none of those received here (%s): point its bridge at another controller (ovs-vsctl set-controller), or add it to southbound.switches", sw, p.own.text)
	}
	return fmt.Errorf("switch %v is of partition %s, not of the one here: point its bridge at the southbound of %[2]s (ovs-vsctl set-controller), or move it in the plan's partitions and apply the plan", sw, p.elsewhere[at].name)
}

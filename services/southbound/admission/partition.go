package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/flow"
)

// Switches is a list of switches.
type Switches struct {
	Text string // as configured
	flow.SwitchList
}

// ParseSwitches reads a list in the notation of a plan's partitions.
func ParseSwitches(items []string) (Switches, error) {
	list, err := flow.ParseSwitchList(items)
	return Switches{strings.Join(items, ", "), list}, err
}

// Partition lists the switches of this partition and of the others.
type Partition struct {
	own       Switches // empty means all that belong to no other
	elsewhere []neighbour
}

// neighbour is another partition.
type neighbour struct {
	name string
	Switches
}

// ParsePartition parses the switches of this partition, and of others by their
// names.
func ParsePartition(own []string, elsewhere map[string][]string) (p Partition, err error) {
	if p.own, err = ParseSwitches(own); err != nil {
		return p, fmt.Errorf("switches: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(elsewhere)) {
		s, err := ParseSwitches(elsewhere[name])
		if err != nil {
			return p, fmt.Errorf("elsewhere: %s: %w", name, err)
		}
		p.elsewhere = append(p.elsewhere, neighbour{name, s})
	}
	return p, nil
}

// OwnerOf returns the name of the other partition that a switch belongs to,
// empty if it is unknown.
func (p *Partition) OwnerOf(sw flow.DPID) string {
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

// Alone reports whether there is no other partition.
func (p *Partition) Alone() bool { return len(p.elsewhere) == 0 }

// Admits returns nil if the switch may connect here; the error says where it
// belongs and what to do.
func (p *Partition) Admits(sw flow.DPID) error {
	if p.own.Names(sw) {
		return nil
	}
	at := slices.IndexFunc(p.elsewhere, func(n neighbour) bool { return n.Names(sw) })
	switch {
	case at >= 0:
	case p.own.Rest || p.own.Text == "":
		return nil
	default:
		at = slices.IndexFunc(p.elsewhere, func(n neighbour) bool { return n.Rest })
	}
	if at < 0 {
		return fmt.Errorf("switch %v is none of those received here (%s): point its bridge at another controller (ovs-vsctl set-controller), or add it to southbound.switches", sw, p.own.Text)
	}
	return fmt.Errorf("switch %v is of partition %s, not of the one here: point its bridge at the southbound of %[2]s (ovs-vsctl set-controller), or move it in the plan's partitions and apply the plan", sw, p.elsewhere[at].name)
}

package paths

import (
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// Summary is a partition's description of itself for the others (paper 001
// §3.2, step 2): which of its switches are connected inside it, and the cost of
// reaching them from each border switch. It is immutable.
type Summary struct {
	Partition string
	Version   uint64 // grows with every change
	Islands   []Island
}

// Island is a set of a partition's switches that links inside the partition
// connect. Most partitions are one; one that is not connected inside is several,
// between which packets travel through other partitions.
type Island struct {
	Switches []flow.DPID // its own, in order, at least one; the first names the island
	Gates    []Gate      // its border switches, in order
}

// ID is the island's name: its lowest switch.
func (i *Island) ID() flow.DPID { return i.Switches[0] }

// Gate is a border switch, and the cost, by the partition's Metric, of reaching
// from it the switches of its island that are no gates (the others if all are).
type Gate struct {
	Switch flow.DPID
	Cost   uint32
	Links  []BorderLink // to switches of other partitions, by port
}

// Metric turns the many costs of reaching the switches of an island from a
// border switch into one (paper 001 §3.2). It decides how long paths between
// partitions are, and how often a failure inside a partition concerns the
// others; not which switches are reached.
type Metric uint8

// The metrics of the paper.
const (
	Most  Metric = iota // the cost of reaching the farthest
	Mean                // the mean cost, rounded up
	Least               // the cost of reaching the nearest
)

// BorderLink is a link from a gate to a switch that is in another partition and
// not shared. It counts when both partitions report it.
type BorderLink struct {
	Port   flow.Port // of the gate
	Peer   flow.Location
	Weight uint32 // of the direction that leaves
}

// Bounds of a summary. No real network exceeds them.
const (
	maxIslandSwitches = 1 << 17
	maxGates          = 1 << 16
	maxCost           = 1 << 28 // higher costs count as this: sums do not overflow
)

// Check reports what is wrong with a summary from elsewhere: islands without
// switches, a switch or gate listed twice, lists out of order, impossible
// costs, too many elements.
func (s *Summary) Check() error {
	if s.Partition == "" {
		return fmt.Errorf("summary of a partition without a name")
	}
	switches, gates := 0, 0
	var last flow.DPID
	seen := map[flow.DPID]bool{} // one island's are in order
	for n, i := range s.Islands {
		if len(i.Switches) == 0 {
			return fmt.Errorf("summary of %s: island %d has no switches", s.Partition, n+1)
		}
		if n > 0 && i.ID() <= last {
			return fmt.Errorf("summary of %s: island of %v behind that of %v: want them in order", s.Partition, i.ID(), last)
		}
		last = i.ID()
		switches, gates = switches+len(i.Switches), gates+len(i.Gates)
		if switches > maxIslandSwitches || gates > maxGates {
			return fmt.Errorf("summary of %s: more than %d switches or %d gates", s.Partition, maxIslandSwitches, maxGates)
		}
		for k, d := range i.Switches {
			if k > 0 && d <= i.Switches[k-1] || seen[d] {
				return fmt.Errorf("summary of %s: switch %v is there twice, or out of order", s.Partition, d)
			}
			if len(s.Islands) > 1 {
				seen[d] = true
			}
		}
		for k, g := range i.Gates {
			if k > 0 && g.Switch <= i.Gates[k-1].Switch {
				return fmt.Errorf("summary of %s: gate %v is there twice, or out of order", s.Partition, g.Switch)
			}
			if g.Cost > maxCost {
				return fmt.Errorf("summary of %s: gate %v costs %d: want at most %d", s.Partition, g.Switch, g.Cost, maxCost)
			}
			for j, l := range g.Links {
				if j > 0 && l.Port <= g.Links[j-1].Port || l.Weight < 1 || l.Weight > MaxWeight || l.Peer.Switch == g.Switch {
					return fmt.Errorf("summary of %s: gate %v: link at port %v: want each port once, in order, to another switch, with a weight of 1 to %d", s.Partition, g.Switch, l.Port, MaxWeight)
				}
			}
		}
	}
	return nil
}

// equal reports whether two summaries are equal except for their versions.
func (s *Summary) equal(o *Summary) bool {
	return s.Partition == o.Partition && slices.EqualFunc(s.Islands, o.Islands, func(a, b Island) bool {
		return slices.Equal(a.Switches, b.Switches) && slices.EqualFunc(a.Gates, b.Gates, Gate.equal)
	})
}

func (g Gate) equal(o Gate) bool {
	return g.Switch == o.Switch && g.Cost == o.Cost && slices.Equal(g.Links, o.Links)
}

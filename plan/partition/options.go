package partition

import (
	"fmt"
	"math"
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// MaxPartitions is the largest number of partitions.
const MaxPartitions = 1 << 10

// MaxApart is how many switches all sets of Options.Apart may have together.
const MaxApart = 1 << 12

// The ways in which a network is cut.
const (
	// Auto is ByStructure where that is symmetric and keeps all demands, else
	// ByCut.
	Auto = "auto"
	// ByStructure takes what remains without the border switches, the pods of a
	// fat tree or the spokes of hubs, and deals it out whole (paper 001 §3.2).
	ByStructure = "structure"
	// ByCut looks for partitions of about the same load with little between
	// them.
	ByCut = "cut"
)

// Methods returns what Options may name as a method.
func Methods() []string { return []string{Auto, ByStructure, ByCut} }

// Options say what a partitioning has to be like.
type Options struct {
	// Partitions is how many there are to be, at least 1.
	Partitions int
	// Names are those of the partitions; empty means p1, p2 and so on.
	Names []string
	// Method is how the network is cut; empty means Auto.
	Method string
	// Together are sets of switches that have to share a partition.
	Together [][]flow.DPID
	// Apart are sets of switches no two of which may share one.
	Apart [][]flow.DPID
	// Borders are the only switches that may join partitions: a link from one to
	// another needs one of them at an end. A border switch is mastered by one
	// partition, and belongs, for routes, to each to which it has a link (paper
	// 001 §3.2). Nil means that any switch may.
	Borders []flow.DPID
	// Fixed are switches that have to be in a partition, by its name.
	Fixed map[flow.DPID]string
	// Tolerance is by how much the heaviest partition may be above the mean, as a
	// share: 0.05 is 5 %. 0 asks for as even as the loads allow.
	Tolerance float64
	// Seed picks one of many searches; the same gives the same result.
	Seed uint64
	// Rounds is how often a cut is searched for anew; 0 means as often as suits
	// the network's size.
	Rounds int
}

// Infeasible is the error of demands that no partitioning meets, or none that
// was found. Search says which: only with Search is it possible that there is
// one nevertheless.
type Infeasible struct {
	Constraint string // partitions, together, apart, borders, fixed or balance
	Why        string // names what does not go together
	Remedy     string // what would make it feasible
	Search     bool   // none was found; without, none exists
}

func (e *Infeasible) Error() string { return e.Constraint + ": " + e.Why + "; " + e.Remedy }

// demands are Options by indices of switches.
type demands struct {
	parts    int
	names    []string
	together [][]int
	apart    [][]int
	borders  []bool // by switch; nil: any
	fixed    []int  // by switch: its partition, or -1
	any      bool   // there is any of together, apart and fixed
}

// demands checks options and reads them.
func (o Options) demands(g *Graph) (*demands, error) {
	n := len(g.Switches)
	switch {
	case o.Partitions < 1 || o.Partitions > MaxPartitions:
		return nil, fmt.Errorf("%d partitions: want 1 to %d", o.Partitions, MaxPartitions)
	case o.Partitions > n:
		return nil, &Infeasible{Constraint: "partitions", Why: fmt.Sprintf("%d partitions of %d switches: each needs at least one", o.Partitions, n),
			Remedy: fmt.Sprintf("ask for at most %d", n)}
	case o.Method != "" && !slices.Contains(Methods(), o.Method):
		return nil, fmt.Errorf("method %q: want one of %v", o.Method, Methods())
	case !(o.Tolerance >= 0) || math.IsInf(o.Tolerance, 0) || o.Tolerance > 1e6:
		return nil, fmt.Errorf("tolerance %v: want a share of the mean load, such as 0.05", o.Tolerance)
	case o.Rounds < 0 || o.Rounds > 1000:
		return nil, fmt.Errorf("%d rounds: want 0 to 1000", o.Rounds)
	}
	d := &demands{parts: o.Partitions, fixed: make([]int, n)}
	var err error
	if d.names, err = o.names(); err != nil {
		return nil, err
	}
	if d.together, err = indexSets(g, "together", o.Together); err != nil {
		return nil, err
	}
	if d.apart, err = indexSets(g, "apart", o.Apart); err != nil {
		return nil, err
	}
	if o.Borders != nil {
		d.borders = make([]bool, n)
		list, err := indexSets(g, "borders", [][]flow.DPID{o.Borders})
		if err != nil {
			return nil, err
		}
		for _, i := range list[0] {
			d.borders[i] = true
		}
	}
	for i := range d.fixed {
		d.fixed[i] = -1
	}
	for dpid, name := range o.Fixed {
		i, ok := g.Index(dpid)
		if !ok {
			return nil, unknown("fixed", dpid)
		}
		if d.fixed[i] = slices.Index(d.names, name); d.fixed[i] < 0 {
			return nil, fmt.Errorf("fixed: switch %v is to be in partition %q: there are %v", g.Switches[i], name, d.names)
		}
	}
	count := 0
	for _, set := range d.apart {
		count += len(set)
	}
	if count > MaxApart {
		return nil, fmt.Errorf("apart: %d switches in all sets: want at most %d", count, MaxApart)
	}
	d.any = len(d.together)+len(d.apart)+len(o.Fixed) > 0
	return d, nil
}

// names returns those of the partitions.
func (o Options) names() ([]string, error) {
	if len(o.Names) == 0 {
		list := make([]string, o.Partitions)
		for i := range list {
			list[i] = fmt.Sprintf("p%d", i+1)
		}
		return list, nil
	}
	if len(o.Names) != o.Partitions {
		return nil, fmt.Errorf("%d names for %d partitions: want one for each", len(o.Names), o.Partitions)
	}
	for i, name := range o.Names {
		if name == "" || slices.Contains(o.Names[:i], name) {
			return nil, fmt.Errorf("partition names %q: want each once, none empty", o.Names)
		}
	}
	return slices.Clone(o.Names), nil
}

func unknown(what string, d flow.DPID) error {
	return fmt.Errorf("%s: the network has no switch %v", what, d)
}

// indexSets reads sets of switches; each switch counts once in a set.
func indexSets(g *Graph, what string, sets [][]flow.DPID) ([][]int, error) {
	list := make([][]int, len(sets))
	for s, set := range sets {
		for _, dpid := range set {
			i, ok := g.Index(dpid)
			if !ok {
				return nil, unknown(what, dpid)
			}
			list[s] = append(list[s], i)
		}
		slices.Sort(list[s])
		list[s] = slices.Compact(list[s])
	}
	return list, nil
}

package paths

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// AreaConfig says which part of a network an Area is.
type AreaConfig struct {
	Partition string
	// Of returns the partition of a switch; every switch is in one, and the
	// answer is always the same.
	Of func(flow.DPID) string
	// Shared reports whether a switch is a border switch that belongs to the
	// partitions of all its neighbours as well, such as a core switch of a fat
	// tree whose partitions are groups of pods (paper 001 §3.2: border switches
	// may belong to more than one partition). nil: none is.
	Shared func(flow.DPID) bool
	Metric Metric
	// Version is that before the first summary's.
	Version uint64
}

// Area is one partition of a network with hierarchical routes (paper 001 §3.2):
// it knows its own switches and links in detail, and other partitions by their
// summaries. One goroutine owns it.
//
// Routes are found in three steps. Inside computes all paths within the
// partition and its summary. Outside joins the summaries of all partitions to
// the network of islands, and computes for each of its own switches the cost to
// each island elsewhere: one for an island, whatever the number of its border
// switches. Every step does what has changed and no more.
//
// A packet to another island goes, at each island on its way, to the gate from
// which it is cheapest to reach an island that is nearer to the destination's;
// in the destination's island it follows the paths inside, and does not leave it
// again. So the pair of the island's distance and the cost inside the island
// falls at every hop, and there are no loops. There is a route exactly if links
// connect the two switches, inside of partitions or not. It may be longer than
// the shortest path: a packet between switches of one island stays in it, and
// one to another island does not know which gate is nearest to its destination.
type Area struct {
	config AreaConfig
	graph  *Graph
	top    *Topology
	stubs  map[flow.DPID][]BorderLink // of its own switches

	islands []*island
	at      []int32 // by slot: the number of its island, -1 if it is of none
	summary *Summary

	border *border
	rows   map[flow.DPID]*outside // by the island where they lead
	whole  bool                   // compute all paths inside
	anew   bool                   // compute all rows
	change []change               // inside, since rows were computed
}

// island is one of an area's own, by slots of its topology.
type island struct {
	id    flow.DPID
	own   []int32  // by DPID
	gates []int32  // by DPID
	doors []int32  // of gates, in the border
	inner []int32  // own that are no gates; if all are, all own
	costs []uint32 // of gates
}

// NewArea returns a partition without switches.
func NewArea(c AreaConfig) *Area {
	if c.Shared == nil {
		c.Shared = func(flow.DPID) bool { return false }
	}
	a := &Area{
		config: c, graph: NewGraph(), stubs: map[flow.DPID][]BorderLink{}, border: newBorder(),
		rows: map[flow.DPID]*outside{}, summary: &Summary{Partition: c.Partition, Version: c.Version},
	}
	a.top = a.graph.Current()
	return a
}

// Partition is its name.
func (a *Area) Partition() string { return a.config.Partition }

// Topology is the partition inside, as of the last Inside. Shared switches of
// others are part of it.
func (a *Area) Topology() *Topology { return a.top }

func (a *Area) owns(d flow.DPID) bool { return a.config.Of(d) == a.config.Partition }

// AddSwitch makes a switch present, and reports whether that changes anything
// here: those of others that are not shared do not.
func (a *Area) AddSwitch(d flow.DPID) bool {
	return (a.owns(d) || a.config.Shared(d)) && a.graph.AddSwitch(d)
}

// RemoveSwitch makes a switch absent.
func (a *Area) RemoveSwitch(d flow.DPID) bool { return a.graph.RemoveSwitch(d) }

// SetLink makes one direction of a link known, and reports whether that changes
// anything here: a link has an end at a switch of the partition's own, or is not
// its business.
func (a *Area) SetLink(l Link) bool {
	return (a.concerned(l.Src.Switch, l.Dst.Switch) || a.concerned(l.Dst.Switch, l.Src.Switch)) && a.graph.SetLink(l)
}

// concerned reports whether a link of a switch is the partition's business by
// that end: one of a shared switch is the other end's, unless that is shared, too.
func (a *Area) concerned(end, other flow.DPID) bool {
	return a.owns(end) && (!a.config.Shared(end) || a.config.Shared(other))
}

// RemoveLink forgets one direction of a link.
func (a *Area) RemoveLink(src, dst flow.Location) bool { return a.graph.RemoveLink(src, dst) }

// Discard makes the next Inside and Outside compute everything from scratch, if
// there is anything to compute: to measure the savings of repairs.
func (a *Area) Discard() { a.whole, a.anew = true, true }

// Inside computes what has changed within the partition. It returns the
// partition's summary and whether it has changed; if so, the other partitions
// must Learn it.
func (a *Area) Inside() (*Summary, bool) {
	if len(a.graph.dirty) == 0 && !a.graph.reslot {
		return a.summary, false
	}
	old, reslot := a.top, a.graph.reslot
	var dirty []int32
	for slot := range a.graph.dirty {
		dirty = append(dirty, slot)
	}
	borders := false
	for _, slot := range dirty {
		d := a.graph.ids[slot]
		list := a.foreign(d)
		if !slices.Equal(list, a.stubs[d]) {
			borders = true
		}
		if a.stubs[d] = list; len(list) == 0 {
			delete(a.stubs, d)
		}
	}
	last := old
	if a.whole { // nothing to repair
		last = old.Afresh()
		a.graph.current.Store(last)
		a.whole, reslot = false, true
	}
	a.top = a.graph.Snapshot()
	if a.top == last && !borders {
		a.top = old
		a.graph.current.Store(old)
		return a.summary, false
	}
	a.top.Converge()
	if reslot {
		a.anew = true
	} else {
		for _, slot := range dirty {
			a.change = appendChanges(a.change, slot, old.adj[slot], a.top.adj[slot])
		}
	}
	before := a.islands
	a.divide()
	for i, is := range a.islands {
		var was *island
		if !reslot && i < len(before) && slices.Equal(before[i].own, is.own) && slices.Equal(before[i].gates, is.gates) {
			was = before[i]
		}
		a.price(is, was, old)
	}
	return a.summarise()
}

// foreign lists the links of an own switch to switches of other partitions that
// are not shared.
func (a *Area) foreign(d flow.DPID) []BorderLink {
	if _, ok := a.graph.slots[d]; !ok || !a.owns(d) {
		return nil
	}
	var list []BorderLink
	for port := range a.graph.ports[d] {
		here := flow.Location{Switch: d, Port: port}
		c, ok := a.graph.only(here)
		if !ok || !c.a.Port.Physical() || !c.b.Port.Physical() {
			continue
		}
		there, w := c.b, a.graph.cost[c].ab
		if here == c.b {
			there, w = c.a, a.graph.cost[c].ba
		}
		if _, ok := a.graph.only(there); ok && !a.owns(there.Switch) && !a.config.Shared(there.Switch) {
			list = append(list, BorderLink{port, there, w})
		}
	}
	slices.SortFunc(list, func(x, y BorderLink) int { return cmp.Compare(x.Port, y.Port) })
	return list
}

// divide finds the islands and their gates.
func (a *Area) divide() {
	was := a.at
	a.islands, a.at = nil, make([]int32, len(a.top.adj))
	fill32(a.at, -1)
	for _, root := range a.top.order {
		if a.at[root] >= 0 || !a.owns(a.top.ids[root]) {
			continue
		}
		is := &island{id: a.top.ids[root]}
		dist := a.top.row(root)
		for _, slot := range a.top.order {
			if at(dist, slot) == Unreachable {
				continue
			}
			d := a.top.ids[slot]
			own := a.owns(d)
			a.at[slot] = int32(len(a.islands))
			gate := !own || a.config.Shared(d) || len(a.stubs[d]) > 0
			if own {
				is.own = append(is.own, slot)
			}
			if gate {
				is.gates, is.doors = append(is.gates, slot), append(is.doors, a.border.door(d))
			} else {
				is.inner = append(is.inner, slot)
			}
		}
		if len(is.inner) == 0 {
			is.inner = is.own
		}
		a.islands = append(a.islands, is)
	}
	if !slices.Equal(was, a.at) {
		a.anew = true
	}
}

// price computes the costs of reaching an island's inner switches from its
// gates. If was is the same island before a change, it examines only the gates
// that the change concerns.
func (a *Area) price(is, was *island, old *Topology) {
	if was == nil {
		is.costs = make([]uint32, len(is.gates))
		sums := make([]tally, len(is.gates))
		for _, x := range is.inner {
			dist := a.top.row(x)
			for i, g := range is.gates {
				if g != x {
					sums[i].add(at(dist, g))
				}
			}
		}
		for i := range sums {
			is.costs[i] = sums[i].cost(a.config.Metric)
		}
		return
	}
	is.costs = slices.Clone(was.costs)
	differs := make([]bool, len(is.gates))
	for _, x := range is.inner {
		before, now := old.rows[x].Load(), a.top.rows[x].Load()
		if before == now {
			continue
		}
		for i, g := range is.gates {
			differs[i] = differs[i] || before == nil || at(before.dist, g) != at(now.dist, g)
		}
	}
	for i, g := range is.gates {
		if !differs[i] {
			continue
		}
		var sum tally
		for _, x := range is.inner {
			if x != g {
				sum.add(at(a.top.row(x), g))
			}
		}
		is.costs[i] = sum.cost(a.config.Metric)
	}
}

// tally sums up costs; the zero value is of none.
type tally struct {
	n, sum      uint64
	least, most uint32
}

func (t *tally) add(cost uint32) {
	cost = min(cost, maxCost)
	if t.n == 0 || cost < t.least {
		t.least = cost
	}
	t.n, t.sum, t.most = t.n+1, t.sum+uint64(cost), max(t.most, cost)
}

func (t *tally) cost(m Metric) uint32 {
	switch m {
	case Least:
		return t.least
	case Mean:
		return uint32((t.sum + max(t.n, 1) - 1) / max(t.n, 1))
	}
	return t.most
}

// summarise makes the summary anew, and keeps the old one if they are equal.
func (a *Area) summarise() (*Summary, bool) {
	s := &Summary{Partition: a.config.Partition, Version: a.summary.Version + 1}
	for i, is := range a.islands {
		out := Island{Gates: make([]Gate, len(is.gates))}
		if i < len(a.summary.Islands) && a.same(is, a.summary.Islands[i].Switches) {
			out.Switches = a.summary.Islands[i].Switches
		} else {
			for _, slot := range is.own {
				out.Switches = append(out.Switches, a.top.ids[slot])
			}
		}
		for k, slot := range is.gates {
			d := a.top.ids[slot]
			out.Gates[k] = Gate{Switch: d, Cost: is.costs[k], Links: a.stubs[d]}
		}
		s.Islands = append(s.Islands, out)
	}
	if s.equal(a.summary) {
		return a.summary, false
	}
	a.summary = s
	a.border.learn(s)
	return s, true
}

// same reports whether an island's own switches are these.
func (a *Area) same(is *island, list []flow.DPID) bool {
	return slices.EqualFunc(is.own, list, func(slot int32, d flow.DPID) bool { return a.top.ids[slot] == d })
}

// Summary is the last that Inside returned.
func (a *Area) Summary() *Summary { return a.summary }

// Learn adds the summary of another partition, and reports whether it is news:
// not known yet, nor older than the known one. A summary that Check rejects, or
// with switches that are not of its partition, is an error and changes nothing.
func (a *Area) Learn(s *Summary) (bool, error) {
	if s.Partition == a.config.Partition {
		return false, nil
	}
	if err := s.Check(); err != nil {
		return false, err
	}
	known := a.border.summaries[s.Partition]
	for n, i := range s.Islands {
		if known != nil && n < len(known.Islands) && slices.Equal(i.Switches, known.Islands[n].Switches) {
			continue
		}
		for _, d := range i.Switches {
			if of := a.config.Of(d); of != s.Partition {
				return false, fmt.Errorf("summary of %s: switch %v is of partition %q", s.Partition, d, of)
			}
		}
	}
	return a.border.learn(s), nil
}

// Forget removes the summary of a partition.
func (a *Area) Forget(partition string) bool {
	return partition != a.config.Partition && a.border.forget(partition)
}

func fill32(list []int32, v int32) {
	for i := range list {
		list[i] = v
	}
}

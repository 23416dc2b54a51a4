// Package paths computes paths over the discovered links: shortest, equal-cost,
// k shortest, disjoint, and the tree for broadcasts. A Graph follows switches
// and links as they come and go; a Topology is one immutable state of it, which
// any number of goroutines read without a lock.
//
// Only package services and the command import it. Its logic, everything but
// service.go, imports the standard library and package flow.
package paths

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-sdn/weft/flow"
)

// MaxWeight is the largest weight of a link, that of OSPF (RFC 2328 §A.4.2,
// 16 bits): with it no distance over fewer than 65,536 switches overflows.
const MaxWeight = 1<<16 - 1

// Link is one direction of a physical link: what leaves Src arrives at Dst.
// Weight is the cost of crossing it, 1 to MaxWeight; 0 stands for 1.
type Link struct {
	Src, Dst flow.Location
	Weight   uint32
}

// Graph is the switches and links known now. One goroutine owns it: only
// Current may be called from others.
//
// A link carries traffic, is usable, when both of its directions are known,
// both of its switches are present and different, both of its ports are physical,
// and neither has another link known in both directions (links are point to
// point: a port that seems to reach two others is miscabled, shared or forged,
// and what is sent out of it may arrive anywhere). Other links are kept, and
// become usable as soon as that is true; Unused lists them. Which links are
// usable depends only on what is known, never on the order in which it became
// known.
type Graph struct {
	slots map[flow.DPID]int32                 // present switches and their index in every Topology
	ids   []flow.DPID                         // by slot
	free  []int32                             // slots for new switches
	gone  map[flow.DPID]int32                 // removed since the last snapshot; their slots are not yet free
	ports map[flow.DPID]map[flow.Port][]cable // every cable at a port, usable or not
	cost  map[cable]weights

	dirty    map[int32]struct{} // slots whose usable links may differ from the last snapshot's
	reslot   bool               // switches came or went since the last snapshot
	byWeight map[uint32]int     // usable directed links of the last snapshot, by weight

	current atomic.Pointer[Topology]
}

// cable is a physical link by its two ends, a before b.
type cable struct{ a, b flow.Location }

// weights are those of a cable's two directions; 0: not known in that direction.
type weights struct{ ab, ba uint32 }

// NewGraph returns a graph without switches.
func NewGraph() *Graph { return newGraph(0) }

// newGraph returns a graph whose first snapshot has the version after last.
func newGraph(last uint64) *Graph {
	g := &Graph{
		slots:    map[flow.DPID]int32{},
		gone:     map[flow.DPID]int32{},
		ports:    map[flow.DPID]map[flow.Port][]cable{},
		cost:     map[cable]weights{},
		dirty:    map[int32]struct{}{},
		byWeight: map[uint32]int{},
	}
	g.current.Store(&Topology{version: last, scratch: &sync.Pool{New: func() any { return new(scratch) }}})
	return g
}

// AddSwitch makes a switch present and reports whether it was not. Links that
// were known before become usable with it.
func (g *Graph) AddSwitch(d flow.DPID) bool {
	if _, ok := g.slots[d]; ok {
		return false
	}
	slot, ok := g.gone[d]
	switch {
	case ok:
		delete(g.gone, d)
	case len(g.free) > 0:
		slot = g.free[len(g.free)-1]
		g.free = g.free[:len(g.free)-1]
		g.ids[slot] = d
	default:
		slot = int32(len(g.ids))
		g.ids = append(g.ids, d)
	}
	g.slots[d] = slot
	g.reslot = true
	g.touchSwitch(d)
	return true
}

// RemoveSwitch makes a switch absent and reports whether it was present. Its
// links stay known, unusable: RemoveLink forgets them.
func (g *Graph) RemoveSwitch(d flow.DPID) bool {
	slot, ok := g.slots[d]
	if !ok {
		return false
	}
	g.touchSwitch(d)
	delete(g.slots, d)
	g.gone[d] = slot
	g.reslot = true
	return true
}

// SetLink makes one direction of a link known, or gives it another weight, and
// reports whether that changed anything. Its switches may be added later.
func (g *Graph) SetLink(l Link) bool {
	return g.setWeight(l.Src, l.Dst, min(max(l.Weight, 1), MaxWeight))
}

// RemoveLink forgets one direction of a link and reports whether it was known.
func (g *Graph) RemoveLink(src, dst flow.Location) bool { return g.setWeight(src, dst, 0) }

func (g *Graph) setWeight(src, dst flow.Location, w uint32) bool {
	c, reversed := cable{src, dst}, compare(src, dst) > 0
	if reversed {
		c = cable{dst, src}
	}
	was := g.cost[c]
	now := was
	if reversed {
		now.ba = w
	} else {
		now.ab = w
	}
	if src == dst { // no reverse direction: never usable
		now.ba = 0
	}
	if now == was {
		return false
	}
	if was == (weights{}) {
		g.attach(c.a, c)
		g.attach(c.b, c)
	}
	g.touchPort(c.a)
	g.touchPort(c.b)
	g.cost[c] = now
	if now == (weights{}) {
		delete(g.cost, c)
		g.detach(c.a, c)
		g.detach(c.b, c)
	}
	return true
}

func (g *Graph) attach(at flow.Location, c cable) {
	byPort := g.ports[at.Switch]
	if byPort == nil {
		byPort = map[flow.Port][]cable{}
		g.ports[at.Switch] = byPort
	}
	if !slices.Contains(byPort[at.Port], c) {
		byPort[at.Port] = append(byPort[at.Port], c)
	}
}

func (g *Graph) detach(at flow.Location, c cable) {
	byPort := g.ports[at.Switch]
	rest := slices.DeleteFunc(byPort[at.Port], func(x cable) bool { return x == c })
	if len(rest) > 0 {
		byPort[at.Port] = rest
		return
	}
	if delete(byPort, at.Port); len(byPort) == 0 {
		delete(g.ports, at.Switch)
	}
}

// touchPort marks every switch whose usable links depend on the cables at a port.
func (g *Graph) touchPort(at flow.Location) {
	for _, c := range g.ports[at.Switch][at.Port] {
		g.touch(c.a.Switch)
		g.touch(c.b.Switch)
	}
}

func (g *Graph) touchSwitch(d flow.DPID) {
	g.touch(d)
	for port := range g.ports[d] {
		g.touchPort(flow.Location{Switch: d, Port: port})
	}
}

func (g *Graph) touch(d flow.DPID) {
	if slot, ok := g.slots[d]; ok {
		g.dirty[slot] = struct{}{}
	} else if slot, ok := g.gone[d]; ok {
		g.dirty[slot] = struct{}{}
	}
}

// usable reports whether both directions of a link are known.
func (g *Graph) usable(src, dst flow.Location) bool {
	c := cable{src, dst}
	if compare(src, dst) > 0 {
		c = cable{dst, src}
	}
	w := g.cost[c]
	return w.ab != 0 && w.ba != 0
}

// only returns the one cable at a port that is known in both directions, if
// there is exactly one.
func (g *Graph) only(at flow.Location) (c cable, ok bool) {
	for _, x := range g.ports[at.Switch][at.Port] {
		if w := g.cost[x]; w.ab != 0 && w.ba != 0 {
			if ok {
				return cable{}, false
			}
			c, ok = x, true
		}
	}
	return c, ok
}

// edges returns the usable links that leave a switch, by port.
func (g *Graph) edges(d flow.DPID) []edge {
	if _, ok := g.slots[d]; !ok {
		return nil
	}
	list := make([]edge, 0, len(g.ports[d]))
	for port := range g.ports[d] {
		here := flow.Location{Switch: d, Port: port}
		c, ok := g.only(here)
		if !ok || c.a.Switch == c.b.Switch || !c.a.Port.Physical() || !c.b.Port.Physical() {
			continue
		}
		there, w := c.b, g.cost[c]
		if here == c.b {
			there, w = c.a, weights{w.ba, w.ab}
		}
		to, present := g.slots[there.Switch]
		if _, ok := g.only(there); !ok || !present {
			continue
		}
		list = append(list, edge{to: to, out: port, in: there.Port, w: w.ab, back: w.ba})
	}
	slices.SortFunc(list, func(x, y edge) int { return cmp.Compare(x.out, y.out) })
	return list
}

// Current returns the last snapshot. Any goroutine may call it.
func (g *Graph) Current() *Topology { return g.current.Load() }

// Snapshot returns the topology as it is known now: the last one, if nothing
// that matters to a path has changed since. What earlier snapshots computed
// and the changes leave true is shared, what they do not is repaired, so the
// cost is in proportion to the change.
func (g *Graph) Snapshot() *Topology {
	old := g.current.Load()
	if len(g.dirty) == 0 && !g.reslot {
		return old
	}
	t := &Topology{
		version: old.version + 1,
		ids:     old.ids, index: old.index, order: old.order,
		adj:      make([][]edge, len(g.ids)),
		scratch:  old.scratch,
		lastTree: old.knownTree(),
	}
	copy(t.adj, old.adj)
	var changes []change
	for slot := range g.dirty {
		list := g.edges(g.ids[slot])
		changes = appendChanges(changes, slot, t.adj[slot], list)
		t.adj[slot] = list
	}
	clear(g.dirty)
	if len(changes) == 0 && !g.reslot {
		return old
	}
	for _, c := range changes {
		g.count(c.old, -1)
		g.count(c.new, +1)
	}
	if len(g.byWeight) == 1 {
		for w := range g.byWeight {
			t.uniform = w
		}
	}
	for _, n := range g.byWeight {
		t.links += n
	}
	if g.reslot {
		t.ids = slices.Clone(g.ids)
		t.index = maps.Clone(g.slots)
		t.order = slices.SortedFunc(maps.Values(g.slots), func(x, y int32) int { return cmp.Compare(g.ids[x], g.ids[y]) })
	}
	t.inherit(old, changes)
	for _, slot := range g.gone {
		t.rows[slot].Store(nil)
		g.free = append(g.free, slot)
	}
	clear(g.gone)
	g.reslot = false
	g.current.Store(t)
	return t
}

// renew makes the last snapshot another version.
func (g *Graph) renew() *Topology {
	old := g.current.Load()
	t := &Topology{
		version: old.version + 1, ids: old.ids, index: old.index, order: old.order, adj: old.adj, links: old.links, uniform: old.uniform,
		rows: old.rows, lastTree: old.knownTree(), scratch: old.scratch,
	}
	g.current.Store(t)
	return t
}

func (g *Graph) count(w uint32, n int) {
	if w == 0 {
		return
	}
	if g.byWeight[w] += n; g.byWeight[w] == 0 {
		delete(g.byWeight, w)
	}
}

// compare orders locations by DPID, then port.
func compare(x, y flow.Location) int {
	return cmp.Or(cmp.Compare(x.Switch, y.Switch), cmp.Compare(x.Port, y.Port))
}

package l2vpn

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/pce"
)

// An arc is one direction of a segment of a vpls's tree: frames to all ends go
// from one switch to the next by a tunnel, with a label that says where they come from,
// so that the next does not send them back.
type arc struct {
	from, to flow.DPID
	label    uint32
	leaves   bool // it is for frames of leaves, which no leaf gets
}

// core is the links that are up, as far as trees know of them.
type core map[flow.Location]map[flow.Location]uint32 // weights

// segments returns the tree that joins some switches, without labels: arcs between
// those switches and the branching points, both directions. Of a random tree, all ways
// meet in one switch, drawn by seed.
func (g core) segments(edges []flow.DPID, usable func(flow.DPID) bool, random bool, seed uint64) ([]arc, error) {
	if len(edges) < 2 {
		return nil, nil
	}
	number := map[flow.DPID]int{}
	var nodes []flow.DPID
	enter := func(sw flow.DPID) {
		if _, is := number[sw]; !is {
			number[sw] = 0
			nodes = append(nodes, sw)
		}
	}
	for _, sw := range edges {
		enter(sw)
	}
	for from, far := range g {
		for to := range far {
			enter(from.Switch)
			enter(to.Switch)
		}
	}
	slices.Sort(nodes)
	for i, sw := range nodes {
		number[sw] = i
	}
	type cable struct{ from, to flow.Location }
	var cables []cable
	for from, far := range g {
		for to, weight := range far {
			_, both := g[to][from]
			through := (usable(from.Switch) || slices.Contains(edges, from.Switch)) && (usable(to.Switch) || slices.Contains(edges, to.Switch))
			if weight > 0 && both && through && from.Switch < to.Switch {
				cables = append(cables, cable{from, to})
			}
		}
	}
	slices.SortFunc(cables, func(a, b cable) int {
		return cmp.Or(cmp.Compare(a.from.Switch, b.from.Switch), cmp.Compare(a.from.Port, b.from.Port), cmp.Compare(a.to.Switch, b.to.Switch), cmp.Compare(a.to.Port, b.to.Port))
	})
	var links []pce.Link
	for i, c := range cables {
		a, b := number[c.from.Switch], number[c.to.Switch]
		links = append(links,
			pce.Link{From: a, To: b, Cable: i, Cost: min(g[c.from][c.to], pce.MaxCost)},
			pce.Link{From: b, To: a, Cable: i, Cost: min(max(g[c.to][c.from], 1), pce.MaxCost)})
	}
	graph, err := pce.NewGraph(len(nodes), links)
	if err != nil {
		return nil, err
	}
	terminals := make([]int, len(edges))
	for i, sw := range edges {
		terminals[i] = number[sw]
	}
	var tree pce.Tree
	if random {
		tree, err = graph.StarTree(&pce.Demand{}, terminals, -1, rand.New(rand.NewPCG(seed, 0)))
	} else {
		tree, err = graph.SteinerTree(&pce.Demand{}, terminals)
	}
	if err != nil {
		return nil, fmt.Errorf("no tree joins its ends: links that are up do not connect switches %v", edges)
	}
	near := map[flow.DPID][]flow.DPID{}
	for _, i := range tree.Cables {
		a, b := cables[i].from.Switch, cables[i].to.Switch
		near[a], near[b] = append(near[a], b), append(near[b], a)
	}
	return contract(near, edges), nil
}

// contract returns the arcs of a tree between the switches of ends and those where
// three ways or more meet.
func contract(near map[flow.DPID][]flow.DPID, edges []flow.DPID) (list []arc) {
	stays := func(sw flow.DPID) bool { return len(near[sw]) != 2 || slices.Contains(edges, sw) }
	for sw := range near {
		if !stays(sw) {
			continue
		}
		for _, next := range near[sw] {
			from, at := sw, next
			for !stays(at) {
				n := near[at]
				from, at = at, n[0]+n[1]-from
			}
			list = append(list, arc{from: sw, to: at})
		}
	}
	slices.SortFunc(list, arc.compare)
	return list
}

// compare orders arcs by their switches.
func (a arc) compare(b arc) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.half(), b.half()))
}

// half returns which half of a tree an arc is of: 1 for frames of leaves.
func (a arc) half() int {
	if a.leaves {
		return 1
	}
	return 0
}

// same reports whether two arcs have the same ends, and are for the same frames.
func (a arc) same(b arc) bool { return a.compare(b) == 0 }

// withLeaves returns a tree, and the same once more for frames of leaves.
func withLeaves(tree []arc) (list []arc) {
	for _, a := range tree {
		list = append(list, a, arc{from: a.from, to: a.to, leaves: true})
	}
	return list
}

// ahead returns the arcs on which frames to all, of leaves or of roots, go on from a switch: not
// back to that from which they have come.
func ahead(arcs []arc, at, from flow.DPID, leaves bool) (list []arc) {
	for _, a := range arcs {
		if a.from == at && a.to != from && a.leaves == leaves {
			list = append(list, a)
		}
	}
	return list
}

// arcs returns the tree of a vpls as it is stored.
func (c *circuit) arcs() (list []arc) {
	for _, l := range c.TreeLabels {
		from, err := flow.ParseDPID(l.From)
		to, err2 := flow.ParseDPID(l.Dpid)
		if err == nil && err2 == nil {
			list = append(list, arc{from, to, l.Label, l.Leaves})
		}
	}
	return list
}

// sameTree reports whether a vpls can have the tree of the circuit before.
func (c *circuit) sameTree(old *circuit) bool {
	return old != nil && old.Tree == c.Tree && (len(old.leaves) > 0) == (len(c.leaves) > 0) && overlaid(old.Transport) == overlaid(c.Transport) && slices.Equal(old.edges(), c.edges())
}

// edges returns the switches of the ends.
func (c *circuit) edges() (list []flow.DPID) {
	for _, e := range c.ends {
		list = append(list, e.at.Switch)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

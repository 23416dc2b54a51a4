package paths

import (
	"cmp"
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// outside is the costs from every slot of an area to one island elsewhere (paper
// 001 §3.2, step 3).
type outside struct {
	seeds []seed
	dist  []uint32
}

// seed is the cost from a gate onwards for packets that leave there.
type seed struct {
	slot int32
	cost uint32
}

// Work counts the work of a call of Outside.
type Work struct {
	Islands int // of all partitions
	Rows    int // islands to which routes were computed anew
}

// Outside computes the routes to islands elsewhere that changes here or learnt
// summaries concern.
func (a *Area) Outside() Work {
	before := a.border.top
	touched, reslot := a.border.settle()
	anew := a.anew || reslot
	w := Work{Islands: len(a.border.islands)}
	for id := range a.rows {
		if a.border.islands[id] == nil {
			delete(a.rows, id)
		}
	}
	if len(touched) == 0 && !anew && len(a.change) == 0 {
		return w
	}
	s := a.top.scratch.Get().(*scratch)
	defer a.top.scratch.Put(s)
	for id := range a.border.islands {
		row := a.rows[id]
		if row == nil {
			row = &outside{}
			a.rows[id] = row
		}
		stale := anew || tight(row.dist, a.change)
		if anew || a.concerns(before, touched, id) {
			if seeds := a.seeds(id); !slices.Equal(seeds, row.seeds) {
				row.seeds, stale = seeds, true
			}
		}
		if stale {
			a.compute(s, row)
			w.Rows++
		}
	}
	a.anew, a.change = false, nil
	return w
}

// concerns reports whether changes of some islands may change the costs from
// the gates to island id.
func (a *Area) concerns(before *Topology, touched map[flow.DPID]struct{}, id flow.DPID) bool {
	if _, ok := touched[id]; ok {
		return true
	}
	b := a.border
	slot := b.top.index[id]
	if before.rows[slot].Load() != b.top.rows[slot].Load() { // the same slot: none has come or gone
		return true
	}
	for other := range touched {
		for _, is := range a.islands {
			if other == is.id || b.distance(other, id) < b.distance(is.id, id) {
				return true
			}
		}
	}
	return false
}

// tight reports whether changes of links may change a row.
func tight(dist []uint32, changes []change) bool {
	for _, c := range changes {
		du, dv := at(dist, c.from), at(dist, c.to)
		if dv == Unreachable {
			continue
		}
		if c.old != 0 && du == dv+c.old && (c.new == 0 || c.new > c.old) || c.new != 0 && dv+c.new < du {
			return true
		}
	}
	return false
}

// seeds lists the gates by which packets leave for island id, by island, and what
// it costs from there: only exits to islands that are nearer to it count.
func (a *Area) seeds(id flow.DPID) []seed {
	b := a.border
	to := b.top.row(b.top.index[id])
	var list []seed
	for _, is := range a.islands {
		here := at(to, b.top.index[is.id])
		if is.id == id || here == Unreachable {
			continue
		}
		for k, slot := range is.gates {
			gate := a.top.ids[slot]
			best := uint32(Unreachable)
			for _, e := range b.entrances[is.doors[k]] {
				if left := at(to, e.slot); left < here {
					best = min(best, e.cost+left)
				}
			}
			for _, l := range a.stubs[gate] {
				best = min(best, a.onward(gate, l, to, here))
			}
			if best != Unreachable {
				list = append(list, seed{slot, best})
			}
		}
	}
	return list
}

// onward is what it costs by a border link to an island from which the distances
// are in to, Unreachable if the link does not lead nearer than here.
func (a *Area) onward(gate flow.DPID, l BorderLink, to []uint32, here uint32) uint32 {
	b := a.border
	mine, peer, ok := b.across(flow.Location{Switch: gate, Port: l.Port})
	if !ok || mine.peer != l.Peer {
		return Unreachable
	}
	left := at(to, b.top.index[peer.island])
	c, known := b.cost(l.Peer.Switch, peer.island)
	if !known || left >= here {
		return Unreachable
	}
	return l.Weight + c + left
}

// compute computes a row from its seeds.
func (a *Area) compute(s *scratch, row *outside) {
	if len(row.dist) != len(a.top.adj) {
		row.dist = make([]uint32, len(a.top.adj))
	}
	fill(row.dist, Unreachable)
	s.queue.reset()
	for _, x := range row.seeds {
		row.dist[x.slot] = x.cost
		s.queue.push(x.cost, x.slot)
	}
	a.top.settle(s, row.dist)
}

// stance is how near an area knows a switch to be to a destination: inside its
// island, or by the distance of the islands. Nearer ones go before.
type stance struct {
	outside bool
	cost    uint32
	island  flow.DPID
}

func (s stance) compare(o stance) int {
	if s.outside != o.outside {
		if s.outside {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(s.cost, o.cost), cmp.Compare(s.island, o.island))
}

// stance returns how near the area knows a switch to be to another; false if it
// knows no way.
func (a *Area) stance(from, to flow.DPID) (stance, bool) {
	slot, ok := a.top.index[from]
	if !ok || a.at[slot] < 0 {
		return stance{}, false
	}
	is := a.islands[a.at[slot]]
	if dst, ok := a.top.index[to]; ok && a.at[dst] == a.at[slot] {
		return stance{false, at(a.top.row(dst), slot), is.id}, true
	}
	home, ok := a.border.home[to]
	if !ok {
		return stance{}, false
	}
	d := a.border.distance(is.id, home)
	row := a.rows[home]
	if d == Unreachable || d == 0 || row == nil || at(row.dist, slot) == Unreachable {
		return stance{}, false
	}
	return stance{true, d, is.id}, true
}

// Step returns the way of a packet out of a switch of the partition towards
// another switch, anywhere: the port where it leaves, and where it comes in
// then. Of several of equal cost, hash chooses, as for Topology.Path. There is
// none if no links connect the two, or if they are the same.
func (a *Area) Step(from, to flow.DPID, hash uint64) (out flow.Port, next flow.Location, ok bool) {
	s, ok := a.stance(from, to)
	if !ok || from == to {
		return 0, next, false
	}
	slot := a.top.index[from]
	if !s.outside {
		e := a.top.pick(slot, a.top.row(a.top.index[to]), hash)
		return e.out, flow.Location{Switch: a.top.ids[e.to], Port: e.in}, true
	}
	home := a.border.home[to]
	row := a.rows[home].dist
	seed := mix(hash ^ uint64(from)*0x9e3779b97f4a7c15)
	var top uint64
	ok = false
	offer := func(port flow.Port, peer flow.Location) {
		if score := mix(seed + uint64(port)*0xd1342543de82ef95); !ok || score > top {
			out, next, top, ok = port, peer, score, true
		}
	}
	for _, e := range a.top.adj[slot] {
		if d := at(row, e.to); d != Unreachable && d+e.w == row[slot] {
			offer(e.out, flow.Location{Switch: a.top.ids[e.to], Port: e.in})
		}
	}
	dist := a.border.top.row(a.border.top.index[home])
	for _, l := range a.stubs[from] {
		if a.onward(from, l, dist, s.cost) == row[slot] {
			offer(l.Port, l.Peer)
		}
	}
	return out, next, ok
}

// Walk returns the way of a packet from a switch of the partition towards
// another, as far as it stays in the partition, and what it costs: to its end,
// or to the switch and port of another partition where it goes on, the link
// there included. False if there is no way.
func (a *Area) Walk(from, to flow.DPID, hash uint64) (p Path, cost uint64, next flow.Location, ok bool) {
	if slot, here := a.top.index[from]; !here || a.at[slot] < 0 {
		return nil, 0, next, false
	}
	var in flow.Port
	for here := from; here != to; {
		out, next, ok := a.Step(here, to, hash)
		if !ok || len(p) > len(a.top.order) {
			return nil, 0, next, false
		}
		p = append(p, Hop{here, in, out})
		if w, inside := a.top.edge(a.top.index[here], out); inside {
			cost += uint64(w.w)
		} else {
			for _, l := range a.stubs[here] {
				if l.Port == out {
					cost += uint64(l.Weight)
				}
			}
			return p, cost, next, true
		}
		here, in = next.Switch, next.Port
	}
	return append(p, Hop{to, in, 0}), cost, flow.Location{}, true
}

// Knows reports whether a switch exists: one of the partition, or in the
// summary of another partition.
func (a *Area) Knows(d flow.DPID) bool { return a.top.Has(d) || a.border.home[d] != 0 }

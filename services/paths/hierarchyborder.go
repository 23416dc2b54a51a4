package paths

import (
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// border is the network of islands as one partition knows it (paper 001 §3.2,
// step 2): two islands are joined where they have a gate in common, or where a
// link leads from a gate of the one to a gate of the other. What that costs is
// what the gates say it costs to reach the islands from them, and the link.
type border struct {
	summaries map[string]*Summary
	islands   map[flow.DPID]*member
	home      map[flow.DPID]flow.DPID     // switches of all partitions, and the island that each is in
	doors     map[flow.DPID]int32         // numbers of gates, never given to another
	entrances [][]entrance                // by a gate's number
	ends      map[flow.Location]borderEnd // the entry for the link at a port by the port's partition
	ports     map[flow.DPID]flow.Port     // number of an island, never given to another
	touched   map[flow.DPID]struct{}      // islands that have changed since settle

	graph *Graph // of islands, by their names
	top   *Topology
}

// member is an island of any partition.
type member struct {
	*Island
	slot  int32                 // in graph
	doors []int32               // of Gates
	near  map[flow.DPID]weights // the islands beside it: the cost of going there and back
}

// entrance is the cost of reaching an island from one of its gates. The island
// keeps its slot in the graph as long as it exists.
type entrance struct {
	island flow.DPID
	slot   int32
	cost   uint32
}

// borderEnd is one side of a border link.
type borderEnd struct {
	island flow.DPID
	peer   flow.Location
	weight uint32
}

func newBorder() *border {
	b := &border{
		summaries: map[string]*Summary{}, islands: map[flow.DPID]*member{}, home: map[flow.DPID]flow.DPID{},
		doors: map[flow.DPID]int32{}, ends: map[flow.Location]borderEnd{}, ports: map[flow.DPID]flow.Port{},
		touched: map[flow.DPID]struct{}{}, graph: NewGraph(),
	}
	b.top = b.graph.Current()
	return b
}

// learn adds a summary, unless it is older than the known one.
func (b *border) learn(s *Summary) bool {
	old := b.summaries[s.Partition]
	if old != nil && old.Version >= s.Version {
		return false
	}
	b.summaries[s.Partition] = s
	b.replace(old, s)
	return true
}

func (b *border) forget(partition string) bool {
	old := b.summaries[partition]
	if old == nil {
		return false
	}
	delete(b.summaries, partition)
	b.replace(old, &Summary{})
	return true
}

// replace replaces the islands of one summary by those of another.
func (b *border) replace(old, s *Summary) {
	var was []Island
	if old != nil {
		was = old.Islands
	}
	for len(was) > 0 || len(s.Islands) > 0 {
		now := s.Islands
		switch {
		case len(now) == 0 || len(was) > 0 && was[0].ID() < now[0].ID():
			b.drop(&was[0])
			was = was[1:]
			continue
		case len(was) == 0 || now[0].ID() < was[0].ID():
			b.gates(nil, &now[0])
		default:
			b.gates(&was[0], &now[0])
			was = was[1:]
		}
		s = &Summary{Islands: now[1:]}
	}
}

// drop removes an island.
func (b *border) drop(i *Island) {
	id := i.ID()
	for _, d := range i.Switches {
		if b.home[d] == id { // it may be in another by now
			delete(b.home, d)
		}
	}
	if m := b.islands[id]; m != nil {
		for k := range i.Gates {
			b.unset(id, m.doors[k], &i.Gates[k])
		}
		for other := range m.near {
			b.part(id, other)
			delete(b.islands[other].near, id)
		}
	}
	delete(b.islands, id)
	delete(b.touched, id)
	b.graph.RemoveSwitch(id)
}

// gates replaces the former state of an island, if there was one.
func (b *border) gates(was, now *Island) {
	id := now.ID()
	m := b.islands[id]
	if m == nil {
		b.graph.AddSwitch(id)
		m = &member{slot: b.graph.slots[id], near: map[flow.DPID]weights{}}
		b.islands[id] = m
		if b.ports[id] == 0 {
			b.ports[id] = flow.Port(len(b.ports) + 1)
		}
	}
	m.Island = now
	b.touched[id] = struct{}{}
	if was == nil {
		was = &Island{}
	}
	if !slices.Equal(was.Switches, now.Switches) {
		for _, d := range was.Switches {
			if b.home[d] == id {
				delete(b.home, d)
			}
		}
		for _, d := range now.Switches {
			b.home[d] = id
		}
	}
	x, y := was.Gates, now.Gates
	doors := m.doors
	m.doors = make([]int32, len(y))
	for k := 0; len(x) > 0 || len(y) > 0; {
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].Switch < y[0].Switch:
			b.unset(id, doors[0], &x[0])
			x, doors = x[1:], doors[1:]
			continue
		case len(x) == 0 || y[0].Switch < x[0].Switch:
			m.doors[k] = b.door(y[0].Switch)
			b.set(id, m.slot, m.doors[k], &y[0])
		default:
			m.doors[k] = doors[0]
			if !x[0].equal(y[0]) {
				b.unset(id, doors[0], &x[0])
				b.set(id, m.slot, doors[0], &y[0])
			}
			x, doors = x[1:], doors[1:]
		}
		y, k = y[1:], k+1
	}
}

// door returns the number of a gate.
func (b *border) door(d flow.DPID) int32 {
	n, ok := b.doors[d]
	if !ok {
		n = int32(len(b.entrances))
		b.doors[d] = n
		b.entrances = append(b.entrances, nil)
	}
	return n
}

// set records a gate of an island.
func (b *border) set(id flow.DPID, slot, door int32, g *Gate) {
	b.entrances[door] = append(b.entrances[door], entrance{id, slot, g.Cost})
	for _, l := range g.Links {
		here := flow.Location{Switch: g.Switch, Port: l.Port}
		b.ends[here] = borderEnd{id, l.Peer, l.Weight}
		b.touchPeer(here)
	}
}

// unset forgets a gate of an island.
func (b *border) unset(id flow.DPID, door int32, g *Gate) {
	b.entrances[door] = slices.DeleteFunc(b.entrances[door], func(e entrance) bool { return e.island == id })
	for _, l := range g.Links {
		here := flow.Location{Switch: g.Switch, Port: l.Port}
		if b.ends[here].island == id {
			b.touchPeer(here)
			delete(b.ends, here)
		}
	}
}

// touchPeer marks the island at the other end of a border link.
func (b *border) touchPeer(here flow.Location) {
	if _, peer, ok := b.across(here); ok {
		b.touched[peer.island] = struct{}{}
	}
}

// across returns both sides of the border link at a port, if both partitions
// report it.
func (b *border) across(here flow.Location) (mine, peer borderEnd, ok bool) {
	mine, ok = b.ends[here]
	if !ok {
		return mine, peer, false
	}
	peer, ok = b.ends[mine.peer]
	return mine, peer, ok && peer.peer == here
}

// cost is the cost of reaching an island from one of its gates.
func (b *border) cost(gate, island flow.DPID) (uint32, bool) {
	door, ok := b.doors[gate]
	if !ok {
		return Unreachable, false
	}
	for _, e := range b.entrances[door] {
		if e.island == island {
			return e.cost, true
		}
	}
	return Unreachable, false
}

// settle computes the changed distances between islands. It returns the changed
// islands, and whether all have changed.
func (b *border) settle() (touched map[flow.DPID]struct{}, reslot bool) {
	touched, b.touched = b.touched, map[flow.DPID]struct{}{}
	for id := range touched {
		if m := b.islands[id]; m != nil {
			b.join(id, m)
		}
	}
	reslot = b.graph.reslot
	b.top = b.graph.Snapshot()
	b.top.Converge()
	return touched, reslot
}

// join finds the islands beside one, and what it costs to go there.
func (b *border) join(id flow.DPID, m *member) {
	best := make([]weights, len(b.graph.ids)) // by slot
	better := func(slot int32, there, back uint32) {
		w := &best[slot]
		if there = min(max(there, 1), MaxWeight); w.ab == 0 || there < w.ab {
			w.ab = there
		}
		if back = min(max(back, 1), MaxWeight); w.ba == 0 || back < w.ba {
			w.ba = back
		}
	}
	for k := range m.Gates {
		g := &m.Gates[k]
		for i := range b.entrances[m.doors[k]] {
			e := &b.entrances[m.doors[k]][i]
			better(e.slot, g.Cost+e.cost, g.Cost+e.cost)
		}
		for _, l := range g.Links {
			mine, peer, ok := b.across(flow.Location{Switch: g.Switch, Port: l.Port})
			if c, known := b.cost(mine.peer.Switch, peer.island); ok && known {
				better(b.islands[peer.island].slot, g.Cost+mine.weight+c, g.Cost+peer.weight+c)
			}
		}
	}
	best[m.slot] = weights{}
	for other := range m.near {
		if best[b.islands[other].slot] == (weights{}) {
			b.part(id, other)
			delete(b.islands[other].near, id)
			delete(m.near, other)
		}
	}
	for slot, w := range best {
		other := b.graph.ids[slot]
		if w == (weights{}) || m.near[other] == w {
			continue
		}
		x, y := b.between(id, other)
		b.graph.SetLink(Link{x, y, w.ab})
		b.graph.SetLink(Link{y, x, w.ba})
		m.near[other] = w
		b.islands[other].near[id] = weights{w.ba, w.ab}
	}
}

// part removes the link between two islands.
func (b *border) part(id, other flow.DPID) {
	x, y := b.between(id, other)
	b.graph.RemoveLink(x, y)
	b.graph.RemoveLink(y, x)
}

// between returns the ends of the link between two islands.
func (b *border) between(id, other flow.DPID) (x, y flow.Location) {
	return flow.Location{Switch: id, Port: b.ports[other]}, flow.Location{Switch: other, Port: b.ports[id]}
}

// distance is that between two islands, Unreachable if there is no way.
func (b *border) distance(from, to flow.DPID) uint32 {
	d, ok := b.top.Distance(from, to)
	if !ok {
		return Unreachable
	}
	return d
}

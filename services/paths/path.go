package paths

import (
	"fmt"

	"github.com/weft-sdn/weft/flow"
)

// Hop is a switch on a path and the ports by which the path enters and leaves
// it. In is 0 at the first switch and Out is 0 at the last: hosts, not links,
// are there.
type Hop struct {
	Switch  flow.DPID
	In, Out flow.Port
}

// Path is the switches of a path, from its source to its destination. It
// visits none twice.
type Path []Hop

// Path returns a shortest path. Which of several of equal weight, parallel
// links counted, hash decides, for each switch by rendezvous hashing: hashes
// are spread evenly over the next hops, and a hash whose path remains shortest
// keeps it when others appear or disappear. There is no path to or from an
// unknown switch; the path to the switch itself has one hop.
func (t *Topology) Path(src, dst flow.DPID, hash uint64) (Path, bool) {
	return t.AppendPath(nil, src, dst, hash)
}

// AppendPath is Path appended to p, in p's memory if it has room.
func (t *Topology) AppendPath(p Path, src, dst flow.DPID, hash uint64) (Path, bool) {
	s, ok := t.index[src]
	d, ok2 := t.index[dst]
	if !ok || !ok2 {
		return p, false
	}
	dist := t.row(d)
	if at(dist, s) == Unreachable {
		return p, false
	}
	var in flow.Port
	for u := s; u != d; {
		e := t.pick(u, dist, hash)
		p = append(p, Hop{t.ids[u], in, e.out})
		u, in = e.to, e.in
	}
	return append(p, Hop{t.ids[d], in, 0}), true
}

// pick chooses among the links of u that begin a shortest path. There is one,
// because u is reachable and not the destination.
func (t *Topology) pick(u int32, dist []uint32, hash uint64) *edge {
	seed := mix(hash ^ uint64(t.ids[u])*0x9e3779b97f4a7c15)
	var best *edge
	var top uint64
	adj, du := t.adj[u], dist[u]
	for i := range adj {
		if e := &adj[i]; dist[e.to]+e.w == du {
			if score := mix(seed + uint64(e.out)*0xd1342543de82ef95); best == nil || score > top {
				best, top = e, score
			}
		}
	}
	return best
}

// mix is the finaliser of SplitMix64: every input bit changes every output bit
// with probability one half.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// NextHops lists the ports of src by which a shortest path to dst leaves, in
// order; none if there is no path or src is dst.
func (t *Topology) NextHops(src, dst flow.DPID) []flow.Port {
	return t.AppendNextHops(nil, src, dst)
}

// AppendNextHops is NextHops appended to list, in its memory if it has room.
func (t *Topology) AppendNextHops(list []flow.Port, src, dst flow.DPID) []flow.Port {
	s, ok := t.index[src]
	d, ok2 := t.index[dst]
	if !ok || !ok2 {
		return list
	}
	dist := t.row(d)
	ds := at(dist, s)
	if ds == Unreachable {
		return list
	}
	for i := range t.adj[s] {
		if e := &t.adj[s][i]; dist[e.to]+e.w == ds {
			list = append(list, e.out)
		}
	}
	return list
}

// Weight is the total weight of a path's links.
func (t *Topology) Weight(p Path) (uint64, error) {
	if err := t.Check(p); err != nil {
		return 0, err
	}
	var w uint64
	for _, h := range p[:len(p)-1] {
		e, _ := t.edge(t.index[h.Switch], h.Out)
		w += uint64(e.w)
	}
	return w, nil
}

// Check reports what keeps a path from being programmed: an unknown switch, a
// hop that no usable link makes, or a switch visited twice, which is a loop.
// Paths that a Topology returns pass it; paths given from outside may not.
func (t *Topology) Check(p Path) error {
	if len(p) == 0 {
		return fmt.Errorf("path: no switches; want at least one")
	}
	seen := make(map[flow.DPID]bool, len(p))
	for i, h := range p {
		slot, ok := t.index[h.Switch]
		if !ok {
			return fmt.Errorf("path: hop %d: switch %v is not connected", i+1, h.Switch)
		}
		if seen[h.Switch] {
			return fmt.Errorf("path: hop %d: switch %v is visited twice, which is a loop", i+1, h.Switch)
		}
		seen[h.Switch] = true
		if i == len(p)-1 {
			break
		}
		next := p[i+1]
		e, ok := t.edge(slot, h.Out)
		if !ok {
			return fmt.Errorf("path: hop %d: no usable link at %v", i+1, flow.Location{Switch: h.Switch, Port: h.Out})
		}
		if t.ids[e.to] != next.Switch || e.in != next.In {
			return fmt.Errorf("path: hop %d: the link at %v leads to %v, not to %v", i+1,
				flow.Location{Switch: h.Switch, Port: h.Out},
				flow.Location{Switch: t.ids[e.to], Port: e.in},
				flow.Location{Switch: next.Switch, Port: next.In})
		}
	}
	return nil
}

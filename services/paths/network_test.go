package paths

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// network is what a graph has been told, kept apart from it: the facts from
// which tests compute by other means what the graph should answer.
type network struct {
	switches map[flow.DPID]bool
	links    map[[2]flow.Location]uint32
	graph    *Graph
}

func newNetwork() *network {
	return &network{map[flow.DPID]bool{}, map[[2]flow.Location]uint32{}, NewGraph()}
}

func (n *network) addSwitch(d flow.DPID) {
	n.switches[d] = true
	n.graph.AddSwitch(d)
}

func (n *network) removeSwitch(d flow.DPID) {
	delete(n.switches, d)
	n.graph.RemoveSwitch(d)
}

func (n *network) setLink(src, dst flow.Location, w uint32) {
	n.links[[2]flow.Location{src, dst}] = max(w, 1)
	n.graph.SetLink(Link{src, dst, w})
}

func (n *network) removeLink(src, dst flow.Location) {
	delete(n.links, [2]flow.Location{src, dst})
	n.graph.RemoveLink(src, dst)
}

// wire makes both directions of a link known.
func (n *network) wire(a, b flow.Location, w uint32) {
	n.setLink(a, b, w)
	n.setLink(b, a, w)
}

func (n *network) cut(a, b flow.Location) {
	n.removeLink(a, b)
	n.removeLink(b, a)
}

// fresh returns the topology of a new graph told the same facts in another order.
func (n *network) fresh(r *rand.Rand) *Topology {
	var tell []func(*Graph)
	for d := range n.switches {
		tell = append(tell, func(g *Graph) { g.AddSwitch(d) })
	}
	for ends, w := range n.links {
		tell = append(tell, func(g *Graph) { g.SetLink(Link{ends[0], ends[1], w}) })
	}
	r.Shuffle(len(tell), func(i, j int) { tell[i], tell[j] = tell[j], tell[i] })
	g := NewGraph()
	for _, f := range tell {
		f(g)
	}
	return g.Snapshot()
}

// usable lists the links that should carry traffic, by the rule in words.
func (n *network) usable() []Link {
	bidirectional := func(src, dst flow.Location) bool {
		return n.links[[2]flow.Location{src, dst}] != 0 && n.links[[2]flow.Location{dst, src}] != 0 && src != dst
	}
	peers := map[flow.Location]int{}
	for ends := range n.links {
		if bidirectional(ends[0], ends[1]) {
			peers[ends[0]]++
		}
	}
	var list []Link
	for ends, w := range n.links {
		src, dst := ends[0], ends[1]
		if bidirectional(src, dst) && src.Switch != dst.Switch &&
			src.Port.Physical() && dst.Port.Physical() && peers[src] == 1 && peers[dst] == 1 &&
			n.switches[src.Switch] && n.switches[dst.Switch] {
			list = append(list, Link{src, dst, w})
		}
	}
	slices.SortFunc(list, func(a, b Link) int { return compare(a.Src, b.Src) })
	return list
}

// distances computes all of them by Floyd and Warshall's algorithm.
func (n *network) distances(links []Link) map[[2]flow.DPID]uint32 {
	dist := map[[2]flow.DPID]uint32{}
	var ids []flow.DPID
	for d := range n.switches {
		ids = append(ids, d)
		dist[[2]flow.DPID{d, d}] = 0
	}
	for _, l := range links {
		key := [2]flow.DPID{l.Src.Switch, l.Dst.Switch}
		if w, ok := dist[key]; !ok || l.Weight < w {
			dist[key] = l.Weight
		}
	}
	for _, k := range ids {
		for _, i := range ids {
			ik, ok := dist[[2]flow.DPID{i, k}]
			if !ok {
				continue
			}
			for _, j := range ids {
				if kj, ok := dist[[2]flow.DPID{k, j}]; ok {
					if ij, ok := dist[[2]flow.DPID{i, j}]; !ok || ik+kj < ij {
						dist[[2]flow.DPID{i, j}] = ik + kj
					}
				}
			}
		}
	}
	return dist
}

func at2(d flow.DPID, p flow.Port) flow.Location { return flow.Location{Switch: d, Port: p} }

// randomNetwork has n switches and m links, parallel ones included, with
// weights of 1 to heaviest, different in the two directions if skew.
func randomNetwork(r *rand.Rand, n, m int, heaviest uint32, skew bool) *network {
	net := newNetwork()
	ids := make([]flow.DPID, n)
	for i := range ids {
		ids[i] = flow.DPID(r.Uint64N(1 << 40))
		net.addSwitch(ids[i])
	}
	ports := map[flow.DPID]flow.Port{}
	wire := func(a, b flow.DPID) {
		if a == b {
			return
		}
		ports[a]++
		ports[b]++
		w := 1 + r.Uint32N(heaviest)
		net.wire(at2(a, ports[a]), at2(b, ports[b]), w)
		if skew {
			net.setLink(at2(a, ports[a]), at2(b, ports[b]), 1+r.Uint32N(heaviest))
		}
	}
	for i := 1; i < min(n, m); i++ {
		if r.IntN(10) > 0 {
			wire(ids[i], ids[r.IntN(i)])
		}
	}
	for range m - n {
		wire(ids[r.IntN(n)], ids[r.IntN(n)])
	}
	return net
}

// fatTree has pods of width aggregation and width edge switches, each of the one
// linked to each of the other; the core switches are shared out among the
// aggregation switches of a pod, so that each has one link into every pod. With
// 32 pods of width 32 and 512 core switches it is the network of the Hydra
// paper's evaluation (§4): 2,560 switches, 49,152 links.
func fatTree(pods, width, core int) *network {
	n := newNetwork()
	agg := func(p, i int) flow.DPID { return flow.DPID(1<<20 | p<<8 | i) }
	edge := func(p, i int) flow.DPID { return flow.DPID(2<<20 | p<<8 | i) }
	for c := range core {
		n.addSwitch(flow.DPID(c + 1))
	}
	up := core / width // core switches above one aggregation switch
	for p := range pods {
		for i := range width {
			n.addSwitch(agg(p, i))
			n.addSwitch(edge(p, i))
		}
		for i := range width {
			for j := range width {
				n.wire(at2(agg(p, i), flow.Port(j+1)), at2(edge(p, j), flow.Port(i+1)), 1)
			}
			for j := range up {
				n.wire(at2(agg(p, i), flow.Port(width+j+1)), at2(flow.DPID(i*up+j+1), flow.Port(p+1)), 1)
			}
		}
	}
	return n
}

// star has n switches around switch 1.
func star(n int) *network {
	net := newNetwork()
	net.addSwitch(1)
	for i := 1; i <= n; i++ {
		net.addSwitch(flow.DPID(i + 1))
		net.wire(at2(1, flow.Port(i)), at2(flow.DPID(i+1), 1), 1)
	}
	return net
}

// must fails the test if a path is not one of the topology, from src to dst, of
// the weight.
func must(t *testing.T, top *Topology, p Path, src, dst flow.DPID, weight uint32) {
	t.Helper()
	w, err := top.Weight(p)
	if err != nil {
		t.Fatalf("%v: %v", p, err)
	}
	if p[0].Switch != src || p[len(p)-1].Switch != dst || p[0].In != 0 || p[len(p)-1].Out != 0 {
		t.Fatalf("path from %v to %v: %v", src, dst, p)
	}
	if w != uint64(weight) {
		t.Fatalf("path %v weighs %d; want %d", p, w, weight)
	}
}

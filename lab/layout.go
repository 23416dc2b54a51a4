package lab

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/graph/layout"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/spatial/r2"

	"github.com/weft-sdn/weft/lab/topology"
)

type point struct{ x, y float64 }

const (
	margin   = 50.0  // around a drawing
	hopSize  = 110.0 // between neighbouring switches
	hostSize = 52.0  // from a switch to its hosts
)

// arrange places every switch and host for a drawing, the same way every
// time: switches as far from each other as they are in hops, as nearly as a
// plane allows, hosts beside their switch, where its links leave most room.
func arrange(t *topology.Topology) map[string]point {
	at := map[string]point{}
	if len(t.Switches)+len(t.Hosts) == 0 {
		return at
	}
	index := map[string]int{}
	for i, s := range t.Switches {
		index[s.Name] = i
	}
	names := make([]string, 0, len(t.Switches))
	for _, s := range t.Switches {
		names = append(names, s.Name)
	}
	away := func(node string) { // in another lab: it has a place, and no circle
		if _, ok := index[node]; !ok {
			index[node] = len(names)
			names = append(names, node)
		}
	}
	for _, l := range t.Links {
		away(l.B)
	}
	for _, h := range t.Hosts {
		away(h.Switch)
	}
	next := make([][]int, len(names))
	for _, l := range t.Links {
		a, b := index[l.A], index[l.B]
		next[a], next[b] = append(next[a], b), append(next[b], a)
	}
	pos := stretch(start(next), hops(next))
	for i, name := range names {
		pos[i].x, pos[i].y = pos[i].x*hopSize, pos[i].y*hopSize
		at[name] = pos[i]
	}
	count, nth := map[string]int{}, map[string]int{}
	for _, h := range t.Hosts {
		count[h.Switch]++
	}
	for _, h := range t.Hosts {
		i := index[h.Switch]
		middle, width := room(pos, i, next[i])
		step := math.Min(0.7, width/float64(count[h.Switch]))
		angle := middle + step*(float64(nth[h.Switch])-float64(count[h.Switch]-1)/2)
		at[h.Name] = point{pos[i].x + hostSize*math.Cos(angle), pos[i].y + hostSize*math.Sin(angle)}
		nth[h.Switch]++
	}
	low := point{math.Inf(1), math.Inf(1)}
	for _, p := range at {
		low.x, low.y = min(low.x, p.x), min(low.y, p.y)
	}
	for name, p := range at {
		at[name] = point{p.x - low.x + margin, p.y - low.y + margin}
	}
	return at
}

// room is the widest angle between two neighbouring links of node i: where it
// is and how wide.
func room(pos []point, i int, neighbours []int) (middle, width float64) {
	angles := make([]float64, len(neighbours))
	for k, j := range neighbours {
		angles[k] = math.Atan2(pos[j].y-pos[i].y, pos[j].x-pos[i].x)
	}
	if len(angles) == 0 {
		return -math.Pi / 2, 2 * math.Pi
	}
	slices.Sort(angles)
	angles = append(angles, angles[0]+2*math.Pi)
	for k := 1; k < len(angles); k++ {
		if w := angles[k] - angles[k-1]; w > width {
			middle, width = angles[k-1]+w/2, w
		}
	}
	return middle, width
}

// start places the nodes by Isomap, or on a circle if the graph is too large
// for it or not connected.
func start(next [][]int) []point {
	n := len(next)
	pos := make([]point, n)
	for i := range pos {
		a := 2 * math.Pi * float64(i) / float64(n)
		pos[i] = point{float64(n) / 6 * math.Cos(a), float64(n) / 6 * math.Sin(a)}
	}
	if n < 3 || n > 400 {
		return pos
	}
	g := simple.NewUndirectedGraph()
	for i := range next {
		if g.Node(int64(i)) == nil {
			g.AddNode(simple.Node(i))
		}
		for _, j := range next[i] {
			g.SetEdge(simple.Edge{F: simple.Node(i), T: simple.Node(j)})
		}
	}
	o := layout.NewOptimizerR2(g, layout.IsomapR2{}.Update)
	o.Update()
	for i := range pos {
		v := o.Coord2(int64(i))
		if math.IsNaN(v.X) || math.IsNaN(v.Y) || v == (r2.Vec{}) && o.Coord2(int64((i+1)%n)) == (r2.Vec{}) {
			return pos
		}
	}
	for i := range pos {
		v := o.Coord2(int64(i))
		// Twins get the same place: part them a little, so that stretch can further.
		pos[i] = point{v.X + 1e-3*pos[i].x, v.Y + 1e-3*pos[i].y}
	}
	return pos
}

// hops is the distance of every two nodes, for nodes that are not connected
// the square root of their number.
func hops(next [][]int) [][]float64 {
	n := len(next)
	all := make([][]float64, n)
	for i := range all {
		d := make([]float64, n)
		for j := range d {
			d[j] = math.Sqrt(float64(n)) + 1
		}
		seen := make([]bool, n)
		seen[i], d[i] = true, 0
		for queue := []int{i}; len(queue) > 0; queue = queue[1:] {
			for _, j := range next[queue[0]] {
				if !seen[j] {
					seen[j], d[j] = true, d[queue[0]]+1
					queue = append(queue, j)
				}
			}
		}
		all[i] = d
	}
	return all
}

// stretch moves the nodes towards the distances wanted: stress majorisation
// (Gansner, Koren, North 2004), one node at a time.
func stretch(pos []point, want [][]float64) []point {
	for range 120 {
		for i := range pos {
			var x, y, sum float64
			for j := range pos {
				if i == j {
					continue
				}
				d := want[i][j]
				w := 1 / (d * d)
				dx, dy := pos[i].x-pos[j].x, pos[i].y-pos[j].y
				far := math.Max(math.Hypot(dx, dy), 1e-9)
				x += w * (pos[j].x + d*dx/far)
				y += w * (pos[j].y + d*dy/far)
				sum += w
			}
			if sum > 0 {
				pos[i] = point{x / sum, y / sum}
			}
		}
	}
	return pos
}

package topology

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/internal/document"
)

// network is a drawing of a network, as other tools publish them.
type network struct {
	nodes []vertex
	edges []edge
}

// vertex is a node of a drawing; what the drawing does not say is empty.
type vertex struct {
	id, label           string
	latitude, longitude string
	x, y                string // on the drawing
	line                int
}

// edge joins two nodes; speed is in bit/s.
type edge struct {
	source, target, speed string
	arc                   bool // from source to target only
	line                  int
}

// draft makes a lab of a drawing: every node a switch named by its label, every edge
// a link, one host on each switch. The speed becomes the rate; latitude and longitude
// of both ends the delay, at 200 km per millisecond (light in fibre), if it is at
// least 0.1 ms. Two arcs in opposite directions are one link. Loops from a node to
// itself are left out; Remarks says so.
func (n network) draft(path string) (*draft, error) {
	d := newDraft(path, "")
	name := map[string]string{}
	where := map[string][2]float64{}
	for _, v := range n.nodes {
		if name[v.id] != "" {
			return nil, d.fail(v.line, "node id %q stands twice", v.id)
		}
		name[v.id] = d.names.of(v.label, v.named())
		if v.label != "" && nodeNameOf(v.label) == "" {
			d.remark("no letter of %q can stand in a name: the node is %s", v.label, name[v.id])
		}
		if lat, lon, ok := coordinates(v.latitude, v.longitude); ok {
			where[v.id] = [2]float64{lat, lon}
		}
	}
	at := n.places(where)
	for i, v := range n.nodes {
		e := []document.Entry{entry(v.line, "name", name[v.id])}
		if p, ok := at[i]; ok {
			e = append(e, place(v.line, p[0], p[1]))
		}
		d.switches = append(d.switches, mapping(v.line, e...))
		host := d.names.of(fmt.Sprintf("h%d", i+1), "")
		d.hosts = append(d.hosts, mapping(v.line, entry(v.line, "name", host), entry(v.line, "switch", name[v.id])))
	}
	joined := 0
	for _, e := range n.joinArcs(&joined) {
		a, b := name[e.source], name[e.target]
		if a == "" || b == "" {
			return nil, d.fail(e.line, "edge from %q to %q: no such node", e.source, e.target)
		}
		if a == b {
			d.selfLoops = append(d.selfLoops, a)
			continue
		}
		rate, delay := "", ""
		if r, err := strconv.ParseFloat(e.speed, 64); err == nil && r >= 8000 && r <= 1e12 {
			rate = rateText(Rate(r))
		}
		pa, okA := where[e.source]
		pb, okB := where[e.target]
		if okA && okB {
			ms := greatCircle(pa, pb) / 200
			if t := time.Duration(ms * 1e6).Round(10 * time.Microsecond); t >= 100*time.Microsecond {
				delay = t.String()
			}
		}
		d.links = append(d.links, mapping(e.line, entry(e.line, "a", a), entry(e.line, "b", b), entry(e.line, "rate", rate), entry(e.line, "delay", delay)))
	}
	if joined > 0 {
		d.remark("arcs in opposite directions are one link: %d times", joined)
	}
	return d, nil
}

// rateText writes a rate so that it is read as the same.
func rateText(r Rate) string {
	if again, err := ParseRate(r.String()); err != nil || again != r {
		return strconv.FormatUint(uint64(r), 10) + "bit"
	}
	return r.String()
}

// named is the name of a vertex without a label: its id, if that begins with a letter.
func (v vertex) named() string {
	if id := nodeNameOf(v.id); id == "" || id[0] >= '0' && id[0] <= '9' {
		return "n" + id
	}
	return v.id
}

// addLinked adds those groups of nodes to which an edge leads: it has no other end.
func (n *network) addLinked(groups map[string]vertex) {
	for _, e := range n.edges {
		for _, id := range []string{e.source, e.target} {
			if g, ok := groups[id]; ok {
				n.nodes = append(n.nodes, g)
				delete(groups, id)
			}
		}
	}
}

// joinArcs returns the edges, of each two arcs in opposite directions one, and counts
// those pairs.
func (n network) joinArcs(joined *int) []edge {
	open := map[[2]string][]int{} // arcs without an opposite one, as indices in all
	var all []edge
	for _, e := range n.edges {
		back := [2]string{e.target, e.source}
		if others := open[back]; e.arc && len(others) > 0 {
			if first := &all[others[0]]; first.speed == "" {
				first.speed = e.speed
			}
			open[back] = others[1:]
			*joined++
			continue
		}
		if e.arc && e.source != e.target {
			key := [2]string{e.source, e.target}
			open[key] = append(open[key], len(all))
		}
		all = append(all, e)
	}
	return all
}

// places returns where the nodes stand on a drawing, by their index: as the file says,
// or by longitude and latitude, as large as so many nodes need. Nodes of one town
// stand around it.
func (n network) places(where map[string][2]float64) map[int][2]float64 {
	const stretch = 1.5 // of latitudes, as in a map of middle ones
	low, high := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for _, p := range where {
		for axis, v := range []float64{p[1], p[0] * stretch} {
			low[axis], high[axis] = min(low[axis], v), max(high[axis], v)
		}
	}
	scale := 40.0
	if len(where) > 1 {
		scale = max(600, 160*math.Sqrt(float64(len(n.nodes)))) / max(high[0]-low[0], high[1]-low[1], 0.01)
	}
	at := map[int][2]float64{}
	taken := map[[2]float64]int{}
	for i, v := range n.nodes {
		x, y, ok := coordinates(v.x, v.y)
		if p, known := where[v.id]; !ok && known {
			x, y, ok = p[1]*scale, p[0]*-stretch*scale, true
		}
		if !ok {
			continue
		}
		p := [2]float64{math.Round(x), math.Round(y)}
		k := taken[p]
		taken[p]++
		if k > 0 {
			angle, radius := float64(k), float64(30+4*k)
			p = [2]float64{p[0] + math.Round(radius*math.Cos(angle)), p[1] + math.Round(radius*math.Sin(angle))}
		}
		at[i] = p
	}
	return at
}

// coordinates reads two numbers, if both are of the size of a drawing or a map.
func coordinates(a, b string) (x, y float64, ok bool) {
	x, errX := strconv.ParseFloat(strings.TrimSpace(a), 64)
	y, errY := strconv.ParseFloat(strings.TrimSpace(b), 64)
	const most = 1e6
	return x, y, errX == nil && errY == nil && math.Abs(x) <= most && math.Abs(y) <= most
}

// greatCircle is the distance in km between two points given as latitude and
// longitude in degrees.
func greatCircle(a, b [2]float64) float64 {
	const rad, radius = math.Pi / 180, 6371
	dLat, dLon := (b[0]-a[0])*rad, (b[1]-a[1])*rad
	h := math.Pow(math.Sin(dLat/2), 2) + math.Cos(a[0]*rad)*math.Cos(b[0]*rad)*math.Pow(math.Sin(dLon/2), 2)
	return 2 * radius * math.Asin(math.Min(1, math.Sqrt(h)))
}

package topology

import (
	"fmt"
	"math"
	"path/filepath"
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
type vertex struct{ id, label, latitude, longitude string }

// edge joins two nodes; speed is in bit/s.
type edge struct{ source, target, speed string }

// topology makes a lab of a drawing: every node a switch named by its label,
// every edge a link, one host on each switch. The speed becomes the rate;
// latitude and longitude of both ends the delay, at 200 km per millisecond
// (light in fibre), if it is at least 0.1 ms. Loops from a node to itself are
// left out; Remarks says so.
func (n network) topology(path string) (*Topology, error) {
	t := &Topology{Name: LabName(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))), file: path}
	names := map[string]string{}
	where := map[string][2]float64{}
	taken := map[string]bool{}
	for i, n := range n.nodes {
		if names[n.id] != "" {
			return nil, Problem{File: path, What: document.Wording("node id %q stands twice", n.id)}
		}
		base := LabName(n.label)
		if base == "lab" {
			base = LabName("n" + n.id)
		}
		name := base
		for k := 2; taken[name]; k++ {
			name = fmt.Sprintf("%s-%d", base, k)
		}
		host := fmt.Sprintf("h%d", i+1)
		taken[name], taken[host] = true, true
		names[n.id] = name
		t.Switches = append(t.Switches, Switch{Name: name})
		t.Hosts = append(t.Hosts, Host{Name: host, Switch: name})
		lat, errLat := strconv.ParseFloat(n.latitude, 64)
		lon, errLon := strconv.ParseFloat(n.longitude, 64)
		if errLat == nil && errLon == nil {
			where[n.id] = [2]float64{lat, lon}
		}
	}
	for _, e := range n.edges {
		a, b := names[e.source], names[e.target]
		if a == "" || b == "" {
			return nil, Problem{File: path, What: document.Wording("edge from %q to %q: no such node", e.source, e.target)}
		}
		if a == b {
			t.selfLoops = append(t.selfLoops, a)
			continue
		}
		l := Link{A: a, B: b}
		if r, err := strconv.ParseFloat(e.speed, 64); err == nil && r >= 8000 && r <= 1e12 {
			l.Shape.Rate = Rate(r)
		}
		pa, okA := where[e.source]
		pb, okB := where[e.target]
		if okA && okB {
			ms := greatCircle(pa, pb) / 200
			if d := time.Duration(ms * 1e6).Round(10 * time.Microsecond); d >= 100*time.Microsecond {
				l.Delay = Delay(d)
			}
		}
		t.Links = append(t.Links, l)
	}
	t.Complete()
	if err := Check(t); err != nil {
		return nil, err
	}
	return t, nil
}

// greatCircle is the distance in km between two points given as latitude and
// longitude in degrees.
func greatCircle(a, b [2]float64) float64 {
	const rad, radius = math.Pi / 180, 6371
	dLat, dLon := (b[0]-a[0])*rad, (b[1]-a[1])*rad
	h := math.Pow(math.Sin(dLat/2), 2) + math.Cos(a[0]*rad)*math.Cos(b[0]*rad)*math.Pow(math.Sin(dLon/2), 2)
	return 2 * radius * math.Asin(math.Min(1, math.Sqrt(h)))
}

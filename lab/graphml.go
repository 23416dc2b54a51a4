package lab

import (
	"encoding/xml"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"weft/internal/document"
)

type graphML struct {
	Keys []struct {
		ID   string `xml:"id,attr"`
		For  string `xml:"for,attr"`
		Name string `xml:"attr.name,attr"`
	} `xml:"key"`
	Graphs []struct {
		Nodes []struct {
			ID   string        `xml:"id,attr"`
			Data []graphMLData `xml:"data"`
		} `xml:"node"`
		Edges []struct {
			Source string        `xml:"source,attr"`
			Target string        `xml:"target,attr"`
			Data   []graphMLData `xml:"data"`
		} `xml:"edge"`
	} `xml:"graph"`
}

type graphMLData struct {
	Key   string `xml:"key,attr"`
	Value string `xml:",chardata"`
}

// LoadGraphML reads a network in GraphML as the Internet Topology Zoo
// publishes them: every node a switch named by its label, every edge a link,
// one host on each switch. LinkSpeedRaw (bit/s) becomes the rate; latitude and
// longitude of both ends the delay, at 200 km per millisecond (light in
// fibre), if it is at least 0.1 ms. Loops from a node to itself are left out.
func LoadGraphML(path string) (*Topology, error) {
	b, err := document.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read GraphML: %w", err)
	}
	var g graphML
	if err := xml.Unmarshal(b, &g); err != nil {
		return nil, fmt.Errorf("%s: not GraphML: %w", path, err)
	}
	if len(g.Graphs) != 1 || len(g.Graphs[0].Nodes) == 0 {
		return nil, fmt.Errorf("%s: %d graphs; allowed: one, with at least one node", path, len(g.Graphs))
	}
	keys := map[string]string{}
	for _, k := range g.Keys {
		keys[k.ID] = k.For + " " + k.Name
	}
	value := func(data []graphMLData, name string) string {
		for _, d := range data {
			if keys[d.Key] == name {
				return strings.TrimSpace(d.Value)
			}
		}
		return ""
	}
	t := &Topology{Name: nameFrom(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))), file: path}
	names := map[string]string{}
	where := map[string][2]float64{}
	taken := map[string]bool{}
	for i, n := range g.Graphs[0].Nodes {
		if names[n.ID] != "" {
			return nil, fmt.Errorf("%s: node id %q stands twice", path, n.ID)
		}
		base := nameFrom(value(n.Data, "node label"))
		if base == "lab" {
			base = nameFrom("n" + n.ID)
		}
		name := base
		for k := 2; taken[name]; k++ {
			name = fmt.Sprintf("%s-%d", base, k)
		}
		host := fmt.Sprintf("h%d", i+1)
		taken[name], taken[host] = true, true
		names[n.ID] = name
		t.Switches = append(t.Switches, Switch{Name: name})
		t.Hosts = append(t.Hosts, Host{Name: host, Switch: name})
		lat, errLat := strconv.ParseFloat(value(n.Data, "node Latitude"), 64)
		lon, errLon := strconv.ParseFloat(value(n.Data, "node Longitude"), 64)
		if errLat == nil && errLon == nil {
			where[n.ID] = [2]float64{lat, lon}
		}
	}
	for _, e := range g.Graphs[0].Edges {
		a, b := names[e.Source], names[e.Target]
		if a == "" || b == "" {
			return nil, fmt.Errorf("%s: edge from %q to %q: no such node", path, e.Source, e.Target)
		}
		if a == b {
			continue
		}
		l := Link{A: a, B: b}
		if r, err := strconv.ParseFloat(value(e.Data, "edge LinkSpeedRaw"), 64); err == nil && r >= 8000 && r <= 1e12 {
			l.Shape.Rate = Rate(r)
		}
		pa, okA := where[e.Source]
		pb, okB := where[e.Target]
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

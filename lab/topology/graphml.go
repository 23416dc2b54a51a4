package topology

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/weft-sdn/weft/internal/document"
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
// publishes them; see LoadGML.
func LoadGraphML(path string) (*Topology, error) {
	b, err := document.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read GraphML: %w", err)
	}
	var g graphML
	if err := xml.Unmarshal(b, &g); err != nil {
		return nil, Problem{File: path, What: document.Wording("not GraphML: %v", err)}
	}
	if len(g.Graphs) != 1 || len(g.Graphs[0].Nodes) == 0 {
		return nil, Problem{File: path, What: document.Wording("%d graphs; allowed: one, with at least one node", len(g.Graphs))}
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
	drawn := network{}
	for _, n := range g.Graphs[0].Nodes {
		drawn.nodes = append(drawn.nodes, vertex{
			id: n.ID, label: value(n.Data, "node label"),
			latitude: value(n.Data, "node Latitude"), longitude: value(n.Data, "node Longitude"),
		})
	}
	for _, e := range g.Graphs[0].Edges {
		drawn.edges = append(drawn.edges, edge{source: e.Source, target: e.Target, speed: value(e.Data, "edge LinkSpeedRaw")})
	}
	d, err := drawn.draft(path)
	if err != nil {
		return nil, err
	}
	return d.topology(Bounds{}, Running{})
}

package topology

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// t3dGenerations is one network as the tools of three years wrote it.
var t3dGenerations = map[string]string{
	"2014": `{"vertices": ["COSHI#01", "AOSHI#02", "AOSHI#03", "L2SW#04", "EUH#05", "EUH#06"],
 "edges": [["AOSHI#02", "COSHI#01", {}], ["COSHI#01", "L2SW#04", {}], ["L2SW#04", "AOSHI#03", {}], ["EUH#05", "AOSHI#02", {}], ["AOSHI#03", "EUH#06", {}]],
 "pos": {}, "node_properties": {}}`,
	"1": `{"vertices": {
  "cro1": {"pos": {"x": 1.5, "y": 2}, "v": {"x": 0, "y": 0}, "info": {"frozen": false, "type": "OSHI-CR", "property": {"custom_label": "", "loopback": ""}}},
  "peo2": {"info": {"type": "OSHI-PE", "property": {"loopback": "172.16.0.2/32"}}},
  "peo3": {"info": {"property": {}}},
  "swi4": {}, "cer5": {"info": {"type": "CE"}}, "cer6": {"info": {"type": "CE"}}, "vs7": {"info": {"type": "VS"}},
  "ctr8": {"info": {"type": "OF Controller", "property": {"tcp_port": "6633"}}}},
 "edges": {"peo2&&cro1": {"links": [{"id": "", "view": "Data"}]}, "cro1&&swi4": {"links": [{}]}, "swi4&&peo3": {"links": [{"view": "Data"}]},
  "cer5&&peo2": {"links": [{"view": "Data"}]}, "peo3&&cer6": {"links": [{"view": "Data"}]},
  "cer5&&cer6": {"links": [{"view": "Vll"}, {"view": "PW"}, {"view": "PW"}]}, "vs7&&cer5": {"links": [{"view": "VS"}]},
  "ctr8&&cro1": {"links": [{"view": "Data"}]}},
 "graph_parameters": {"tunneling": "OPENVPN", "vlan": "0", "mapped": false, "generated": "", "testbed": "MININET"}}`,
	"2": `{"vertices": [{"id": "cro1", "info": {"group": [], "property": {}, "type": "OSHI-CR"}}, {"id": "peo2", "info": {"type": "OSHI-PE"}},
  {"id": "peo3", "info": {"type": "OSHI-PE"}}, {"id": "swi4", "info": {"type": "L2SW"}}, {"id": "cer5", "info": {"type": "CE"}}, {"id": "cer6", "info": {"type": "CE"}}],
 "edges": [{"source": "peo2", "target": "cro1", "group": [], "view": "Data"}, {"source": "swi4", "target": "cro1", "view": "Data"},
  {"source": "swi4", "target": "peo3", "view": "Data"}, {"source": "cer5", "target": "peo2"}, {"source": "cer6", "target": "peo3", "view": "Data"}]}`,
}

func TestT3D(t *testing.T) {
	for generation, text := range t3dGenerations {
		path := filepath.Join(t.TempDir(), "small net.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		topo, err := Resolve(path)
		if err != nil {
			t.Errorf("%s: %v", generation, err)
			continue
		}
		var kinds, hosts []string
		for _, s := range topo.Switches {
			kinds = append(kinds, string(s.Kind))
		}
		for _, h := range topo.Hosts {
			hosts = append(hosts, fmt.Sprint(h.Switch, h.Gateway))
		}
		if topo.Name != "small-net" || strings.Join(kinds, " ") != "hybrid hybrid hybrid bridge" || len(hosts) != 2 || len(topo.Links) != 3 {
			t.Errorf("%s: %s, switches %v, hosts %v, %d links", generation, topo.Name, kinds, hosts, len(topo.Links))
		}
		if generation == "1" {
			if topo.Control != (Control{Mode: ControlInBand, At: "cro1"}) || topo.Switches[1].Loopback.String() != "172.16.0.2" {
				t.Errorf("control %+v, peo2 %+v", topo.Control, topo.Switches[1])
			}
			if r := strings.Join(Remarks(topo), "\n"); !strings.Contains(r, "1 links of the view Vll") || !strings.Contains(r, "2 links of the view PW") || !strings.Contains(r, "1 links of the view VS") {
				t.Errorf("remarks: %s", r)
			}
		}
		if again, err := LoadT3D(path); err != nil || len(again.Switches) != len(topo.Switches) {
			t.Errorf("%s: read as t3d: %v", generation, err)
		}
	}
}

func TestT3DProblems(t *testing.T) {
	for text, want := range map[string]string{
		`{"vertices": 7}`:                "vertices is a number: want a list, or an object",
		`{"vertices": [[]]}`:             "a vertex is a list: want a name, or an object with an id",
		`{"vertices": ["router1"]}`:      `the vertex router1 has an unknown type ""; allowed: ` + t3dTypes,
		`{"vertices": ["cro1", "cro1"]}`: `the vertex "cro1" has no name, or stands twice`,
		`{"vertices": {"cro1": {"info": {"property": {"loopback": "300.1.1.1"}}}}}`: "the vertex cro1: loopback:",
		`{"vertices": ["cro1"], "edges": 7}`:                                        "edges is a number: want a list, or an object",
		`{"vertices": ["cro1"], "edges": [["cro1"]]}`:                               "an edge is a list: want the names of its two ends",
		`{"vertices": ["cro1"], "edges": [["cro1", "cro9"]]}`:                       `ends at "cro9", which is no vertex`,
		`{"vertices": ["cro1"], "edges": {"cro1": {}}}`:                             `the edge "cro1": want two ids joined by &&`,
		`{"vertices": ["cer1", "ctr1"], "edges": [["cer1", "ctr1"]]}`:               "a controller is linked to a node",
		`{"vertices": []}`: "the topology has no switches",
		`{"vertices": ["cro1", "swi1", "swi2"], "edges": [["swi1","swi2"],["swi2","swi1"]]}`: "the bridges swi1, swi2 form a loop",
	} {
		if _, err := Parse("f.json", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got  %v\n want %s", text, err, want)
		}
	}
}

// TestCarrier: as many nodes and links as asked for, the same for the same seed,
// and connected.
func TestCarrier(t *testing.T) {
	for _, c := range [][4]int{{1, 0, 0, 0}, {1, 2, 2, 0}, {2, 1, 3, 0}, {3, 0, 3, 0}, {40, 20, 90, 1}, {170, 80, 372, 7}} {
		a, err := Carrier(c[0], c[1], uint64(c[3]))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := Carrier(c[0], c[1], uint64(c[3]))
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("carrier %v differs from itself", c)
		}
		if err := Check(a); err != nil || len(a.Switches) != c[0]+c[1] || len(a.Links) != c[2] || len(a.Hosts) != 2*c[1] {
			t.Errorf("carrier %v: %d nodes, %d links, %v", c, len(a.Switches), len(a.Links), err)
		}
		if a.Routing.IPv4Only != (c[0]+c[1] > 100) {
			t.Errorf("carrier %v: IPv4 only %v", c, a.Routing.IPv4Only)
		}
		for _, r := range Remarks(a) {
			if strings.Contains(r, "parts") {
				t.Errorf("carrier %v: %s", c, r)
			}
		}
	}
	for spec, want := range map[string]string{
		"carrier:0,2,1":    "the number of cores is 0; allowed: 1 and more",
		"carrier:3,2":      "carrier has 3 numbers, not 2; want carrier:CORES,EDGES,SEED",
		"carrier:4000,1,1": "it would have 4001 nodes; allowed: at most 4000",
		"t3d:":             "no file; want t3d:FILE",
	} {
		if _, err := Resolve(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
	oshi, err := Resolve("oshi")
	if err != nil || Check(oshi) != nil || len(oshi.Switches) != 7 || len(oshi.Hosts) != 9 {
		t.Errorf("oshi: %+v, %v", oshi, err)
	}
}

// TestHybrid: any generated or drawn network with hybrid nodes.
func TestHybrid(t *testing.T) {
	ring, err := Ring(4, 1)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Hybrid(ring)
	if err != nil {
		t.Fatal(err)
	}
	if h.Switches[3].Kind != KindHybrid || h.Hosts[3].GW4.String() != "10.64.4.1" || h.Hosts[3].IPv4.String() != "10.64.4.2/24" || h.Control.At != "s1" {
		t.Errorf("hybrid: %+v", h)
	}
	if ring.Switches[0].Kind != KindOpenFlow || ring.Hosts[0].Gateway {
		t.Error("the topology itself was changed")
	}
	file, err := Parse("f", []byte("switches: [{name: s1}]"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Hybrid(file); err == nil || !strings.Contains(err.Error(), "write kind: hybrid there") {
		t.Errorf("of a lab file: %v", err)
	}
}

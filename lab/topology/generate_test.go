package topology

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestGenerators(t *testing.T) {
	for _, c := range []struct {
		spec                          string
		switches, hosts, links, loops int
	}{
		{"linear:1", 1, 1, 0, 0},
		{"linear:5", 5, 5, 4, 0},
		{"linear:100,2", 100, 200, 99, 0},
		{"linear:3,0", 3, 0, 2, 0},
		{"ring:10", 10, 10, 10, 1},
		{"ring:4,3", 4, 12, 4, 1},
		{"tree:1,3", 1, 3, 0, 0},
		{"tree:3,2", 7, 8, 6, 0},
		{"fattree:4", 20, 16, 32, 13},
		{"random:20,3,42", 20, 20, 30, 11},
		{"random:2,1,0", 2, 2, 1, 0},
		{"random:5,4,1", 5, 5, 10, 6},
		{"5gc:1", 4, 7, 4, 1},
		{"5gc:3", 5, 17, 6, 2},
		{"5gc:40", 6, 202, 8, 3},
		{"demo", 10, 8, 13, 4},
		{"msn-fig8", 5, 10, 4, 0},
		{"msn-fig13", 15, 16, 14, 0},
		{"graphml:testdata/zoo.graphml", 4, 4, 4, 1},
	} {
		t.Run(c.spec, func(t *testing.T) {
			topo, err := Resolve(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			if err := Check(topo); err != nil {
				t.Error(err)
			}
			if len(topo.Switches) != c.switches || len(topo.Hosts) != c.hosts || len(topo.Links) != c.links || topo.Loops() != c.loops {
				t.Errorf("%d switches, %d hosts, %d links, %d loops; want %d, %d, %d, %d",
					len(topo.Switches), len(topo.Hosts), len(topo.Links), topo.Loops(), c.switches, c.hosts, c.links, c.loops)
			}
			if n := components(topo); n != 1 {
				t.Errorf("%d components, want one", n)
			}
			again, err := Resolve(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			a, _ := json.Marshal(topo)
			b, _ := json.Marshal(again)
			if !bytes.Equal(a, b) {
				t.Error("made twice, it differs")
			}
		})
	}
}

// components counts the connected parts of the switches.
func components(t *Topology) int { return len(t.Switches) - len(t.Links) + t.Loops() }

func TestRandomDependsOnItsSeed(t *testing.T) {
	a, _ := Random(20, 3, 1)
	b, _ := Random(20, 3, 2)
	if fmt.Sprint(a.Links) == fmt.Sprint(b.Links) {
		t.Error("seeds 1 and 2 give the same links")
	}
}

// The distances the paper gives for its Fig. 8.
func TestMSNFig8Distances(t *testing.T) {
	topo := MSNFig8()
	at := func(host string) int {
		h, _ := topo.HostByName(host)
		var n int
		fmt.Sscanf(h.Switch, "s%d", &n)
		return n
	}
	if n := at("h3") - at("h1") + 1; n != 2 {
		t.Errorf("h1 and h3 are %d switches apart, want 2", n)
	}
	if n := at("h10") - at("h1") + 1; n != 5 {
		t.Errorf("h1 and h10 are %d switches apart, want 5", n)
	}
}

func TestSpecProblems(t *testing.T) {
	for spec, want := range map[string]string{
		"star:5":            `topology "star:5": neither a file nor a known form; allowed: ` + SpecForms,
		"nowhere.yaml":      `topology "nowhere.yaml": neither a file nor a known form; allowed: ` + SpecForms,
		"linear":            `topology "linear": linear needs numbers; want linear:N[,HOSTS], e.g. linear:4`,
		"linear:0":          `topology "linear:0": the number of switches is 0; allowed: 1 and more; want linear:N[,HOSTS], e.g. linear:4`,
		"ring:2":            `topology "ring:2": the number of switches is 2; allowed: 3 and more; want ring:N[,HOSTS], e.g. ring:4`,
		"ring:x":            `topology "ring:x": "x" is not a number from 0 to 1048576; want ring:N[,HOSTS], e.g. ring:4`,
		"tree:3":            `topology "tree:3": tree has 2 numbers, not 1; want tree:DEPTH,FANOUT, e.g. tree:2,3`,
		"tree:0,1":          `topology "tree:0,1": the depth is 0; allowed: 1 and more; want tree:DEPTH,FANOUT, e.g. tree:2,3`,
		"fattree:3":         `topology "fattree:3": the k of a fat-tree is 3; allowed: even numbers from 2; want fattree:K, e.g. fattree:4`,
		"random:5,5,1":      `topology "random:5,5,1": the degree is 5; allowed: 1 to 4 for 5 switches; want random:N,DEGREE,SEED, e.g. random:10,3,1`,
		"linear:2,40000":    `topology "linear:2,40000": it would have more than 65534 hosts; want linear:N[,HOSTS], e.g. linear:4`,
		"ring:100000":       `topology "ring:100000": it would have more than 65534 switches; want ring:N[,HOSTS], e.g. ring:4`,
		"tree:20,20":        `topology "tree:20,20": it would have more than 65534 switches; want tree:DEPTH,FANOUT, e.g. tree:2,3`,
		"tree:2,300":        `topology "tree:2,300": it would have more than 65534 hosts; want tree:DEPTH,FANOUT, e.g. tree:2,3`,
		"fattree:64":        `topology "fattree:64": it would have more than 65534 hosts; want fattree:K, e.g. fattree:4`,
		"random:9999,999,1": `topology "random:9999,999,1": it would have more than 65534 links; want random:N,DEGREE,SEED, e.g. random:10,3,1`,
		"5gc:0":             `topology "5gc:0": the number of producers of each type is 0; allowed: 1 to 254; want 5gc:N, e.g. 5gc:3`,
		"5gc":               `topology "5gc": 5gc needs numbers; want 5gc:N, e.g. 5gc:3`,
		"ring":              `topology "ring": ring needs numbers; want ring:N[,HOSTS], e.g. ring:4`,
		"ring:":             `topology "ring:": ring needs numbers; want ring:N[,HOSTS], e.g. ring:4`,
		"ring:4,1,1":        `topology "ring:4,1,1": ring has 1 to 2 numbers, not 3; want ring:N[,HOSTS], e.g. ring:4`,
		"rnig:4":            `topology "rnig:4": neither a file nor a known form; allowed: ` + SpecForms + "; did you mean ring?",
		"graphml:":          `topology "graphml:": no file; want graphml:FILE`,
		"graphml:/dev/null": "/dev/null:1: the file is empty; allowed: name, controller, switches, hosts, links, routing, control, ovs, names",
	} {
		if _, err := Resolve(spec); err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", spec, err, want)
		}
	}
}

// TestTooLarge checks that what has more hosts than addresses, or more ports
// than numbers, is refused, and in little time.
func TestTooLarge(t *testing.T) {
	crowd := func(hosts, links int) *Topology {
		topo := &Topology{Name: "crowd", Switches: []Switch{{Name: "s1"}, {Name: "s2"}}}
		for i := range hosts {
			topo.Hosts = append(topo.Hosts, Host{Name: fmt.Sprintf("h%d", i+1), Switch: "s1"})
		}
		for range links {
			topo.Links = append(topo.Links, Link{A: "s1", B: "s2"})
		}
		topo.Complete()
		return topo
	}
	for want, topo := range map[string]*Topology{
		"the topology has 65535 hosts; allowed: at most 65534": crowd(65535, 0),
		"switch s1 cannot have port 0; allowed: 1 to 65279":    crowd(10, 65270),
	} {
		if err := Check(topo); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestGraphMLShapes(t *testing.T) {
	topo, err := LoadFile("testdata/zoo.graphml")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range topo.Switches {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "Zurich-HB Geneva Geneva-2 n3" {
		t.Errorf("switches %s", got)
	}
	l := topo.Links[0] // Zürich to Geneva: 224 km
	if l.Rate != 10e9 || l.Delay.String() != "1.12ms" {
		t.Errorf("the first link has rate %v, delay %v; want 10gbit, 1.12ms", l.Rate, l.Delay)
	}
}

func TestManyHostsHaveDistinctAddresses(t *testing.T) {
	topo, err := Linear(3, 200)
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(topo); err != nil {
		t.Error(err)
	}
	if got := topo.Hosts[299].IPv4.String(); got != "10.0.1.44/16" {
		t.Errorf("the 300th host has %s", got)
	}
}

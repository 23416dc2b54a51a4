package sim

import (
	"strings"
	"testing"

	"github.com/weft-sdn/weft/openflow"
)

// reach returns how many switches the first one reaches.
func reach(t *Topology) int {
	next := make([][]int, len(t.Switches))
	for _, l := range t.Links {
		next[l.A.Switch] = append(next[l.A.Switch], l.B.Switch)
		next[l.B.Switch] = append(next[l.B.Switch], l.A.Switch)
	}
	seen := map[int]bool{0: true}
	for todo := []int{0}; len(todo) > 0; {
		s := todo[0]
		todo = todo[1:]
		for _, n := range next[s] {
			if !seen[n] {
				seen[n] = true
				todo = append(todo, n)
			}
		}
	}
	return len(seen)
}

func TestGenerators(t *testing.T) {
	must := func(topo *Topology, err error) *Topology {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return topo
	}
	for _, c := range []struct {
		topo            *Topology
		switches, links int
	}{
		{must(Linear(1)), 1, 0},
		{must(Linear(5)), 5, 4},
		{must(Ring(5)), 5, 5},
		{must(Random(1000, 6000, 1)), 1000, 6000},
		{must(Random(5, 10, 1)), 5, 10},
		{must(FatTree(4)), 20, 32},
		{must(FatTree(8)), 80, 256},
		{Hydra(), 2560, 49152},
	} {
		if err := c.topo.AttachHosts(2, 2); err != nil {
			t.Error(err)
		}
		if err := c.topo.Check(); err != nil {
			t.Error(err)
		}
		if len(c.topo.Switches) != c.switches || len(c.topo.Links) != c.links || len(c.topo.Hosts) != 2*c.switches {
			t.Errorf("%s: %d switches, %d links, %d hosts; want %d, %d, %d", c.topo.Name,
				len(c.topo.Switches), len(c.topo.Links), len(c.topo.Hosts), c.switches, c.links, 2*c.switches)
		}
		if n := reach(c.topo); n != c.switches {
			t.Errorf("%s: the first switch reaches %d of %d", c.topo.Name, n, c.switches)
		}
		pairs := map[[2]int]bool{}
		for _, l := range c.topo.Links {
			k := [2]int{min(l.A.Switch, l.B.Switch), max(l.A.Switch, l.B.Switch)}
			if pairs[k] || k[0] == k[1] {
				t.Errorf("%s: link between %d and %d is there twice, or a loop", c.topo.Name, k[0], k[1])
			}
			pairs[k] = true
		}
	}
	a, b, c := must(Random(50, 100, 7)), must(Random(50, 100, 7)), must(Random(50, 100, 8))
	same := func(a, b *Topology) bool {
		for i := range a.Links {
			if a.Links[i] != b.Links[i] {
				return false
			}
		}
		return true
	}
	if !same(a, b) || same(a, c) {
		t.Error("a random topology does not follow its seed")
	}
}

func TestImpossibleTopologies(t *testing.T) {
	from := func(_ *Topology, err error) error { return err }
	two := func(links ...Link) error {
		return (&Topology{Name: "x", Switches: []Switch{{DPID: 1, Ports: 2}, {DPID: 2, Ports: 2}}, Links: links}).Check()
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{from(Isolated(0, 2, 2)), "want at least 1"},
		{from(Isolated(1, 2, 3)), "at least one host per port"},
		{from(Isolated(20000, 1000, 1)), "the address plan holds 16777215"},
		{from(Linear(0)), "want at least 1"},
		{from(Ring(2)), "want at least 3"},
		{from(Random(10, 8, 1)), "want 9 (a tree) to 45 (all pairs)"},
		{from(Random(10, 46, 1)), "want 9 (a tree) to 45 (all pairs)"},
		{from(FatTree(3)), "want an even number"},
		{(&Topology{Name: "x"}).Check(), "want at least one switch"},
		{(&Topology{Name: "x", Switches: []Switch{{DPID: 1, Ports: 0}, {DPID: 1, Ports: 0}}}).Check(), "DPID 0000000000000001 is taken"},
		{(&Topology{Name: "x", Switches: []Switch{{DPID: 1, Ports: 70000}}}).Check(), "70000 ports: want 0 to 65280"},
		{two(Link{End{0, 1}, End{1, 3}}), "switch 1 has no port 3"},
		{two(Link{End{0, 1}, End{2, 1}}), "switch 2 has no port 1"},
		{two(Link{End{0, 1}, End{1, 1}}, Link{End{0, 2}, End{1, 1}}), "port 1 of switch 1 has a link already"},
		{(&Topology{Name: "x", Switches: []Switch{{DPID: 1, Ports: 1}, {DPID: 2, Ports: 1}}, Links: []Link{{End{0, 1}, End{1, 1}}}, Hosts: []Host{{At: End{0, 1}}}}).Check(), "port 1 of switch 0 is a link's"},
		{(&Topology{Name: "x", Switches: []Switch{{DPID: 1, Ports: 1}}, Hosts: []Host{{At: End{0, 2}}}}).Check(), "switch 0 has no port 2"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", c.err, c.want)
		}
	}
}

func TestImpossibleConfig(t *testing.T) {
	topo := isolated(t, 1, 2, 2)
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Topology: &Topology{}, Version: openflow.V13, Address: "127.0.0.1:1"}, "at least one switch"},
		{Config{Topology: topo, Version: 5, Address: "127.0.0.1:1"}, "not OpenFlow 1.4"},
		{Config{Topology: topo, Version: openflow.V13, Address: "nowhere"}, "want HOST:PORT"},
		{Config{Topology: topo, Version: openflow.V13, Network: "udp", Address: "127.0.0.1:1"}, "want tcp or unix"},
	} {
		if _, err := New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	n := start(t, Config{Topology: topo, Version: openflow.V13, Address: startFloor(t)})
	for _, c := range []struct {
		load Load
		want string
	}{
		{Load{Window: 0, Duration: 1}, "want 1 to 4096"},
		{Load{Window: MaxWindow + 1, Duration: 1}, "want 1 to 4096"},
		{Load{Window: 1}, "duration must be more than zero"},
		{Load{Window: 1, Duration: 1, Rate: -1}, "must not be negative"},
	} {
		if _, err := n.Measure(t.Context(), c.load); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	one, err := Linear(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := one.AttachHosts(1, 1); err != nil {
		t.Fatal(err)
	}
	lone := start(t, Config{Topology: one, Version: openflow.V13, Address: startFloor(t)})
	if _, err := lone.Measure(t.Context(), Load{Window: 1, Duration: 1}); err == nil || !strings.Contains(err.Error(), "at least two hosts on two ports") {
		t.Errorf("error %v", err)
	}
}

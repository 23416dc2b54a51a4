package command

import (
	"encoding/json"
	"encoding/xml"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/cmd/weft/planning"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan"
)

// TestReadNetwork: files, generators of the planner with defaults, and
// generators of the lab.
func TestReadNetwork(t *testing.T) {
	file := writeFile(t, "site.yaml", "switches: [{name: a}, {name: b}, {name: c}]\nlinks: [{a: a, b: b}, {a: b, b: c}]\n")
	for spec, want := range map[string][2]int{ // switches, links
		"hydra": {2560, 49152}, "fattree:k=4": {20, 32}, "fattree": {20, 32}, "fattree:4": {20, 32}, "fattree:pods=3,core=2,agg=2,edge=1": {11, 12},
		"hub": {41, 40}, "hub:spokes=3, switches=2": {7, 6}, "ring:n=12": {12, 12}, "ring:7": {7, 7}, "grid:w=3,h=2": {6, 7}, "linear:4": {4, 3}, file: {3, 2},
	} {
		g, err := cli.ReadNetwork(spec)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if len(g.Switches) != want[0] || len(g.Links) != want[1] {
			t.Errorf("%s: %d switches, %d links, want %v", spec, len(g.Switches), len(g.Links), want)
		}
	}
	for spec, want := range map[string]string{
		"": "neither a file nor", "nothing": "neither a file nor", "fattree:k=5": "even number", "fattree:k=4,pods=2": "want fattree:k=4 or",
		"hydra:n=3": "want hydra", "ring:n=x": "NAME=NUMBER", "ring:n=3,n=4": "each name once", "ring:n=3.5": "whole number", "ring:n=-3": "NAME=NUMBER",
		"ring:n=2": "want 3", "ring:n=NaN": "whole number", "waxman:alpha=9": "alpha 9", "waxman:n=1e9": "want 1 to", "grid:w=99999": "want 1 to", "ring:0": "the number of switches is 0",
	} {
		if _, err := cli.ReadNetwork(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", spec, err, want)
		}
	}
}

// TestPlanPartition: a fat tree by pods; what is printed as YAML is a section of
// a plan, in which every switch has the partition that the JSON says.
func TestPlanPartition(t *testing.T) {
	args := []string{"plan", "partition", "--network", "fattree:k=4", "--partitions", "2", "--names", "east,west"}
	status, out, errs := weftCommand(append(args, "-o", "json")...)
	if status != 0 || errs != "" {
		t.Fatalf("status %d, %s", status, errs)
	}
	var r planner.PartitionReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if !r.Symmetric || !r.Connected || r.Method != "structure" || !slices.Equal(r.Borders, []string{"1-4"}) || len(r.Partitions) != 2 {
		t.Errorf("%+v", r)
	}
	status, section, errs := weftCommand(append(args, "-o", "yaml")...)
	if status != 0 || errs != "" {
		t.Fatalf("status %d, %s", status, errs)
	}
	p, err := plan.Parse("made.yaml", []byte(section+"workers: {all: {services: [stats]}}\n"))
	if err != nil {
		t.Fatalf("%v\n%s", err, section)
	}
	for i, x := range p.Partitions {
		if x.Name != r.Partitions[i].Name || x.Rest != (i == 1) {
			t.Errorf("partition %+v, want %s", x, r.Partitions[i].Name)
		}
		var texts []string
		for _, s := range x.Switches {
			texts = append(texts, strings.TrimLeft(s.First.String(), "0")+"-"+strings.TrimLeft(s.Last.String(), "0"))
		}
		if !slices.Equal(texts, r.Partitions[i].Switches) {
			t.Errorf("partition %s: %v in the plan, %v in the report", x.Name, texts, r.Partitions[i].Switches)
		}
	}
	status, out, errs = weftCommand(append(args, "-o", "svg")...)
	if status != 0 || errs != "" || strings.Count(out, "<line ") != 32 || strings.Count(out, "<text ") != 20+2 || xml.Unmarshal([]byte(out), new(any)) != nil {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
	status, out, errs = weftCommand(args...)
	if status != 0 || errs != "" || !strings.Contains(out, "border switches  1-4") || !strings.Contains(out, "symmetric        yes") {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
}

// TestPlanPartitionAuto: prediction and measurement are side by side, and the
// number chosen is one of the curve's. What measures has a process of its own: here the
// garbage of all tests before would be collected each time.
func TestPlanPartitionAuto(t *testing.T) {
	for _, after := range []string{"failure", "start"} {
		status, out, errs := weftProcess("plan", "partition", "--network", "hub:spokes=6,switches=3", "--failures", "3", "--after", after, "-o", "json")
		var r planner.PartitionReport
		if err := json.Unmarshal([]byte(out), &r); status != 0 || err != nil {
			t.Fatalf("status %d, %v, %s", status, err, errs)
		}
		if !strings.Contains(errs, "6 partitions: ") {
			t.Errorf("nothing was told of what was measured: %s", errs)
		}
		c := r.Convergence
		var numbers []int
		for _, p := range c.Curve {
			numbers = append(numbers, p.Partitions)
			if p.Predicted < 0 || p.Measured <= 0 || p.Error == nil || !p.Symmetric {
				t.Errorf("%+v", p)
			}
		}
		if !slices.Equal(numbers, []int{1, 2, 3, 6}) || !slices.Contains(numbers, c.Partitions) || len(r.Partitions) != c.Partitions || c.Constants == nil {
			t.Errorf("after %s: numbers %v, chosen %d", after, numbers, c.Partitions)
		}
		if status, out, errs = weftProcess("plan", "partition", "--network", "hub:spokes=6,switches=3", "--failures", "3", "--after", after); status != 0 || !strings.Contains(out, "MEASURED MS") || !strings.Contains(out, "chosen") {
			t.Errorf("status %d, %s%s", status, out, errs)
		}
	}
	status, out, errs := weftProcess("plan", "partition", "--network", "ring:n=8", "--max", "4", "--failures", "0", "--apart", "s1,s5", "-o", "json")
	var r planner.PartitionReport
	if err := json.Unmarshal([]byte(out), &r); status != 0 || err != nil {
		t.Fatalf("status %d, %v, %s", status, err, errs)
	}
	if c := r.Convergence; c.Constants != nil || len(c.Curve) != 3 || len(c.Left) != 1 || c.Partitions < 2 {
		t.Errorf("without a measurement, s1 apart from s5: %+v", c)
	}
}

// TestPlanPartitionRefuses: what cannot be, with a reason.
func TestPlanPartitionRefuses(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{"give --network", nil},
		{"want a number, or auto", []string{"--network", "ring:n=6", "--partitions", "two"}},
		{"allowed: table, json, yaml, svg", []string{"--network", "ring:n=6", "-o", "xml"}},
		{"13 partitions of 12 switches", []string{"--network", "ring:n=12", "--partitions", "13"}},
		{"no switch \"s77\"", []string{"--network", "ring:n=6", "--partitions", "2", "--together", "s1,s77"}},
		{"to be apart", []string{"--network", "ring:n=6", "--partitions", "2", "--together", "s1,s2", "--apart", "1,2"}},
		{"want PARTITION=SWITCHES", []string{"--network", "ring:n=6", "--partitions", "2", "--fix", "s1"}},
		{"give --names", []string{"--network", "ring:n=6", "--fix", "p1=s1"}},
		{"allow more border switches", []string{"--network", "ring:n=6", "--partitions", "3", "--borders", "s1"}},
		{"--max 0", []string{"--network", "ring:n=6", "--max", "0"}},
		{"--failures -1", []string{"--network", "ring:n=6", "--failures", "-1"}},
		{"--after \"lunch\"", []string{"--network", "ring:n=6", "--after", "lunch"}},
		{"--slack", []string{"--network", "ring:n=6", "--slack", "-1", "--failures", "1"}},
		{"at most 1000", []string{"--network", "hydra", "--partitions", "2", "-o", "svg"}},
		{"method \"best\"", []string{"--network", "ring:n=6", "--partitions", "2", "--method", "best"}},
	} {
		status, out, errs := weftProcess(append([]string{"plan", "partition"}, c.args...)...)
		if status == 0 || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%v: status %d, %q, %q, want %q", c.args, status, out, errs, c.want)
		}
	}
}

// TestNetworkSwitches: names, DPIDs, ranges, patterns.
func TestNetworkSwitches(t *testing.T) {
	g, err := cli.ReadNetwork("fattree:k=4")
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string][]flow.DPID{
		"c1": {1}, "a1-1": {5}, "c*": {1, 2, 3, 4}, "e1-*": {7, 8}, "1-3": {1, 2, 3}, "14": {20}, " c2 ": {2}, "0000000000000003": {3},
	} {
		if got, err := planning.NetworkSwitches(g, []string{word}); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", word, got, err, want)
		}
	}
	for _, word := range []string{"", "x9", "ff", "[", "1-"} {
		if got, err := planning.NetworkSwitches(g, []string{word}); err == nil {
			t.Errorf("%q: %v, want an error", word, got)
		}
	}
}

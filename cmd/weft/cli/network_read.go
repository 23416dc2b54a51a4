package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/plan/partition"
)

// networkGenerators returns the networks that are made of a name and numbers.
func networkGenerators() []networkGenerator {
	return []networkGenerator{
		{"hydra", nil, func(networkArgs) (*partition.Graph, error) { return partition.Hydra(), nil }},
		{"fattree", networkArgs{"k": 4}, func(a networkArgs) (*partition.Graph, error) { return partition.FatTreeOf(int(a["k"])) }},
		{"fattree", networkArgs{"pods": 4, "core": 4, "agg": 2, "edge": 2}, func(a networkArgs) (*partition.Graph, error) {
			return partition.FatTree(int(a["pods"]), int(a["core"]), int(a["agg"]), int(a["edge"]))
		}},
		{"hub", networkArgs{"hubs": 1, "spokes": 8, "switches": 5}, func(a networkArgs) (*partition.Graph, error) {
			return partition.HubAndSpoke(int(a["hubs"]), int(a["spokes"]), int(a["switches"]))
		}},
		{"ring", networkArgs{"n": 12}, func(a networkArgs) (*partition.Graph, error) { return partition.Ring(int(a["n"])) }},
		{"grid", networkArgs{"w": 8, "h": 8}, func(a networkArgs) (*partition.Graph, error) { return partition.Grid(int(a["w"]), int(a["h"])) }},
		{"waxman", networkArgs{"n": 100, "alpha": 0.15, "beta": 0.4, "seed": 1}, func(a networkArgs) (*partition.Graph, error) {
			return partition.Waxman(int(a["n"]), a["alpha"], a["beta"], uint64(a["seed"]))
		}},
	}
}

// networkGenerator makes a network.
type networkGenerator struct {
	name     string
	defaults networkArgs // of all numbers that it has
	make     func(networkArgs) (*partition.Graph, error)
}

// networkArgs are the numbers of a generator by their names.
type networkArgs map[string]float64

// String is how the generator is written, with its defaults.
func (g networkGenerator) String() string {
	if len(g.defaults) == 0 {
		return g.name
	}
	var args []string
	for _, k := range slices.Sorted(maps.Keys(g.defaults)) {
		args = append(args, k+"="+strconv.FormatFloat(g.defaults[k], 'g', -1, 64))
	}
	return g.name + ":" + strings.Join(args, ",")
}

// NetworkForms are what readNetwork reads, for help texts and messages.
func NetworkForms() string {
	list := []string{"FILE of the lab's format"}
	for _, g := range networkGenerators() {
		list = append(list, g.String())
	}
	return strings.Join(append(list, "any generator of weft lab up"), ", ")
}

// ReadNetwork returns the network of a topology file in the lab's format, of one
// of networkGenerators, such as ring:n=12 (numbers that are left out have
// defaults), or of a generator of the lab, such as ring:12. Loads and weights are
// 1; a switch's load is not what its hosts make of it.
func ReadNetwork(spec string) (*partition.Graph, error) {
	if isGenerator(spec) {
		return generateNetwork(spec)
	}
	t, err := topology.Resolve(spec)
	if err != nil {
		if !strings.Contains(err.Error(), "neither a file nor") {
			return nil, err
		}
		return nil, fmt.Errorf("network %q is neither a file nor a known form; allowed: %s", spec, NetworkForms())
	}
	return labNetwork(t)
}

// NetworkOf returns the network of a text: a generator as ReadNetwork takes it, or a
// topology in the lab's format. It reads no file.
func NetworkOf(text string) (*partition.Graph, error) {
	spec := strings.TrimSpace(text)
	if isGenerator(spec) {
		return generateNetwork(spec)
	}
	if !strings.Contains(spec, "\n") && !strings.ContainsAny(spec, "{[") {
		if !topology.IsGenerated(spec) {
			return nil, fmt.Errorf("network %q: files of clients are not read; give the text of a topology, or one of: %s", spec, NetworkForms())
		}
		t, err := topology.Resolve(spec)
		if err != nil {
			return nil, err
		}
		return labNetwork(t)
	}
	t, err := topology.Parse("network", []byte(text))
	if err != nil {
		return nil, err
	}
	return labNetwork(t)
}

// isGenerator reports whether a spec is of one of networkGenerators.
func isGenerator(spec string) bool {
	kind, rest, _ := strings.Cut(spec, ":")
	named := slices.ContainsFunc(networkGenerators(), func(g networkGenerator) bool { return g.name == kind })
	return named && (rest == "" || strings.Contains(rest, "="))
}

// generateNetwork makes a network of one of networkGenerators.
func generateNetwork(spec string) (*partition.Graph, error) {
	kind, rest, _ := strings.Cut(spec, ":")
	g, err := generated(kind, rest)
	if err != nil {
		return nil, fmt.Errorf("network %s: %w", spec, err)
	}
	return g, nil
}

// generated makes a network of the first generator that has all numbers given.
func generated(kind, rest string) (*partition.Graph, error) {
	given := networkArgs{}
	for pair := range strings.SplitSeq(rest, ",") {
		if rest == "" {
			break
		}
		key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		x, err := strconv.ParseFloat(value, 64)
		if _, twice := given[key]; !ok || err != nil || twice || x < 0 || x > 1<<40 {
			return nil, fmt.Errorf("%q: want NAME=NUMBER, each name once", pair)
		}
		if key != "alpha" && key != "beta" && x != float64(int64(x)) {
			return nil, fmt.Errorf("%q: want a whole number", pair)
		}
		given[key] = x
	}
	var forms []string
	for _, g := range networkGenerators() {
		if g.name != kind {
			continue
		}
		forms = append(forms, g.String())
		args := maps.Clone(g.defaults)
		if args == nil {
			args = networkArgs{}
		}
		maps.Copy(args, given)
		if len(args) == len(g.defaults) {
			return g.make(args)
		}
	}
	return nil, fmt.Errorf("numbers that do not belong together, or there: want %s", strings.Join(forms, " or "))
}

// labNetwork returns a lab's topology as a network.
func labNetwork(t *topology.Topology) (*partition.Graph, error) {
	switches, index := make([]partition.Switch, len(t.Switches)), map[string]int{}
	for i, s := range t.Switches {
		switches[i] = partition.Switch{DPID: flow.DPID(s.DPID), Name: s.Name, Load: 1}
		index[s.Name] = i
	}
	links := make([]partition.Link, len(t.Links))
	for i, l := range t.Links {
		a, okA := index[l.A]
		b, okB := index[l.B]
		if !okA || !okB {
			return nil, fmt.Errorf("topology %s: link %v: no such switch", t.Name, l)
		}
		links[i] = partition.Link{A: a, B: b, Weight: 1}
	}
	return partition.New(switches, links)
}

package planning

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan/partition"
)

// networkUsage says what --network is; a command says more.
const networkUsage = "the network"

// Cut says how a network is to be cut.
type Cut struct {
	Network, Partitions  string
	Choose               Choose
	method               string
	together, apart, fix []string
	borders, names       []string
	tolerance            float64
	seed                 uint64
}

// Flags adds the flags of weft plan partition.
func (p *Cut) Flags(f *pflag.FlagSet) {
	f.StringVar(&p.Network, "network", "", networkUsage)
	f.StringVar(&p.Partitions, "partitions", "auto", "how many partitions, or auto: as few as converge about as fast as any number")
	f.StringVar(&p.method, "method", partition.Auto, "structure (whole pods, whole spokes), cut (little weight between partitions), or auto")
	f.StringArrayVar(&p.together, "together", nil, "switches that have to share a partition, as s1,s2; may be repeated")
	f.StringArrayVar(&p.apart, "apart", nil, "switches no two of which may share a partition; may be repeated")
	f.StringSliceVar(&p.borders, "borders", nil, "the only switches that may join partitions, as 'c*' (default any)")
	f.StringArrayVar(&p.fix, "fix", nil, "switches that have to be in a partition, as east=s1,s2; may be repeated")
	f.StringSliceVar(&p.names, "names", nil, "names of the partitions (default p1, p2, …)")
	f.Float64Var(&p.tolerance, "tolerance", 0.05, "share by which the heaviest partition may be above the mean load")
	f.Uint64Var(&p.seed, "seed", 1, "picks one of many searches; the same gives the same")
	p.Choose.flags(f)
}

// Options reads what the flags demand of the partitions of a network, except for
// their number.
func (p *Cut) Options(g *partition.Graph) (partition.Options, error) {
	o := partition.Options{Method: p.method, Names: p.names, Tolerance: p.tolerance, Seed: p.seed}
	if len(p.names) > 0 && p.Partitions == "auto" {
		p.Partitions = strconv.Itoa(len(p.names))
	}
	sets := func(flag string, texts []string) (list [][]flow.DPID, err error) {
		for _, text := range texts {
			set, err := NetworkSwitches(g, strings.Split(text, ","))
			if err != nil {
				return nil, fmt.Errorf("--%s %q: %w", flag, text, err)
			}
			list = append(list, set)
		}
		return list, nil
	}
	if !slices.Contains(partition.Methods(), p.method) {
		return o, fmt.Errorf("--method %q: want one of %s", p.method, strings.Join(partition.Methods(), ", "))
	}
	var err error
	if o.Together, err = sets("together", p.together); err != nil {
		return o, err
	}
	if o.Apart, err = sets("apart", p.apart); err != nil {
		return o, err
	}
	if len(p.borders) > 0 {
		if o.Borders, err = NetworkSwitches(g, p.borders); err != nil {
			return o, fmt.Errorf("--borders %q: %w", strings.Join(p.borders, ","), err)
		}
	}
	for _, text := range p.fix {
		name, rest, ok := strings.Cut(text, "=")
		if !ok {
			return o, fmt.Errorf("--fix %q: want PARTITION=SWITCHES, such as east=s1,s2", text)
		}
		set, err := NetworkSwitches(g, strings.Split(rest, ","))
		if err != nil {
			return o, fmt.Errorf("--fix %q: want PARTITION=SWITCHES: %w", text, err)
		}
		if o.Fixed == nil {
			o.Fixed = map[flow.DPID]string{}
		}
		for _, d := range set {
			if old, ok := o.Fixed[d]; ok && old != name {
				return o, fmt.Errorf("--fix %q: switch %v is to be in %s as well", text, d, old)
			}
			o.Fixed[d] = name
		}
	}
	if len(o.Fixed) > 0 && p.Partitions == "auto" {
		return o, fmt.Errorf("--fix needs to know the partitions: give --names, or --partitions with a number")
	}
	return o, nil
}

// NetworkSwitches returns the switches that words name: a name, a DPID, a range
// of DPIDs, or a pattern of names. Each word names at least one.
func NetworkSwitches(g *partition.Graph, words []string) ([]flow.DPID, error) {
	var list []flow.DPID
	for _, word := range words {
		word = strings.TrimSpace(word)
		before := len(list)
		if i := slices.IndexFunc(g.Switches, func(s partition.Switch) bool { return s.Name == word && word != "" }); i >= 0 {
			list = append(list, g.Switches[i].DPID)
			continue
		}
		within, err := flow.ParseDPIDRange(word)
		for _, s := range g.Switches {
			match, _ := path.Match(word, s.Name)
			if match || err == nil && within.Has(s.DPID) {
				list = append(list, s.DPID)
			}
		}
		if len(list) == before {
			return nil, fmt.Errorf("the network has no switch %q: want a name, a DPID, a range of DPIDs such as 1-8, or a pattern of names such as 'c*'", word)
		}
	}
	return list, nil
}

// Choose says how the number of partitions is chosen.
type Choose struct {
	Max      int
	Failures int
	After    string
	Slack    float64
}

func (c *Choose) flags(f *pflag.FlagSet) {
	f.IntVar(&c.Max, "max", 32, "largest number of partitions that auto looks at")
	f.IntVar(&c.Failures, "failures", 30, "links that auto takes down for each number of partitions that it measures; 0 measures nothing and goes by the paper's cost alone")
	f.StringVar(&c.After, "after", AfterFailure, "what auto looks at: failure, of a random link, or start, all computed from nothing")
	f.Float64Var(&c.Slack, "slack", 0.05, "auto takes the smallest number that is by this share slower than the best")
}

// What the time is measured after.
const (
	AfterFailure = "failure"
	AfterStart   = "start"
)

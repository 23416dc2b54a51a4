package planner

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan/partition"
)

// partitionFormats are the forms in which partitions are printed.
var partitionFormats = []string{"table", "json", "yaml", "svg"}

// partitionFlags say how a network is to be cut.
type partitionFlags struct {
	network, partitions, method string
	together, apart, fix        []string
	borders, names              []string
	tolerance                   float64
	seed                        uint64
	choose                      chooseOptions
}

func (p *partitionFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&p.network, "network", "", "the network: "+cli.NetworkForms())
	f.StringVar(&p.partitions, "partitions", "auto", "how many partitions, or auto: as few as converge about as fast as any number")
	f.StringVar(&p.method, "method", partition.Auto, "structure (whole pods, whole spokes), cut (little weight between partitions), or auto")
	f.StringArrayVar(&p.together, "together", nil, "switches that have to share a partition, as s1,s2; may be repeated")
	f.StringArrayVar(&p.apart, "apart", nil, "switches no two of which may share a partition; may be repeated")
	f.StringSliceVar(&p.borders, "borders", nil, "the only switches that may join partitions, as 'c*' (default any)")
	f.StringArrayVar(&p.fix, "fix", nil, "switches that have to be in a partition, as east=s1,s2; may be repeated")
	f.StringSliceVar(&p.names, "names", nil, "names of the partitions (default p1, p2, …)")
	f.Float64Var(&p.tolerance, "tolerance", 0.05, "share by which the heaviest partition may be above the mean load")
	f.Uint64Var(&p.seed, "seed", 1, "picks one of many searches; the same gives the same")
	p.choose.flags(f)
}

func planPartitionCommand() *cobra.Command {
	var p partitionFlags
	var format string
	cmd := &cobra.Command{
		Use:   "partition --network NETWORK",
		Short: "Cut a network into partitions, and choose how many",
		Long: `Cut a network into partitions: sets of switches, each under a mastership of its
own. A fat tree is cut between its pods, a network of hubs between its spokes,
so that all partitions are alike; any other, or one with demands, such that
partitions have about the same load, are connected, and little goes between
them. A switch is given by its name, its DPID in hexadecimal digits, a range of
DPIDs (1-8), or a pattern of names ('e1-*').

With --partitions auto their number follows from how long the network takes
after a failure until all routes are right again. A short measurement on this
machine, with the network simulated in this process, takes links down for some
numbers of partitions; the model of the Hydra paper (section 3.2) is fitted to
some of them and predicts the rest. Prediction and measurement are printed side
by side. Each partition is taken to have a processor of its own.

With -o yaml the output is a section to paste into a plan, with -o svg a drawing.`,
		Example: `  weft plan partition --network hydra
  weft plan partition --network fattree:k=4 --partitions 4 -o yaml
  weft plan partition --network site.yaml --partitions 2 --names east,west --fix east=s1 --apart s1,s9
  weft plan partition --network waxman:n=200 --partitions auto --max 8 --failures 50 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(partitionFormats, format) {
				return cli.Usagef(cmd, "output %q; allowed: %s", format, strings.Join(partitionFormats, ", "))
			}
			g, err := cli.ReadNetwork(p.network)
			if err != nil {
				return err
			}
			o, err := p.options(g)
			if err != nil {
				return cli.Usagef(cmd, "%v", err)
			}
			r := PartitionReport{Network: p.network, graph: g}
			if p.partitions == "auto" {
				ctx, stop := cli.Signals(cmd)
				defer stop()
				say := func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
				if r.Convergence, err = choosePartitions(ctx, g, o, p.choose, say); err != nil {
					return err
				}
				o.Partitions = r.Convergence.Partitions
			} else if o.Partitions, err = strconv.Atoi(p.partitions); err != nil {
				return cli.Usagef(cmd, "--partitions %q: want a number, or auto", p.partitions)
			}
			cut, err := partition.Partition(g, o)
			if err != nil {
				return err
			}
			if err := partition.Check(g, o, cut); err != nil {
				return fmt.Errorf("the partitions are not what was asked for, which is a mistake in weft: %w", err)
			}
			r.read(cut)
			return r.print(cmd, format)
		},
	}
	p.flags(cmd.Flags())
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table, json, yaml or svg")
	cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(partitionFormats, cobra.ShellCompDirectiveNoFileComp))
	cmd.RegisterFlagCompletionFunc("method", cobra.FixedCompletions(partition.Methods(), cobra.ShellCompDirectiveNoFileComp))
	cmd.MarkFlagRequired("network")
	return cmd
}

// options reads what the flags demand of the partitions of a network, except for
// their number.
func (p *partitionFlags) options(g *partition.Graph) (partition.Options, error) {
	o := partition.Options{Method: p.method, Names: p.names, Tolerance: p.tolerance, Seed: p.seed}
	if len(p.names) > 0 && p.partitions == "auto" {
		p.partitions = strconv.Itoa(len(p.names))
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
	var err error
	if o.Together, err = sets("together", p.together); err != nil {
		return o, err
	}
	if o.Apart, err = sets("apart", p.apart); err != nil {
		return o, err
	}
	if len(p.borders) > 0 {
		if o.Borders, err = NetworkSwitches(g, p.borders); err != nil {
			return o, fmt.Errorf("--borders: %w", err)
		}
	}
	for _, text := range p.fix {
		name, rest, ok := strings.Cut(text, "=")
		set, err := NetworkSwitches(g, strings.Split(rest, ","))
		if !ok || err != nil {
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
	if len(o.Fixed) > 0 && p.partitions == "auto" {
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

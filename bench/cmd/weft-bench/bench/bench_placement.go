package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/bench/experiments/hydra"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	placement "github.com/weft-sdn/weft/plan/place"
)

// benchPlacementConfig is the flags of weft bench placement.
type benchPlacementConfig struct {
	generate  placement.GenerateConfig
	full      bool
	plain     bool
	edges     int
	runs      int
	steps     int
	conflicts int
	compare   string
}

// benchPlacementEdges is how many edges large instances have unless told
// otherwise, and from how many shards on they are large.
const (
	benchPlacementEdges  = 100_000
	benchPlacementShards = 1000
)

// benchPlacementReport is what weft bench placement prints.
type benchPlacementReport struct {
	Partitions int     `json:"partitions"`
	Services   int     `json:"services"`
	Servers    int     `json:"servers"`
	Seed       uint64  `json:"seed"`
	Shards     int     `json:"shards"`
	Edges      int     `json:"edges"`
	Instance   string  `json:"instance"` // full or plain
	Feasible   bool    `json:"feasible"` // by the checker
	Cost       float64 `json:"cost"`
	Bound      float64 `json:"bound"`
	Gap        float64 `json:"gap"`
	Proven     bool    `json:"proven"`
	Checked    bool    `json:"checked"` // the checker's cost is the solver's, too
	Seconds    float64 `json:"seconds"`

	Conflicts []placement.Conflict `json:"conflicts,omitempty"`
	Metis     *benchPlacementOther `json:"metis,omitempty"`
}

// benchPlacementOther is another's placement of the plain instance, beside ours
// of the same.
type benchPlacementOther struct {
	Note     string  `json:"note,omitempty"`
	Feasible bool    `json:"feasible"`
	Cost     float64 `json:"cost"`
	Seconds  float64 `json:"seconds"`
	// Ours are Weft's of the plain instance.
	OursFeasible bool    `json:"weft_plain_feasible"`
	OursCost     float64 `json:"weft_plain_cost"`
	OursSeconds  float64 `json:"weft_plain_seconds"`
	Ratio        float64 `json:"weft_to_metis"` // of the plain instance
	FullRatio    float64 `json:"weft_full_to_metis,omitempty"`
}

func benchPlacementCommand() *cobra.Command {
	c := benchPlacementConfig{}
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "placement",
		Short: "Place the shards of generated instances on servers: cost, bound, time",
		Long: `Generate an instance of partitions times services shards, place it on servers, and
have the result checked by what knows the instance only. Instances are full, with
replicas apart, deadlines of real-time paths and compute shards isolated, or plain,
with nothing but the capacities, which is what a graph partitioner can express. The
cost is the traffic that crosses servers, in events a second.

Up to 60 shards, an exact solver proves that nothing costs less, or says how far
its proof got. The result depends on the flags only, not on the machine.`,
		Example: `  weft bench placement --partitions 8 --services 4 --servers 8 --seed 1
  weft bench placement --partitions 32 --services 40 --servers 64 --compare metis -o json`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.IntVar(&c.generate.Partitions, "partitions", 8, "partitions of the network")
	f.IntVar(&c.generate.Services, "services", 4, "services, each with a shard for each partition")
	f.IntVar(&c.generate.Servers, "servers", 8, "servers")
	f.Uint64Var(&c.generate.Seed, "seed", 1, "seed of the instance and of the search")
	f.BoolVar(&c.full, "full", false, "all constraints (default)")
	f.BoolVar(&c.plain, "plain", false, "capacities only")
	f.IntVar(&c.edges, "edges", -1, fmt.Sprintf("edges at least, the rest being background traffic between any two shards (default: %d from %d shards on, else 0)", benchPlacementEdges, benchPlacementShards))
	f.Lookup("edges").DefValue = "0" // shows none: its text says it
	f.IntVar(&c.generate.Background, "background", 9, "weights of background traffic are 1 to this")
	f.Float64Var(&c.generate.Slack, "slack", 1.2, "capacity of a server, as a multiple of what each would need if all needed the same")
	f.IntVar(&c.runs, "runs", 0, "independent searches (default: by the size)")
	f.IntVar(&c.steps, "steps", 0, "steps of each search (default: by the size)")
	f.IntVar(&c.conflicts, "conflicts", 0, fmt.Sprintf("budget of the exact solver; -1: do not ask it (default: %d up to %d shards, else none)", placement.ExactConflicts, placement.ExactShards))
	f.StringVar(&c.compare, "compare", "", "place the plain instance with another too: metis (k-way, two constraints, best of 50)")
	cmd.MarkFlagsMutuallyExclusive("full", "plain")
	cmd.RegisterFlagCompletionFunc("compare", cobra.FixedCompletions([]string{"metis"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if c.compare != "" && c.compare != "metis" {
			return cli.Usagef(cmd, "--compare %q: want metis", c.compare)
		}
		if c.generate.Edges = c.edges; c.edges < 0 {
			if c.generate.Edges = 0; c.generate.Partitions*c.generate.Services >= benchPlacementShards {
				c.generate.Edges = benchPlacementEdges
			}
		}
		c.generate.Plain = c.plain
		ctx, stop := cli.Signals(cmd)
		defer stop()
		in, err := placement.Generate(c.generate)
		if err != nil {
			return cli.Usagef(cmd, "%w", err)
		}
		report, err := c.run(ctx, in, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if err := out.Print(cmd, report, report.table); err != nil {
			return err
		}
		if !report.Feasible {
			return errors.New("no placement found that keeps all constraints")
		}
		return nil
	}
	out.Flag(cmd)
	return cmd
}

// options are those of the solver.
func (c *benchPlacementConfig) options(progress func(placement.Progress)) placement.Options {
	return placement.Options{Seed: c.generate.Seed, Runs: c.runs, Steps: c.steps, Conflicts: c.conflicts, Progress: progress}
}

// run places the instance.
func (c *benchPlacementConfig) run(ctx context.Context, in *placement.Instance, errors io.Writer) (*benchPlacementReport, error) {
	r := &benchPlacementReport{Partitions: c.generate.Partitions, Services: c.generate.Services, Servers: c.generate.Servers, Seed: c.generate.Seed,
		Shards: len(in.Shards), Edges: len(in.Edges), Instance: "full"}
	if c.plain {
		r.Instance = "plain"
	}
	begin := time.Now()
	solution, err := c.solve(ctx, in, r.Instance, errors)
	r.Seconds = time.Since(begin).Seconds()
	if err := r.take(in, solution, err); err != nil {
		return nil, err
	}
	if c.compare != "" {
		r.Metis, err = c.metis(ctx, in, r, errors)
	}
	return r, err
}

// take notes a solution, or why there is none.
func (r *benchPlacementReport) take(in *placement.Instance, s *placement.Solution, err error) error {
	var infeasible *placement.InfeasibleError
	if errors.As(err, &infeasible) {
		r.Conflicts = infeasible.Conflicts
		return nil
	}
	if err != nil {
		return err
	}
	cost, broken := placement.Check(in, s.Server)
	r.Feasible, r.Cost, r.Bound, r.Gap, r.Proven = len(broken) == 0, cost, s.Bound, s.Gap(), s.Proven
	r.Checked = r.Feasible && cost == s.Cost && s.Bound <= cost
	return nil
}

// solve places an instance and tells how far it is.
func (c *benchPlacementConfig) solve(ctx context.Context, in *placement.Instance, what string, errors io.Writer) (*placement.Solution, error) {
	var mu sync.Mutex // guards last
	last := time.Now()
	return placement.Solve(ctx, in, c.options(func(p placement.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) < 2*time.Second {
			return
		}
		last = time.Now()
		cost := "none yet"
		if p.Feasible {
			cost = fmt.Sprintf("%.6g", p.Cost)
		}
		fmt.Fprintf(errors, "%s instance: %s %d of %d, best cost %s\n", what, p.Phase, p.Done, p.Of, cost)
	}))
}

// benchMetisCuts is how many partitionings METIS makes, of which the best counts.
const benchMetisCuts = 50

// metis has the same instance, without what METIS cannot express, placed by it,
// and by Weft.
func (c *benchPlacementConfig) metis(ctx context.Context, full *placement.Instance, r *benchPlacementReport, stderr io.Writer) (*benchPlacementOther, error) {
	in := &placement.Instance{Shards: make([]placement.Shard, len(full.Shards)), Servers: full.Servers, Edges: full.Edges}
	for i, s := range full.Shards {
		in.Shards[i] = placement.Shard{Name: s.Name, CPU: s.CPU, Memory: s.Memory}
	}
	o := &benchPlacementOther{}
	begin := time.Now()
	fmt.Fprintf(stderr, "METIS, best of %d partitionings of the plain instance\n", benchMetisCuts)
	server, err := hydra.Metis(ctx, in, benchMetisCuts, r.Seed)
	if errors.Is(err, hydra.ErrNoMetis) {
		o.Note = err.Error() + ": not compared"
		return o, nil
	}
	if err != nil {
		return nil, err
	}
	o.Seconds = time.Since(begin).Seconds()
	cost, broken := placement.Check(in, server)
	if o.Cost, o.Feasible = cost, len(broken) == 0; !o.Feasible {
		o.Note = broken[0].Text
	}
	o.OursFeasible, o.OursCost, o.OursSeconds = r.Feasible, r.Cost, r.Seconds
	if r.Instance == "full" {
		begin = time.Now()
		plain := *c
		plain.conflicts = -1
		solution, err := plain.solve(ctx, in, "plain", stderr)
		o.OursSeconds = time.Since(begin).Seconds()
		if err != nil {
			return nil, err
		}
		o.OursCost, broken = placement.Check(in, solution.Server)
		o.OursFeasible = len(broken) == 0
		o.FullRatio = benchRatio(r.Cost, o.Cost)
	}
	o.Ratio = benchRatio(o.OursCost, o.Cost)
	return o, nil
}

// table writes the report for people.
func (r *benchPlacementReport) table(t *cli.Table) {
	t.Row("instance", fmt.Sprintf("%s: %d shards, %d edges, %d servers, seed %d", r.Instance, r.Shards, r.Edges, r.Servers, r.Seed))
	if !r.Feasible {
		t.Row("feasible", "no")
		for _, c := range r.Conflicts {
			t.Row("because", c.String())
		}
		return
	}
	t.Row("feasible", "yes, checked")
	proof := fmt.Sprintf("at most %.2f %% above the optimum", 100*r.Gap)
	if r.Proven {
		proof = "proven optimal"
	}
	t.Row("cost", fmt.Sprintf("%.6g events/s cross servers, %s", r.Cost, proof))
	t.Row("bound", fmt.Sprintf("%.6g", r.Bound))
	t.Row("time", fmt.Sprintf("%.2f s", r.Seconds))
	if m := r.Metis; m != nil && m.Seconds == 0 {
		t.Row("METIS", m.Note)
	} else if m != nil {
		note := "feasible"
		if !m.Feasible {
			note = "NOT feasible: " + m.Note
		}
		t.Row("METIS, plain", strings.TrimSpace(fmt.Sprintf("%.6g in %.2f s, %s", m.Cost, m.Seconds, note)))
		t.Row("Weft, plain", fmt.Sprintf("%.6g in %.2f s, ratio %.4f", m.OursCost, m.OursSeconds, m.Ratio))
	}
}

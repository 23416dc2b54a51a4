package planner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/plan/place"
)

// Placed is what weft plan place prints. Costs are events a second times the
// delays of servers in microseconds, or times 1 if the instance has none.
type Placed struct {
	Feasible bool     `json:"feasible"`
	Cost     *float64 `json:"cost"`   // null if there is no placement
	Bound    *float64 `json:"bound"`  // what every placement costs at least
	Gap      *float64 `json:"gap"`    // how far the cost may be above the least, as a share of it
	Proven   bool     `json:"proven"` // nothing costs less, or there is no placement
	// Remedies are what would make a placement possible, each for a conflict.
	Remedies  []string          `json:"remedies"`
	Conflicts []place.Conflict  `json:"conflicts"`
	Placement map[string]string `json:"placement,omitempty"` // servers of shards
	Servers   []PlacedServer    `json:"servers,omitempty"`
	Seconds   float64           `json:"seconds"`
	Ended     string            `json:"ended,omitempty"` // why the search ended early
}

// PlacedServer is how full a server is.
type PlacedServer struct {
	Server  string  `json:"server"`
	Shards  int     `json:"shards"`
	CPU     float64 `json:"cpu"`
	CPUMost float64 `json:"cpu_most"`
	Memory  int64   `json:"memory"`
	MemMost int64   `json:"memory_most"`
}

func planPlaceCommand() *cobra.Command {
	var o place.Options
	var file string
	var most time.Duration
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "place --instance FILE",
		Short: "Place shards on servers, by a file of your own",
		Long: `Place shards on servers such that as few events as possible cross servers, by the
search of weft plan make, and say how far the cost is above the least at most. The
result is checked by what knows the instance only. The file says what there is:

  servers:
    s1: {cpu: 4, memory: 8GiB, domain: A}     # domain: power supply
    s2: {cpu: 4, memory: 8GiB, domain: B}
  shards:
    southbound: {cpu: 0.8, memory: 200MiB, class: real-time}
    paths/1: {cpu: 1.5, memory: 1GiB, class: compute}
    paths/2: {cpu: 1.5, memory: 1GiB, class: compute, servers: [s2]}
    gateway: {cpu: 0.2, memory: 64MiB, on: s1, move: 50}
  edges:
    - {between: [southbound, paths/1], weight: 120}
  paths:
    - {name: beats, shards: [southbound, gateway], weight: 10, deadline: 10ms}
  delay: 100us
  delays:
    - {between: [s1, s2], delay: 300us}
  apart: [[paths/1, paths/2]]
  apart_domains: []
  together: []

cpu is in processors, weight in events a second. A class is any, real-time,
latency-sensitive or compute: compute shares no server with the other two. A
deadline is what crossing servers may add to a path. servers are the only ones on
which a shard may run; on is where it runs now, and move what it costs to move it
from there. domain of a shard is the power supply of what it controls. Sets of
apart share no server, those of apart_domains no power supply, those of together
share one server. Without delay and delays, costs count events.

Up to 60 shards it is proven that nothing costs less, or how far the proof got.
With --time the search ends then, and the answer is the best that was found.

Exit status: 0 if there is a placement, 1 if there is none, or none was found.`,
		Example: `  weft plan place --instance instance.yaml
  weft plan place --instance instance.yaml --time 10s -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("time") && (most < time.Millisecond || most > longestSearch) {
				return cli.Usagef(cmd, "--time %v: want 1ms to %v", most, longestSearch)
			}
			in, err := ReadInstance(file)
			if err != nil {
				return err
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			if o.Settle = most > 0; o.Settle {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, most)
				defer cancel()
			}
			began := time.Now()
			solution, err := place.Solve(ctx, in, o)
			p, err := newPlaced(in, solution, err)
			if err != nil {
				return err
			}
			p.Seconds = rounded(time.Since(began).Seconds())
			if ctx.Err() != nil && !p.Proven {
				p.Ended = fmt.Sprintf("--time %v", most)
			}
			if err := out.Print(cmd, p, func(t *cli.Table) { p.table(t, in) }); err != nil {
				return err
			}
			if !p.Feasible {
				return errors.New("there is no placement that keeps all constraints, or none was found")
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "instance", "", "file with servers, shards and what goes between them")
	f.DurationVar(&most, "time", 0, "how long to search at most (default: as long as it takes)")
	f.Uint64Var(&o.Seed, "seed", 1, "picks one of many searches; the same gives the same placement, unless --time ends it")
	f.IntVar(&o.Runs, "runs", 0, "independent searches (default: by the size)")
	f.IntVar(&o.Steps, "steps", 0, "moves tried in each (default: by the size)")
	cmd.MarkFlagRequired("instance")
	cmd.MarkFlagFilename("instance", "yaml", "yml", "json")
	out.Flag(cmd)
	return cmd
}

// newPlaced returns what is printed of a solution, or of why there is none.
func newPlaced(in *place.Instance, s *place.Solution, err error) (*Placed, error) {
	p := &Placed{Remedies: []string{}, Conflicts: []place.Conflict{}}
	infeasible := (*place.InfeasibleError)(nil)
	switch {
	case errors.As(err, &infeasible):
		p.Proven = infeasible.Proven
		for _, c := range infeasible.Conflicts {
			p.Conflicts = append(p.Conflicts, c)
			if c.Mend != "" {
				p.Remedies = append(p.Remedies, c.Mend)
			}
		}
		return p, nil
	case errors.Is(err, context.DeadlineExceeded):
		return p, nil
	case err != nil:
		return nil, err
	}
	cost, broken := place.Check(in, s.Server)
	if len(broken) > 0 {
		return nil, fmt.Errorf("the placement that was found breaks a constraint, which is a mistake in weft: %s", broken[0].Text)
	}
	gap := s.Gap()
	p.Feasible, p.Cost, p.Bound, p.Gap, p.Proven = true, &cost, &s.Bound, &gap, s.Proven
	p.Placement = map[string]string{}
	for _, server := range in.Servers {
		p.Servers = append(p.Servers, PlacedServer{Server: server.Name, CPUMost: float64(server.CPU) / 1000, MemMost: server.Memory})
	}
	for i, at := range s.Server {
		p.Placement[in.Shards[i].Name] = in.Servers[at].Name
		p.Servers[at].Shards++
		p.Servers[at].CPU += float64(in.Shards[i].CPU) / 1000
		p.Servers[at].Memory += in.Shards[i].Memory
	}
	return p, nil
}

// table writes the placement for people.
func (p *Placed) table(t *cli.Table, in *place.Instance) {
	if !p.Feasible {
		for _, c := range p.Conflicts {
			t.Row("conflict", c.String())
		}
		if len(p.Conflicts) == 0 {
			t.Row("no placement", "none was found in the time; give more by --time")
		}
		return
	}
	t.Row("SHARD", "SERVER")
	for _, s := range in.Shards {
		t.Row(s.Name, p.Placement[s.Name])
	}
	t.Row()
	t.Row("SERVER", "SHARDS", "CPU", "OF", "MEMORY MiB", "OF")
	for _, s := range p.Servers {
		t.Row(s.Server, s.Shards, fmt.Sprintf("%.3f", s.CPU), fmt.Sprintf("%.3f", s.CPUMost), s.Memory>>20, s.MemMost>>20)
	}
	proof := fmt.Sprintf("at most %.2f %% above the least: bound %.6g", 100**p.Gap, *p.Bound)
	if p.Proven {
		proof = "the least that there is, proven"
	}
	t.Row()
	t.Row("cost", fmt.Sprintf("%.6g, %s", *p.Cost, proof))
	if p.Ended != "" {
		t.Row("ended by", p.Ended)
	}
}

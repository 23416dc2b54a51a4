package hydra

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/partitioned"
	"github.com/weft-sdn/weft/plan/partition"
	"github.com/weft-sdn/weft/services/paths"
	"github.com/weft-sdn/weft/test/measure"
)

// The ways of computing after a failure that are compared.
const (
	repaired   = "repair"    // what the failure concerns
	recomputed = "recompute" // everything, as the paper's controller does
)

// The failures of the paper (§5.1): any link, one of a core switch, one inside a
// pod.
const (
	anyLink  = "random"
	coreLink = "core"
	podLink  = "pod"
)

func partitionCounts() []int { return []int{1, 2, 4, 8, 16, 32} }
func failureKinds() []string { return []string{anyLink, coreLink, podLink} }

func convergenceTime() experiments.Experiment {
	return experiments.Experiment{
		Name: "hydra-convergence", Title: "time to converge after a link failure, by the number of partitions",
		Paper: paper, Figure: "Fig. 4",
		Claim: `On a fat tree of 2,560 switches the time to recompute routes after a link failure falls rapidly from 1 to 8
partitions, as the work is shared, and rises from there to 32, as partitions have more to tell each other: the least is at 8.
(The figure's own numbers are not in its text.)`,
		Method: `The fat tree of the paper (512 core switches, 32 pods of 32 and 32) is cut into 1 to 32 groups of pods, the core
switches being borders of all. Every partition is an actor in one process: a goroutine that alone has the partition's paths, and
hears of the others only by encoded summaries that are sent over the transport, between sockets, each to all others; inproc, which
copies instead, is measured beside. A sample takes down one link, waits until every partition has all distances and next hops inside and
the costs to all others by the last summaries of all, and then mends it likewise. repair computes what the failure concerns;
recompute does everything again in every partition that hears of it, as Dijkstra's algorithm in the paper's controller does. After each
failure paths between 50 random pairs of edge switches are compared with the flat computation: wrong are those that it reaches and
the hierarchy does not, or the other way, or that are no path. All partitions share the processors of one machine.`,
		Deviation: `The paper's controller computes everything anew and in Java: recompute is like it, and falls with the partitions and rises
again, at another height. Weft's own way, repair, has so little to do in one partition that dividing it cannot pay.`,
		Runs: 10, QuickRuns: 2, Transports: []string{"grpc"},
		Statements: []experiments.Statement{
			experiments.Value(paperValues.Number("Fig. 4", "best", ""), 0).Said("best", "8 partitions"),
			experiments.Below().Said("falls", "decreases rapidly from 1 to 8 partitions"),
			experiments.Above().Said("climbs", "starts to climb after 8"),
		},
		Columns: []string{"mode", "failure", "converged_ms", "restored_ms", "messages", "octets", "wrong", "stretch_mean", "stretch_max"},
		Cases: func(p experiments.Parameters) (list []experiments.Case) {
			for _, name := range convergenceTransports(p) {
				for _, n := range partitionCounts() {
					list = append(list, experiments.Case{Name: convergenceName(name, n), Setup: experiments.Setup{
						Services: "path computation alone", Priority: experiments.AsStarted, Processors: experiments.AsStarted, Load: "the same links fail"}, Open: func(ctx context.Context, c *experiments.Context) (experiments.Subject, error) {
						return openCut(ctx, c, name, n)
					}})
				}
			}
			return list
		},
		Sum: sumConvergence,
	}
}

// convergenceTransports are those compared: inproc besides.
func convergenceTransports(p experiments.Parameters) []string {
	return append(slices.Clone(p.Transports), "inproc")
}

// convergenceName is the name of a case.
func convergenceName(transport string, partitions int) string {
	return fmt.Sprintf("%s, %d", transport, partitions)
}

// failuresOf is how many failures of a kind a round has; the paper has 100
// random ones of each number of partitions.
func failuresOf(kind string, quick bool) int {
	if kind == anyLink && !quick {
		return 10
	}
	return 3
}

// openedCut is a cut whose partitions are at work.
type openedCut struct {
	*cut
	*actors
	*experiments.Context
}

func openCut(ctx context.Context, c *experiments.Context, transport string, n int) (experiments.Subject, error) {
	measure.Differs(ctx, "partitions are goroutines of one process, without the rest of the controller")
	x, err := newCut(partition.Hydra(), n)
	if err != nil {
		return nil, err
	}
	actors, err := startActors(ctx, x.h, transport)
	if err != nil {
		return nil, err
	}
	for warmUp := range 3 {
		if _, err := x.sample(ctx, actors, anyLink, rand.New(rand.NewPCG(c.Seed, uint64(warmUp)))); err != nil {
			actors.stop()
			return nil, err
		}
	}
	return openedCut{x, actors, c}, nil
}

// Close ends the partitions.
func (x openedCut) Close() error {
	x.stop()
	runtime.GC()
	return nil
}

// Sample takes links down, the same for all cases.
func (x openedCut) Sample(ctx context.Context, round int) (rows [][]string, err error) {
	for k, kind := range failureKinds() {
		for i := range failuresOf(kind, x.Quick) {
			for _, mode := range []string{repaired, recomputed} {
				x.whole.Store(mode == recomputed)
				row, err := x.sample(ctx, x.actors, kind, rand.New(rand.NewPCG(x.Seed, uint64(round<<16|i<<8|k))))
				if err != nil {
					return nil, fmt.Errorf("%s, %s failure %d: %w", mode, kind, i+1, err)
				}
				rows = append(rows, append([]string{mode, kind}, row...))
			}
		}
	}
	return rows, nil
}

// cut is the network in partitions, and as a whole, to compare.
type cut struct {
	h     *paths.Hierarchy
	flat  *paths.Graph
	edges []flow.DPID // where hosts are
	links map[string][]paths.Link
}

func newCut(g *partition.Graph, n int) (*cut, error) {
	r, err := partition.Partition(g, partition.Options{Partitions: n})
	if err != nil {
		return nil, err
	}
	x := &cut{h: partitioned.Network(g, r), flat: paths.NewGraph(), links: map[string][]paths.Link{}}
	for _, s := range g.Switches {
		x.flat.AddSwitch(s.DPID)
		if s.Name[0] == 'e' {
			x.edges = append(x.edges, s.DPID)
		}
	}
	name := func(d flow.DPID) byte {
		i, _ := g.Index(d)
		return g.Switches[i].Name[0]
	}
	for _, l := range partitioned.Links(g) {
		for _, l := range []paths.Link{l, partitioned.Reverse(l)} {
			x.h.SetLink(l)
			x.flat.SetLink(l)
		}
		kind := podLink
		if name(l.Src.Switch) == 'c' || name(l.Dst.Switch) == 'c' {
			kind = coreLink
		}
		x.links[kind] = append(x.links[kind], l)
		x.links[anyLink] = append(x.links[anyLink], l)
	}
	x.flat.Snapshot().Converge()
	x.h.Converge()
	return x, nil
}

// pairs is how many pairs of switches are compared after each failure.
const pairs = 50

// sample takes a link down, and mends it.
func (x *cut) sample(ctx context.Context, actors *actors, kind string, r *rand.Rand) (row []string, err error) {
	l := x.links[kind][r.IntN(len(x.links[kind]))]
	both := []paths.Link{l, partitioned.Reverse(l)}
	concerned := x.h.Concerned(l.Src.Switch, l.Dst.Switch)
	down, err := actors.change(ctx, concerned, both, true)
	if err != nil {
		return nil, err
	}
	for _, l := range both {
		x.flat.RemoveLink(l.Src, l.Dst)
	}
	wrong, mean, longest := x.compare(r)
	up, err := actors.change(ctx, concerned, both, false)
	if err != nil {
		return nil, err
	}
	for _, l := range both {
		x.flat.SetLink(l)
	}
	x.flat.Snapshot()
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', 4, 64) }
	return []string{number(millis(down.took)), number(millis(up.took)), fmt.Sprint(down.messages), fmt.Sprint(down.octets),
		fmt.Sprint(wrong), number(mean), number(longest)}, nil
}

// compare compares some paths with the flat computation: how many are wrong, and
// how much longer than the shortest the others are.
func (x *cut) compare(r *rand.Rand) (wrong int, mean, longest float64) {
	top := x.flat.Snapshot()
	for range pairs {
		src, dst := x.edges[r.IntN(len(x.edges))], x.edges[r.IntN(len(x.edges))]
		want, reachable := top.Distance(src, dst)
		path, ok, err := x.h.Path(src, dst, r.Uint64())
		stretch := 1.0
		if ok && err == nil {
			var w uint64
			if w, err = top.Weight(path); want > 0 {
				stretch = float64(w) / float64(want)
			}
		}
		if ok != reachable || err != nil {
			wrong++
		}
		mean += stretch / pairs
		longest = max(longest, stretch)
	}
	return wrong, mean, longest
}

package hydra

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/plan/place"
	"github.com/weft-sdn/weft/test/measure"
)

// placed is one instance of the comparison.
type placed struct {
	name string
	// small: the exact solver can be expected to prove the optimum.
	small bool
	// plain: capacities only; METIS and Weft are given the same problem.
	plain bool
	make  func(seed uint64) (*place.Instance, error)
}

// instances are those of the comparison; a quick run leaves out the large ones.
func instances(quick bool) []placed {
	generated := func(c place.GenerateConfig) func(uint64) (*place.Instance, error) {
		return func(seed uint64) (*place.Instance, error) {
			c.Seed = seed
			return place.Generate(c)
		}
	}
	list := []placed{
		{"generated-32", true, false, generated(place.GenerateConfig{Partitions: 8, Services: 4, Servers: 8})},
		{"generated-32-plain", true, true, generated(place.GenerateConfig{Partitions: 8, Services: 4, Servers: 8, Plain: true})},
	}
	for _, name := range zooNames() {
		list = append(list, placed{name, true, false, func(seed uint64) (*place.Instance, error) { return zooInstance(name, seed, false) }},
			placed{name + "-plain", true, true, func(seed uint64) (*place.Instance, error) { return zooInstance(name, seed, true) }})
	}
	list = append(list, placed{"generated-640-plain", false, true, generated(place.GenerateConfig{Partitions: 32, Services: 20, Servers: 32, Plain: true})})
	if !quick {
		large := place.GenerateConfig{Partitions: 32, Services: 40, Servers: 64, Edges: 100_000, Background: 9}
		list = append(list, placed{"generated-1280", false, false, generated(large)})
		large.Plain = true
		list = append(list, placed{"generated-1280-plain", false, true, generated(large)})
	}
	return list
}

// The ways to place that are compared.
const (
	byWeft        = "weft"
	bySearch      = "weft-search" // without the proof
	byMetis       = "metis"
	byRandom      = "random"
	byTopological = "topological"
)

func placementQuality() experiments.Experiment {
	return experiments.Experiment{
		Name: "hydra-placement", Title: "where shards run: Weft's placement against the optimum, a partitioner, random and topological ones",
		Paper: paper, Figure: "section 3.4 (no figure)",
		Claim: `Without deadlines, placement is multi-constraint graph partitioning; heuristics for that "deliver high quality results
in reasonable time", and leaving the deadlines out did no "appreciable" harm. (The text gives no numbers.)`,
		Method: `Each instance is placed by Weft, by Weft without the exact solver, by METIS (gpmetis, k-way, constraints for CPU and
memory, the best of 50; left out where it is not installed), at random where there is room (the mean of 20), and
topologically, all services of a partition on one server. Plain instances have capacities only, the others replicas apart,
deadlines and compute shards isolated as well; what of that a placement breaks is counted. Instances are generated, or made of
networks of the Internet Topology Zoo (zoo/README.md) cut into six partitions, with the paper's demands (Fig. 5, Table 1). A
checker that shares nothing with the solvers gives costs, events a second that cross servers, and violations.`,
		Deviation: `The paper gives no numbers. METIS and topological placement are given capacities only; where the instance asks for more,
what they find breaks constraints and is drawn hollow: it is no placement that could be used.`,
		Runs: 10, QuickRuns: 2, Transports: []string{"grpc"},
		Columns: []string{"method", "cost", "violations", "bound", "proven", "seconds"},
		Cases: func(p experiments.Parameters) (list []experiments.Case) {
			for _, i := range instances(p.Quick) {
				list = append(list, experiments.Case{Name: i.name, Open: func(_ context.Context, c *experiments.Context) (experiments.Subject, error) {
					return experiments.Once(func(ctx context.Context, round int) ([][]string, error) { return i.sample(ctx, c.Seed+uint64(round)-1) }), nil
				}})
			}
			return list
		},
		Sum: sumPlacement,
	}
}

// sample places an instance by each method.
func (i placed) sample(ctx context.Context, seed uint64) (rows [][]string, err error) {
	in, err := i.make(seed)
	if err != nil {
		return nil, err
	}
	for _, method := range []string{byWeft, bySearch, byMetis, byRandom, byTopological} {
		row, err := placeBy(ctx, method, in, i.small, seed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", method, err)
		}
		rows = append(rows, append([]string{method}, row...))
	}
	return rows, nil
}

// placeBy takes one sample; without METIS, METIS's is empty.
func placeBy(ctx context.Context, method string, in *place.Instance, small bool, seed uint64) ([]string, error) {
	begin := time.Now()
	row := func(cost float64, violations int, bound float64, proven bool) []string {
		number := func(x float64) string { return strconv.FormatFloat(x, 'g', 10, 64) }
		return []string{number(cost), strconv.Itoa(violations), number(bound), strconv.FormatBool(proven), fmt.Sprintf("%.3f", time.Since(begin).Seconds())}
	}
	var server []int
	switch method {
	case byWeft, bySearch:
		o := place.Options{Seed: seed}
		if method == bySearch || !small {
			o.Conflicts = -1
		}
		s, err := place.Solve(ctx, in, o)
		if err != nil {
			return nil, err
		}
		cost, broken := place.Check(in, s.Server)
		return row(cost, len(broken), s.Bound, s.Proven), nil
	case byMetis:
		var err error
		if server, err = Metis(ctx, in, 50, seed); errors.Is(err, ErrNoMetis) {
			return []string{"", "", "", "", ""}, nil
		} else if err != nil {
			return nil, err
		}
	case byTopological:
		server = topological(in)
	default:
		const times = 20
		random := rand.New(rand.NewPCG(seed, 1))
		var mean float64
		most := 0
		for range times {
			cost, broken := place.Check(in, anywhere(in, random))
			mean += cost / times
			most = max(most, len(broken))
		}
		return row(mean, most, 0, false), nil
	}
	cost, broken := place.Check(in, server)
	return row(cost, len(broken), 0, false), nil
}

// topological has all shards of a partition on one server, as a controller for
// each partition has them.
func topological(in *place.Instance) []int {
	index := map[string]int{}
	server := make([]int, len(in.Shards))
	for i, s := range in.Shards {
		if _, there := index[s.Partition]; !there {
			index[s.Partition] = len(index) % len(in.Servers)
		}
		server[i] = index[s.Partition]
	}
	return server
}

// anywhere places shards in random order on random servers where there is room,
// or on any if there is none.
func anywhere(in *place.Instance, random *rand.Rand) []int {
	server := make([]int, len(in.Shards))
	cpu, memory := make([]int64, len(in.Servers)), make([]int64, len(in.Servers))
	for _, i := range random.Perm(len(in.Shards)) {
		order := random.Perm(len(in.Servers))
		chosen := order[0]
		for _, s := range order {
			if cpu[s]+in.Shards[i].CPU <= in.Servers[s].CPU && memory[s]+in.Shards[i].Memory <= in.Servers[s].Memory {
				chosen = s
				break
			}
		}
		server[i] = chosen
		cpu[chosen] += in.Shards[i].CPU
		memory[chosen] += in.Shards[i].Memory
	}
	return server
}

// placementFigures are those of one instance and method, over its runs.
type placementFigures struct {
	Cost       experiments.Spread `json:"cost"`
	Violations figure.Number      `json:"violations_mean"`
	Proven     int                `json:"proven"`
	Seconds    experiments.Spread `json:"seconds"`
	costs      []float64          // of each round
}

// figuresOf reads the samples of an instance and a method; none without METIS.
func figuresOf(c *experiments.Context, instance, method string) placementFigures {
	where := experiments.Where("method", method)
	f := placementFigures{costs: c.Rounds("cost", instance, where), Violations: figure.Number(c.Spread("violations", instance, where).Mean),
		Cost: c.Spread("cost", instance, where), Seconds: c.Spread("seconds", instance, where)}
	for _, proven := range c.Texts("proven", instance, where) {
		if proven == "true" {
			f.Proven++
		}
	}
	return f
}

// ratios are the costs of one to those of another, round by round. Where both
// cost nothing they are alike.
func ratios(a, b placementFigures) []float64 {
	list := make([]float64, len(a.costs))
	for i := range list {
		switch list[i] = a.costs[i] / b.costs[i]; {
		case a.costs[i] == 0 && b.costs[i] == 0:
			list[i] = 1
		case math.IsInf(list[i], 0):
			list[i] = math.NaN()
		}
	}
	return list
}

// worst is the largest; NaN if there is none.
func worst(list []float64) float64 {
	list = slices.DeleteFunc(slices.Clone(list), math.IsNaN)
	if len(list) == 0 {
		return math.NaN()
	}
	return slices.Max(list)
}

// sumPlacement compares all samples and draws them.
func sumPlacement(c *experiments.Context) error {
	list := instances(c.Quick)
	all := map[string]map[string]placementFigures{}
	methods := []string{bySearch, byMetis, byRandom, byTopological}
	panel := figure.Panel{Y: figure.Axis{Label: "cost to that of Weft's placement", Log: true}}
	feasible, broken := make([]figure.Series, len(methods)), make([]figure.Series, len(methods))
	for m, method := range methods {
		feasible[m] = figure.Series{Name: method, Kind: figure.Dots, Colour: m + 1}
		broken[m] = figure.Series{Name: method + ", breaks constraints", Kind: figure.Dots, Colour: m + 1, Hollow: true}
	}
	for at, i := range list {
		f := map[string]placementFigures{}
		for _, method := range append(methods, byWeft) {
			f[method] = figuresOf(c, i.name, method)
		}
		all[i.name] = f
		panel.X.Names = append(panel.X.Names, i.name)
		for m, method := range methods {
			of := measure.Median(ratios(f[method], f[byWeft]))
			if of.Count == 0 && f[byWeft].Cost.Count > 0 { // no METIS here, which the summary notes
				continue
			}
			pt := figure.At(float64(at)+.16*(float64(m)-1.5), of, i.name)
			if f[method].Violations > 0 {
				broken[m].Points = append(broken[m].Points, pt)
			} else {
				feasible[m].Points = append(feasible[m].Points, pt)
			}
		}
		weft := f[byWeft]
		if weft.Cost.Count == 0 {
			c.Compare(experiments.Claim{What: "constraints that Weft's placement breaks, " + i.name}.Exactly(math.NaN()).AtMost(0))
			continue
		}
		c.Compare(experiments.Claim{What: "constraints that Weft's placement breaks, " + i.name}.Exactly(float64(weft.Violations)).AtMost(0))
		if i.small {
			c.Compare(experiments.Claim{What: "runs without proof of the optimum, " + i.name}.Exactly(float64(weft.Cost.Count-weft.Proven)).AtMost(0),
				experiments.Claim{What: "Weft's search alone to the optimum, worst, " + i.name}.Exactly(worst(ratios(f[bySearch], weft))).AtMost(1.05))
		}
		if f[byMetis].Cost.Count > 0 {
			claim := experiments.Claim{What: "Weft to METIS, worst, " + i.name, Paper: "high quality"}.Exactly(worst(ratios(weft, f[byMetis])))
			if i.plain && f[byMetis].Violations == 0 {
				claim = claim.AtMost(1) // else METIS has solved another problem
			}
			c.Compare(claim, experiments.Claim{What: "constraints that METIS's placement breaks, " + i.name, Paper: "no appreciable degradation"}.Exactly(float64(f[byMetis].Violations)))
		}
		c.Compare(
			experiments.Claim{What: "random to Weft, " + i.name, Paper: "-"}.Of(measure.Median(ratios(f[byRandom], weft))),
			experiments.Claim{What: "topological to Weft, " + i.name, Paper: "-"}.Of(measure.Median(ratios(f[byTopological], weft))),
			experiments.Claim{What: "constraints that a topological placement breaks, " + i.name}.Exactly(float64(f[byTopological].Violations)),
			experiments.Claim{What: "time of Weft, " + i.name, Paper: "reasonable", Unit: "s"}.Of(c.Median("seconds", i.name, experiments.Where("method", byWeft))).AtMost(10))
	}
	for m := range methods {
		for _, s := range []figure.Series{feasible[m], broken[m]} {
			if len(s.Points) > 0 {
				panel.Series = append(panel.Series, s)
			}
		}
	}
	c.Figure("placement", all)
	fig := figure.Figure{Name: "section 3.4", Title: "events that cross servers, to Weft's placement", Panels: []figure.Panel{panel}}
	if _, err := Metis(context.Background(), &place.Instance{Servers: make([]place.Server, 1)}, 1, 0); errors.Is(err, ErrNoMetis) {
		c.Figure("note", err.Error()+": not compared with it")
		fig.Notes = []string{err.Error() + ": not compared with it."}
	}
	c.Draw(fig)
	return nil
}

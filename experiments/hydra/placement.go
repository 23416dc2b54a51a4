package hydra

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/weft-sdn/weft/experiments"
	"github.com/weft-sdn/weft/plan/place"
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
		Runs: 5, QuickRuns: 2, Transports: []string{"grpc"},
		Columns: []string{"instance", "run", "method", "cost", "violations", "bound", "proven", "seconds"},
		Run:     runPlacement,
	}
}

func runPlacement(ctx context.Context, c *experiments.Context) error {
	list := instances(c.Quick)
	methods := []string{byWeft, bySearch, byMetis, byRandom, byTopological}
	c.Progress.Begin("hydra-placement", len(list)*c.Runs*len(methods), len(c.Data.Rows()))
	for _, i := range list {
		for run := range c.Runs {
			in, err := i.make(c.Seed + uint64(run))
			if err != nil {
				return fmt.Errorf("%s: %w", i.name, err)
			}
			for _, method := range methods {
				key := []string{i.name, strconv.Itoa(run + 1), method}
				if c.Data.Has(key...) {
					continue
				}
				row, err := placeBy(ctx, method, in, i.small, c.Seed+uint64(run))
				if err != nil {
					return fmt.Errorf("%s, run %d, %s: %w", i.name, run+1, method, err)
				}
				if err := c.Data.Add(append(key, row...)); err != nil {
					return err
				}
				c.Progress.Step(fmt.Sprintf("%s run %d %s", i.name, run+1, method))
			}
		}
	}
	return sumPlacement(c, list)
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

// Columns of the samples.
const (
	placeCost       = 3
	placeViolations = 4
	placeBound      = 5
	placeProven     = 6
	placeSeconds    = 7
)

// placementFigures are those of one instance and method, over its runs.
type placementFigures struct {
	Cost       experiments.Spread `json:"cost"`
	Violations float64            `json:"violations_mean"`
	Proven     int                `json:"proven"`
	Seconds    experiments.Spread `json:"seconds"`
	costs      []float64
	bounds     []float64
}

// figuresOf reads the samples of an instance and a method; none without METIS.
func figuresOf(c *experiments.Context, instance, method string) placementFigures {
	var f placementFigures
	var seconds []float64
	for _, row := range c.Data.Rows() {
		if row[0] != instance || row[2] != method || row[placeCost] == "" {
			continue
		}
		value := func(k int) float64 {
			x, err := strconv.ParseFloat(row[k], 64)
			if err != nil {
				return math.NaN()
			}
			return x
		}
		f.costs, f.bounds, seconds = append(f.costs, value(placeCost)), append(f.bounds, value(placeBound)), append(seconds, value(placeSeconds))
		f.Violations += value(placeViolations)
		if row[placeProven] == "true" {
			f.Proven++
		}
	}
	if n := len(f.costs); n > 0 {
		f.Violations /= float64(n)
	}
	f.Cost, f.Seconds = experiments.NewSpread(f.costs), experiments.NewSpread(seconds)
	return f
}

// ratios are the costs of one to those of another, run by run; NaN of none.
func ratios(a, b placementFigures) experiments.Spread {
	var list []float64
	for i := range min(len(a.costs), len(b.costs)) {
		switch {
		case b.costs[i] > 0:
			list = append(list, a.costs[i]/b.costs[i])
		case a.costs[i] == 0:
			list = append(list, 1)
		}
	}
	if len(list) == 0 {
		return experiments.Spread{Mean: math.NaN(), Median: math.NaN(), Max: math.NaN()}
	}
	return experiments.NewSpread(list)
}

// sumPlacement compares all samples and draws them.
func sumPlacement(c *experiments.Context, list []placed) error {
	all := map[string]map[string]placementFigures{}
	var names []string
	groups := []experiments.Group{{Name: byMetis}, {Name: byRandom}, {Name: byTopological}}
	for _, i := range list {
		f := map[string]placementFigures{}
		for _, method := range []string{byWeft, bySearch, byMetis, byRandom, byTopological} {
			f[method] = figuresOf(c, i.name, method)
		}
		all[i.name] = f
		weft := f[byWeft]
		c.Compare(experiments.Claim{What: "constraints that Weft's placement breaks, " + i.name, Paper: "-", Ours: weft.Violations}.AtMost(0))
		if i.small {
			c.Compare(experiments.Claim{What: "runs without proof of the optimum, " + i.name, Paper: "-", Ours: float64(len(weft.costs) - weft.Proven)}.AtMost(0),
				experiments.Claim{What: "Weft's search alone to the optimum, worst, " + i.name, Paper: "-", Ours: ratios(f[bySearch], weft).Max}.AtMost(1.05))
		}
		if len(f[byMetis].costs) > 0 {
			claim := experiments.Claim{What: "Weft to METIS, worst, " + i.name, Paper: "high quality", Ours: ratios(weft, f[byMetis]).Max}
			if i.plain && f[byMetis].Violations == 0 {
				claim = claim.AtMost(1) // else METIS has solved another problem
			}
			c.Compare(claim, experiments.Claim{What: "constraints that METIS's placement breaks, " + i.name, Paper: "no appreciable degradation", Ours: f[byMetis].Violations})
		}
		c.Compare(
			experiments.Claim{What: "random to Weft, " + i.name, Paper: "-", Ours: ratios(f[byRandom], weft).Median},
			experiments.Claim{What: "topological to Weft, " + i.name, Paper: "-", Ours: ratios(f[byTopological], weft).Median},
			experiments.Claim{What: "constraints that a topological placement breaks, " + i.name, Paper: "-", Ours: f[byTopological].Violations},
			experiments.Claim{What: "time of Weft, worst, " + i.name, Paper: "reasonable", Ours: weft.Seconds.Max, Unit: "s"}.AtMost(10))
		names = append(names, i.name)
		for g, method := range []string{byMetis, byRandom, byTopological} {
			s := ratios(f[method], weft)
			if math.IsNaN(s.Median) {
				s = experiments.Spread{}
			}
			groups[g].Spreads = append(groups[g].Spreads, s)
		}
	}
	c.Figure("placement", all)
	if _, err := Metis(context.Background(), &place.Instance{Servers: make([]place.Server, 1)}, 1, 0); errors.Is(err, ErrNoMetis) {
		c.Figure("note", err.Error()+": not compared with it")
	}
	p, err := experiments.Bars("events that cross servers, to Weft's placement", "ratio", names, groups)
	if err != nil {
		return err
	}
	p.X.Tick.Label.Rotation = -0.5
	c.Draw(p)
	return nil
}

package oshi

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/pce/assign"
)

// The cases of oshi-te.
const (
	teFewest = "fewest links"
	tePaper  = "heuristic of the paper"
	teWeft   = "Weft"
	teBound  = "bound"
)

// What oshi-te draws.
const (
	teDemands  = 10_000
	teFew      = 100
	teCapacity = 60e6 // bit/s, as in the paper's catalogue of Colt
	teFullest  = 0.95 // of the fullest link, on paths with the fewest links
)

// teCounts are how many demands there are.
func teCounts() []int { return []int{teFew, teDemands} }

// teSizes are the nodes of the networks that are drawn where there are no files: as many as Colt and
// five others of the Topology Zoo have.
func teSizes() []int { return []int{153, 113, 84, 61, 40, 22} }

func engineering() experiments.Experiment {
	return experiments.Experiment{
		Name: "oshi-te", Title: "load and delay of links, by how demands are assigned to paths",
		Paper: paper, Figure: "section V",
		Claim: `A flow assignment heuristic maps pseudowires with a required capacity on the core links: shortest paths over links with room, then
single flows are moved as long as the mean delay falls. (The paper gives no figures.)`,
		Method: fmt.Sprintf(`No switches: paths computed by package pce/assign, as weft tunnel optimise does. In a round, %d demands, and as few as %d, between nodes drawn at random, of rates from
0.5 to 1.5 of the mean, on networks of links of %.0f Mbit/s in each direction: the files *.graphml of the directory WEFT_TOPOLOGIES, or networks drawn with as many
nodes as Colt and five others of the Topology Zoo have and 1.16 links for a node. Rates are such that on paths with the fewest links the fullest link is
at %.0f %%. mean_load and worst_load are shares of the capacity, mean_delay_us that of packets of 1000 octets in queues (M/M/1), unplaced how many demands have no
path, seconds the time that the case takes. bound is the optimum where demands may be split, less the gap to which it is known.`, teDemands, teFew, teCapacity/1e6, 100*teFullest),
		Deviation: `The paper's program has a catalogue of flows of its own, which is not published with it.`,
		Runs:      10, QuickRuns: 2, Transports: []string{"grpc"},
		Columns: []string{"network", "nodes", "demands", "mean_load", "worst_load", "mean_delay_us", "unplaced", "seconds"},
		Cases: func(experiments.Parameters) (list []experiments.Case) {
			for _, name := range []string{teFewest, tePaper, teWeft, teBound} {
				list = append(list, experiments.Case{Name: name, Open: func(_ context.Context, c *experiments.Context) (experiments.Subject, error) {
					return experiments.Once(func(ctx context.Context, round int) ([][]string, error) {
						return assignDemands(ctx, name, c.Seed, uint64(round))
					}), nil
				}})
			}
			return list
		},
		Sum: sumEngineering,
	}
}

// A teNetwork is one of those on which oshi-te assigns demands.
type teNetwork struct {
	name   string
	nodes  int
	cables [][2]int
}

// teNetworks returns the networks of a round.
func teNetworks(seed, round uint64) (list []teNetwork, err error) {
	dir := os.Getenv("WEFT_TOPOLOGIES")
	if dir == "" {
		for _, n := range teSizes() {
			list = append(list, drawNetwork(n, rand.New(rand.NewPCG(seed, 1000*round+uint64(n)))))
		}
		return list, nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.graphml"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("WEFT_TOPOLOGIES is %s, which has no file *.graphml", dir)
	}
	for _, file := range files {
		t, err := topology.LoadFile(file)
		if err != nil {
			return nil, err
		}
		list = append(list, networkOf(strings.TrimSuffix(filepath.Base(file), ".graphml"), t))
	}
	return list, err
}

// networkOf returns the largest part of a network that is joined, with one link between two nodes.
func networkOf(name string, t *topology.Topology) teNetwork {
	index, of := map[string]int{}, make([]int, len(t.Switches))
	for i, s := range t.Switches {
		index[s.Name], of[i] = i, i
	}
	for range t.Switches { // of becomes the first node of the part
		for _, l := range t.Links {
			a, b := index[l.A], index[l.B]
			of[a] = min(of[a], of[b])
			of[b] = of[a]
		}
	}
	size, largest := map[int]int{}, 0
	for _, part := range of {
		if size[part]++; size[part] > size[largest] {
			largest = part
		}
	}
	net := teNetwork{name: name}
	number, seen := map[int]int{}, map[[2]int]bool{}
	for i, part := range of {
		if part == largest {
			number[i] = net.nodes
			net.nodes++
		}
	}
	for _, l := range t.Links {
		a, b := index[l.A], index[l.B]
		key := [2]int{min(a, b), max(a, b)}
		if of[a] == largest && a != b && !seen[key] {
			seen[key] = true
			net.cables = append(net.cables, [2]int{number[a], number[b]})
		}
	}
	return net
}

// drawNetwork draws points in a square, joins them by the shortest tree, and adds the shortest links whose
// ends are far apart on it, as carriers' networks look.
func drawNetwork(nodes int, r *rand.Rand) teNetwork {
	net := teNetwork{name: fmt.Sprintf("drawn-%d", nodes), nodes: nodes}
	x, y := make([]float64, nodes), make([]float64, nodes)
	for i := range x {
		x[i], y[i] = r.Float64(), r.Float64()
	}
	away := func(a, b int) float64 { return math.Hypot(x[a]-x[b], y[a]-y[b]) }
	by := make([]int, nodes)        // the node of the tree that is nearest; -1: it is in the tree
	for in := 1; in < nodes; in++ { // Prim
		at := -1
		for i := 1; i < nodes; i++ {
			if by[i] >= 0 && (at < 0 || away(i, by[i]) < away(at, by[at])) {
				at = i
			}
		}
		net.cables = append(net.cables, [2]int{at, by[at]})
		by[at] = -1
		for i := 1; i < nodes; i++ {
			if by[i] >= 0 && away(i, at) < away(i, by[i]) {
				by[i] = at
			}
		}
	}
	for range nodes/6 + 1 {
		hops := hopsOf(net)
		best, score := [2]int{}, 0.0
		for a := range nodes {
			for b := range a {
				if s := float64(hops[a][b]) / (0.05 + away(a, b)); s > score {
					best, score = [2]int{a, b}, s
				}
			}
		}
		net.cables = append(net.cables, best)
	}
	return net
}

// hopsOf returns how many links are between all nodes.
func hopsOf(net teNetwork) [][]int {
	next := make([][]int, net.nodes)
	for _, c := range net.cables {
		next[c[0]], next[c[1]] = append(next[c[0]], c[1]), append(next[c[1]], c[0])
	}
	hops := make([][]int, net.nodes)
	for from := range hops {
		hops[from] = slices.Repeat([]int{-1}, net.nodes)
		hops[from][from] = 0
		for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
			for _, n := range next[queue[0]] {
				if hops[from][n] < 0 {
					hops[from][n] = hops[from][queue[0]] + 1
					queue = append(queue, n)
				}
			}
		}
	}
	return hops
}

// problemOn draws so many demands on a network, and scales them.
func problemOn(net teNetwork, demands int, r *rand.Rand) *assign.Problem {
	p := &assign.Problem{Nodes: net.nodes, PacketBits: 8000}
	for i, c := range net.cables {
		p.Links = append(p.Links, assign.Link{From: c[0], To: c[1], Cable: i, Capacity: teCapacity}, assign.Link{From: c[1], To: c[0], Cable: i, Capacity: teCapacity})
	}
	for range demands {
		from := r.IntN(net.nodes)
		p.Demands = append(p.Demands, assign.Demand{From: from, To: (from + 1 + r.IntN(net.nodes-1)) % net.nodes, Rate: 0.5 + r.Float64()})
	}
	way := newPaperRouting(p)
	way.fewest()
	scale := teFullest * teCapacity / slices.Max(way.load)
	for i := range p.Demands {
		p.Demands[i].Rate *= scale
	}
	return p
}

// assignDemands takes the samples of a round.
func assignDemands(ctx context.Context, name string, seed, round uint64) (rows [][]string, err error) {
	list, err := teNetworks(seed, round)
	if err != nil {
		return nil, err
	}
	for i, net := range list {
		for _, demands := range teCounts() {
			p := problemOn(net, demands, rand.New(rand.NewPCG(seed+uint64(i), round))) // the same in every case
			err := cmp.Or(ctx.Err(), p.Check())
			if err != nil {
				return nil, fmt.Errorf("%s: %w", net.name, err)
			}
			rows = append(rows, append([]string{net.name, strconv.Itoa(net.nodes), strconv.Itoa(demands)}, sampleOf(name, p)...))
		}
	}
	return rows, nil
}

// sampleOf returns the other columns of a sample.
func sampleOf(name string, p *assign.Problem) []string {
	began := time.Now()
	a, bound := assignBy(name, p)
	took := time.Since(began)
	worst, _ := a.WorstLoad()
	mean, delay := a.MeanLoad(), a.MeanDelay()
	if bound != nil {
		delay, worst, mean = bound.Bound, 0, 0
		for l, load := range bound.Load {
			worst, mean = max(worst, load/p.Links[l].Capacity), mean+load/p.Links[l].Capacity/float64(len(p.Links))
		}
	}
	left := 0
	for _, path := range a.Paths {
		if len(path) == 0 {
			left++
		}
	}
	return []string{written(mean), written(worst), written(delay * 1e6), strconv.Itoa(left), written(took.Seconds())}
}

// assignBy assigns demands as a case does; of teBound, with the bound.
func assignBy(name string, p *assign.Problem) (*assign.Assignment, *assign.Relaxation) {
	a := p.Present()
	if name == teWeft || name == teBound {
		a.Place()
		a, bound := a.Optimise(assign.Terms{Gap: 1e-3, Rounds: 1000})
		if a.Place(); name == teBound {
			return a, bound
		}
		return a, nil
	}
	r := newPaperRouting(p)
	if name == tePaper {
		r.heuristic()
	} else {
		r.fewest()
	}
	for i, path := range r.paths {
		a.Set(i, path)
	}
	return a, nil
}

// ofEngineering is one line of by_network.
type ofEngineering struct {
	Network   string        `json:"network"`
	Demands   int           `json:"demands"`
	Case      string        `json:"case"`
	MeanLoad  figure.Number `json:"mean_load"`
	WorstLoad figure.Number `json:"worst_load"`
	MeanDelay figure.Number `json:"mean_delay_us"`
	Unplaced  figure.Number `json:"unplaced"`
	Seconds   figure.Number `json:"seconds"`
}

// onNetwork is the filter of a network with so many demands.
func onNetwork(net teNetwork, demands int) experiments.Filter {
	return experiments.Where("network", net.name, "demands", strconv.Itoa(demands))
}

// sumEngineering compares the cases and draws them.
func sumEngineering(c *experiments.Context) error {
	networks, err := teNetworks(c.Seed, 1)
	if err != nil {
		return err
	}
	panel := figure.Panel{X: figure.Axis{Label: "nodes"}, Y: figure.Axis{Label: "mean delay, µs"}}
	var list []ofEngineering
	for i, name := range []string{teFewest, tePaper, teWeft, teBound} {
		line := figure.Series{Name: name, Kind: figure.Line, Colour: i + 1}
		for _, net := range networks {
			for _, demands := range teCounts() {
				on := onNetwork(net, demands)
				median := func(column string) figure.Number { return figure.Number(c.Median(column, name, on).Median) }
				list = append(list, ofEngineering{net.name, demands, name, median("mean_load"), median("worst_load"), median("mean_delay_us"), median("unplaced"), median("seconds")})
			}
			line.Points = append(line.Points, figure.At(float64(net.nodes), c.Median("mean_delay_us", name, onNetwork(net, teDemands)), name))
		}
		panel.Series = append(panel.Series, line)
	}
	c.Draw(figure.Figure{Name: "section V", Title: "mean delay of packets by how demands are assigned", Panels: []figure.Panel{panel}})
	for _, net := range networks {
		for _, demands := range teCounts() {
			for _, name := range []string{teFewest, tePaper, teBound} {
				what := fmt.Sprintf("mean delay, Weft to %s, %s, %d demands", name, net.name, demands)
				c.Compare(experiments.Claim{What: what, Paper: "-", Seeded: true}.Of(c.Ratio("mean_delay_us", teWeft, name, onNetwork(net, demands))))
			}
		}
		c.Compare(experiments.Claim{What: "time for all demands, " + net.name, Paper: "-", Unit: "s"}.Of(c.Median("seconds", teWeft, onNetwork(net, teDemands))).AtMost(5))
	}
	c.Figure("by_network", list)
	return nil
}

package nf

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/test/measure"
)

// The scalers.
const (
	scalerModel     = "model"
	scalerForecast  = "model with forecast"
	scalerThreshold = "CPU threshold"
)

func scalers() []string { return []string{scalerModel, scalerForecast, scalerThreshold} }

// tuned returns the threshold scaler that is best for a load by the simulation:
// a replica carries what it was seen to carry, and starts as it was seen to.
func tuned(rates []int) *threshold {
	w := world{capacity: replicaCapacity, start: replicaStart, target: scaledTarget}
	t := w.tune(rates, threshold{min: 1, max: scaledMost, cooldown: scaledCooldown})
	return &t
}

// What a replica of a twentieth of a processor was seen to carry, in packet-ins a
// second, and to take to start.
const (
	replicaCapacity = 900.0
	replicaStart    = 2 * time.Second
)

func autoscale() experiments.Experiment {
	return experiments.Experiment{
		Name: "nf-autoscale", Title: "routing scaled by a queueing model, with and without a forecast, beside the best-tuned threshold of processor use",
		Paper: paper + "; proactive scaling is future work of the MSN paper", Figure: "autoscaling",
		Claim: `None of the papers has figures of it. To be shown: fewer violations at equal or fewer instance-seconds than the threshold on a ramp
and over a day, no worse on a step and in bursts, and no packet-in lost.`,
		Method: fmt.Sprintf(`%d simulated switches send packet-ins, each the first of a flow, at %.0f to %.0f a second in all, as a step, a ramp, bursts, and a
day in ten minutes (quick: in one), to a controller of learning switches whose routing (paths, forwarding) has 1 to %d replicas of %.2f of a processor each, by
cpu_quota. A violation is a packet-in whose answer took longer than %v from when it was due. Instance-seconds are the processes of
routing, ready or not, counted once a second. With a forecast the load is played twice, and the second time counts, for it must have seen a
season. The threshold scales once a second in proportion to the processor use of the last second, within a tenth of its threshold
not at all, and removes replicas after the same cooldown of %v; its threshold, of %v, is the one with the least product of violations and
instance-seconds in a simulation of the same load, with replicas that carry %.0f packet-ins a second and take %v to start.`,
			sources, lowRate, highRate, scaledMost, scaledQuota, scaledTarget, scaledCooldown, thresholds(), replicaCapacity, replicaStart),
		Deviation: `A quota is enforced in periods of 100 ms: a replica that has used its part waits for the rest of the period, however it is
scaled. Learning switches share nothing; replicas that program routes tell each other each of them: of a tenth of a processor each, one
carried 800 new flows a second, three hardly 900. Periods are minutes here where they are days elsewhere.`,
		Runs: 10, QuickRuns: 1, Transports: []string{"grpc"},
		Columns: []string{"at_s", "sent", "late", "lost", "replicas"},
		Cases: func(experiments.Parameters) (list []experiments.Case) {
			for _, s := range shapes() {
				for _, scaler := range scalers() {
					list = append(list, experiments.Case{Name: caseOf(s.name, scaler), Open: func(_ context.Context, c *experiments.Context) (experiments.Subject, error) {
						return experiments.Once(func(ctx context.Context, round int) ([][]string, error) { return play(ctx, c, s, scaler, round) }), nil
					}})
				}
			}
			return list
		},
		Sum: sumAutoscale,
	}
}

func caseOf(load, scaler string) string { return load + ", " + scaler }

// byLoad is what came of a load under a scaler: medians over the rounds.
type byLoad struct {
	Load            string  `json:"load"`
	Scaler          string  `json:"scaler"`
	Threshold       float64 `json:"threshold,omitempty"`
	Sent            float64 `json:"sent"`
	Violations      float64 `json:"violations"`
	InstanceSeconds float64 `json:"instance_seconds"`
	Lost            float64 `json:"lost"`
}

// total returns the median over the rounds of totals.
func total(c *experiments.Context, column, name string, s shape) measure.Interval {
	return measure.Median(totals(c, column, name, s))
}

// more returns by how much the total of a case is above that of another in the same round.
func more(c *experiments.Context, column, name, other string, s shape) measure.Interval {
	list := totals(c, column, name, s)
	for i, v := range totals(c, column, other, s) {
		list[i] -= v
	}
	return measure.Median(list)
}

// totals returns the sum of a column over the seconds of each round.
func totals(c *experiments.Context, column, name string, s shape) []float64 {
	sums := c.Means(column, name, nil)
	for i := range sums {
		sums[i] = math.Round(sums[i] * s.period(c.Quick).Seconds())
	}
	return sums
}

// lostOf is how many packet-ins were lost in all rounds; NaN if there was none.
func lostOf(c *experiments.Context, name string, s shape) float64 {
	return experiments.Total(slices.DeleteFunc(totals(c, "lost", name, s), math.IsNaN))
}

func sumAutoscale(c *experiments.Context) error {
	var list []byLoad
	var panels []figure.Panel
	names := make([]string, len(shapes()))
	violations := figure.Panel{Title: "violations", X: figure.Axis{Names: names}, Y: figure.Axis{Label: "packet-ins"}}
	cost := figure.Panel{Title: "instance-seconds", X: figure.Axis{Names: names}, Y: figure.Axis{Label: "s"}}
	for i, scaler := range scalers() {
		late := figure.Series{Name: scaler, Kind: figure.Bars, Colour: i + 1}
		used := late
		for x, s := range shapes() {
			names[x] = s.name
			name := caseOf(s.name, scaler)
			late.Points = append(late.Points, figure.At(float64(x), total(c, "late", name, s), name))
			used.Points = append(used.Points, figure.At(float64(x), total(c, "replicas", name, s), name))
		}
		violations.Series, cost.Series = append(violations.Series, late), append(cost.Series, used)
	}
	panels = append(panels, violations, cost)
	for _, s := range shapes() {
		of := map[string]byLoad{}
		replicas := figure.Panel{Title: "replicas, " + s.name, X: figure.Axis{Label: "s"}, Y: figure.Axis{Label: "replicas"}}
		for i, scaler := range scalers() {
			name := caseOf(s.name, scaler)
			b := byLoad{
				Load: s.name, Scaler: scaler, Sent: total(c, "sent", name, s).Median, Violations: total(c, "late", name, s).Median,
				InstanceSeconds: total(c, "replicas", name, s).Median, Lost: total(c, "lost", name, s).Median,
			}
			if scaler == scalerThreshold {
				b.Threshold = tuned(s.rates(c.Seed+1, c.Quick)).at
			}
			of[scaler] = b
			if c.Measured(name) > 0 { // else there is no number to show
				list = append(list, b)
			}
			c.Compare(experiments.Claim{What: "packet-ins lost, " + name}.Exactly(lostOf(c, name, s)).AtMost(0))
			line := figure.Series{Name: scaler, Kind: figure.Curve, Colour: i + 1}
			at, n := c.All("at_s", name, nil), c.All("replicas", name, nil)
			for k := range min(len(at), len(n), int(s.period(c.Quick).Seconds())) { // of the first round
				line.Points = append(line.Points, figure.Point{X: at[k], Y: figure.Number(n[k]), Case: name})
			}
			replicas.Series = append(replicas.Series, line)
		}
		by := of[scalerThreshold]
		for _, scaler := range []string{scalerModel, scalerForecast} {
			name, threshold := caseOf(s.name, scaler), caseOf(s.name, scalerThreshold)
			c.Compare(
				experiments.Claim{What: fmt.Sprintf("violations, %s, %s, above those of the threshold of %.0f %%", s.name, scaler, 100*by.Threshold)}.Of(more(c, "late", name, threshold, s)).AtMost(0),
				experiments.Claim{What: fmt.Sprintf("instance-seconds, %s, %s, above those of the threshold", s.name, scaler), Unit: "s"}.Of(more(c, "replicas", name, threshold, s)).AtMost(0),
			)
		}
		panels = append(panels, replicas)
	}
	c.Figure("by_load", list)
	c.Draw(figure.Figure{Name: "autoscaling", Title: "violations and instance-seconds by load and scaler, and replicas of the first round", Panels: panels})
	return nil
}

package scp

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
)

func latency() experiments.Experiment {
	return experiments.Experiment{
		Name: "scp-latency", Title: "latency by the rate of requests: plain forwarding, SDN, and agents",
		Paper: paper, Figure: "Fig. 6",
		Claim: `Without saturation, at 100 to 1,000 requests/s, the 95th percentile of latency with SDN is almost that of direct communication;
independent agents double it, co-located ones quadruple it.`,
		Method: `The setups of scp-throughput. The consumer sends requests at a constant rate over ten connections, whether or not earlier ones
are answered (an open loop); latency counts from when a request was due, so that it is corrected for coordinated omission. In a round each setup is
loaded at each rate for 1.5 s (a quick run: 1 s). p95_ms: 95th percentile of latency.`,
		Deviation: `Agents add to a round trip of some tenths of a millisecond what they compute for a request, tens to hundreds of microseconds, so that their
ratio depends on what the rest takes: with switches in user space and every process on shared processors that is more than in the paper's
containers. On a busy machine the 95th percentile is mostly the wait for a processor.`,
		Runs: 10, QuickRuns: 2, Transports: []string{"grpc"},
		Statements: []experiments.Statement{
			experiments.Value(paperValues.Number("Fig. 6", "to direct", "SDN"), .25).OfRatio().Said("sdn", "almost identical"),
			experiments.Value(paperValues.Number("Fig. 6", "to direct", "independent"), .25).OfRatio().Said("independent", "2 times"),
			experiments.Value(paperValues.Number("Fig. 6", "to direct", "co-located"), .25).OfRatio().Said("co-located", "4 times"),
		},
		Columns: []string{"rate", "p50_ms", "p95_ms", "failed"},
		Cases: func(p experiments.Parameters) (list []experiments.Case) {
			from := &common{Open: func(ctx context.Context) (*bed, error) { return openBed(ctx, "latency", nil) }}
			for _, of := range setups() {
				list = append(list, use(from, of, func(ctx context.Context, u *user) ([][]string, error) { return u.rates(ctx, p.Quick) }))
			}
			return list
		},
		Lasting: true, Sum: sumLatency,
	}
}

// requestRates are the rates of requests, a second.
func requestRates(quick bool) []int {
	if quick {
		return []int{100, 400, 1000}
	}
	return []int{100, 200, 400, 600, 800, 1000}
}

// openTime is how long each load of an open loop lasts.
func openTime(quick bool) time.Duration { return closedTime(quick) }

// rates takes a sample at every rate.
func (u *user) rates(ctx context.Context, quick bool) (rows [][]string, err error) {
	for _, rate := range requestRates(quick) {
		l, err := u.load(ctx, u.of, openTime(quick), "--connections", "10", "--rate", strconv.Itoa(rate))
		if err != nil {
			return nil, u.Failed(err)
		}
		rows = append(rows, []string{strconv.Itoa(rate), written(l.Latency.P50 / 1e3), written(l.Latency.P95 / 1e3), counted(l.failed())})
	}
	return rows, nil
}

// ofRate is one line of scp-latency's by_setup.
type ofRate struct {
	Setup string        `json:"setup"`
	Rate  int           `json:"rate"`
	P50   figure.Number `json:"p50_ms"`
	P95   figure.Number `json:"p95_ms"`
}

// sumLatency compares the setups with the paper and draws them.
func sumLatency(c *experiments.Context) error {
	names := measuredCases(c, setups())
	panel := lines(c, names, "rate", requestRates(c.Quick), "p95_ms", figure.Axis{Label: "requests a second"}, figure.Axis{Label: "95th percentile, ms"})
	c.Draw(figure.Figure{Name: "Fig. 6", Title: "latency by the rate of requests", Panels: []figure.Panel{panel}})
	var list []ofRate
	var failed []float64
	for _, name := range names {
		failed = append(failed, c.All("failed", name, nil)...)
		for _, rate := range requestRates(c.Quick) {
			at := experiments.Where("rate", strconv.Itoa(rate))
			list = append(list, ofRate{name, rate, figure.Number(c.Median("p50_ms", name, at).Median), figure.Number(c.Median("p95_ms", name, at).Median)})
			if name == direct || rate != 100 && rate != 400 && rate != 1000 {
				continue
			}
			claim := experiments.Claim{What: fmt.Sprintf("95th percentile, %s to direct, %d/s", name, rate), Says: c.Statement(kindOf(name))}
			if claim = claim.Of(c.Ratio("p95_ms", name, direct, at)).Beside(name, direct); name == sdn {
				claim = claim.AtMost(1.10)
			}
			c.Compare(claim)
		}
	}
	c.Compare(experiments.Claim{What: "requests that were not answered well"}.Exactly(experiments.Total(failed)).AtMost(0))
	c.Figure("by_setup", list)
	return nil
}

package scp

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/bench/sim/httpload"
	"github.com/weft-sdn/weft/test/measure"
)

// The cases of scp-share.
const (
	byConstant = "simulated, constant"
	byPoisson  = "simulated, poisson"
	byReal     = "real"
)

func share() experiments.Experiment {
	return experiments.Experiment{
		Name: "scp-share", Title: "packets between network functions that go through the controller",
		Paper: paper, Figure: "Fig. 8",
		Claim: `The share of packets that go through the SDN application decreases exponentially as the rate of attachments
increases: less than 6 % at one attachment a second, less than 1 % at 6 a second.`,
		Method: `Simulated: an hour of the paper's model. AMF, AUSF and SMF register; an attachment is four messages between AMF
and AUSF and four between AMF and SMF, a detachment, a minute later, two between AMF and SMF; each message is a packet. What is
discovered is kept for 10 s, and entries end 20 s after they were made. Packets to and from the NRF go through the controller, and those
that meet no entry. Attachments are evenly spaced, as the paper's, or a Poisson process; a round has a phase and pauses of its own.
Real: a lab with real switches, a controller of the plan 5gc, and a simulated AMF, AUSF, SMF and NRF (weft nf) that exchange the
same messages over HTTP/2. In a round, the AMF attaches subscribers at each rate, for 6 s (a quick run: 10 s), the rates in random order; it keeps what it
has discovered for 10 s from one rate to the next. Counted are the IPv4 packets that hosts send, TCP's own among them; of these, those
to and from the controller's front, which answers in place of the NRF, and all packet-ins but those of link discovery go through the
controller. percent_real is the ratio of their sums over all rounds.`,
		Deviation: `The share does not fall exponentially but as one by the rate: two discoveries of two packets in 10 s, and two
pairs with an entry for each way in 20 s, are 0.6 packets a second through the controller whatever the rate, of 10 packets for each attachment: 5.8 % at 1/s,
0.99 % at 6/s. For real, a message is more than a packet (TCP acknowledges, HTTP/2 sends headers and body), among those of discovery too; Weft's entries
of a pair end when they idle, so that one in use costs the controller nothing, and front and switches exchange packets with the NRF besides.`,
		Runs: 10, QuickRuns: 1, Transports: []string{"grpc"},
		Statements: []experiments.Statement{
			experiments.AtMost(paperValues.Number("Fig. 8", "paper", "1"), 0).Said("1/s", "less than 6 %"),
			experiments.AtMost(paperValues.Number("Fig. 8", "paper", "6"), 0).Said("6/s", "less than 1 %"),
			experiments.Value(1, .25).Said("exponentially", "exponentially: from 4/s to 7/s by the same factor as from 1/s to 4/s").
				Because("in the paper's own model 0.6 packets a second go through the controller whatever the rate, so that the share falls as 1 by the rate"),
		},
		Columns: []string{"rate", "through", "packets", "front", "failed"},
		Cases: func(p experiments.Parameters) []experiments.Case {
			return []experiments.Case{modelCase(byConstant, false), modelCase(byPoisson, true), {Name: byReal, Open: openCore}}
		},
		Lasting: true, Sum: sumShare,
	}
}

// shareRates are the rates of attachments, a second.
func shareRates() []int { return []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10} }

// realTime is how long a round has subscribers attach at each rate: ten minutes in
// all; the one round of a quick run has what is discovered expire once.
func realTime(quick bool) time.Duration {
	if quick {
		return 10 * time.Second
	}
	return 6 * time.Second
}

// modelCase is the simulation.
func modelCase(name string, poisson bool) experiments.Case {
	return experiments.Case{Name: name, Open: func(_ context.Context, c *experiments.Context) (experiments.Subject, error) {
		return experiments.Once(func(_ context.Context, round int) (rows [][]string, err error) {
			for _, rate := range shareRates() {
				draw := rand.New(rand.NewPCG(c.Seed, uint64(100*round+rate)))
				m := model{httpload.Arrivals{Rate: float64(rate), Poisson: poisson, Seed: draw.Uint64()}, modelValidity, modelTimeout, modelStay, modelLength}
				p := m.run(draw)
				rows = append(rows, []string{strconv.Itoa(rate), counted(p.through), counted(p.all), "", ""})
			}
			return rows, nil
		}), nil
	}}
}

// shared is one line of by_rate, in percent.
type shared struct {
	Rate    int           `json:"rate"`
	Percent figure.Number `json:"percent"`
	Poisson figure.Number `json:"percent_poisson"`
	Real    figure.Number `json:"percent_real"`
	Packets figure.Number `json:"packets_real"` // the real ones: all,
	Through figure.Number `json:"through_real"` // through the controller,
	Front   figure.Number `json:"front_real"`   // and by its front
}

// percents returns the share in each round, in percent.
func percents(c *experiments.Context, name string, rate int) []float64 {
	at := experiments.Where("rate", strconv.Itoa(rate))
	list := c.Rounds("through", name, at)
	for i, all := range c.Rounds("packets", name, at) {
		list[i] *= 100 / all
	}
	return list
}

// pooled returns the share of all rounds together, with its interval, and of how many
// packets it is; NaN if there is none.
func pooled(c *experiments.Context, name string, rate int) (of measure.Interval, through, all float64) {
	at := experiments.Where("rate", strconv.Itoa(rate))
	through, all = experiments.Total(c.All("through", name, at)), experiments.Total(c.All("packets", name, at))
	of = measure.Pooled(c.Rounds("through", name, at), c.Rounds("packets", name, at))
	of.Median *= 100
	for i := range of.CI95 {
		of.CI95[i] *= 100
	}
	return of, through, all
}

// sumShare compares the shares with the paper's and draws them.
func sumShare(c *experiments.Context) error {
	panel := figure.Panel{X: figure.Axis{Label: "attachments a second"}, Y: figure.Axis{Label: "packets through the controller, %"}}
	for i, name := range []string{byConstant, byPoisson, byReal} {
		line := figure.Series{Name: name, Kind: figure.Line, Colour: i + 1}
		for _, rate := range shareRates() {
			if of, _, all := pooled(c, name, rate); all > 0 {
				line.Points = append(line.Points, figure.At(float64(rate), of, name))
			}
		}
		panel.Series = append(panel.Series, line)
	}
	panel.Series = append(panel.Series, paperValues.Series("Fig. 8", "paper", figure.Dots, panel.X))
	c.Draw(figure.Figure{Name: "Fig. 8", Title: "packets that go through the controller", Panels: []figure.Panel{panel}})

	for _, rate := range []int{1, 6} {
		for _, name := range []string{byConstant, byPoisson, byReal} {
			of, _, _ := pooled(c, name, rate)
			c.Compare(experiments.Claim{What: fmt.Sprintf("through the controller, %d/s, %s", rate, name), Says: c.Statement(fmt.Sprintf("%d/s", rate)), Unit: "%", Seeded: name != byReal}.Of(of))
		}
	}
	var list []shared
	at := func(name string, rate int) float64 { return measure.Median(percents(c, name, rate)).Median }
	for _, rate := range shareRates() {
		of, through, all := pooled(c, byReal, rate)
		front := experiments.Total(c.All("front", byReal, experiments.Where("rate", strconv.Itoa(rate))))
		list = append(list, shared{rate, figure.Number(at(byConstant, rate)), figure.Number(at(byPoisson, rate)), figure.Number(of.Median),
			figure.Number(all), figure.Number(through), figure.Number(front)})
	}
	failed := experiments.Total(c.All("failed", byReal, nil))
	c.Compare(experiments.Claim{What: "attachments and detachments that failed, real"}.Exactly(failed).AtMost(0))
	c.Figure("by_rate", list)
	falls(c)
	return nil
}

// falls says how the share falls with the rate. An exponential falls by the same factor
// wherever the rate grows by the same; the power of the rate is -1 of one by the rate.
func falls(c *experiments.Context) {
	for _, name := range []string{byConstant, byReal} {
		one, _, _ := pooled(c, name, 1)
		ten, _, _ := pooled(c, name, 10)
		c.Compare(experiments.Claim{
			What: "power of the rate as which the share falls, 1/s to 10/s, " + name, Ours: math.Log10(ten.Median / one.Median), Count: one.Count,
		})
		low, middle, high := percents(c, name, 1), percents(c, name, 4), percents(c, name, 7)
		for i := range low {
			low[i], middle[i] = middle[i]/low[i], high[i]/middle[i]
		}
		c.Compare(experiments.Claim{What: "factor from 1/s to 4/s, to that from 4/s to 7/s, " + name, Says: c.Statement("exponentially"), Seeded: name != byReal}.Of(measure.Ratio(low, middle)))
	}
}

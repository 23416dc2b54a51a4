package scp

import (
	"context"
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
	Packets float64       `json:"packets_real"` // the real ones: all,
	Through float64       `json:"through_real"` // through the controller,
	Front   float64       `json:"front_real"`   // and by its front
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

// pooled returns the share of all rounds together, with the interval of those of
// rounds, and of how many packets it is.
func pooled(c *experiments.Context, name string, rate int) (of measure.Interval, through, all float64) {
	at := experiments.Where("rate", strconv.Itoa(rate))
	for _, v := range c.All("through", name, at) {
		through += v
	}
	for _, v := range c.All("packets", name, at) {
		all += v
	}
	of = measure.Median(percents(c, name, rate))
	of.Median = 100 * experiments.Ratio(through, all)
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

	for _, claim := range []struct {
		rate  int
		paper string
		most  float64
	}{{1, "less than 6 %", 6}, {6, "less than 1 %", 1}} {
		for _, name := range []string{byConstant, byPoisson, byReal} {
			of, _, _ := pooled(c, name, claim.rate)
			line := experiments.Claim{What: "through the controller, " + strconv.Itoa(claim.rate) + "/s, " + name, Paper: claim.paper, Value: claim.most, Unit: "%"}.Of(of)
			if name == byConstant {
				line = line.AtMost(claim.most)
			}
			c.Compare(line)
		}
	}
	var list []shared
	at := func(name string, rate int) float64 { return measure.Median(percents(c, name, rate)).Median }
	for _, rate := range shareRates() {
		of, through, all := pooled(c, byReal, rate)
		front := 0.0
		for _, v := range c.All("front", byReal, experiments.Where("rate", strconv.Itoa(rate))) {
			front += v
		}
		list = append(list, shared{rate, figure.Number(at(byConstant, rate)), figure.Number(at(byPoisson, rate)), figure.Number(of.Median), all, through, front})
	}
	failed := math.NaN()
	if c.Measured(byReal) > 0 {
		failed = 0
	}
	for _, v := range c.All("failed", byReal, nil) {
		failed += v
	}
	c.Compare(experiments.Claim{What: "attachments and detachments that failed, real", Paper: "-", Ours: failed}.AtMost(0))
	c.Figure("by_rate", list)
	falls(c)
	return nil
}

// falls says how the share falls with the rate: as its power, of which -1 is one
// by the rate; an exponential would be none.
func falls(c *experiments.Context) {
	for _, name := range []string{byConstant, byReal} {
		one, _, _ := pooled(c, name, 1)
		ten, _, _ := pooled(c, name, 10)
		c.Compare(experiments.Claim{
			What: "power of the rate as which the share falls, 1/s to 10/s, " + name, Paper: "exponentially", Ours: math.Log10(ten.Median / one.Median),
		})
	}
}

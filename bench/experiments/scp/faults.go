package scp

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
)

// Faults tries each fault once in a plan, single or split, with a weft binary, and
// has each outcome reported.
func Faults(ctx context.Context, weft, plan string, report func(Outcome)) error {
	b, err := openFaults(ctx, weft, plan)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }() // the controller's processes have been killed before
	for _, f := range faults() {
		o, err := b.try(ctx, f)
		if err != nil {
			return err
		}
		report(o)
	}
	return nil
}

// try has a fault happen under the load of two consumers.
func (b *faultBed) try(ctx context.Context, f fault) (o Outcome, err error) {
	o = Outcome{Fault: f.name, Plan: b.plan}
	if err := b.settle(ctx); err != nil {
		return o, fmt.Errorf("before %s: %w", f.name, err)
	}
	loads := []*pairLoad{{host: consumerHost}, {host: otherHost}}
	for _, p := range loads {
		if p.first, err = b.serves(ctx, p.host); err != nil {
			return o, fmt.Errorf("before %s: %w", f.name, err)
		}
	}
	x := b.producers[0]
	if loads[0].first != x.id {
		x = b.producers[1]
	}
	running, end := context.WithCancel(ctx)
	defer end()
	var work sync.WaitGroup
	for _, p := range loads {
		work.Go(func() { b.load(running, p) })
	}
	time.Sleep(100 * time.Millisecond)
	var wrong []string
	note := func(err error) {
		if err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	note(f.strike(ctx, b, x))
	if o.Answers = b.answersWithin(ctx, 20*time.Second); o.Answers == 0 {
		wrong = append(wrong, "discovery does not answer")
	}
	if f.check != nil {
		note(f.check(ctx, b, x))
	}
	time.Sleep(200 * time.Millisecond)
	if f.mend != nil {
		note(f.mend(ctx, b, x))
	}
	end()
	work.Wait()
	for _, p := range loads {
		o.Sent, o.Failed = o.Sent+p.sent, o.Failed+p.failed
		if p.moved || p.broken {
			o.Broken++
		}
		if p.failed > 0 && !f.fails {
			wrong = append(wrong, fmt.Sprintf("of %s: %d of %d requests failed: %s", p.host, p.failed, p.sent, p.why))
		}
		if (p.moved || p.broken) && !f.moves {
			wrong = append(wrong, "the pair of "+p.host+" is broken")
		}
	}
	o.Wrong = strings.Join(wrong, "; ")
	return o, nil
}

// answersWithin returns after what time discovery answers with the end point, asked
// every 20 ms whether or not earlier ones have been answered; 0 if it does not.
func (b *faultBed) answersWithin(ctx context.Context, most time.Duration) time.Duration {
	return firstOf(ctx, most, func(ctx context.Context) error {
		at, err := b.discover(ctx, strangerHost, "")
		if err == nil && at != b.vip {
			err = fmt.Errorf("%v", at)
		}
		return err
	})
}

// Sample tries every fault once.
func (b *faultBed) Sample(ctx context.Context, _ int) (rows [][]string, err error) {
	for _, f := range faults() {
		o, err := b.try(ctx, f)
		if err != nil {
			return nil, err
		}
		if o.Answers > mark && o.Wrong == "" {
			o.Wrong = fmt.Sprintf("discovery answers after %.1f s", o.Answers.Seconds())
		}
		rows = append(rows, o.row())
	}
	return rows, nil
}

func faultExperiment() experiments.Experiment {
	return experiments.Experiment{
		Name: "scp-faults", Title: "faults of controller, NRF, producers and consumers", Paper: paper, Figure: "-",
		Claim: `The paper has no measurement of faults. It says that packets between network functions go on in the switches while the SDN
application is away.`,
		Method: `A core of an NRF, two producers and two consumers on four switches, in which each fault happens once in a round, one after the
other: in the plan single, and in split with scp in a process of its own. Meanwhile both consumers send requests to the end point every 10 ms,
by a connection each, and by one that is kept. sent, failed: these requests. broken: of the two pairs, those that have had another producer, or
whose kept connection has ended. answers_ms: from the fault, or the end of the attack, until discovery answers with the same end point, asked every
20 ms from a host of its own, whether or not earlier ones are answered. With --core open5gs two AUSF, two UDM and the NRF are Open5GS's, and
answers_ms is until an authentication succeeds, which an AMF sends to the end point of the AUSF; requests are authentications. bad: whether anything is not as it should be, which verdict says: a fault of a
producer may fail its requests and move its pairs, all others may not; discovery answers within a second; what is not to be accepted is refused.`,
		Deviation: `NRF, producers and consumers are simulated, in one process, so that they can be silent, wrong or gone at will. Heartbeats are sent
every second, may be two apart, and late by a second (scp.margin), so that a round does not take long; what is discovered is valid for a second.`,
		Runs: 10, QuickRuns: 1, Transports: []string{"grpc"},
		Columns: []string{"fault", "sent", "failed", "broken", "answers_ms", "bad", "verdict"},
		Cores:   []string{realCore},
		Cases: func(p experiments.Parameters) (list []experiments.Case) {
			if p.Core == realCore {
				return []experiments.Case{{Name: realCore, Open: func(ctx context.Context, _ *experiments.Context) (experiments.Subject, error) {
					b, err := openReal(ctx)
					if err != nil {
						return nil, err
					}
					return b, nil
				}}}
			}
			for _, plan := range faultPlans() {
				list = append(list, experiments.Case{Name: plan, Open: func(ctx context.Context, _ *experiments.Context) (experiments.Subject, error) {
					b, err := openFaults(ctx, "", plan)
					if err != nil {
						return nil, err
					}
					return b, nil
				}})
			}
			return list
		},
		Sum: sumFaults,
	}
}

// ofFault is one line of by_fault.
type ofFault struct {
	Fault   string          `json:"fault"`
	Plan    string          `json:"plan"`
	Sent    float64         `json:"sent"`
	Failed  float64         `json:"failed"`
	Broken  float64         `json:"pairs_broken"`
	Answers figure.Number   `json:"answers_ms"`
	CI95    []figure.Number `json:"answers_ms_ci95"`
	Verdict string          `json:"verdict"`
}

// sumFaults lists the faults, and says which are not as they should be.
func sumFaults(c *experiments.Context) error {
	panel := figure.Panel{X: figure.Axis{Label: "fault, in the order of by_fault"}, Y: figure.Axis{Label: "discovery answers after, ms"}}
	var list []ofFault
	plans, names := faultPlans(), []string{}
	for _, f := range faults() {
		names = append(names, f.name)
	}
	if c.Core == realCore {
		plans, names = []string{realCore}, nil
		for _, f := range realFaults() {
			names = append(names, f.name)
		}
	}
	for i, plan := range plans {
		dots := figure.Series{Name: plan, Kind: figure.Dots, Colour: i + 1}
		bad := math.NaN()
		for n, name := range names {
			where := experiments.Where("fault", name)
			sum := func(column string) (all float64) {
				for _, v := range c.All(column, plan, where) {
					all += v
				}
				return all
			}
			texts := c.Texts("verdict", plan, where)
			if len(texts) == 0 {
				continue
			}
			of := c.Median("answers_ms", plan, where)
			dots.Points = append(dots.Points, figure.At(float64(n+1), of, plan))
			line := ofFault{Fault: name, Plan: plan, Sent: sum("sent"), Failed: sum("failed"), Broken: sum("broken"), Answers: figure.Number(of.Median), Verdict: "held"}
			for _, v := range of.CI95 {
				line.CI95 = append(line.CI95, figure.Number(v))
			}
			for _, text := range texts {
				if text != "held" {
					line.Verdict = text
				}
			}
			list = append(list, line)
			if math.IsNaN(bad) {
				bad = 0
			}
			bad += sum("bad")
			if plan != realCore && strings.Contains(name, "killed -9") {
				c.Compare(experiments.Claim{Figure: "-", What: name + ", discovery answers again, " + plan, Paper: "-", Unit: "ms"}.Of(of).AtMost(float64(mark.Milliseconds())),
					experiments.Claim{Figure: "-", What: name + ", requests of pairs that failed, " + plan}.Exactly(line.Failed).AtMost(0))
			}
		}
		c.Compare(experiments.Claim{Figure: "-", What: "faults that are not held, " + plan}.Exactly(bad).AtMost(0))
		panel.Series = append(panel.Series, dots)
	}
	c.Draw(figure.Figure{Name: "-", Title: "discovery after a fault", Panels: []figure.Panel{panel}})
	c.Figure("by_fault", list)
	return nil
}

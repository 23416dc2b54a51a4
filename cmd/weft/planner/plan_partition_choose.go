package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/cmd/weft/planning"
	"github.com/weft-sdn/weft/internal/partitioned"
	"github.com/weft-sdn/weft/plan/converge"
	"github.com/weft-sdn/weft/plan/partition"
)

// convergence is the choice of a number of partitions.
type convergence struct {
	Partitions int                 `json:"partitions"` // the choice
	Best       int                 `json:"best"`       // with the least time
	Slack      float64             `json:"slack"`
	After      string              `json:"after"`
	Failures   int                 `json:"failures"`
	Constants  *converge.Constants `json:"constants,omitempty"` // none: nothing was measured
	Curve      []convergencePoint  `json:"curve"`
	Left       []string            `json:"left_out,omitempty"` // numbers for which there are no partitions, and why
}

// convergencePoint is one number of partitions.
type convergencePoint struct {
	Partitions int      `json:"partitions"`
	Borders    int      `json:"borders"`
	Symmetric  bool     `json:"symmetric"`
	Cost       float64  `json:"cost"` // paper 001 §3.2
	Predicted  float64  `json:"predicted_ms,omitempty"`
	Measured   float64  `json:"measured_ms,omitempty"`
	Fitted     bool     `json:"fitted,omitempty"` // the model was fitted to this measurement
	Error      *float64 `json:"error,omitempty"`  // of the prediction

	shape converge.Shape
	cut   partition.Result
}

// measuredMost bounds the numbers of partitions that are measured.
const measuredMost = 8

// choosePartitions chooses how many partitions a network is to have. What o says
// of their number does not count.
func choosePartitions(ctx context.Context, g *partition.Graph, o partition.Options, c planning.Choose, say func(string, ...any)) (*convergence, error) {
	switch {
	case c.Max < 1 || c.Max > 256:
		return nil, fmt.Errorf("--max %d: want 1 to 256", c.Max)
	case c.Failures < 0 || c.Failures > 100_000:
		return nil, fmt.Errorf("--failures %d: want 0 to 100000", c.Failures)
	}
	if c.After != planning.AfterFailure && c.After != planning.AfterStart {
		return nil, fmt.Errorf("--after %q: want %s or %s", c.After, planning.AfterFailure, planning.AfterStart)
	}
	x := &convergence{Slack: c.Slack, After: c.After, Failures: c.Failures}
	if err := x.cuts(ctx, g, o, c.Max, say); err != nil {
		return nil, err
	}
	constants := converge.Constants{Intra: 1, Border: 1, External: 1} // the paper's cost
	if c.Failures > 0 && len(g.Links) > 0 && len(x.Curve) > 1 {
		fitted, err := x.measure(ctx, g, o.Seed, say)
		if err != nil {
			return nil, err
		}
		constants, x.Constants = fitted, &fitted
	}
	curve := make([]converge.Point, len(x.Curve))
	for i := range x.Curve {
		p := &x.Curve[i]
		curve[i] = converge.Point{Partitions: p.Partitions, Time: constants.Predict(p.shape)}
		if x.Constants != nil {
			p.Predicted = curve[i].Time
		}
		if p.Measured > 0 {
			e := p.Predicted/p.Measured - 1
			p.Error = &e
			curve[i].Time = p.Measured // which is better than any prediction
		}
	}
	choice, err := converge.Choose(curve, c.Slack)
	if err != nil {
		return nil, fmt.Errorf("--slack: %w", err)
	}
	x.Partitions, x.Best = choice.Partitions, choice.Best
	return x, nil
}

// cuts finds partitions for every number that is looked at: those that keep the
// network symmetric if it has a structure, else all.
func (x *convergence) cuts(ctx context.Context, g *partition.Graph, o partition.Options, most int, say func(string, ...any)) error {
	numbers, err := partition.Symmetric(g, o)
	if err != nil {
		return err
	}
	if len(numbers) == 1 || o.Method == partition.ByCut {
		numbers = nil
		for p := 1; p <= min(most, len(g.Switches)); p++ {
			numbers = append(numbers, p)
		}
	}
	var last error
	for _, p := range numbers {
		if p > most {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		o.Partitions, o.Rounds = p, 2
		cut, err := partition.Partition(g, o)
		var no *partition.Infeasible
		if errors.As(err, &no) {
			last = err
			x.Left = append(x.Left, fmt.Sprintf("%d: %v", p, err))
			continue
		}
		if err != nil {
			return err
		}
		s := converge.ShapeOf(g, cut).LinkFailures(g, cut)
		if x.After == planning.AfterStart {
			s.Failures = 1 // all steps of eq. 1
		}
		x.Curve = append(x.Curve, convergencePoint{Partitions: p, Borders: len(cut.Borders), Symmetric: cut.Symmetric, Cost: s.Expected().Cost(), shape: s, cut: cut})
	}
	if len(x.Curve) == 0 {
		return fmt.Errorf("no number of partitions up to %d keeps all demands, for the last: %w", most, last)
	}
	say("%d numbers of partitions are possible, from %d to %d", len(x.Curve), x.Curve[0].Partitions, x.Curve[len(x.Curve)-1].Partitions)
	return nil
}

// measure takes links down for numbers of partitions over the whole curve, and
// fits the model to every other of these, the ends among them.
func (x *convergence) measure(ctx context.Context, g *partition.Graph, seed uint64, say func(string, ...any)) (converge.Constants, error) {
	var at []int
	n := min(len(x.Curve), measuredMost)
	for i := range n {
		at = append(at, i*(len(x.Curve)-1)/(n-1))
	}
	var list []converge.Measurement
	for i, j := range at {
		p := &x.Curve[j]
		var m *partitioned.Times
		var err error
		if x.After == planning.AfterStart {
			m, err = partitioned.MeasureStart(ctx, g, p.cut)
		} else {
			m, err = partitioned.MeasureFailures(ctx, g, p.cut, x.Failures, seed)
		}
		if err != nil {
			return converge.Constants{}, err
		}
		say("%s: %.3f ms after %s: inside %.3f, messages %.3f, outside %.3f", partitionCount(p.Partitions), m.Mean,
			map[string]string{planning.AfterFailure: fmt.Sprintf("a failure, mean of %d", m.Failures), planning.AfterStart: "the start"}[x.After], m.Inside, m.Messages, m.Outside)
		p.Measured = m.Mean
		if i%2 == 0 || i == n-1 || n < 4 {
			p.Fitted = true
			list = append(list, converge.Measurement{Shape: p.shape, Time: m.Mean})
		}
	}
	return converge.Calibrate(slices.Clip(list))
}

// partitionCount is a number of partitions in words.
func partitionCount(n int) string {
	if n == 1 {
		return "1 partition"
	}
	return fmt.Sprintf("%d partitions", n)
}

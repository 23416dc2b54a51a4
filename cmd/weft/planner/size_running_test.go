package planner

import (
	"math"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/weft-sdn/weft/api"
)

// TestTakeWork checks what is taken from the live figures of two replicas.
func TestTakeWork(t *testing.T) {
	work := func(rate float64) *api.Work {
		return &api.Work{Service: "forwarding", Work: "stage", Measured: 100, Seconds: 0.02, SecondsSquares: 100 * 2 * 0.0002 * 0.0002, Rate: rate,
			Dispersion: []*api.WorkDispersion{{Seconds: 0.01, Index: 2}, {Seconds: 1, Index: 3}}}
	}
	m := &api.GetWorkResponse{Processes: []*api.ProcessWork{
		{Process: "a", Work: []*api.Work{work(300)}},
		{Process: "b", Work: []*api.Work{work(100), {Service: "paths", Work: "paths.FindPath", Measured: 5, Rate: 1000}}},
	}}
	var c sizeConfig
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.flags(f)
	c.of = "forwarding"
	if err := c.takeWork(f, m); err != nil {
		t.Fatal(err)
	}
	q := c.question
	if math.Abs(q.Service-0.0002) > 1e-12 || math.Abs(q.ServiceSCV-1) > 1e-9 || q.Rate != 400 || len(q.Dispersion) != 2 || q.Dispersion[0].Index != 3 || q.Dispersion[1].Index != 5 {
		t.Errorf("%+v", q)
	}
	if err := q.Check(); err != nil {
		t.Error(err)
	}
	c.of = "paths"
	if err := c.takeWork(f, m); err == nil || !strings.Contains(err.Error(), "packets were measured since its process started: forwarding") {
		t.Error(err)
	}
}

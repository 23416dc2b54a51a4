package planner

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/weft-sdn/weft/api"
)

// Histograms of files, batches, and what is wrong with them.
func TestSizeByTimes(t *testing.T) {
	const times = "# measured\n1ms 1ms 90\n10ms 10 # rarely\n"
	out, err := runs(t, SizeCommand(), "--service-times", times, "--rate", "100", "--instances", "1", "--percentile", "99", "-o", "json")
	var r SizeReport
	if err != nil || json.Unmarshal([]byte(out), &r) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if p99 := *r.Best.SimulatedMS; p99 < 10 || p99 > 21 || r.RangeMS != nil {
		t.Errorf("p99 %v, range %v", p99, r.RangeMS)
	}
	if out, err = runs(t, SizeCommand(), "--service-times", times, "--rate", "100", "--instances", "1", "-o", "json"); err != nil || json.Unmarshal([]byte(out), &r) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if want := 1.9 + 0.1*(0.9+10)/2/(1-0.19); math.Abs(*r.Best.SimulatedMS/want-1) > 0.02 || math.Abs(*r.Best.FormulaMS/want-1) > 0.001 {
		t.Errorf("%+v, by Pollaczek and Khinchine %v ms", r.Best, want)
	}
	if out, err = runs(t, SizeCommand(), "--service-times", "2ms", "--rate", "250", "--batch", "4", "--instances", "1", "-o", "json"); err != nil || json.Unmarshal([]byte(out), &r) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if want := 2 + 0.0625*112/2/0.5 + 6; math.Abs(*r.Best.SimulatedMS/want-1) > 0.02 || math.Abs(*r.Best.FormulaMS/want-1) > 0.01 {
		t.Errorf("batches: %+v, exactly %v ms", r.Best, want)
	}
	for _, c := range []struct{ text, flags, want string }{
		{"", "", "want times above 0"},
		{"1ms\nsoon\n", "", `:2: "soon": want a time`},
		{"2ms 1ms 5\n", "", `:1: "2ms 1ms 5": want a time`},
		{"1ms -5\n", "", `:1: "1ms -5"`},
		{"1ms\n", "--service-scv 2", "--service-times and --service-scv: give one"},
		{"1ms\n", "--batch many", `--batch "many": want a mean number`},
		{"1ms\n", "--batch 0.5", "--batch 0.5: want 1 to"},
		{"1ms\n", "--batch 4:fixed", "4:constant"},
		{"1ms\n", "--batch 4 --dispersion 1s=2", "--dispersion: it says how packets come"},
		{"1ms\n", "--arrival-times nowhere", "--arrival-times: "},
	} {
		_, err := runs(t, SizeCommand(), "--service-times", c.text, append([]string{"--rate", "10"}, strings.Fields(c.flags)...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %s: %v, want %q", c.text, c.flags, err, c.want)
		}
	}
}

// Where only a mean and a variation are given, the range of a percentile is said; where
// arrivals cannot be simulated as they were measured, that.
func TestSizeSaysWhatIsNotCertain(t *testing.T) {
	run := func(flags string) (r SizeReport) {
		t.Helper()
		out, err := runs(t, SizeCommand(), "--arrival-times", "1ms", append(strings.Fields(flags), "--instances", "1", "-o", "json")...)
		if err != nil || json.Unmarshal([]byte(out), &r) != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return r
	}
	r := run("--rate 500 --service 1ms --service-scv 4 --percentile 99")
	if p := *r.Best.SimulatedMS; len(r.RangeMS) != 2 || r.RangeMS[0] > 0.9*p || r.RangeMS[1] < p {
		t.Errorf("p99 %v in %v", p, r.RangeMS)
	}
	c, f := sizeConfig{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	c.flags(f)
	c.of = "forwarding"
	work := &api.Work{Service: "forwarding", Work: "stage", Measured: 100, Seconds: 0.3, SecondsSquares: 0.01, Rate: 10, Times: []*api.WorkTimes{{From: 0.001, To: 0.001, Count: 90}, {From: 0.009, To: 0.009, Count: 10}}}
	if err := c.takeWork(f, &api.GetWorkResponse{Processes: []*api.ProcessWork{{Work: []*api.Work{work}}}}); err != nil || c.question.Times == nil || math.Abs(c.question.Service-0.003) > 1e-12 {
		t.Errorf("%v, %+v", err, c.question)
	}
	if err := c.question.Check(); err != nil || c.question.ServiceSCV < 1.5 {
		t.Errorf("%v, %+v", err, c.question)
	}
}

package hydra

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/experimentstest"
)

// rehearsed returns samples as an experiment takes them.
func rehearsed(experiment, name string, round int) (rows [][]string) {
	v := func(scale float64) string { return number(scale * (1 + float64(round)/10)) }
	switch experiment {
	case "hydra-convergence":
		_, n, _ := strings.Cut(name, ", ")
		partitions, _ := strconv.ParseFloat(n, 64)
		for _, mode := range []string{repaired, recomputed} {
			for _, kind := range failureKinds() {
				rows = append(rows, []string{mode, kind, v(100/partitions + partitions), v(1), "3", "100", "0", "1", "1.5"})
			}
		}
	case "hydra-demand":
		for _, d := range demandControllers(false) {
			if d.String() != name {
				continue
			}
			for _, k := range d.kinds {
				for _, service := range []string{processRow, "paths", "forwarding", "firewall", "heartbeat", "southbound", "hosts", "discovery"} {
					rows = append(rows, []string{k.kind, strconv.Itoa(k.rate), service, v(5), v(30), "10", "20"})
				}
			}
		}
	case "hydra-heartbeat":
		for _, b := range beatCases(name) {
			for _, of := range b.samples() {
				rows = append(rows, append([]string{strconv.Itoa(of.rate), of.asked, of.order, strconv.Itoa(cmp.Or(of.load, nearSaturation))}, rehearsedBeats(of)...))
			}
		}
	case "hydra-throughput":
		most := 50_000
		if name == generatorOnly {
			most = 5_000_000
		}
		for _, load := range injected(false) {
			rows = append(rows, []string{strconv.Itoa(load), v(float64(min(load, most)) + 1000), "0", "100", "1", "2", v(70_000)})
		}
	case "hydra-map":
		crossing := 1.0
		if name != sameProcess {
			crossing = 20
		}
		for _, load := range mapLoads {
			for _, t := range computeTimes(false) {
				us := float64(t.Nanoseconds())/1e3 + crossing
				rows = append(rows, []string{load.name, micros(t), v(1e6 / us), v(1e6 / us), v(us), v(3 * us)})
			}
		}
	case "hydra-placement":
		for i, method := range []string{byWeft, bySearch, byMetis, byRandom, byTopological} {
			rows = append(rows, []string{method, v(float64(10 + i)), strconv.Itoa(i / 3), "9", "true", "0.1"})
		}
	}
	return rows
}

func TestExperiments(t *testing.T) {
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			experimentstest.Rehearse(t, e, func(name string, round int) [][]string { return rehearsed(e.Name, name, round) })
		})
	}
}

// What the paper is said to show can be read.
func TestPaper(t *testing.T) {
	if rows, err := paperValues.Rows(); err != nil || len(rows) == 0 {
		t.Errorf("%d lines, %v", len(rows), err)
	}
}

// The per-core ratio of Fig. 6 is half of that of the partitions: two processors
// against one.
func TestPerCore(t *testing.T) {
	s := experimentstest.Rehearse(t, throughput(), func(name string, round int) [][]string {
		rows := rehearsed("hydra-throughput", name, round)
		if strings.HasPrefix(name, string(hybridSlicing)) {
			for _, row := range rows {
				row[1] = row[1][:1] + "0" + row[1][1:]
			}
		}
		return rows
	})
	found := map[string]experiments.Claim{}
	for _, c := range s.Claims {
		found[c.What] = c
	}
	whole, core := found["hybrid of 8 to topological of 16, a partition each"], found["the same for each core: two and one"]
	if !(whole.Ours > 1) || core.Ours != whole.Ours/2 || core.Value != 0.75 || whole.Says == nil {
		t.Errorf("a partition each %+v, each core %+v", whole, core)
	}
}

// Where the generator is what limits, the comparison has no verdict.
func TestVerdictOfCensoredLoad(t *testing.T) {
	e := throughput()
	cases := e.Cases
	e.Cases = func(p experiments.Parameters) []experiments.Case {
		list := cases(p)
		for i, of := range list {
			list[i].Open = func(context.Context, *experiments.Context) (experiments.Subject, error) {
				return experiments.Once(func(_ context.Context, round int) (rows [][]string, err error) {
					for _, load := range injected(false) {
						achieved := min(load, 692_000) + round
						if strings.HasPrefix(of.Name, string(topologicalSlicing)) {
							achieved /= 2
						}
						rows = append(rows, []string{strconv.Itoa(load), strconv.Itoa(achieved), "0", "100", "1", "2", "3"})
					}
					return rows, nil
				}), nil
			}
		}
		return list
	}
	s, err := experiments.Run(t.Context(), e, experiments.Parameters{Transports: e.Transports, Runs: 6}, t.TempDir(), 0, &experiments.Progress{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Claims {
		if c.Says != nil && (c.Reproduced() != experiments.VerdictNone || !strings.Contains(c.Cause(), "that the generator can inject")) {
			t.Errorf("%s: %s, %q; want no verdict, because of the generator", c.What, c.Reproduced(), c.Cause())
		}
	}
}

// Computing takes the more the longer it is told to.
func TestCompute(t *testing.T) {
	each := calibrate()
	if !(each > 0) || each > 1e5 {
		t.Errorf("a turn takes %v ns", each)
	}
	if short, long := mapLoads[0].span(time.Microsecond), mapLoads[1].span(time.Millisecond); short != 500*time.Millisecond || long < 2*time.Second {
		t.Errorf("measured for %v and %v", short, long)
	}
	for _, c := range []spinConfig{{-1}, {1 << 40}} {
		if c.Validate() == nil {
			t.Errorf("%v is allowed", c.Cost)
		}
	}
}

// Package experimentstest rehearses experiments: it runs them on samples that
// nobody measured. Tests of experiments import it.
package experimentstest

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
)

// Rehearse runs an experiment whose samples of a case and a round are what rows
// returns, once with all cases and once with its first one failing, and checks
// what is asked of every experiment: the plot shows every case, every line of
// the table belongs to a figure that is drawn or to none of the paper's, the
// summary is complete, and a case that fails costs the others nothing.
func Rehearse(t *testing.T, e experiments.Experiment, rows func(name string, round int) [][]string) experiments.Summary {
	t.Helper()
	if e.Name == "" || e.Title == "" || e.Paper == "" || e.Figure == "" || e.Claim == "" || e.Method == "" || e.Deviation == "" || e.QuickRuns < 1 || len(e.Transports) == 0 {
		t.Errorf("experiment %q does not say all that is asked of it: %+v", e.Name, e)
	}
	if e.Runs < 10 {
		t.Errorf("%s: a full run has %d rounds, want 10 or more", e.Name, e.Runs)
	}
	p := experiments.Parameters{Transports: e.Transports, Runs: 6, Seed: 1, Build: "rehearsal"}
	var names []string
	run := func(failing string) experiments.Summary {
		played := e
		played.Cases = func(p experiments.Parameters) []experiments.Case {
			list := e.Cases(p)
			names = nil
			for i := range list {
				name := list[i].Name
				names = append(names, name)
				list[i].Open = func(context.Context, *experiments.Context) (experiments.Subject, error) {
					if name == failing {
						return nil, errors.New("out of order")
					}
					return experiments.Once(func(_ context.Context, round int) ([][]string, error) { return rows(name, round), nil }), nil
				}
			}
			return list
		}
		s, err := experiments.Run(t.Context(), played, p, t.TempDir(), 0, &experiments.Progress{})
		if err != nil {
			t.Fatalf("%s, %q failing: %v", e.Name, failing, err)
		}
		if file := os.Getenv("PLOTS"); file != "" && failing == "" { // to look at them
			b, _ := os.ReadFile(filepath.Join(s.Dir, "plot.svg"))
			_ = os.WriteFile(filepath.Join(file, e.Name+".svg"), b, 0o644)
		}
		return s
	}
	s := run("")
	checkStatements(t, e, s)
	shown := figure.Cases(s.Plots)
	for _, name := range names {
		if !slices.Contains(shown, name) {
			t.Errorf("%s: case %q is in no plot; there are %q", e.Name, name, shown)
		}
	}
	var figures []string
	for _, f := range s.Plots {
		figures = append(figures, f.Name)
	}
	for _, c := range s.Claims {
		if !slices.Contains(figures, c.Figure) {
			t.Errorf("%s: %q is of %q, which is not drawn; there are %q", e.Name, c.What, c.Figure, figures)
		}
	}
	if b, err := json.Marshal(s); err != nil || len(b) == 0 {
		t.Errorf("%s: %v", e.Name, err)
	}
	if len(s.Failed) > 0 {
		t.Errorf("%s: failed: %+v", e.Name, s.Failed)
	}
	without := run(names[0])
	if len(without.Failed) != 1 || without.Failed[0].Case != names[0] || len(names) > 1 && without.Samples == 0 {
		t.Errorf("%s without %s: failed %+v, %d samples", e.Name, names[0], without.Failed, without.Samples)
	}
	checkMissing(t, s, without, names[0])
	return s
}

// checkMissing checks that a case that failed is a value nowhere: not measured is not 0.
func checkMissing(t *testing.T, all, without experiments.Summary, name string) {
	t.Helper()
	ours := map[string]float64{}
	for _, c := range all.Claims {
		ours[c.What] = c.Ours
	}
	for _, c := range without.Claims {
		if was, there := ours[c.What]; there && was != 0 && c.Ours == 0 {
			t.Errorf("%s without %s: %s is 0, and was %v", all.Name, name, c.What, was)
		}
	}
	for _, f := range without.Plots {
		if !slices.ContainsFunc(f.Notes, func(note string) bool { return strings.HasPrefix(note, "Failed: "+name) }) {
			t.Errorf("%s without %s: %s does not say so", all.Name, name, f.Name)
		}
		for _, p := range f.Panels {
			for _, s := range p.Series {
				for _, pt := range s.Points {
					if y := float64(pt.Y); pt.Case == name && !math.IsNaN(y) {
						t.Errorf("%s without %s: %s draws %v at %v of %s", all.Name, name, f.Name, y, pt.X, s.Name)
					}
				}
			}
		}
	}
}

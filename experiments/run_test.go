package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// trivial is an experiment that measures nothing: the value of run n is n. It
// stops when stop samples are there; taken counts those it has taken.
func trivial(stop int, cancel context.CancelFunc, taken *int) Experiment {
	return Experiment{
		Name: "trivial", Title: "nothing", Figure: "Fig. 0", Columns: []string{"case", "run", "value"},
		Run: func(ctx context.Context, c *Context) error {
			c.Progress.Begin("trivial", c.Runs, len(c.Data.Rows()))
			var points []Spread
			for run := range c.Runs {
				if len(c.Data.Rows()) == stop {
					cancel()
				}
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if key := []string{"one", strconv.Itoa(run)}; !c.Data.Has(key...) {
					*taken++
					if err := c.Data.Add(append(key, strconv.Itoa(run))); err != nil {
						return err
					}
					c.Progress.Step("next")
				}
			}
			points = append(points, NewSpread([]float64{1, 2, 3}))
			p, err := Bars("title", "ms", []string{"a"}, []Group{{"one", points}, {"two", points}})
			if err != nil {
				return err
			}
			c.Draw(p)
			c.Compare(Claim{What: "runs", Paper: "10", Value: 10, Ours: float64(c.Runs)})
			c.Figure("lost", 0)
			return nil
		},
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	parameters := Parameters{Transports: []string{"grpc"}, Runs: 5, Seed: 1, Build: "b"}
	ctx, cancel := context.WithCancel(t.Context())
	taken := 0
	if _, err := Run(ctx, trivial(3, cancel, &taken), parameters, dir, &Progress{}); err == nil || !strings.Contains(err.Error(), "interrupted with 3 samples") {
		t.Fatalf("error %v, want that it was interrupted with 3 samples", err)
	}
	other := parameters
	other.Runs, other.Seed = 6, 2
	if _, err := Run(t.Context(), trivial(-1, nil, &taken), other, dir, &Progress{}); err == nil || !strings.Contains(err.Error(), "runs was 5, is 6; seed was 1, is 2") {
		t.Fatalf("error %v, want that runs and seed differ", err)
	}
	s, err := Run(t.Context(), trivial(-1, nil, &taken), parameters, dir, &Progress{})
	if err != nil {
		t.Fatal(err)
	}
	if taken != 5 || s.Samples != 5 {
		t.Errorf("%d samples taken, %d in the summary, want 5: none twice", taken, s.Samples)
	}
	for _, name := range []string{"data.csv", "plot.svg", "plot.png", "table.txt", "table.csv", "summary.json"} {
		if info, err := os.Stat(filepath.Join(dir, "trivial", name)); err != nil || info.Size() == 0 || !slices.Contains(s.Files, name) {
			t.Errorf("%s: %v, or empty, or not in %q", name, err, s.Files)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "trivial", "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Name   string
		Lost   *int
		Claims []struct{ Ratio float64 }
	}
	if err := json.Unmarshal(b, &read); err != nil {
		t.Fatal(err)
	}
	if read.Name != "trivial" || read.Lost == nil || len(read.Claims) != 1 || read.Claims[0].Ratio != 0.5 {
		t.Errorf("summary: %s", b)
	}
	var text strings.Builder
	if err := s.Text(&text); err != nil || !strings.Contains(text.String(), "lost: 0") {
		t.Errorf("text %q, %v: want the figure of its own", text.String(), err)
	}
	if err := Discard(trivial(0, nil, nil), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "trivial")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("discarded, and still there: %v", err)
	}
}

func TestFind(t *testing.T) {
	all := []Experiment{{Name: "a"}, {Name: "b"}}
	found, err := Find(all, []string{"b", "a", "b"})
	if err != nil || len(found) != 2 || found[0].Name != "b" {
		t.Errorf("found %v, %v", found, err)
	}
	if _, err := Find(all, []string{"c"}); err == nil || !strings.Contains(err.Error(), "there are: a, b") {
		t.Errorf("error %v, want the names there are", err)
	}
}

package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/test/measure"
)

// counted is a subject whose sample of a round is the round, times a factor.
type counted struct {
	factor int
	before func(round int) error // the sample is taken
	closed *int
}

func (s counted) Sample(_ context.Context, round int) ([][]string, error) {
	if err := s.before(round); err != nil {
		return nil, err
	}
	return [][]string{{"a", strconv.Itoa(s.factor * round)}, {"b", ""}}, nil
}

func (s counted) Close() error { *s.closed++; return nil }

// trivial is an experiment that measures nothing. before is called before each
// sample.
func trivial(before func(name string, round int) error) (e Experiment, opened, closed *int) {
	opened, closed = new(int), new(int)
	return Experiment{
		Name: "trivial", Title: "nothing", Figure: "Fig. 0", Claim: "none", Statements: []Statement{Value(2, 0).OfRatio().Said("two to one", "twice")}, Columns: []string{"what", "value"},
		Cases: func(Parameters) []Case {
			var list []Case
			for factor, name := range []string{"one", "two", "three"} {
				list = append(list, Case{Name: name, Open: func(ctx context.Context, _ *Context) (Subject, error) {
					*opened++
					measure.Differs(ctx, "nice of "+name)
					return counted{factor + 1, func(round int) error { return before(name, round) }, closed}, nil
				}})
			}
			return list
		},
		Sum: func(c *Context) error {
			bars := figure.Series{Name: "ours", Kind: figure.Bars}
			for i, name := range []string{"one", "two", "three"} {
				bars.Points = append(bars.Points, figure.At(float64(i), c.Median("value", name, Where("what", "a")), name))
			}
			c.Draw(figure.Figure{Name: "Fig. 0", Title: "nothing", Panels: []figure.Panel{{X: figure.Axis{Names: []string{"1", "2", "3"}}, Series: []figure.Series{bars}}}})
			c.Compare(Claim{What: "two to one", Says: c.Statement("two to one")}.Of(c.Ratio("value", "two", "one", Where("what", "a"))))
			c.Figure("lost", 0)
			return nil
		},
	}, opened, closed
}

var trivialParameters = Parameters{Transports: []string{"grpc"}, Runs: 6, Seed: 1, Build: "b"}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	var order []string
	interrupted := func(name string, round int) error {
		order = append(order, fmt.Sprint(name, round))
		if len(order) == 5 {
			cancel()
			return ctx.Err()
		}
		return nil
	}
	e, opened, closed := trivial(interrupted)
	if _, err := Run(ctx, e, trivialParameters, dir, 0, &Progress{}); err == nil || !strings.Contains(err.Error(), "interrupted with 8 samples") {
		t.Fatalf("error %v, want that it was interrupted with 8 samples", err)
	}
	if got := strings.Join(order, " "); got != "one1 two1 three1 three2 two2" {
		t.Errorf("turns: %s", got)
	}
	other := trivialParameters
	other.Runs, other.Seed = 7, 2
	if _, err := Run(t.Context(), e, other, dir, 0, &Progress{}); err == nil || !strings.Contains(err.Error(), "runs was 6, is 7; seed was 1, is 2") {
		t.Fatalf("error %v, want that runs and seed differ", err)
	}
	s, err := Run(t.Context(), e, trivialParameters, dir, 0, &Progress{})
	if err != nil {
		t.Fatal(err)
	}
	if len(order) != 1+3*6 || s.Samples != 2*3*6 || *opened != len(order) || *closed != *opened {
		t.Errorf("%d turns, %d samples, %d opened, %d closed; want none taken twice", len(order), s.Samples, *opened, *closed)
	}
	for _, name := range []string{"data.csv", "plot.svg", "plot.png", "plot.pdf", "table.txt", "table.csv", "summary.json"} {
		if info, err := os.Stat(filepath.Join(dir, "trivial", name)); err != nil || info.Size() == 0 || !slices.Contains(s.Files, name) {
			t.Errorf("%s: %v, or empty, or not in %q", name, err, s.Files)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "trivial", "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Name       string
		Lost       *int
		Machine    measure.Machine
		Conditions measure.Conditions
		Claims     []struct {
			Figure, Paper, Reproduced, Cause string
			Ours, Ratio                      float64
			N                                int
			CI95                             []float64
		}
	}
	if err := json.Unmarshal(b, &read); err != nil {
		t.Fatal(err)
	}
	if read.Name != "trivial" || read.Lost == nil || len(read.Claims) != 1 || read.Claims[0].Ratio != 1 || read.Claims[0].Paper != "twice" || read.Claims[0].N != 6 || read.Claims[0].Figure != "Fig. 0" || len(read.Claims[0].CI95) != 2 ||
		read.Machine.Cores < 1 || !strings.HasSuffix(strings.Join(read.Conditions.Differs, ", "), "nice of one, nice of two, nice of three") || read.Conditions.Build != "b" {
		t.Errorf("summary: %s", b)
	}
	var text strings.Builder
	if err := s.Text(&text); err != nil || !strings.Contains(text.String(), "lost: 0") || !strings.Contains(text.String(), "nice of two") || !strings.Contains(text.String(), s.Machine.Kernel) {
		t.Errorf("text %q, %v: want the figure of its own, machine and conditions", text.String(), err)
	}
	if err := Discard(e, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "trivial")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("discarded, and still there: %v", err)
	}
}

// A case that fails costs the others nothing, and is tried again by the next
// run; that nothing at all was measured is an error.
func TestFailingCase(t *testing.T) {
	dir, broken := t.TempDir(), true
	e, _, closed := trivial(func(name string, _ int) error {
		if broken && name == "two" {
			return errors.New("out of order; it said:\nnothing")
		}
		return nil
	})
	s, err := Run(t.Context(), e, trivialParameters, dir, 0, &Progress{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []Failed{{"two", 2, "out of order"}}; !slices.Equal(s.Failed, want) || s.Samples != 2*2*6 || *closed != 2*6+failuresMost {
		t.Errorf("failed %+v, want %+v; %d samples, %d closed", s.Failed, want, s.Samples, *closed)
	}
	if err := s.Err(); err == nil || err.Error() != "trivial: two failed in round 2: out of order" {
		t.Errorf("error %v, want the case that failed", err)
	}
	if notes := s.Plots[0].Notes; !slices.Equal(notes, []string{"Failed: two, in round 2: out of order."}) {
		t.Errorf("the figure says %q, want the case that failed", notes)
	}
	if c := s.Claims[0]; c.Reproduced() != VerdictMissing {
		t.Errorf("of a case that failed: %s", c.Reproduced())
	}
	if want := (Rounds{Asked: 6, Most: 6}); s.Rounds != want || !strings.HasPrefix(s.Rounds.Caption(), "0 to 6 of 6 rounds; medians with") {
		t.Errorf("rounds %+v, want %+v", s.Rounds, want)
	}
	broken = false
	if s, err = Run(t.Context(), e, trivialParameters, dir, 0, &Progress{}); err != nil || s.Err() != nil || s.Samples != 2*3*6 {
		t.Errorf("failed %+v, %d samples, %v", s.Failed, s.Samples, err)
	}
	e, _, _ = trivial(func(string, int) error { return errors.New("all broken") })
	if _, err := Run(t.Context(), e, trivialParameters, t.TempDir(), 0, &Progress{}); err == nil || !strings.Contains(err.Error(), "three: all broken") {
		t.Errorf("error %v, want what has failed", err)
	}
}

// A run ends before the round that its limit does not allow for.
func TestLimit(t *testing.T) {
	dir := t.TempDir()
	e, _, _ := trivial(func(string, int) error { time.Sleep(time.Millisecond); return nil })
	for want := 1; want <= 5; want++ {
		s, err := Run(t.Context(), e, trivialParameters, dir, time.Nanosecond, &Progress{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Samples != 2*3*want || s.Rounds != (Rounds{Asked: 6, Least: want, Most: want}) {
			t.Errorf("%d samples, %v, after %d runs, want a round each", s.Samples, s.Rounds, want)
		}
		if text := s.Rounds.Caption(); !strings.HasPrefix(text, fmt.Sprintf("%d of 6 rounds; medians, without intervals", want)) {
			t.Errorf("after %d runs: %s", want, text)
		}
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

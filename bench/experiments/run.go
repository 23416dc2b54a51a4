package experiments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/test/measure"
)

// Summary is what came of an experiment.
type Summary struct {
	Name       string
	Title      string
	Figure     string // of the paper
	Parameters Parameters
	Samples    int
	Rounds     Rounds // that were made
	Setups     map[string]Setup
	Claims     []Claim
	Figures    map[string]any // the experiment's own
	Dir        string
	Files      []string // in Dir
	Machine    measure.Machine
	Conditions measure.Conditions
	Failed     []Failed
	Plots      []figure.Figure

	about Experiment
}

// MarshalJSON writes the experiment's own figures beside the rest, so that
// msn-resilience has "sent" and "lost" where one looks for them.
func (s Summary) MarshalJSON() ([]byte, error) {
	all := map[string]any{}
	maps.Copy(all, s.Figures)
	maps.Copy(all, map[string]any{
		"name": s.Name, "title": s.Title, "figure": s.Figure, "parameters": s.Parameters,
		"samples": s.Samples, "rounds": s.Rounds, "setups": s.Setups, "claims": s.Claims, "dir": s.Dir, "files": s.Files,
		"machine": s.Machine, "conditions": s.Conditions, "failed": s.Failed, "plots": s.Plots,
		"paper": s.about.Paper, "claim": s.about.Claim, "method": s.about.Method, "deviation": s.about.Deviation,
	})
	return json.Marshal(all)
}

// Text writes the summary for people.
func (s Summary) Text(w io.Writer) error {
	fmt.Fprintf(w, "%s (%s): %s\n%d samples, %v, seed %d\n", s.Name, s.Figure, s.Title, s.Samples, s.Rounds, s.Parameters.Seed)
	for _, line := range append(s.caption(), s.failures()...) {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintln(w)
	if err := writeText(w, s.Claims); err != nil {
		return err
	}
	scalars := slices.DeleteFunc(slices.Sorted(maps.Keys(s.Figures)), func(name string) bool {
		switch s.Figures[name].(type) {
		case int, uint64, float64, string, bool:
			return false
		}
		return true
	})
	if len(scalars) > 0 {
		fmt.Fprintln(w)
		for _, name := range scalars {
			fmt.Fprintf(w, "%s: %v\n", name, s.Figures[name])
		}
	}
	_, err := fmt.Fprintf(w, "\nin %s: %s\n", s.Dir, strings.Join(s.Files, ", "))
	return err
}

// failures names the cases that failed, a line each.
func (s Summary) failures() (lines []string) {
	for _, f := range s.Failed {
		lines = append(lines, fmt.Sprintf("Failed: %s, in round %d: %s.", f.Case, f.Round, f.Error))
	}
	return lines
}

// Err returns an error that names the cases that failed, nil if none did.
func (s Summary) Err() error {
	var errs []error
	for _, f := range s.Failed {
		errs = append(errs, fmt.Errorf("%s: %s failed in round %d: %s", s.Name, f.Case, f.Round, f.Error))
	}
	return errors.Join(errs...)
}

// caption says where and how it was measured, below the plot and in the text.
func (s Summary) caption() []string {
	lines := []string{
		fmt.Sprintf("%s: Weft on %s.", s.Name, s.Machine),
		fmt.Sprintf("Conditions: %s.", s.Conditions),
		s.Rounds.Caption(),
	}
	if s.Parameters.Quick {
		lines[2] = "Quick run: " + lines[2]
	}
	return lines
}

// Run runs an experiment, or what is left of it, with its files below dir, for
// as long as limit, 0 being without. An experiment that ctx or the limit ends
// goes on where it stopped when it is run again. A case that fails is in
// Summary.Failed; an error is that nothing at all was measured.
func Run(ctx context.Context, e Experiment, p Parameters, dir string, limit time.Duration, progress *Progress) (s Summary, err error) {
	p.Experiment = e.Name
	s = Summary{Name: e.Name, Title: e.Title, Figure: e.Figure, Parameters: p, Dir: filepath.Join(dir, e.Name), about: e, Machine: measure.ThisMachine()}
	if err := asowner.MkdirAll(s.Dir, 0o755); err != nil {
		return s, err
	}
	if err := p.claim(s.Dir); err != nil {
		return s, err
	}
	data, err := OpenData(filepath.Join(s.Dir, "data.csv"), append([]string{"case", "round"}, e.Columns...))
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	c := &Context{Parameters: p, Data: data, Progress: progress, statements: e.Statements}
	now := measure.Begin(p.Build)
	taken, err := c.rounds(measure.Collect(ctx, now), e, limit)
	progress.End()
	now.End()
	kept, failed := s.keepConditions(now, taken)
	if err = errors.Join(err, failed); err != nil {
		if ctx.Err() != nil {
			return s, fmt.Errorf("%s: interrupted with %d samples taken; the same command goes on from there", e.Name, len(data.Rows()))
		}
		return s, fmt.Errorf("%s: %w", e.Name, err)
	}
	s.Conditions, s.Failed = kept, append([]Failed{}, c.failed...)
	if err := e.Sum(c); err != nil {
		return s, fmt.Errorf("%s: %w", e.Name, err)
	}
	for i := range c.claims {
		c.claims[i].disturbed = kept.Disturbed
		if c.claims[i].Figure == "" && len(c.drawn) > 0 {
			c.claims[i].Figure = c.drawn[0].Name
		}
	}
	s.Setups = map[string]Setup{}
	for _, of := range e.Cases(p) {
		s.Setups[of.Name] = of.Setup
	}
	for i := range c.drawn { // what was not measured is no value of any of them
		c.drawn[i].Notes = append(append(c.drawn[i].Notes, unlikeNotes(c.drawn[i], s.Setups)...), s.failures()...)
	}
	compareLike(c.claims, s.Setups)
	s.Rounds = c.made(e.Cases(p))
	s.Samples, s.Claims, s.Figures, s.Plots = len(data.Rows()), c.claims, c.figures, c.drawn
	s.Files = []string{"data.csv"}
	return s, s.write(c)
}

// keepConditions adds the conditions under which samples were taken to those of
// earlier runs, in a file, and returns both.
func (s *Summary) keepConditions(now *measure.Conditions, taken bool) (measure.Conditions, error) {
	file := filepath.Join(s.Dir, "conditions.json")
	var earlier measure.Conditions
	b, err := asowner.ReadFile(file)
	switch {
	case err == nil:
		if err := json.Unmarshal(b, &earlier); err != nil {
			return *now, fmt.Errorf("%s: %w; remove the directory to start anew", file, err)
		}
		if !taken {
			return earlier, nil
		}
		*now = now.After(earlier)
	case !errors.Is(err, fs.ErrNotExist):
		return *now, err
	}
	if b, err = json.MarshalIndent(now, "", "  "); err != nil {
		return *now, err
	}
	return *now, asowner.WriteWhole(file, append(b, '\n'), 0o644)
}

// Discard removes what an earlier run of an experiment has left below dir.
func Discard(e Experiment, dir string) error { return asowner.RemoveAll(filepath.Join(dir, e.Name)) }

// write writes plot, table and summary.
func (s *Summary) write(c *Context) error {
	for _, format := range []string{"svg", "png", "pdf"} {
		if len(c.drawn) == 0 {
			break
		}
		var b bytes.Buffer
		if err := figure.Save(&b, format, c.drawn, s.caption()); err != nil {
			return fmt.Errorf("draw plot.%s: %w", format, err)
		}
		if err := asowner.WriteWhole(filepath.Join(s.Dir, "plot."+format), b.Bytes(), 0o644); err != nil {
			return err
		}
		s.Files = append(s.Files, "plot."+format)
	}
	for name, write := range map[string]func(io.Writer, []Claim) error{"table.txt": writeText, "table.csv": writeCSV} {
		var b bytes.Buffer
		if err := write(&b, s.Claims); err != nil {
			return err
		}
		if err := asowner.WriteWhole(filepath.Join(s.Dir, name), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	s.Files = append(s.Files, "table.txt", "table.csv", "summary.json")
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("summary of %s: %w", s.Name, err)
	}
	return asowner.WriteWhole(filepath.Join(s.Dir, "summary.json"), append(b, '\n'), 0o644)
}

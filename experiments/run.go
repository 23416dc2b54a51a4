package experiments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
)

// Summary is what came of an experiment.
type Summary struct {
	Name       string
	Title      string
	Figure     string // of the paper
	Parameters Parameters
	Samples    int
	Claims     []Claim
	Figures    map[string]any // the experiment's own
	Dir        string
	Files      []string // in Dir
}

// MarshalJSON writes the experiment's own figures beside the rest, so that
// msn-resilience has "sent" and "lost" where one looks for them.
func (s Summary) MarshalJSON() ([]byte, error) {
	all := map[string]any{}
	maps.Copy(all, s.Figures)
	maps.Copy(all, map[string]any{
		"name": s.Name, "title": s.Title, "figure": s.Figure, "parameters": s.Parameters,
		"samples": s.Samples, "claims": s.Claims, "dir": s.Dir, "files": s.Files,
	})
	return json.Marshal(all)
}

// Text writes the summary for people.
func (s Summary) Text(w io.Writer) error {
	fmt.Fprintf(w, "%s (%s): %s\n%d samples, %d runs of each case, seed %d\n\n", s.Name, s.Figure, s.Title, s.Samples, s.Parameters.Runs, s.Parameters.Seed)
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

// Run runs an experiment, or what is left of it, with its files below dir. An
// experiment that ctx ends goes on where it stopped when it is run again.
func Run(ctx context.Context, e Experiment, p Parameters, dir string, progress *Progress) (s Summary, err error) {
	p.Experiment = e.Name
	s = Summary{Name: e.Name, Title: e.Title, Figure: e.Figure, Parameters: p, Dir: filepath.Join(dir, e.Name)}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return s, err
	}
	if err := p.claim(s.Dir); err != nil {
		return s, err
	}
	data, err := OpenData(filepath.Join(s.Dir, "data.csv"), e.Columns)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	c := &Context{Parameters: p, Data: data, Progress: progress}
	err = e.Run(ctx, c)
	progress.End()
	if err != nil {
		if ctx.Err() != nil {
			return s, fmt.Errorf("%s: interrupted with %d samples taken; the same command goes on from there", e.Name, len(data.Rows()))
		}
		return s, fmt.Errorf("%s: %w", e.Name, err)
	}
	s.Samples, s.Claims, s.Figures = len(data.Rows()), c.claims, c.figures
	s.Files = []string{"data.csv"}
	return s, s.write(c)
}

// Discard removes what an earlier run of an experiment has left below dir.
func Discard(e Experiment, dir string) error { return os.RemoveAll(filepath.Join(dir, e.Name)) }

// write writes plot, table and summary.
func (s *Summary) write(c *Context) error {
	if c.plot != nil {
		for _, name := range []string{"plot.svg", "plot.png"} {
			if err := c.plot.Save(22*vg.Centimeter, 13*vg.Centimeter, filepath.Join(s.Dir, name)); err != nil {
				return fmt.Errorf("draw %s: %w", name, err)
			}
			s.Files = append(s.Files, name)
		}
	}
	for name, write := range map[string]func(io.Writer, []Claim) error{"table.txt": writeText, "table.csv": writeCSV} {
		var b bytes.Buffer
		if err := write(&b, s.Claims); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.Dir, name), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	s.Files = append(s.Files, "table.txt", "table.csv", "summary.json")
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("summary of %s: %w", s.Name, err)
	}
	return os.WriteFile(filepath.Join(s.Dir, "summary.json"), append(b, '\n'), 0o644)
}

// Package report makes a page of each figure of experiments that were run: what
// the paper says, what Weft's figures are, under which conditions, and why they
// differ. It knows what their summaries say, and nothing else. Only cmd/weft
// imports it.
package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/test/measure"
)

// Page is one figure of an experiment.
type Page struct {
	Result
	Figure figure.Figure
	Claims []Claim // of the figure
}

// Result is what an experiment's summary says.
type Result struct {
	Name       string
	Title      string
	Paper      string
	Claim      string // the paper's
	Method     string
	Deviation  string
	Samples    int
	Made       experiments.Rounds `json:"rounds"`
	Parameters struct {
		Quick bool
		Seed  uint64
	}
	Machine    measure.Machine
	Conditions measure.Conditions
	Failed     []struct {
		Case  string
		Round int
		Error string
	}
}

// Claim is a line of the table.
type Claim struct {
	Figure     string
	What       string
	Paper      string
	Tolerance  float64
	Ours       *float64
	CI95       []float64
	N          int
	Unit       string
	Reproduced string
	Mark       *struct {
		AtMost  *float64 `json:"at_most"`
		AtLeast *float64 `json:"at_least"`
	}
	Met   string
	Cause string
}

// Bad reports whether the claim contradicts the paper, or misses its mark.
func (c Claim) Bad() bool { return c.Reproduced == "contradicts" || c.Met == "missed" }

// ErrNotRun is that an experiment has left nothing.
var ErrNotRun = errors.New("nothing was run")

// Read returns the pages of an experiment's figures, from its summary in a
// directory.
func Read(dir, experiment string) ([]Page, error) {
	file := filepath.Join(dir, experiment, "summary.json")
	b, err := asowner.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w of %s in %s: weft experiment run %s", ErrNotRun, experiment, dir, experiment)
	}
	if err != nil {
		return nil, err
	}
	var read struct {
		Result
		Claims []Claim
		Plots  []figure.Figure
	}
	if err = json.Unmarshal(b, &read.Result); err == nil {
		err = json.Unmarshal(b, &struct {
			Claims *[]Claim
			Plots  *[]figure.Figure
		}{&read.Claims, &read.Plots})
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; run it again", file, err)
	}
	if len(read.Plots) == 0 {
		return nil, fmt.Errorf("%s has no figures: it is of an earlier build; weft experiment run %s --fresh", file, experiment)
	}
	var pages []Page
	for _, f := range read.Plots {
		p := Page{Result: read.Result, Figure: f}
		for _, c := range read.Claims {
			if c.Figure == f.Name {
				p.Claims = append(p.Claims, c)
			}
		}
		pages = append(pages, p)
	}
	return pages, nil
}

// Rounds says how much was measured.
func (p Page) Rounds() string {
	s := fmt.Sprintf("%d samples, seed %d; %s", p.Samples, p.Parameters.Seed, p.Made.Caption())
	if p.Parameters.Quick {
		s = "A quick run, for a first look: " + s
	}
	return s
}

// Cells are the columns of a claim: what, the paper and its tolerance, Weft, its
// interval, whether it is reproduced, the mark, and whether it is met.
func (c Claim) Cells() []string {
	unit := ""
	if c.Unit != "" {
		unit = " " + c.Unit
	}
	cells := []string{c.What, cmp.Or(c.Paper, "-"), "-", "-", c.Reproduced, "-", c.Met}
	if c.Tolerance > 0 {
		cells[1] += " ± " + short(100*c.Tolerance) + " %"
	}
	if c.Ours != nil {
		cells[2] = short(*c.Ours) + unit
	}
	if len(c.CI95) == 2 {
		cells[3] = short(c.CI95[0]) + " to " + short(c.CI95[1])
	}
	switch {
	case c.Mark != nil && c.Mark.AtMost != nil:
		cells[5] = "≤ " + short(*c.Mark.AtMost) + unit
	case c.Mark != nil && c.Mark.AtLeast != nil:
		cells[5] = "≥ " + short(*c.Mark.AtLeast) + unit
	}
	if c.Reproduced == "contradicts" {
		cells[4] += ": " + c.Cause
	}
	return cells
}

// columns are the heads of Cells.
var columns = []string{"what", "the paper", "Weft", "95 %", "reproduced?", "own mark", "met?"}

// short writes a number with three significant digits.
func short(v float64) string {
	if v >= 1000 || v <= -1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

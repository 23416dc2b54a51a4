package experiments

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/weft-sdn/weft/test/measure"
)

// Claim is one number that was measured, beside what the paper says of it and what
// Weft asks of itself. One that has neither is a remark.
type Claim struct {
	Figure string     // of the paper; empty is the experiment's first
	What   string     //
	Says   *Statement // the paper's, that it tests; nil if there is none
	Paper  string     // what the paper says that is no statement, "-" if nothing
	Value  float64    // its number, on its own machine; 0 if it gives none
	Ours   float64    // Weft's; NaN, in JSON null, if nothing was measured
	CI95   []float64  // its 95 % confidence interval, nil of what has none
	Count  int        // how many values Ours is the median of
	Unit   string     // of both
	Mark   *Mark      // what Weft's is to be, nil if nothing is asked of it
	// Exact: it was computed, or everything that there was has been counted, so that it
	// needs no interval, and what else the machine did is of no account.
	Exact bool
	// Seeded: it was simulated, so that what else the machine did is of no account.
	Seeded bool
	// Sides are the two cases that it compares, and About what of their setups the
	// comparison is about; none if it compares none.
	Sides, About []string
	// Void is why there can be no verdict, whatever was measured; empty if there can.
	Void string

	disturbed string // by what, as the conditions say
}

// Mark is what a figure of Weft's is to keep to, by the project's own choice.
type Mark struct {
	AtMost  *float64 `json:"at_most,omitempty"`
	AtLeast *float64 `json:"at_least,omitempty"`
}

// Of returns the claim with an interval as Weft's figure.
func (c Claim) Of(i measure.Interval) Claim {
	c.Ours, c.CI95, c.Count = i.Median, i.CI95, i.Count
	return c
}

// Exactly returns the claim with a figure that was computed or counted.
func (c Claim) Exactly(v float64) Claim {
	c.Ours, c.CI95, c.Exact = v, nil, true
	return c
}

// AtMost returns the claim with a mark: so much at most.
func (c Claim) AtMost(most float64) Claim {
	c.Mark = &Mark{AtMost: &most}
	return c
}

// AtLeast returns the claim with a mark: so much at least.
func (c Claim) AtLeast(least float64) Claim {
	c.Mark = &Mark{AtLeast: &least}
	return c
}

// ToPaper is Weft's figure to the paper's; 0 if the paper gives none.
func (c Claim) ToPaper() float64 {
	value := c.Value
	if c.Says != nil && c.Says.Kind == KindValue {
		value = c.Says.Low
	}
	if value == 0 || math.IsNaN(c.Ours) {
		return 0
	}
	return c.Ours / value
}

// The verdicts: on what the paper says, and on a mark.
const (
	VerdictReproduced  = "reproduced"
	VerdictContradicts = "contradicts"
	VerdictMet         = "met"
	VerdictMissed      = "missed"
	VerdictOpen        = "undecided"    // a limit is within the interval
	VerdictNone        = "no verdict"   // Cause says why
	VerdictMissing     = "not measured" //
	VerdictNotAsked    = "-"            //
)

// NotExplained stands for the cause of a contradiction if no measurement shows it.
const NotExplained = "not explained"

// Reproduced says whether the figure is what the paper says. It is if its interval is
// within the limits of the statement, and contradicts it if it is outside of them.
func (c Claim) Reproduced() string {
	if c.Says == nil {
		return VerdictNotAsked
	}
	return c.judge(VerdictReproduced, VerdictContradicts, c.Says.place)
}

// Met says whether the figure keeps to Weft's own mark, likewise.
func (c Claim) Met() string {
	if c.Mark == nil {
		return VerdictNotAsked
	}
	return c.judge(VerdictMet, VerdictMissed, func(v float64) int {
		switch {
		case c.Mark.AtMost != nil && v > *c.Mark.AtMost:
			return 1
		case c.Mark.AtLeast != nil && v < *c.Mark.AtLeast:
			return -1
		}
		return 0
	})
}

// judge returns yes, no, or why it is neither. place says whether a number is within
// the limits (0), below (-1) or above them (1).
func (c Claim) judge(yes, no string, place func(float64) int) string {
	switch {
	case math.IsNaN(c.Ours):
		return VerdictMissing
	case c.void() != "":
		return VerdictNone
	}
	low, high := c.Ours, c.Ours
	if !c.Exact {
		low, high = c.CI95[0], c.CI95[1]
	}
	switch {
	case place(low) == 0 && place(high) == 0:
		return yes
	case place(low) == place(high):
		return no
	}
	return VerdictOpen
}

// void is why there is no verdict on what was measured; empty if there is one.
func (c Claim) void() string {
	switch {
	case c.Void != "":
		return c.Void
	case c.Exact:
		return ""
	case c.disturbed != "" && !c.Seeded:
		return "the machine was disturbed: " + c.disturbed
	case len(c.CI95) != 2:
		return fmt.Sprintf("%d rounds were made; an interval needs %d", c.Count, measure.IntervalLeast)
	}
	return ""
}

// Cause says why the figure contradicts the paper, or why there is no verdict.
func (c Claim) Cause() string {
	switch {
	case c.Reproduced() == VerdictContradicts:
		return cmp.Or(c.Says.Cause, NotExplained)
	case c.Reproduced() == VerdictNone, c.Met() == VerdictNone:
		return c.void()
	}
	return ""
}

// paper is what the paper says, in its words.
func (c Claim) paper() string {
	if c.Says != nil {
		return c.Says.Says
	}
	return cmp.Or(c.Paper, "-")
}

// MarshalJSON writes the claim with all that its verdicts rest on.
func (c Claim) MarshalJSON() ([]byte, error) {
	out := struct {
		Figure     string     `json:"figure"`
		What       string     `json:"what"`
		Paper      string     `json:"paper"`
		Value      float64    `json:"paper_value,omitempty"`
		Says       *Statement `json:"statement"`
		Tolerance  float64    `json:"tolerance"`
		Ours       *float64   `json:"ours"`
		CI95       []float64  `json:"ci95"`
		N          int        `json:"n"`
		Exact      bool       `json:"exact"`
		Unit       string     `json:"unit,omitempty"`
		Ratio      float64    `json:"ratio,omitempty"`
		Reproduced string     `json:"reproduced"`
		Mark       *Mark      `json:"mark"`
		Met        string     `json:"met"`
		Cause      string     `json:"cause"`
		Sides      []string   `json:"sides,omitempty"`
	}{Figure: c.Figure, What: c.What, Paper: c.paper(), Value: c.Value, Says: c.Says, CI95: c.CI95, N: c.Count, Exact: c.Exact, Unit: c.Unit, Ratio: c.ToPaper(),
		Reproduced: c.Reproduced(), Mark: c.Mark, Met: c.Met(), Cause: c.Cause(), Sides: c.Sides}
	if c.Says != nil {
		out.Tolerance = c.Says.Tolerance
	}
	if !math.IsNaN(c.Ours) {
		out.Ours = &c.Ours
	}
	return json.Marshal(out)
}

// cells are the columns of the table.
func (c Claim) cells() []string {
	unit := ""
	if c.Unit != "" {
		unit = " " + c.Unit
	}
	cells := []string{cmp.Or(c.Figure, "-"), c.What, c.paper(), "-", number(c.Ours) + unit, "-", "-", "-", c.Reproduced(), "-", c.Met(), cmp.Or(c.Cause(), "-")}
	if c.Says != nil && (c.Says.Tolerance > 0 || c.Says.Kind == KindValue || c.Says.Kind == KindRange) {
		cells[3] = number(100*c.Says.Tolerance) + " %"
	}
	if len(c.CI95) == 2 {
		cells[5] = number(c.CI95[0]) + " to " + number(c.CI95[1])
	}
	if c.Count > 0 {
		cells[6] = strconv.Itoa(c.Count)
	}
	if r := c.ToPaper(); r != 0 {
		cells[7] = number(r)
	}
	switch {
	case c.Mark != nil && c.Mark.AtMost != nil:
		cells[9] = "<= " + number(*c.Mark.AtMost) + unit
	case c.Mark != nil && c.Mark.AtLeast != nil:
		cells[9] = ">= " + number(*c.Mark.AtLeast) + unit
	}
	return cells
}

// claimColumns are the columns of the table; weft is a median where it has an
// interval, n of how many rounds, and the ratio is Weft to the paper.
var claimColumns = []string{"figure", "what", "paper", "tolerance", "weft", "95 %", "n", "weft/paper", "reproduced?", "mark", "met?", "cause"}

// number writes a figure with three significant digits, whole numbers whole.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "none"
	case v == math.Trunc(v) && math.Abs(v) < 1e12:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case math.Abs(v) >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// writeText writes the claims as a table for people.
func writeText(w io.Writer, claims []Claim) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.ToUpper(strings.Join(claimColumns, "\t")))
	for _, c := range claims {
		fmt.Fprintln(t, strings.Join(c.cells(), "\t"))
	}
	return t.Flush()
}

// writeCSV writes the claims as a table for programs.
func writeCSV(w io.Writer, claims []Claim) error {
	out := csv.NewWriter(w)
	rows := [][]string{claimColumns}
	for _, c := range claims {
		rows = append(rows, c.cells())
	}
	return out.WriteAll(rows)
}

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

// Claim is one line of the table that puts the paper beside Weft.
type Claim struct {
	Figure string    // of the paper; empty is the experiment's first
	What   string    //
	Paper  string    // in words; "-" if the paper says nothing of it
	Value  float64   // the paper's number, 0 if it gives none
	Ours   float64   // Weft's; NaN, in JSON null, if nothing was measured
	CI95   []float64 // its 95 % confidence interval, nil of what has none
	Unit   string    // of both
	Bound  *Bound    // what Weft's is to be, nil if nothing is asked of it
	// Relative: it is a ratio, of which 1 is no difference. Expect is what the
	// paper says of it where Value does not: Less or More.
	Relative bool
	Expect   Direction

	disturbed bool // by what the conditions say
}

// Direction is to which side of 1 a ratio is.
type Direction int

// The directions.
const (
	Less Direction = -1
	More Direction = 1
)

// Bound is what a figure of Weft's is to keep to.
type Bound struct {
	AtMost float64 `json:"at_most"`
	Met    bool    `json:"met"` // by the figure itself, whatever its interval
}

// Of returns the claim with an interval as Weft's figure.
func (c Claim) Of(i measure.Interval) Claim {
	c.Ours, c.CI95 = i.Median, i.CI95
	return c
}

// AtMost returns the claim with a bound on Weft's figure. Nothing measured,
// which is NaN, does not meet it.
func (c Claim) AtMost(most float64) Claim {
	c.Bound = &Bound{AtMost: most, Met: c.Ours <= most}
	return c
}

// ToPaper is Weft's figure to the paper's; 0 if the paper gives none.
func (c Claim) ToPaper() float64 {
	if c.Value == 0 || math.IsNaN(c.Ours) {
		return 0
	}
	return c.Ours / c.Value
}

// The verdicts.
const (
	VerdictNone      = "-"             // nothing is asked
	VerdictMissing   = "not measured"  //
	VerdictDisturbed = "no verdict"    // the machine was disturbed
	VerdictMet       = "met"           //
	VerdictMissed    = "MISSED"        //
	VerdictOpen      = "undecided"     // the bound is within the interval
	VerdictNothing   = "shows nothing" // a ratio whose interval includes 1, or is not known
	VerdictSame      = "as the paper"  // on the same side of 1
	VerdictOther     = "not as the paper"
	VerdictDiffers   = "differs from 1" // and the paper says nothing of it
)

// Verdict says what the claim comes to. A measurement that was disturbed has
// none.
func (c Claim) Verdict() string {
	i := measure.Interval{CI95: c.CI95}
	known := len(c.CI95) == 2
	switch {
	case math.IsNaN(c.Ours):
		return VerdictMissing
	case c.disturbed && (c.Bound != nil || c.Relative):
		return VerdictDisturbed
	case c.Bound != nil && known && i.Includes(c.Bound.AtMost) && c.CI95[1] > c.Bound.AtMost:
		return VerdictOpen
	case c.Bound != nil && c.Bound.Met:
		return VerdictMet
	case c.Bound != nil:
		return VerdictMissed
	case !c.Relative:
		return VerdictNone
	case i.Includes(1):
		return VerdictNothing
	}
	ours, paper := direction(c.Ours), cmp.Or(c.Expect, direction(c.Value))
	switch {
	case c.Value == 0 && c.Expect == 0:
		return VerdictDiffers
	case ours == paper:
		return VerdictSame
	}
	return VerdictOther
}

func direction(ratio float64) Direction {
	return Direction(cmp.Compare(ratio, 1))
}

// MarshalJSON writes the claim with its ratio and its verdict.
func (c Claim) MarshalJSON() ([]byte, error) {
	out := struct {
		Figure  string    `json:"figure"`
		What    string    `json:"what"`
		Paper   string    `json:"paper"`
		Value   float64   `json:"paper_value"`
		Weft    *float64  `json:"weft"`
		Ours    *float64  `json:"ours"`
		CI95    []float64 `json:"ci95"`
		Verdict string    `json:"verdict"`
		Unit    string    `json:"unit,omitempty"`
		Bound   *Bound    `json:"bound,omitempty"`
		Ratio   float64   `json:"ratio,omitempty"`
	}{Figure: c.Figure, What: c.What, Paper: c.Paper, Value: c.Value, CI95: c.CI95, Verdict: c.Verdict(), Unit: c.Unit, Bound: c.Bound, Ratio: c.ToPaper()}
	if !math.IsNaN(c.Ours) {
		out.Weft, out.Ours = &c.Ours, &c.Ours
	}
	return json.Marshal(out)
}

// cells are the columns of the table.
func (c Claim) cells() []string {
	unit := ""
	if c.Unit != "" {
		unit = " " + c.Unit
	}
	cells := []string{cmp.Or(c.Figure, "-"), c.What, c.Paper, number(c.Ours) + unit, "-", "-", "-", c.Verdict()}
	if len(c.CI95) == 2 {
		cells[4] = number(c.CI95[0]) + " to " + number(c.CI95[1])
	}
	if r := c.ToPaper(); r != 0 {
		cells[5] = number(r)
	}
	if c.Bound != nil {
		cells[6] = "<= " + number(c.Bound.AtMost) + unit
	}
	return cells
}

// claimColumns are the columns of the table; weft is a median where it has an
// interval, and the ratio is Weft to the paper.
var claimColumns = []string{"figure", "what", "paper", "weft", "95 %", "weft/paper", "bound", "verdict"}

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

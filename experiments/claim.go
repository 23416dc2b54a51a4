package experiments

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Claim is one line of the table that puts the paper beside Weft.
type Claim struct {
	What  string  `json:"what"`
	Paper string  `json:"paper"`           // in words; "-" if the paper says nothing of it
	Value float64 `json:"paper_value"`     // the paper's number, 0 if it gives none
	Ours  float64 `json:"weft"`            // Weft's; NaN, in JSON null, if nothing was measured
	Unit  string  `json:"unit,omitempty"`  // of both
	Bound *Bound  `json:"bound,omitempty"` // what Weft's is to be, nil if nothing is asked of it
}

// Bound is what a figure of Weft's is to keep to.
type Bound struct {
	AtMost float64 `json:"at_most"`
	Met    bool    `json:"met"`
}

// MarshalJSON writes the claim with its ratio.
func (c Claim) MarshalJSON() ([]byte, error) {
	type plain Claim // without this method
	out := struct {
		plain
		Ours  *float64 `json:"weft"` // instead of plain's
		Ratio float64  `json:"ratio,omitempty"`
	}{plain: plain(c), Ratio: c.Ratio()}
	if !math.IsNaN(c.Ours) {
		out.Ours = &c.Ours
	}
	return json.Marshal(out)
}

// AtMost returns the claim with a bound on Weft's figure. Nothing measured,
// which is NaN, does not meet it.
func (c Claim) AtMost(most float64) Claim {
	c.Bound = &Bound{AtMost: most, Met: c.Ours <= most}
	return c
}

// Ratio is Weft's figure to the paper's; 0 if the paper gives none.
func (c Claim) Ratio() float64 {
	if c.Value == 0 || math.IsNaN(c.Ours) {
		return 0
	}
	return c.Ours / c.Value
}

// cells are the columns of the table.
func (c Claim) cells() []string {
	unit := ""
	if c.Unit != "" {
		unit = " " + c.Unit
	}
	cells := []string{c.What, c.Paper, number(c.Ours) + unit, "-", "-", "-"}
	if r := c.Ratio(); r != 0 {
		cells[3] = number(r)
	}
	if c.Bound != nil {
		cells[4], cells[5] = "<= "+number(c.Bound.AtMost)+unit, "met"
		if !c.Bound.Met {
			cells[5] = "MISSED"
		}
	}
	return cells
}

// claimColumns are the columns of the table; the ratio is Weft to the paper.
var claimColumns = []string{"what", "paper", "weft", "weft/paper", "bound", "verdict"}

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

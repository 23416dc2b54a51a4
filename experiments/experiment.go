// Package experiments repeats the measurements of the papers on Weft: every
// figure is one Experiment, which takes samples, draws them, and puts what the
// paper claims beside what was measured. This package is what all of them
// share: samples that survive an interruption (Data), progress, statistics,
// plots and the table of claims. The experiments themselves are in the packages
// below it.
//
// cmd/weft and the packages below import it, nothing else does.
package experiments

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/plot"
)

// Experiment is one measurement of a paper, repeated on Weft.
type Experiment struct {
	Name   string // on the command line and in the file system
	Title  string
	Paper  string // which paper
	Figure string // which figures of it
	Claim  string // what the paper says they show, with its numbers
	Method string // what a sample is, and how it is taken

	Runs      int // of each case unless told otherwise
	QuickRuns int // of each case in a quick run
	// Transports are those between services that it compares unless told otherwise.
	Transports []string
	// Columns are those of data.csv.
	Columns []string
	// Run takes the samples that Context.Data does not have yet, and sums up all.
	Run func(ctx context.Context, c *Context) error
}

// Context is what an experiment runs with, and where it leaves its results.
type Context struct {
	Parameters
	Data     *Data
	Progress *Progress

	claims  []Claim
	figures map[string]any
	plot    *plot.Plot
}

// Compare puts what was measured beside what the paper says.
func (c *Context) Compare(claims ...Claim) { c.claims = append(c.claims, claims...) }

// Figure gives a result a name of its own in the summary. The names of
// Summary's own fields are taken.
func (c *Context) Figure(name string, value any) {
	if c.figures == nil {
		c.figures = map[string]any{}
	}
	c.figures[name] = value
}

// Draw sets the plot of the experiment.
func (c *Context) Draw(p *plot.Plot) { c.plot = p }

// Find returns the experiments of the given names, in their order.
func Find(all []Experiment, names []string) ([]Experiment, error) {
	var found []Experiment
	for _, name := range names {
		i := slices.IndexFunc(all, func(e Experiment) bool { return e.Name == name })
		if i < 0 {
			var known []string
			for _, e := range all {
				known = append(known, e.Name)
			}
			return nil, fmt.Errorf("unknown experiment %q; there are: %s", name, strings.Join(known, ", "))
		}
		if !slices.ContainsFunc(found, func(e Experiment) bool { return e.Name == name }) {
			found = append(found, all[i])
		}
	}
	return found, nil
}

// Package experiments repeats the measurements of the papers on Weft: every
// figure is one Experiment, which takes samples, draws them, and puts what the
// paper claims beside what was measured. This package is what all of them
// share: cases that take turns, samples that survive an interruption (Data),
// progress, statistics and the table of claims with their verdicts. Package
// measure has machine, conditions and intervals, figure draws, report makes
// pages of what was run, testbed starts what is measured. The experiments
// themselves are in msn, hydra, scp, oshi and nf.
//
// cmd/weft and the packages below import it, nothing else does.
package experiments

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/bench/experiments/figure"
)

// Experiment is one measurement of a paper, repeated on Weft.
type Experiment struct {
	Name   string // on the command line and in the file system
	Title  string
	Paper  string // which paper
	Figure string // which figures of it
	Claim  string // what the paper says they show, with its numbers
	// Statements are what the claim comes to, as tests of numbers.
	Statements []Statement
	Method     string // what a sample is, and how it is taken
	// Deviation is why Weft's figures differ from the paper's.
	Deviation string

	Runs      int // rounds unless told otherwise
	QuickRuns int // rounds of a quick run
	// Transports are those between services that it compares unless told otherwise.
	Transports []string
	// Cores are the real cores that it measures if told to, instead of simulated functions.
	Cores []string
	// Columns are those of data.csv, after case and round.
	Columns []string
	// Cases are what is compared. They take turns, round by round.
	Cases func(p Parameters) []Case
	// Lasting subjects are all open at the same time, from the first round to the
	// last; others are open during their turn only.
	Lasting bool
	// Sum compares the samples with the paper and draws them.
	Sum func(c *Context) error
}

// Case is one of the things that an experiment compares.
type Case struct {
	Name  string
	Setup Setup
	// Open prepares it.
	Open func(ctx context.Context, c *Context) (Subject, error)
}

// Subject is a case that is ready to be measured.
type Subject interface {
	// Sample takes the samples of a round, without case and round.
	Sample(ctx context.Context, round int) ([][]string, error)
	// Close ends what Open has begun.
	Close() error
}

// Context is what an experiment runs with, and where it leaves its results.
type Context struct {
	Parameters
	Data     *Data
	Progress *Progress

	statements []Statement
	claims     []Claim
	figures    map[string]any
	drawn      []figure.Figure
	failed     []Failed
}

// Draw adds figures to the plot of the experiment.
func (c *Context) Draw(figures ...figure.Figure) { c.drawn = append(c.drawn, figures...) }

// Compare puts what was measured beside what the paper says.
func (c *Context) Compare(claims ...Claim) { c.claims = append(c.claims, claims...) }

// Statement returns one of the experiment's, by its name. To ask for one that there is
// not is a mistake of the program.
func (c *Context) Statement(name string) *Statement {
	i := slices.IndexFunc(c.statements, func(s Statement) bool { return s.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("no statement %q", name))
	}
	return &c.statements[i]
}

// Figure gives a result a name of its own in the summary. The names of
// Summary's own fields are taken.
func (c *Context) Figure(name string, value any) {
	if c.figures == nil {
		c.figures = map[string]any{}
	}
	c.figures[name] = value
}

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

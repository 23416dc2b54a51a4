package experiments

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/test/measure"
)

// Failed is a case that could not be measured, in whole or in part. It costs the
// others nothing.
type Failed struct {
	Case  string `json:"case"`
	Round int    `json:"round"` // the last that failed
	Error string `json:"error"`
}

// failuresMost is how often a case is tried in vain; a later run tries again.
const failuresMost = 2

// rounds takes the samples that are missing: the cases take their turns in each
// round, in an order that favours none. No round begins that would end after
// the limit, 0 being none. It reports whether it has taken any sample; an error
// is that there is none at all.
func (c *Context) rounds(ctx context.Context, e Experiment, limit time.Duration) (taken bool, err error) {
	cases := e.Cases(c.Parameters)
	c.Progress.Begin(e.Name, len(cases)*c.Runs, c.taken(cases))
	open := make([]Subject, len(cases))
	defer func() {
		for _, s := range open {
			if s != nil {
				err = errors.Join(err, s.Close())
			}
		}
	}()
	began, longest := time.Now(), time.Duration(0)
	failures := make([]int, len(cases))
	for round := 1; round <= c.Runs; round++ {
		if limit > 0 && taken && time.Since(began)+longest > limit {
			c.Progress.Say("no time for round %d of %d; the same command goes on with it", round, c.Runs)
			break
		}
		start := time.Now()
		for _, i := range measure.Order(round-1, len(cases)) {
			if failures[i] >= failuresMost || c.Data.Has(cases[i].Name, strconv.Itoa(round)) {
				continue
			}
			err := c.turn(ctx, e, cases[i], &open[i], round)
			if ctx.Err() != nil {
				return taken, ctx.Err()
			}
			if err != nil {
				failures[i]++
				c.Fail(cases[i].Name, round, err)
				continue
			}
			taken = true
			c.Progress.Step(fmt.Sprintf("%s, round %d", cases[i].Name, round))
		}
		longest = max(longest, time.Since(start))
	}
	if len(c.Data.Rows()) == 0 {
		for _, f := range c.failed {
			err = errors.Join(err, fmt.Errorf("%s: %s", f.Case, f.Error))
		}
	}
	return taken, err
}

// turn takes the samples of a case in a round.
func (c *Context) turn(ctx context.Context, e Experiment, of Case, s *Subject, round int) (err error) {
	if *s == nil {
		if *s, err = of.Open(ctx, c); err != nil {
			*s = nil
			return err
		}
	}
	rows, err := (*s).Sample(ctx, round)
	if err != nil || !e.Lasting {
		err = errors.Join(err, (*s).Close())
		*s = nil
	}
	if err != nil {
		return err
	}
	for i := range rows {
		rows[i] = append([]string{of.Name, strconv.Itoa(round)}, rows[i]...)
	}
	return c.Data.Add(rows...)
}

// taken is how many rounds of the cases are there.
func (c *Context) taken(cases []Case) (n int) {
	for _, of := range cases {
		for round := 1; round <= c.Runs; round++ {
			if c.Data.Has(of.Name, strconv.Itoa(round)) {
				n++
			}
		}
	}
	return n
}

// Rounds is how many rounds the cases of an experiment have samples of.
type Rounds struct {
	Asked int `json:"asked"`
	Least int `json:"least"` // of the case with the fewest
	Most  int `json:"most"`  // of the case with the most
}

// String says it in words.
func (r Rounds) String() string {
	made := strconv.Itoa(r.Most)
	if r.Least != r.Most {
		made = fmt.Sprintf("%d to %d", r.Least, r.Most)
	}
	if r.Least != r.Asked || r.Most != r.Asked {
		made += fmt.Sprintf(" of %d", r.Asked)
	}
	if made == "1" {
		return "1 round"
	}
	return made + " rounds"
}

// Caption says what the figures of so many rounds are.
func (r Rounds) Caption() string {
	if r.Most < measure.IntervalLeast {
		return fmt.Sprintf("%v; medians, without intervals: they need %d rounds.", r, measure.IntervalLeast)
	}
	return fmt.Sprintf("%v; medians with 95 %% intervals (order statistics).", r)
}

// made counts the rounds that have left samples.
func (c *Context) made(cases []Case) Rounds {
	r := Rounds{Asked: c.Runs, Least: c.Runs}
	for _, of := range cases {
		n := c.Measured(of.Name)
		r.Least, r.Most = min(r.Least, n), max(r.Most, n)
	}
	return r
}

// Fail notes that a case, or a part of one, has failed.
func (c *Context) Fail(name string, round int, err error) {
	first, _, _ := strings.Cut(err.Error(), "\n")
	c.failed = slices.DeleteFunc(c.failed, func(f Failed) bool { return f.Case == name })
	c.failed = append(c.failed, Failed{name, round, strings.TrimSuffix(first, "; it said:")})
	c.Progress.Say("%s, round %d, failed: %v", name, round, err)
}

// Measured is how many rounds of a case are there.
func (c *Context) Measured(name string) int { return c.taken([]Case{{Name: name}}) }

// Filter chooses samples of a case: those whose columns have the values given,
// in pairs of column and value.
type Filter []string

// Where returns the filter of columns and values, in pairs.
func Where(pairs ...string) Filter { return pairs }

// All returns a column of all samples of a case that a filter lets pass; those
// that have no number are left out.
func (c *Context) All(column, name string, where Filter) (values []float64) {
	c.each(column, name, where, func(_ int, v float64) {
		if !math.IsNaN(v) {
			values = append(values, v)
		}
	})
	return values
}

// Rounds returns the median of a column in each round; NaN where there is none.
func (c *Context) Rounds(column, name string, where Filter) []float64 {
	return c.eachRound(column, name, where, func(s Spread) float64 { return s.Median })
}

// Means returns the mean of a column in each round; NaN where there is none.
func (c *Context) Means(column, name string, where Filter) []float64 {
	return c.eachRound(column, name, where, func(s Spread) float64 { return s.Mean })
}

func (c *Context) eachRound(column, name string, where Filter, of func(Spread) float64) []float64 {
	all := make([][]float64, c.Runs)
	c.each(column, name, where, func(round int, v float64) {
		if round >= 1 && round <= c.Runs && !math.IsNaN(v) {
			all[round-1] = append(all[round-1], v)
		}
	})
	values := make([]float64, c.Runs)
	for i, list := range all {
		values[i] = math.NaN()
		if len(list) > 0 {
			values[i] = of(NewSpread(list))
		}
	}
	return values
}

// Median returns the median of a column over the rounds of a case.
func (c *Context) Median(column, name string, where Filter) measure.Interval {
	return measure.Median(c.Rounds(column, name, where))
}

// Ratio returns the median of the ratio of a column of one case to that of
// another in the same round.
func (c *Context) Ratio(column, a, b string, where Filter) measure.Interval {
	return measure.Ratio(c.Rounds(column, a, where), c.Rounds(column, b, where))
}

// each calls f with the values of a column, NaN of what is no number.
func (c *Context) each(column, name string, where Filter, f func(round int, v float64)) {
	at := c.Data.column(column)
	for _, row := range c.rows(name, where) {
		round, _ := strconv.Atoi(row[1])
		v, err := strconv.ParseFloat(row[at], 64)
		if err != nil {
			v = math.NaN()
		}
		f(round, v)
	}
}

// Texts returns a column of all samples of a case that a filter lets pass, as it
// is.
func (c *Context) Texts(column, name string, where Filter) (list []string) {
	at := c.Data.column(column)
	for _, row := range c.rows(name, where) {
		list = append(list, row[at])
	}
	return list
}

// Has reports whether a round of a case has a sample that a filter lets pass.
func (c *Context) Has(name string, round int, where Filter) bool {
	return slices.ContainsFunc(c.rows(name, where), func(row []string) bool { return row[1] == strconv.Itoa(round) })
}

// rows returns the samples of a case that a filter lets pass.
func (c *Context) rows(name string, where Filter) (list [][]string) {
	columns := make([]int, len(where)/2)
	for i := range columns {
		columns[i] = c.Data.column(where[2*i])
	}
next:
	for _, row := range c.Data.Rows() {
		if row[0] != name {
			continue
		}
		for i, k := range columns {
			if row[k] != where[2*i+1] {
				continue next
			}
		}
		list = append(list, row)
	}
	return list
}

// column returns where a column is. To ask for one that there is not is a
// mistake of the program.
func (d *Data) column(name string) int {
	i := slices.Index(d.columns, name)
	if i < 0 {
		panic(fmt.Sprintf("no column %q in %q", name, d.columns))
	}
	return i
}

// Spread sums up a column of all samples of a case that a filter lets pass.
func (c *Context) Spread(column, name string, where Filter) Spread {
	return NewSpread(c.All(column, name, where))
}

// Once is a subject with nothing to prepare: it takes the samples of a round.
type Once func(ctx context.Context, round int) ([][]string, error)

// Sample takes them.
func (f Once) Sample(ctx context.Context, round int) ([][]string, error) { return f(ctx, round) }

// Close does nothing.
func (Once) Close() error { return nil }

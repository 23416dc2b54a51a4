package experiments

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// ToleranceMost is the most by which a figure may differ from the paper's, to it, and
// still reproduce it.
const ToleranceMost = 0.25

// Statement is what a paper says, as a test of one number: the range in which that
// number reproduces it. It is data of the experiment, written down before anything is
// measured. An absolute value of another machine is none; the ratio that the paper
// argues from is.
type Statement struct {
	Name string // by which a claim refers to it
	Says string // the paper's words: "7 times"
	Kind Kind
	// Low and High are the paper's: equal if it gives one value, the ends of its range,
	// or infinite where it sets no limit.
	Low, High float64
	Tolerance float64 // to Low and High
	// Ratio: the number is a ratio of two cases, so that 1 is no difference.
	Ratio bool
	// Cause is why Weft contradicts it, as far as a test or a count shows that; empty
	// if nothing does.
	Cause string
}

// Kind is what a statement says of a number.
type Kind string

// The kinds of statements. An order of two things is a limit of 1 on their ratio, a
// monotony a limit on the worst of the ratios from one step to the next, and a crossing
// or a best number is the place where it is.
const (
	KindValue Kind = "value" // that it is so much, within the tolerance
	KindRange Kind = "range" // that it is between two values, likewise
	KindLimit Kind = "limit" // that it is at most, or at least, so much
	KindOrder Kind = "order" // that it is below 1, or above
)

// Value returns the statement that a number is v, within a tolerance to it.
func Value(v, tolerance float64) Statement {
	return Statement{Kind: KindValue, Low: v, High: v, Tolerance: tolerance}
}

// Range returns the statement that a number is from low to high, within a tolerance to
// both.
func Range(low, high, tolerance float64) Statement {
	return Statement{Kind: KindRange, Low: low, High: high, Tolerance: tolerance}
}

// AtMost returns the statement that a number is at most v, exceeded by the tolerance.
func AtMost(v, tolerance float64) Statement {
	return Statement{Kind: KindLimit, Low: math.Inf(-1), High: v, Tolerance: tolerance}
}

// AtLeast returns the statement that a number is at least v, less the tolerance.
func AtLeast(v, tolerance float64) Statement {
	return Statement{Kind: KindLimit, Low: v, High: math.Inf(1), Tolerance: tolerance}
}

// Below returns the statement that a ratio is below 1.
func Below() Statement {
	return Statement{Kind: KindOrder, Low: math.Inf(-1), High: 1, Ratio: true}
}

// Above returns the statement that a ratio is above 1.
func Above() Statement { return Statement{Kind: KindOrder, Low: 1, High: math.Inf(1), Ratio: true} }

// Said returns the statement with its name and the paper's words.
func (s Statement) Said(name, words string) Statement {
	s.Name, s.Says = name, words
	return s
}

// OfRatio returns the statement as one about the ratio of two cases.
func (s Statement) OfRatio() Statement {
	s.Ratio = true
	return s
}

// Because returns the statement with the cause of a contradiction.
func (s Statement) Because(cause string) Statement {
	s.Cause = cause
	return s
}

// limits returns the range in which a number reproduces the statement.
func (s Statement) limits() (low, high float64) {
	if low, high = s.Low, s.High; s.Tolerance > 0 { // which infinity times 0 is not
		low, high = low-s.Tolerance*math.Abs(low), high+s.Tolerance*math.Abs(high)
	}
	return low, high
}

// place says where a number is: in the range that reproduces the statement (0), below
// it (-1) or above it (1).
func (s Statement) place(v float64) int {
	low, high := s.limits()
	strictly := s.Kind == KindOrder
	switch {
	case v < low, strictly && v <= low:
		return -1
	case v > high, strictly && v >= high:
		return 1
	}
	return 0
}

// Check returns what is wrong with a statement: it must have a name and the paper's
// words, and must be one that a number can contradict.
func (s Statement) Check() error {
	low, high := s.limits()
	switch {
	case s.Name == "" || s.Says == "":
		return errors.New("want a name, and the paper's words")
	case s.Tolerance < 0 || s.Tolerance > ToleranceMost:
		return fmt.Errorf("%s: tolerance of %v: want 0 to %v", s.Name, s.Tolerance, ToleranceMost)
	case math.IsNaN(low) || math.IsNaN(high) || low > high || math.IsInf(low, -1) && math.IsInf(high, 1):
		return fmt.Errorf("%s: from %v to %v: every number, or none, reproduces it", s.Name, s.Low, s.High)
	case s.Ratio && s.place(1) == 0 && (s.Low > 1 || s.High < 1):
		return fmt.Errorf("%s: the tolerance of %v has 1, which is no difference, reproduce a difference; want a lower one", s.Name, s.Tolerance)
	}
	return nil
}

// MarshalJSON writes the statement; a limit that it does not set is null.
func (s Statement) MarshalJSON() ([]byte, error) {
	finite := func(v float64) *float64 {
		if math.IsInf(v, 0) {
			return nil
		}
		return &v
	}
	low, high := s.limits()
	return json.Marshal(struct {
		Name  string   `json:"name"`
		Says  string   `json:"says"`
		Kind  Kind     `json:"kind"`
		Low   *float64 `json:"low"`
		High  *float64 `json:"high"`
		From  *float64 `json:"reproduced_from"`
		To    *float64 `json:"reproduced_to"`
		Cause string   `json:"cause,omitempty"`
	}{s.Name, s.Says, s.Kind, finite(s.Low), finite(s.High), finite(low), finite(high), s.Cause})
}

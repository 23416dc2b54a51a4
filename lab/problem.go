package lab

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing wrong with a topology.
type Problem struct {
	File    string // empty if the topology was not read from a file
	Line    int    // from 1; 0 if unknown
	What    string // what is wrong
	Allowed string // what is allowed; may be empty
}

func (p Problem) Error() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": ")
	}
	b.WriteString(p.What)
	if p.Allowed != "" {
		b.WriteString("; allowed: ")
		b.WriteString(p.Allowed)
	}
	return b.String()
}

// Problems is every problem found in a topology, in the order of its lines.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// maxProblems bounds the reported problems of a file; nobody reads more.
const maxProblems = 100

// first returns the first problems of a file, and how many there are besides.
func (ps Problems) first() Problems {
	more := len(ps) - maxProblems
	if more <= 0 {
		return ps
	}
	next := ps[maxProblems]
	return append(ps[:maxProblems:maxProblems], Problem{File: next.File, Line: next.Line, What: fmt.Sprintf("and %d more problems from here on", more)})
}

// err returns the problems as an error, nil if there are none.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b Problem) int { return a.Line - b.Line })
	return ps
}

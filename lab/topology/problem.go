package topology

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

// The bounds of the problems of a file: of those that are reported, since nobody reads
// more, and of those that are looked for.
const (
	maxProblems = 100
	maxSought   = 10 * maxProblems
)

// enough reports whether no more problems are looked for.
func (ps Problems) enough() bool { return len(ps) >= maxSought }

// first returns the first problems of a file, and how many there are besides.
func (ps Problems) first() Problems {
	more := len(ps) - maxProblems
	if more <= 0 {
		return ps
	}
	next, form := ps[maxProblems], "and %d more problems from here on"
	if ps.enough() {
		form = "and at least %d more problems from here on"
	}
	return append(ps[:maxProblems:maxProblems], Problem{File: next.File, Line: next.Line, What: fmt.Sprintf(form, more)})
}

// Short returns the first problems as an error, nil if there are none.
func (ps Problems) Short() error {
	if len(ps) == 0 {
		return nil
	}
	return ps.first()
}

// err returns the problems as an error, nil if there are none.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	slices.SortStableFunc(ps, func(a, b Problem) int { return a.Line - b.Line })
	return ps
}

// ProblemOf returns a problem of a host, at its line.
func (t *Topology) ProblemOf(h *Host, allowed, format string, args ...any) Problem {
	return Problem{File: t.file, Line: h.line, What: "host " + h.Name + ": " + fmt.Sprintf(format, args...), Allowed: allowed}
}

// ProblemOfProgram returns what is wrong with a program of a host, at its line.
func (t *Topology) ProblemOfProgram(h *Host, p *Program, err error) Problem {
	return Problem{File: t.file, Line: p.line, What: fmt.Sprintf("host %s, program %s: %v", h.Name, p.Name, err)}
}

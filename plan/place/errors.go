package place

import (
	"fmt"
	"strings"
)

// InvalidError is an instance that means nothing: unknown references, numbers
// that are none, cycles.
type InvalidError struct{ Problems []string }

// Error lists the problems, a line each.
func (e *InvalidError) Error() string {
	return "placement instance: " + strings.Join(e.Problems, "\n")
}

// Conflict is why there is no placement, and what would make one.
type Conflict struct {
	Kind   Kind   `json:"kind"`
	Shards []int  `json:"shards,omitempty"` // those that cannot all be placed
	Text   string `json:"text"`             // what does not go
	Mend   string `json:"mend"`             // what would
}

// String returns both sentences.
func (c Conflict) String() string {
	if c.Mend == "" {
		return c.Text
	}
	return c.Text + "; it would with " + c.Mend
}

// InfeasibleError is an instance without a placement, or one for which none was
// found.
type InfeasibleError struct {
	Conflicts []Conflict
	// Proven is false if a placement was only not found.
	Proven bool
	// Nearest is the placement that breaks least, nil if none was tried, and
	// Violations what it breaks.
	Nearest    []int
	Violations []Violation
}

// Error lists the conflicts, a line each.
func (e *InfeasibleError) Error() string {
	var b strings.Builder
	if e.Proven {
		b.WriteString("no placement keeps all constraints:")
	} else {
		b.WriteString("no placement found that keeps all constraints:")
	}
	for k, c := range e.Conflicts {
		if k == 0 {
			fmt.Fprintf(&b, " %s", c)
		} else {
			fmt.Fprintf(&b, "\n%s", c)
		}
	}
	return b.String()
}

package members

import (
	"testing"

	"github.com/weft-sdn/weft/plan"
)

// TestRecords: decisions cross as records when all processes read them, and not
// while one is of an earlier build.
func TestRecords(t *testing.T) {
	entries := map[string]*Entry{"a": {Records: true}, "b": {Records: true}}
	view := func() *View { return NewView(&Current{plan: &plan.Plan{}}, "a", entries, nil, nil) }
	if !view().Records {
		t.Error("not, though all read them")
	}
	entries["b"].Records = false
	if view().Records {
		t.Error("though b does not read them")
	}
}

package plan_test

import (
	"strings"
	"testing"
	"time"

	"weft/plan"
)

// Texts that nest or repeat as much as a plan may are read or refused in a
// bounded time, with a bounded number of mistakes.
func TestHostileTexts(t *testing.T) {
	for _, unit := range []string{"- ", "? ", "!a ", "&a ", "[", "{", "{a: ", "*a ", "a: ", "-\n ", "#", "\n", "'", "\"", "|", "a: b\n", "- a\n", "|\n", "---\n", "a,", "\\"} {
		text := strings.Repeat(unit, min(1<<16/len(unit), 4000))
		start := time.Now()
		_, err := plan.Parse("p.yaml", []byte(text))
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%q: %v", unit, took)
		}
		if err == nil || strings.Count(err.Error(), "\n") > 101 {
			t.Errorf("%q: %.300v", unit, err)
		}
	}
}

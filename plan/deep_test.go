package plan_test

import (
	"strings"
	"testing"
	"time"

	"weft/plan"
)

// Texts that nest or repeat without end cost a little time, and nothing else.
func TestHostileTexts(t *testing.T) {
	for _, unit := range []string{"- ", "? ", "!a ", "&a ", "[", "{", "{a: ", "*a ", "a: ", "-\n ", "#", "\n", "'", "\"", "|", "a: b\n", "- a\n", "|\n", "---\n", "a,", "\\"} {
		for _, n := range []int{3000, 1 << 18} {
			text := strings.Repeat(unit, min(n, (1<<20)/len(unit)))
			start := time.Now()
			plan.Parse("p.yaml", []byte(text))
			if took := time.Since(start); took > 300*time.Millisecond {
				t.Errorf("%q %d times: %v", unit, n, took)
			}
		}
	}
}

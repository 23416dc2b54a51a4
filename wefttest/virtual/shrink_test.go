package virtual

import (
	"slices"
	"testing"
)

// shrink returns a part of a list, in its order, with which something still fails, and
// without any one of whose elements it does not (Zeller and Hildebrandt, Simplifying and
// Isolating Failure-Inducing Input, 2002, ddmin without its subsets). Of several lists
// fails returns the place of the first that does; -1 if none does.
func shrink(list []string, fails func([][]string) int) []string {
	for parts := 2; len(list) > 0; {
		parts = min(parts, len(list))
		var without [][]string
		for i := range parts {
			without = append(without, slices.Concat(list[:i*len(list)/parts], list[(i+1)*len(list)/parts:]))
		}
		if i := fails(without); i >= 0 {
			list, parts = without[i], max(2, parts-1)
		} else if parts == len(list) {
			break
		} else {
			parts *= 2
		}
	}
	return list
}

func TestShrink(t *testing.T) {
	list := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
	for _, need := range []string{"", "a", "i", "bh", "adg", "abcdefghi"} {
		got := shrink(list, func(tries [][]string) int {
			return slices.IndexFunc(tries, func(try []string) bool {
				return !slices.ContainsFunc([]byte(need), func(c byte) bool { return !slices.Contains(try, string(c)) })
			})
		})
		var want []string
		for _, c := range need {
			want = append(want, string(c))
		}
		if !slices.Equal(got, want) {
			t.Errorf("shrink to %q: %q", need, got)
		}
	}
}

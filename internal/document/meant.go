package document

import (
	"slices"
	"strings"
)

// Meant returns a question for a mistake about an unknown name: whether the
// nearest known name was meant. It is empty if none is near.
func Meant(name string, names []string) string {
	if len(name) < 2 { // near to every other
		return ""
	}
	best, least := "", max(1, len(name)/3)+1
	for _, n := range slices.Sorted(slices.Values(names)) {
		d := distance(name, n)
		if strings.HasPrefix(n, name) || strings.HasPrefix(name, n) || strings.HasSuffix(n, "_"+name) {
			d = min(d, 1)
		}
		if d < least {
			best, least = n, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distanceMost is the longest name that is compared.
const distanceMost = 64

// distance returns the number of insertions, deletions, replacements and swaps
// of neighbouring letters between two names (optimal string alignment).
func distance(a, b string) int {
	if len(a) > distanceMost || len(b) > distanceMost {
		return distanceMost
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

package msn

import "slices"

// sortTargets sorts the targets of a switch's controllers in the order in
// which they were given: by the length of their names first, for they are
// numbered.
func sortTargets(list []string) {
	slices.SortFunc(list, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return slices.Compare([]byte(a), []byte(b))
	})
}

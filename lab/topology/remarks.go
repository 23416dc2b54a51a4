package topology

import (
	"fmt"
	"slices"
	"strings"
)

// maxRemarks is how many remarks of a kind are made.
const maxRemarks = 10

// Remarks returns what is odd about a completed topology, though it can be
// brought up: parts that no link joins, links beside others between the same
// two switches, loops from a node to itself that were left out, and
// what else a drawing said that a lab does not have.
func Remarks(t *Topology) []string {
	return slices.Concat(parts(t), parallel(t), selfLoops(t), t.remarks)
}

// Shorten keeps the first remarks of a kind, and says how many more there are.
func Shorten(remarks []string) []string {
	if more := len(remarks) - maxRemarks; more > 0 {
		return append(remarks[:maxRemarks:maxRemarks], fmt.Sprintf("and %d more like this", more))
	}
	return remarks
}

func parts(t *Topology) []string {
	near := map[string][]string{}
	for _, l := range t.Links {
		near[l.A], near[l.B] = append(near[l.A], l.B), append(near[l.B], l.A)
	}
	seen := map[string]bool{}
	var all []string
	for _, s := range t.Switches {
		if seen[s.Name] {
			continue
		}
		seen[s.Name] = true
		part := []string{s.Name}
		for i := 0; i < len(part); i++ {
			for _, n := range near[part[i]] {
				if !seen[n] {
					seen[n] = true
					part = append(part, n)
				}
			}
		}
		if n := len(part); n > 5 {
			part = append(part[:5:5], fmt.Sprintf("… (%d switches)", n))
		}
		all = append(all, strings.Join(part, ", "))
	}
	if len(all) < 2 {
		return nil
	}
	remarks := []string{fmt.Sprintf("the network is in %d parts that no link joins: hosts of one do not reach those of another", len(all))}
	for i := range all {
		all[i] = fmt.Sprintf("part %d: %s", i+1, all[i])
	}
	return append(remarks, Shorten(all)...)
}

func parallel(t *Topology) (remarks []string) {
	count := map[[2]string]int{}
	var order [][2]string
	for _, l := range t.Links {
		pair := [2]string{min(l.A, l.B), max(l.A, l.B)}
		if count[pair]++; count[pair] == 2 {
			order = append(order, pair)
		}
	}
	for _, pair := range order {
		remarks = append(remarks, fmt.Sprintf("%d parallel links join %s and %s", count[pair], pair[0], pair[1]))
	}
	return Shorten(remarks)
}

func selfLoops(t *Topology) (remarks []string) {
	for _, s := range t.selfLoops {
		remarks = append(remarks, fmt.Sprintf("a link from %s to itself was left out", s))
	}
	return Shorten(remarks)
}

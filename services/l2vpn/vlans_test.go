package l2vpn

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestVLANLists: lists are read in any order and written in one; their blocks have each VLAN of
// theirs once, and no other.
func TestVLANLists(t *testing.T) {
	for text, want := range map[string]string{
		"10-20,30": "10-20,30", "30,10-20": "10-20,30", "1,2,3,5": "1-3,5", "7": "7", "5-9,8-12,13": "5-13", "1-4094": "1-4094", "4,4": "4",
	} {
		if l, err := parseVLANs(text); err != nil || string(l) != want {
			t.Errorf("%s: %s, %v; want %s", text, l, err, want)
		}
	}
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprint(2*i + 1)
	}
	if _, err := parseVLANs(strings.Join(many, ",")); err == nil || !strings.Contains(err.Error(), "at most 64") {
		t.Error(err)
	}
	rng := rand.New(rand.NewPCG(1, 0))
	for range 200 {
		var parts []string
		want := map[uint16]bool{}
		for range 1 + rng.IntN(5) {
			first := 1 + rng.IntN(4094)
			last := min(first+rng.IntN(300), 4094)
			parts = append(parts, fmt.Sprintf("%d-%d", first, last))
			for v := first; v <= last; v++ {
				want[uint16(v)] = true
			}
		}
		l, err := parseVLANs(strings.Join(parts, ","))
		if err != nil {
			t.Fatal(err)
		}
		blocks := l.blocks()
		for v := range uint16(4096) {
			n := 0
			for _, b := range blocks {
				if v&b.Mask == b.ID {
					n++
				}
			}
			if n > 1 || n == 1 != want[v] || v > 0 && l.has(v) != want[v] {
				t.Fatalf("%s: VLAN %d is in %d blocks of %v; want it: %v", l, v, n, blocks, want[v])
			}
		}
	}
}

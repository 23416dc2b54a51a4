package classbench

import "testing"

// TestSets checks that rule sets have what makes them hard: many shapes, rules
// that overlap, all of them reached by packets.
func TestSets(t *testing.T) {
	for _, seed := range Seeds {
		rules := Generate(seed, 5000, 1)
		again := Generate(seed, 5000, 1)
		type shape struct {
			src, dst int
			proto    uint8
			exact    bool
		}
		shapes := map[shape]bool{}
		for i, r := range rules {
			if r != again[i] {
				t.Fatalf("%s: rule %d differs from run to run", seed, i)
			}
			shapes[shape{r.Src.Bits(), r.Dst.Bits(), r.Proto, r.DstLo == r.DstHi}] = true
		}
		overlaps, hit := 0, map[int]bool{}
		trace := Trace(rules, 2000, 2)
		for i := range trace {
			n := 0
			for j := range rules {
				if rules[j].Matches(&trace[i]) {
					if n == 0 {
						hit[j] = true
					}
					n++
				}
			}
			if n == 0 {
				t.Fatalf("%s: packet %v is in no rule", seed, trace[i])
			}
			if n > 1 {
				overlaps++
			}
		}
		t.Logf("%s: %d shapes, %d of 2000 packets in several rules, %d rules decide", seed, len(shapes), overlaps, len(hit))
		if len(shapes) < 200 || overlaps < 150 || len(hit) < 150 {
			t.Errorf("%s: %d shapes, %d overlaps, %d rules that decide: want a set that is hard", seed, len(shapes), overlaps, len(hit))
		}
	}
}

package discovery

import "testing"

// TestNoiseIsCurrent: a time counts as soon as it is known, until it is old; and
// to ask, as each probe of a link on trial does, allocates nothing.
func TestNoiseIsCurrent(t *testing.T) {
	var n jitter
	now := int64(1e18)
	for i := range jitterLeast {
		if _, known := n.median(now); known {
			t.Fatalf("known after %d times", i)
		}
		now += jitterSpan
		n.add(now, 5*ms)
	}
	if level, known := n.median(now); !known || level != 5*ms {
		t.Fatalf("level %d, known %v", level, known)
	}
	for range jitterLeast + 1 {
		now += jitterSpan
		n.add(now, 9*ms)
	}
	if level, _ := n.median(now); level != 9*ms {
		t.Errorf("level %d after more and longer times", level)
	}
	if a := testing.AllocsPerRun(100, func() { n.median(now); now++ }); a != 0 {
		t.Errorf("%v allocations", a)
	}
	if _, known := n.median(now + jitterFor + jitterSpan); known {
		t.Error("known by old times")
	}
}

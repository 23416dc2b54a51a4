package discovery

import "testing"

// TestNoiseIsCurrent: a time counts as soon as it is known, until it is old; and
// to ask, as each probe of a link on trial does, allocates nothing.
func TestNoiseIsCurrent(t *testing.T) {
	var n noise
	now := int64(1e18)
	for i := range noiseLeast {
		if _, known := n.level(now); known {
			t.Fatalf("known after %d times", i)
		}
		now += noiseSpan
		n.add(now, 5*ms)
	}
	if level, known := n.level(now); !known || level != 5*ms {
		t.Fatalf("level %d, known %v", level, known)
	}
	for range noiseLeast + 1 {
		now += noiseSpan
		n.add(now, 9*ms)
	}
	if level, _ := n.level(now); level != 9*ms {
		t.Errorf("level %d after more and longer times", level)
	}
	if a := testing.AllocsPerRun(100, func() { n.level(now); now++ }); a != 0 {
		t.Errorf("%v allocations", a)
	}
	if _, known := n.level(now + noiseFor + noiseSpan); known {
		t.Error("known by old times")
	}
}

package run

import "testing"

func TestGarbageIsBounded(t *testing.T) {
	for _, c := range []struct {
		inUse uint64
		want  int
	}{
		{0, 400}, {10 << 20, 400}, {48 << 20, 400}, {96 << 20, 200}, {192 << 20, 100}, {512 << 20, 37}, {8 << 30, 33},
	} {
		if got := gcPercentFor(c.inUse); got != c.want {
			t.Errorf("%d MiB in use: %d percent, want %d", c.inUse>>20, got, c.want)
		}
	}
}

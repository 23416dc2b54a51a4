package main

import "testing"

func TestGarbageIsBounded(t *testing.T) {
	for _, c := range []struct {
		inUse uint64
		want  int
	}{
		{0, 400}, {10 << 20, 400}, {64 << 20, 400}, {128 << 20, 200}, {256 << 20, 100}, {512 << 20, 50}, {8 << 30, 50},
	} {
		if got := gcPercentFor(c.inUse); got != c.want {
			t.Errorf("%d MiB in use: %d percent, want %d", c.inUse>>20, got, c.want)
		}
	}
}

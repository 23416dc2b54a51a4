package run

import (
	"runtime"
	"testing"
)

func TestGarbageIsBounded(t *testing.T) {
	for _, c := range []struct {
		inUse uint64
		want  int
	}{
		{0, 400}, {10 << 20, 400}, {48 << 20, 400}, {96 << 20, 200}, {192 << 20, 100}, {512 << 20, 37}, {8 << 30, 25},
	} {
		if got := gcPercentFor(c.inUse); got != c.want {
			t.Errorf("%d MiB in use: %d percent, want %d", c.inUse>>20, got, c.want)
		}
	}
}

// What is let go of is spare, what is held is not.
func TestSpareMemory(t *testing.T) {
	runtime.GC()
	before := spareMemory()
	held := make([][]byte, 64)
	for i := range held {
		held[i] = make([]byte, 1<<20)
	}
	for i := range held {
		held[i][0] = 1
	}
	runtime.GC()
	if more := spareMemory() - before; more > 32<<20 {
		t.Errorf("%d MiB more are spare while they are held", more>>20)
	}
	runtime.KeepAlive(held)
	held = nil
	runtime.GC()
	if more := spareMemory() - before; more < 32<<20 {
		t.Errorf("%d MiB more are spare of 64 that were let go of", more>>20)
	}
}

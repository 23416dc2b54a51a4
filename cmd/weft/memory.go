package main

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// Garbage is collected when the heap has grown by this much, in percent: the
// controller's heap is small and its packets come fast.
const gcPercent = 400

// tuneMemory trades memory for speed, within 60 percent of what there is. The
// environment's GOGC and GOMEMLIMIT have precedence.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if total := memory(); os.Getenv("GOMEMLIMIT") == "" && total > 0 {
		debug.SetMemoryLimit(total / 10 * 6)
	}
}

// memory returns the memory that this process may use, in octets: that of the
// control group or of the machine, whichever is less; 0 if neither is known.
func memory() int64 {
	least := int64(math.MaxInt64)
	if b, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 {
			least = n
		}
	}
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
				if kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64); err == nil {
					least = min(least, kb<<10)
				}
			}
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

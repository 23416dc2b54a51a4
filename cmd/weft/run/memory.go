package run

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/internal/cputime"
)

// Garbage is collected when the heap has grown by gcPercent of what is in use:
// the controller's heap is small and its packets come fast. Of a heap that is
// large, a network of thousands of switches, this would be gigabytes; so it is at
// most gcSpare, but never less than gcLeast percent, for else there would be
// nothing but collecting.
const (
	gcPercent = 400
	gcSpare   = 192 << 20
	gcLeast   = 25
)

// gcPercentFor returns by how much a heap may grow, in percent of what is in use.
func gcPercentFor(inUse uint64) int {
	if inUse == 0 {
		return gcPercent
	}
	return int(min(max(gcSpare*100/inUse, gcLeast), gcPercent))
}

// tuneMemory trades memory for speed, within 60 percent of what there is. The
// environment's GOGC and GOMEMLIMIT have precedence.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		afterEachCollection(func() {
			sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
			metrics.Read(sample)
			if sample[0].Value.Kind() == metrics.KindUint64 {
				debug.SetGCPercent(gcPercentFor(sample[0].Value.Uint64()))
			}
		})
	}
	if total := Memory(); os.Getenv("GOMEMLIMIT") == "" && total > 0 {
		debug.SetMemoryLimit(total / 10 * 6)
	}
	go tidyWhenIdle()
}

// What a controller that has nothing to do holds without need is given back: what
// many entries, or a network that connects, leave behind would else stay for good,
// for the next collection comes when there is as much garbage again.
const (
	tidyEvery = 5 * time.Second
	tidyIdle  = tidyEvery / 20 // of processors' time in between
	tidyLeast = 16 << 20       // octets that are worth it
)

// tidyWhenIdle gives memory back whenever the process is idle. It never ends.
func tidyWhenIdle() {
	for used := cputime.Used(); ; {
		time.Sleep(tidyEvery)
		now := cputime.Used()
		if now-used < tidyIdle && spareMemory() >= tidyLeast {
			runtime.GC() // the second collection takes what lies in pools
			debug.FreeOSMemory()
			now = cputime.Used()
		}
		used = now
	}
}

// spareMemory returns how many octets of the heap are garbage or free and not
// given back, as far as the last collection tells.
func spareMemory() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(sample)
	for i := range sample {
		if sample[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
	}
	return int64(sample[0].Value.Uint64()) - int64(sample[1].Value.Uint64()) + int64(sample[2].Value.Uint64())
}

// afterEachCollection has f called after each collection of garbage.
func afterEachCollection(f func()) {
	runtime.AddCleanup(new(*byte), func(struct{}) {
		f()
		afterEachCollection(f)
	}, struct{}{})
}

// Memory returns the memory that this process may use, in octets: that of the
// control group or of the machine, whichever is less; 0 if neither is known.
func Memory() int64 {
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

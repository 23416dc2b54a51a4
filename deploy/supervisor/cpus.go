package supervisor

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxCPUs is how many CPUs a unix.CPUSet has room for.
const maxCPUs = 1024

// parseCPUs reads a list of CPUs, such as "0-1,3". The empty list is nil.
func parseCPUs(list string) (*unix.CPUSet, error) {
	if list == "" {
		return nil, nil
	}
	set := new(unix.CPUSet)
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.ParseUint(low, 10, 16)
		to := from
		if err == nil && isRange {
			to, err = strconv.ParseUint(high, 10, 16)
		}
		if err != nil || to < from || to >= maxCPUs {
			return nil, fmt.Errorf("CPUs %q: %q is neither a CPU nor a range of them; write for example 0-1,3", list, part)
		}
		for cpu := from; cpu <= to; cpu++ {
			set.Set(int(cpu))
		}
	}
	return set, nil
}

// formatCPUs writes a set as parseCPUs reads it.
func formatCPUs(set *unix.CPUSet) string {
	var b strings.Builder
	for cpu := 0; cpu < maxCPUs; cpu++ {
		if !set.IsSet(cpu) {
			continue
		}
		first := cpu
		for cpu+1 < maxCPUs && set.IsSet(cpu+1) {
			cpu++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, first)
		if cpu > first {
			fmt.Fprintf(&b, "-%d", cpu)
		}
	}
	return b.String()
}

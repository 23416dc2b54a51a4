package machine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Confine has this thread, and what it starts, use these CPUs alone.
func Confine(cpus []int) error {
	var set unix.CPUSet
	for _, n := range cpus {
		set.Set(n)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("use CPUs %v: %w", cpus, err)
	}
	return nil
}

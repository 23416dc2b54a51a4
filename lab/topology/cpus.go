package topology

import (
	"fmt"
	"slices"
)

// MostCPU is the highest number of a CPU that can be named.
const MostCPU = 1023

func (c *checker) cpus(h *Host) {
	for i, n := range h.CPUs {
		switch {
		case n < 0 || n > MostCPU:
			c.add(h.line, fmt.Sprintf("0 to %d", MostCPU), "host %s: CPU %d", h.Name, n)
		case slices.Contains(h.CPUs[:i], n):
			c.add(h.line, "", "host %s: CPU %d is named twice", h.Name, n)
		}
	}
}

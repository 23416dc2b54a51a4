package firewall

import (
	"sync"
	"sync/atomic"
)

// count counts packets and their octets in one atomic step.
type count struct {
	recent atomic.Uint64 // packets in the upper bits, octets in the lower countShift

	mu             sync.Mutex // guards the following
	packets, bytes uint64     // before recent
}

// A packet has less than 1<<16 octets. add empties recent after 1<<23 packets, so
// neither their octets nor those counted meanwhile reach the bits of packets.
const (
	countShift = 40
	countMost  = 1 << 23
)

// add counts a packet.
func (c *count) add(octets uint16) {
	if c.recent.Add(1<<countShift|uint64(octets))>>countShift >= countMost {
		c.mu.Lock()
		c.fold()
		c.mu.Unlock()
	}
}

// fold empties recent. The caller holds mu.
func (c *count) fold() {
	n := c.recent.Swap(0)
	c.packets += n >> countShift
	c.bytes += n & (1<<countShift - 1)
}

// read returns the counts.
func (c *count) read() (packets, bytes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fold()
	return c.packets, c.bytes
}

package l2vpn

import "github.com/weft-sdn/weft/flow"

// confirmations are what switches have confirmed of a circuit. The store's mu guards them.
type confirmations struct {
	version uint64               // counts the circuit's changes
	asked   map[flow.DPID]uint64 // the version in the set that a switch was last declared
	has     map[flow.DPID]uint64 // the version that a switch has confirmed
	refused map[flow.DPID]string // why a switch has not all of its entries
}

func newConfirmations() confirmations {
	return confirmations{asked: map[flow.DPID]uint64{}, has: map[flow.DPID]uint64{}, refused: map[flow.DPID]string{}}
}

// confirmed reports whether a switch has all of the circuit as it is.
func (c *confirmations) confirmed(sw flow.DPID) bool { return c.has[sw] == c.version }

// answer takes over why a switch has not all that it was asked for, empty if it has. It
// reports whether that is another answer than before.
func (c *confirmations) answer(sw flow.DPID, why string) bool {
	if c.refused[sw] == why && (why != "" || c.has[sw] == c.asked[sw]) {
		return false
	}
	if c.refused[sw] = why; why == "" {
		delete(c.refused, sw)
		c.has[sw] = c.asked[sw]
	}
	return true
}

// forget forgets what a switch has answered.
func (c *confirmations) forget(sw flow.DPID) {
	delete(c.has, sw)
	delete(c.refused, sw)
}

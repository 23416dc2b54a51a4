package l2vpn

import "github.com/weft-sdn/weft/flow"

// numbers are labels or meters in use, on each switch. A number that was given
// back is given out again only when all others were: frames with a label may still be
// under way.
type numbers struct {
	first, last uint32
	used        map[flow.DPID]map[uint32]bool
	next        map[flow.DPID]uint32
}

func newNumbers(first, last uint32) *numbers {
	return &numbers{first: first, last: last, used: map[flow.DPID]map[uint32]bool{}, next: map[flow.DPID]uint32{}}
}

// take takes a number of a switch; false if all are in use.
func (n *numbers) take(sw flow.DPID) (uint32, bool) {
	used := n.used[sw]
	at := n.next[sw]
	for range n.last - n.first + 1 {
		if len(used) > int(n.last-n.first) {
			break
		}
		if at < n.first || at > n.last {
			at = n.first
		}
		if !used[at] {
			n.mark(sw, at)
			n.next[sw] = at + 1
			return at, true
		}
		at++
	}
	return 0, false
}

// peek returns the number that take would take; 0 if all are in use.
func (n *numbers) peek(sw flow.DPID) uint32 {
	next, had := n.next[sw]
	number, ok := n.take(sw)
	if !ok {
		return 0
	}
	n.give(sw, number)
	if n.next[sw] = next; !had {
		delete(n.next, sw)
	}
	return number
}

// mark records that a number is in use.
func (n *numbers) mark(sw flow.DPID, number uint32) {
	if n.used[sw] == nil {
		n.used[sw] = map[uint32]bool{}
	}
	n.used[sw][number] = true
	n.next[sw] = max(n.next[sw], number+1)
}

// give gives a number back.
func (n *numbers) give(sw flow.DPID, number uint32) {
	if delete(n.used[sw], number); len(n.used[sw]) == 0 {
		delete(n.used, sw)
	}
}

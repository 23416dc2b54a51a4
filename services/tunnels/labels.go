package tunnels

import "github.com/weft-sdn/weft/flow"

// labels are those in use, on each switch. A label that was given back is given
// out again only when all others were: frames with it may still be under way.
type labels struct {
	used map[flow.DPID]map[uint32]bool
	next map[flow.DPID]uint32
}

func newLabels() *labels {
	return &labels{used: map[flow.DPID]map[uint32]bool{}, next: map[flow.DPID]uint32{}}
}

// take takes a label of a switch between first and last; false if all are in
// use.
func (l *labels) take(sw flow.DPID, first, last uint32) (uint32, bool) {
	used := l.used[sw]
	if len(used) > int(last-first) {
		return 0, false
	}
	at := l.next[sw]
	for range last - first + 1 {
		if at < first || at > last {
			at = first
		}
		if !used[at] {
			l.mark(sw, at)
			return at, true
		}
		at++
	}
	return 0, false
}

// mark records that a label is in use.
func (l *labels) mark(sw flow.DPID, label uint32) {
	if l.used[sw] == nil {
		l.used[sw] = map[uint32]bool{}
	}
	l.used[sw][label] = true
	l.next[sw] = label + 1
}

// give gives a label back.
func (l *labels) give(sw flow.DPID, label uint32) {
	if delete(l.used[sw], label); len(l.used[sw]) == 0 {
		delete(l.used, sw)
	}
}

// release gives the labels of a path, or of some of its hops, back.
func (l *labels) release(p lsp) {
	for _, h := range p {
		if h.label != 0 {
			l.give(h.sw, h.label)
		}
	}
}

package discovery

import (
	"cmp"
	"slices"
	"time"
)

// arrangeEvery is the least time between two arrangements, unless the number of
// links has at least doubled.
const arrangeEvery = int64(5 * time.Second)

// orderSwitches orders the switches for sending probes, after links have come or
// gone: breadth first over the links, so that the neighbours of a switch send
// one after the other. Their probes then reach it in few batches rather than
// one by one, each at the cost of a wake-up, and the probes of the whole
// network are spread evenly over time.
func (t *topology) orderSwitches(now int64) {
	if !t.moved {
		return
	}
	if at := t.arranged + arrangeEvery; at > now && len(t.links) < 2*t.ordered+1000 {
		t.schedule(at)
		return
	}
	t.moved, t.arranged, t.ordered = false, now, len(t.links)
	t.setStretch()
	roots := slices.Clone(t.order)
	slices.SortFunc(roots, func(a, b *datapath) int { return cmp.Compare(a.id, b.id) })
	seen := make(map[*datapath]bool, len(roots))
	t.order = t.order[:0]
	done := 0
	visit := func(dp *datapath) {
		if !seen[dp] {
			seen[dp] = true
			t.order = append(t.order, dp)
		}
	}
	for _, root := range roots {
		for visit(root); done < len(t.order); done++ {
			for _, p := range t.order[done].ports {
				if p.out != nil {
					visit(p.out.dst.dp)
				}
			}
		}
	}
	for i, dp := range t.order {
		at := float64(i) / float64(len(t.order)) * float64(t.stretch)
		dp.turn = int64(at)
		dp.phase = at - float64(dp.turn)
	}
}

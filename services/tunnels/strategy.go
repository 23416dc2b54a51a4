package tunnels

import (
	"fmt"
	"slices"

	"github.com/weft-sdn/weft/api"
)

// The strategies by which a tunnel chooses among paths.
const (
	leastCost    = "cost" // stored as no strategy
	leastLatency = "latency"
	widest       = "widest"
)

// minimised are the strategies as paths has them.
var minimised = map[string]string{leastLatency: "delay", widest: "narrowness"}

// latencyGain is which part less delay another path must have for a tunnel to move there: delays that are measured
// are never twice the same.
const latencyGain = 10

// An attempt is what is asked for at once: how far paths are to be apart, and how long they may take.
type attempt struct {
	level int
	us    uint64
}

// attempts returns what is asked for what a quest seeks, each for less than the one before. A second path comes
// before what is wanted of delay, where more of that is tolerated.
func (q *quest) attempts() (list []attempt) {
	w := q.t.wanted
	try := func(levels ...int) {
		bounds := []uint64{w.MaxDelayUs}
		if w.ToleratedDelayUs > 0 {
			bounds = append(bounds, w.ToleratedDelayUs)
		}
		for _, us := range bounds {
			for _, level := range levels {
				list = append(list, attempt{level, us})
			}
		}
	}
	switch {
	case q.kept != nil:
		try(0, 1, 2)
	case q.t.protect:
		try(0, 1, 2)
		try(len(kinds))
	default:
		try(0)
	}
	return list
}

// demand returns what paths is asked at each attempt, nil after the last.
func (r *repairer) demand(q *quest, n int) (*api.PathDemand, error) {
	list := q.attempts()
	if n >= len(list) {
		return nil, nil
	}
	return r.demandFor(q, list[n])
}

// timelyFirst puts paths within what is wanted of delay before those that are tolerated. It is called with mu held.
func timelyFirst(b *store, t *tunnel, paths []lsp) {
	if w := t.wanted; w.ToleratedDelayUs > 0 {
		late := func(p lsp) int {
			if b.links.delay(p) > w.MaxDelayUs {
				return 1
			}
			return 0
		}
		slices.SortStableFunc(paths, func(p, q lsp) int { return late(p) - late(q) })
	}
}

// late returns why the path in use takes longer than is wanted, though it is tolerated; empty if it does not. It is
// called with mu held.
func (s *status) late(b *store) string {
	w := s.tunnel.wanted
	if w.ToleratedDelayUs == 0 || s.entered == nil {
		return ""
	}
	if us := b.links.delay(s.path(s.active)); us > w.MaxDelayUs {
		return fmt.Sprintf("its path takes %d µs, and no path is within max_delay_us, %d", us, w.MaxDelayUs)
	}
	return ""
}

// A worth is what the paths of a tunnel cost, and how long they take together.
type worth struct{ cost, delay uint64 }

// better reports whether paths are worth a move from those that a tunnel has.
func (t *tunnel) better(now, had worth, late bool) bool {
	switch {
	case late && now.delay < had.delay: // sought within the bound first
		return true
	case t.wanted.Strategy == leastLatency:
		return now.delay+now.delay/latencyGain < had.delay
	case t.wanted.Strategy == widest: // others come and go
		return false
	}
	return now.cost < had.cost
}

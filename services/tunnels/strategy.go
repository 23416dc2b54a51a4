package tunnels

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

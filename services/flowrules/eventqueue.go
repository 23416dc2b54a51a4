package flowrules

import (
	"context"
	"sync"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/object"
)

// failuresMax bounds the refusals that wait to be published.
const failuresMax = 4096

// eventQueue publishes observations and failures on its own goroutine, because a
// subscriber may wait for the worker that reports them. Of several readings
// of one switch only the last counts, so the queue is bounded.
type eventQueue struct {
	mu       sync.Mutex // guards what follows
	order    [][2]string
	observed map[[2]string]*api.FlowsObserved // by switch and owner
	failures []*api.WantedFlow

	bell chan struct{}
	shed Counter
}

func newEventQueue(shed Counter) *eventQueue {
	return &eventQueue{observed: map[[2]string]*api.FlowsObserved{}, bell: make(chan struct{}, 1), shed: shed}
}

func (n *eventQueue) add(observed []*api.FlowsObserved, failures []*api.WantedFlow) {
	if len(observed)+len(failures) == 0 {
		return
	}
	n.mu.Lock()
	for _, o := range observed {
		k := [2]string{o.GetDpid(), o.GetOwner()}
		if n.observed[k] == nil {
			n.order = append(n.order, k)
		}
		n.observed[k] = o
	}
	room := min(failuresMax-len(n.failures), len(failures))
	n.failures = append(n.failures, failures[:room]...)
	n.mu.Unlock()
	n.shed.Add(float64(len(failures) - room))
	object.Notify(n.bell)
}

func (n *eventQueue) next() (*api.FlowsObserved, *api.WantedFlow) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.order) > 0 {
		k := n.order[0]
		n.order = n.order[1:]
		o := n.observed[k]
		delete(n.observed, k)
		return o, nil
	}
	if len(n.failures) > 0 {
		f := n.failures[0]
		n.failures = n.failures[1:]
		return nil, f
	}
	return nil, nil
}

// run publishes until ctx ends.
func (n *eventQueue) run(ctx context.Context, observed func(*api.FlowsObserved), failed func(*api.FlowFailed)) {
	for {
		o, f := n.next()
		switch {
		case o != nil:
			observed(o)
		case f != nil:
			failed(&api.FlowFailed{Flow: f})
		default:
			select {
			case <-ctx.Done():
				return
			case <-n.bell:
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}

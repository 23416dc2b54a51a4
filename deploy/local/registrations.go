package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// registrations are what a service registers while it is set up, of what its Spec
// declares.
type registrations struct {
	Spec          *weft.Spec
	methods       []*method                // that it serves, even after its removal from the tables
	Subscriptions map[string]*subscription // by subject
	replicas      *subscription            // of changes in their number
	changes       *subscription            // of its configuration

	asked  atomic.Pointer[func(question []byte) []byte]        // nil: not registered
	limits atomic.Pointer[func(now int64) []*api.LimitReached] // likewise

	mu       sync.Mutex // guards what follows
	open     func(flow.DPID) weft.StageFunc
	mistakes []error
	ready    bool
}

// Handle registers the handler of a method.
func (r *registrations) Handle(m weft.Method, h func(context.Context, any) (any, error)) {
	at := slices.IndexFunc(r.methods, func(own *method) bool { return own.name == m.MethodName() })
	r.register(at >= 0, "the handler of "+m.MethodName(), func() bool {
		return r.methods[at].handler.CompareAndSwap(nil, &h)
	})
}

// Subscribe registers an event handler.
func (r *registrations) Subscribe(sub weft.Subject, h func(context.Context, any)) {
	at := r.Subscriptions[sub.SubjectName()]
	r.register(at != nil, "the handler of "+sub.SubjectName(), func() bool {
		if at.handler != nil || at.base != nil {
			return false
		}
		at.handler = h
		return true
	})
}

// Stage registers the service's stage.
func (r *registrations) Stage(open func(flow.DPID) weft.StageFunc) {
	r.register(r.Spec.Stage, "its stage", func() bool {
		if r.open != nil {
			return false
		}
		r.open = open
		return true
	})
}

// OnReplicas registers a handler of changes in the number of instances.
func (r *registrations) OnReplicas(h func(index, count int)) {
	r.register(true, "the handler of replicas", func() bool {
		if r.replicas.handler != nil {
			return false
		}
		r.replicas.handler = func(_ context.Context, event any) {
			n := event.(uint64)
			h(int(n>>32), int(uint32(n)))
		}
		return true
	})
}

// OnLimits registers what lists the limits that were reached lately.
func (r *registrations) OnLimits(list func(now int64) []*api.LimitReached) {
	r.register(true, "what lists its limits", func() bool { return r.limits.CompareAndSwap(nil, &list) })
}

// OnConfig registers the handler of a new configuration.
func (r *registrations) OnConfig(take func(ctx context.Context, old, new any) error) {
	r.register(len(r.Spec.Live) > 0, "what takes over configurations", func() bool {
		if r.changes.handler != nil {
			return false
		}
		r.changes.handler = func(_ context.Context, event any) {
			t := event.(*takeover)
			err := fmt.Errorf("service %s: panic while it took over a configuration; the log says where", r.Spec.Name)
			defer func() { t.done <- err }()
			if err = t.ctx.Err(); err == nil {
				err = take(t.ctx, t.old, t.new)
			}
		}
		return true
	})
}

// AnswerPeers registers the handler of questions from other instances.
func (r *registrations) AnswerPeers(h func([]byte) []byte) {
	r.register(true, "what answers other instances", func() bool { return r.asked.CompareAndSwap(nil, &h) })
}

// AnswerAsked answers a question of another instance; false if nothing is
// registered for that.
func (r *registrations) AnswerAsked(question []byte) ([]byte, bool) {
	h := r.asked.Load()
	if h == nil {
		return nil, false
	}
	return (*h)(question), true
}

// register makes one registration and records what is wrong with it.
func (r *registrations) register(declared bool, what string, do func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ready:
		panic(fmt.Sprintf("%s registers %s after weft.Ready; do it before", r.Spec.Name, what))
	case !declared:
		r.mistakes = append(r.mistakes, fmt.Errorf("%s registers %s, which its Spec does not declare", r.Spec.Name, what))
	case !do():
		r.mistakes = append(r.mistakes, fmt.Errorf("%s registers %s twice", r.Spec.Name, what))
	}
}

// listUnregistered returns an error for each declaration of the Spec that the set-up
// did not register.
func (r *registrations) listUnregistered() (errs []error) {
	for _, m := range r.methods {
		if m.handler.Load() == nil {
			errs = append(errs, fmt.Errorf("%s lists %s in Serves, but has no handler for it; add weft.Handle before weft.Ready", r.Spec.Name, m.name))
		}
	}
	for _, sub := range r.Spec.Wants() {
		if at := r.Subscriptions[sub.SubjectName()]; at.handler == nil && at.base == nil {
			errs = append(errs, fmt.Errorf("%s lists %s in Subscribes, but has no handler for it; add weft.On before weft.Ready", r.Spec.Name, sub.SubjectName()))
		}
	}
	if len(r.Spec.Live) > 0 && r.changes.handler == nil {
		errs = append(errs, fmt.Errorf("%s lists keys in Live, but takes over no configuration; add weft.OnConfig before weft.Ready", r.Spec.Name))
	}
	if r.Spec.Stage && r.open == nil {
		errs = append(errs, fmt.Errorf("%s says Stage, but registers none; add weft.Stage before weft.Ready", r.Spec.Name))
	}
	return errs
}

// takeover carries a new configuration to a service, as an event.
type takeover struct {
	ctx      context.Context
	old, new any
	done     chan error // holds one
}

// complete ends the set-up. It returns what is wrong with it, and whether this is the
// first time.
func (r *registrations) complete() (first bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first = !r.ready
	r.ready = true
	if first {
		r.mistakes = append(r.mistakes, r.listUnregistered()...)
	}
	return first, errors.Join(r.mistakes...)
}

// method is a method that a service of this process serves.
type method struct {
	name    string
	decl    weft.Method
	Server  *Service
	handler atomic.Pointer[func(context.Context, any) (any, error)] // nil if not set up
	work    Work                                                    // calls from other processes
}

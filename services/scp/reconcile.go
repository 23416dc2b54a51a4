package scp

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// balancer is the calls by which VIPs are made.
type balancer interface {
	list(context.Context) ([]*api.Vip, error)
	set(context.Context, *api.Vip) error
	remove(ctx context.Context, name string) error
	pairs(ctx context.Context, vip string, limit uint32) (*api.ListPairsResponse, error)
	// flows returns a switch's entries of scp's own, with their counters.
	flows(context.Context, flow.DPID) ([]*api.FlowEntry, error)
}

// reconciler keeps the balancer's VIPs as the proxy wants them.
type reconciler struct {
	proxy    *proxy
	balancer balancer
	now      func() int64

	mu   sync.Mutex // guards the following
	made map[string]*api.Vip
	turn chan struct{} // closed at the end of a turn
}

func newReconciler(p *proxy, b balancer) *reconciler {
	return &reconciler{proxy: p, balancer: b, now: now, made: map[string]*api.Vip{}, turn: make(chan struct{})}
}

// lookInterval is how often the balancer is asked which VIPs are in use.
const lookInterval = time.Minute

// run makes VIPs until ctx ends: at once after a change, and every second, for
// heartbeats may be late. It begins when it is known whether the front listens, so
// that what an earlier run has made stays as it is.
func (r *reconciler) run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-r.proxy.ready:
	}
	tick, look := time.NewTicker(time.Second), time.NewTicker(lookInterval)
	defer tick.Stop()
	defer look.Stop()
	known := false
	for {
		if !known {
			known = r.adopt(ctx)
		}
		if known {
			r.apply(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.proxy.out:
		case <-tick.C:
		case <-look.C:
			if list, err := r.balancer.list(ctx); err == nil {
				r.proxy.lively(list, r.now())
			}
		}
	}
}

// adopt asks for the VIPs and pairs of an earlier run.
func (r *reconciler) adopt(ctx context.Context) bool {
	list, err := r.balancer.list(ctx)
	if err != nil {
		r.proxy.log.Debug("VIPs not listed", "error", err)
		return false
	}
	pairs, err := r.balancer.pairs(ctx, "", listedMax)
	if err != nil {
		r.proxy.log.Debug("pairs not listed", "error", err)
		return false
	}
	r.proxy.resume(pairs.GetPairs())
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range list {
		if v.GetOwner() == owner {
			r.made[v.Name] = nil // there, and not known how
		}
	}
	return true
}

// apply makes what differs.
func (r *reconciler) apply(ctx context.Context) {
	r.proxy.strain.judgeBy(r.proxy, r.now())
	want := r.proxy.want(r.now())
	r.proxy.shelved(ctx)
	r.mu.Lock()
	made := maps.Clone(r.made)
	r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if want[name] != nil {
			continue
		}
		if err := r.balancer.remove(ctx, name); err != nil {
			r.fail(ctx, name, err)
			continue
		}
		delete(made, name)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		v := want[name]
		if proto.Equal(v, made[name]) {
			continue
		}
		err := r.balancer.set(ctx, proto.CloneOf(v))
		if r.proxy.refuse(name, err); err != nil {
			r.fail(ctx, name, err)
			continue
		}
		made[name] = v
	}
	r.proxy.wanted(want)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made = made
	close(r.turn)
	r.turn = make(chan struct{})
}

func (r *reconciler) fail(ctx context.Context, name string, err error) {
	if ctx.Err() != nil {
		return
	}
	if r.proxy.count.balancerFails.Add(1); !r.proxy.isRefused(name) { // which has been said
		r.proxy.log.Warn("VIP not set", "vip", name, "error", err)
	}
}

// leave has the balancer give a front in a host no more connections (exit).
func (r *reconciler) leave(ctx context.Context) {
	r.proxy.leaves()
	r.until(ctx, func(shadow *api.Vip, there bool) bool { return !there || shadow != nil && shadow.Pool[0].State != "" })
}

// left has the balancer lead nothing to the front (exit).
func (r *reconciler) left(ctx context.Context) {
	r.until(ctx, func(_ *api.Vip, there bool) bool { return !there })
}

// until waits until something holds of the VIP of the NRF, or ctx ends.
func (r *reconciler) until(ctx context.Context, holds func(shadow *api.Vip, there bool) bool) {
	for {
		r.mu.Lock()
		v, there := r.made[nrfVip]
		turn := r.turn
		r.mu.Unlock()
		if holds(v, there) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-turn:
		}
	}
}

// errRefused is that the balancer does not make a VIP as it is.
var errRefused = errors.New("the balancer has refused a VIP")

// await waits until VIPs of these names have been made, one has been refused, or ctx
// ends.
func (r *reconciler) await(ctx context.Context, names []string) error {
	for {
		if r.proxy.isRefused(names...) {
			return errRefused
		}
		r.mu.Lock()
		turn, all := r.turn, true
		for _, name := range names {
			all = all && r.made[name] != nil
		}
		r.mu.Unlock()
		if all {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-turn:
		}
	}
}

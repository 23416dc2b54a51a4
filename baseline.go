package weft

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// BaselineFlows sends flowrules the flows, groups and meters that a service wants
// on switches whatever the traffic. It sends the set of a switch when the switch
// connects, when the set changes and when flowrules has restarted, and retries at
// growing intervals until the switch has confirmed it.
//
// SwitchChanged, NetworkChanged, FlowsObserved and RolesSettled handle the
// events of these names. The service calls them from its own handlers.
type BaselineFlows struct {
	env     *Env
	owner   flow.Owner
	want    func(*api.Switch) *api.SetStandingRequest // nil if objectFlows returns the set
	slots   chan struct{}                             // limits the switches served at once
	onReply func(flow.DPID, []string, []*api.WantedFlow)
	hold    func(*api.Switch) time.Duration

	objectNames func(*api.Switch) []string
	objectFlows func(*api.Switch, string) *api.SetStandingRequest
	seed        maphash.Seed
	revisions   atomic.Uint64 // last revision used

	mu       sync.Mutex // guards the following
	ctx      context.Context
	switches map[flow.DPID]*switchFlows
	settled  map[flow.DPID]bool // switches whose roles are settled
	progress chan struct{}      // closed and replaced when a switch has answered or gone
	running  sync.WaitGroup
}

// switchFlows is the state of one connected switch.
type switchFlows struct {
	info      *api.Switch
	requested uint64             // number of requests to send the set
	answered  uint64             // value of requested at the last answer
	busy      bool               // a goroutine runs runSwitch
	wake      chan struct{}      // notified by each request
	cancel    context.CancelFunc // ends runSwitch; nil if it does not run
	err       error              // of the last attempt

	sendAll  bool            // send the whole set
	dirty    map[string]bool // otherwise, send these objects
	sent     *sentObjects    // objects sent last
	revision uint64          // of the set that the switch has confirmed completely, or 0
}

// The pauses between attempts, and the number of switches served at once.
const (
	firstRetry       = 250 * time.Millisecond
	lastRetry        = 15 * time.Second
	parallelSwitches = 32
)

// NewBaselineFlows returns the baseline flows of an owner. The service lists
// flowrules.SetStanding in Spec.Calls, passes the events SwitchChanged and
// FlowsObserved to the methods of these names, and calls Run, which does the
// work. If its Spec reads nib.Settled or subscribes to RolesSettled, it passes that,
// too. Until the roles of a switch are settled, the switch keeps the entries of an earlier
// run, because the set may still lack entries for the ports of links.
//
// want returns the whole set of a switch, or nil if it has none. It is called for
// several switches at once, and not for hybrid nodes if the owner has no entries
// there. BaselineFlows fills in Dpid and Owner.
func NewBaselineFlows(env *Env, owner flow.Owner, want func(*api.Switch) *api.SetStandingRequest) *BaselineFlows {
	k := &BaselineFlows{env: env, owner: owner, want: want, onReply: func(flow.DPID, []string, []*api.WantedFlow) {}, hold: func(*api.Switch) time.Duration { return 0 }, slots: make(chan struct{}, parallelSwitches),
		switches: map[flow.DPID]*switchFlows{}, settled: map[flow.DPID]bool{}, progress: make(chan struct{}), seed: maphash.MakeSeed()}
	k.revisions.Store(rand.Uint64() >> 1) // no two runs have the same
	return k
}

// OnReply registers f, which is called whenever a switch has answered, with the
// flows that it has refused or not confirmed. objects names the objects that were
// sent; if it is empty, the whole set was. f runs before Settle returns for that
// answer. OnReply must be called before Run.
func (k *BaselineFlows) OnReply(f func(sw flow.DPID, objects []string, failed []*api.WantedFlow)) {
	k.onReply = f
}

// OnHold registers f, which returns how much longer a switch keeps what it has of an
// earlier run, because the set may lack some of it; 0 if the set may replace it. Until
// then nothing is sent to the switch, and Settle does not wait for it. f is called again
// when that time is over, and after each Recompute. OnHold must be called before Run.
func (k *BaselineFlows) OnHold(f func(*api.Switch) time.Duration) { k.hold = f }

// SwitchChanged handles the event: it sends the set to a switch that has
// connected, and forgets one that has gone.
func (k *BaselineFlows) SwitchChanged(ev *api.SwitchChanged) {
	sw, err := flow.ParseDPID(ev.GetSwitch().GetDpid())
	if err != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.switches[sw]
	if !ev.Switch.Connected {
		if s != nil {
			if s.cancel != nil {
				s.cancel()
			}
			delete(k.switches, sw)
			k.notifyWaiters()
		}
		return
	}
	if s == nil {
		s = &switchFlows{wake: make(chan struct{}, 1)}
		k.switches[sw] = s
	}
	s.info = proto.CloneOf(ev.Switch)
	k.enqueueAll(s)
}

// NetworkChanged handles the changes of switches in a snapshot, and which of them have
// settled. A service that calls it from its OnChange handler needs no handler of
// SwitchChanged, nor of RolesSettled if it reads nib.Settled.
func (k *BaselineFlows) NetworkChanged(c nib.Change) {
	for _, e := range c.Connections() {
		k.SwitchChanged(e)
	}
	for _, s := range c.Settled() {
		if s.Is != nil {
			k.RolesSettled(s.Is.Is)
		} else {
			k.RolesSettled(&api.RolesSettled{Dpid: s.Was.Is.Dpid, Gone: true})
		}
	}
}

// FlowsObserved handles the event: flowrules, which may have restarted, has read
// a switch and requests the owner's set.
func (k *BaselineFlows) FlowsObserved(ev *api.FlowsObserved) {
	if sw, err := flow.ParseDPID(ev.GetDpid()); err == nil && ev.Owner == k.owner.String() {
		k.Recompute(sw)
	}
}

// RolesSettled handles the event: the roles of a switch's ports are known, and so
// is its complete set.
func (k *BaselineFlows) RolesSettled(ev *api.RolesSettled) {
	sw, err := flow.ParseDPID(ev.GetDpid())
	if err != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if ev.Gone {
		delete(k.settled, sw)
		return
	}
	if s := k.switches[sw]; s != nil && !k.settled[sw] {
		k.enqueueAll(s)
	}
	k.settled[sw] = true
}

// mustKeepOld reports whether a switch must keep entries that are not in the set,
// because the set may be incomplete. It does not wait for roles that no service
// of the plan publishes.
func (k *BaselineFlows) mustKeepOld(dpid string) bool {
	if Damage(k.env) != "" {
		return true
	}
	settling := func(s Subject) bool { return s.SubjectName() == api.RolesSettledEvent.Name }
	if !slices.ContainsFunc(k.env.spec.Wants(), settling) ||
		!slices.ContainsFunc(k.env.runtime.Specs(), func(s Spec) bool { return slices.ContainsFunc(s.Publishes, settling) }) {
		return false
	}
	sw, err := flow.ParseDPID(dpid)
	k.mu.Lock()
	defer k.mu.Unlock()
	return err == nil && !k.settled[sw]
}

// Recompute computes and sends the sets of some switches again, or of all
// switches if none is named.
func (k *BaselineFlows) Recompute(switches ...flow.DPID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(switches) == 0 {
		for _, s := range k.switches {
			k.enqueueAll(s)
		}
	}
	for _, sw := range switches {
		if s := k.switches[sw]; s != nil {
			k.enqueueAll(s)
		}
	}
}

// enqueueAll requests that the whole set of a switch is sent. The caller holds mu.
func (k *BaselineFlows) enqueueAll(s *switchFlows) {
	s.sendAll = true
	k.enqueue(s)
}

// enqueue requests that runSwitch sends what is marked. The caller holds mu.
func (k *BaselineFlows) enqueue(s *switchFlows) {
	s.requested++
	select {
	case s.wake <- struct{}{}:
	default:
	}
	if k.ctx != nil && !s.busy {
		k.start(s)
	}
}

// start starts the goroutine of a switch. The caller holds mu.
func (k *BaselineFlows) start(s *switchFlows) {
	ctx, cancel := context.WithCancel(k.ctx)
	s.busy, s.cancel = true, cancel
	k.running.Go(func() { defer cancel(); k.runSwitch(ctx, s) })
}

// notifyWaiters wakes the callers of Settle. The caller holds mu.
func (k *BaselineFlows) notifyWaiters() {
	close(k.progress)
	k.progress = make(chan struct{})
}

// Run sends the sets of switches until ctx ends. It begins once the retained
// events have been handled, because an earlier set would be incomplete.
func (k *BaselineFlows) Run(ctx context.Context) {
	select {
	case <-k.env.runtime.Synced():
	case <-ctx.Done():
	}
	k.mu.Lock()
	k.ctx = ctx
	for _, s := range k.switches {
		if s.requested > s.answered && !s.busy {
			k.start(s)
		}
	}
	k.mu.Unlock()
	<-ctx.Done()
	k.mu.Lock()
	k.ctx = nil // start no more goroutines
	k.mu.Unlock()
	k.running.Wait()
}

// runSwitch sends the set of one switch, once nothing holds it, until the switch has
// confirmed it and nothing has changed since.
func (k *BaselineFlows) runSwitch(ctx context.Context, s *switchFlows) {
	var retry api.Retry
	for {
		select {
		case <-s.wake:
		default:
		}
		k.mu.Lock()
		asked, info, dirty, whole := s.requested, s.info, s.dirty, s.sendAll
		s.dirty, s.sendAll = nil, false
		k.mu.Unlock()
		held, err := k.hold(info), error(nil)
		if held <= 0 {
			err = k.sendFlows(ctx, s, info, dirty, whole)
		}
		k.mu.Lock()
		if ctx.Err() != nil {
			k.mu.Unlock()
			return
		}
		s.answered, s.err, s.sendAll = asked, err, s.sendAll || held > 0
		k.notifyWaiters()
		if err == nil && held <= 0 && s.requested == asked {
			s.busy, s.cancel = false, nil
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
		if err == nil && held <= 0 {
			retry = api.Retry{}
			continue
		}
		pause, news := held, false
		if err != nil {
			pause, news = retry.After(err, firstRetry, lastRetry)
		}
		if news {
			k.env.Log.Warn("standing entries not confirmed; tried again, ever more rarely", "dpid", info.Dpid, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
			retry.Soon()
		case <-time.After(pause):
		}
	}
}

// sendFlows sends once the whole set of a switch, or the changes of some objects.
func (k *BaselineFlows) sendFlows(ctx context.Context, s *switchFlows, info *api.Switch, dirty map[string]bool, whole bool) error {
	select {
	case k.slots <- struct{}{}:
		defer func() { <-k.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	keep := k.mustKeepOld(info.Dpid) // before the set is computed; if it settles meanwhile, it is sent again
	if keep {
		whole = true
	}
	req := k.buildRequest(s, info, dirty, whole, keep)
	s.revision = 0
	resp, err := Call(ctx, k.env, api.SetStanding, req)
	if req.Base != 0 && api.KindOf(err) == codes.FailedPrecondition { // flowrules has restarted
		req = k.buildRequest(s, info, nil, true, keep)
		resp, err = Call(ctx, k.env, api.SetStanding, req)
	}
	if err != nil {
		return err
	}
	var changed []string
	if req.Base != 0 {
		changed = slices.Sorted(maps.Keys(dirty))
	}
	if sw, err := flow.ParseDPID(info.Dpid); err == nil && ctx.Err() == nil {
		k.onReply(sw, changed, resp.Failed)
	}
	if err := resp.Confirmed(len(req.Flows)); err != nil {
		return err
	}
	s.revision = req.Revision
	return nil
}

// Status returns the state of a switch: away, syncing, in_sync, or failing with
// the error. A set that failed is sent again.
func (k *BaselineFlows) Status(sw flow.DPID) (state string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch s := k.switches[sw]; {
	case s == nil:
		return "away", nil
	case s.err != nil:
		return "failing", s.err
	case s.answered < s.requested:
		return "syncing", nil
	}
	return "in_sync", nil
}

// OverallStatus returns the state of all connected switches together: failing if
// any switch is, with the error of the one with the lowest DPID, otherwise
// syncing if any is, otherwise in_sync.
func (k *BaselineFlows) OverallStatus() (state string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	state = "in_sync"
	first := flow.DPID(0)
	for sw, s := range k.switches {
		switch {
		case s.err != nil && (err == nil || sw < first):
			state, first, err = "failing", sw, fmt.Errorf("switch %v: %w", sw, s.err)
		case s.answered < s.requested && state == "in_sync":
			state = "syncing"
		}
	}
	return state, err
}

// Settle waits until every connected switch has confirmed or failed the requests
// made before the call, or has gone. It returns the failures.
func (k *BaselineFlows) Settle(ctx context.Context) error {
	k.mu.Lock()
	due := make(map[*switchFlows]uint64, len(k.switches))
	for _, s := range k.switches {
		due[s] = s.requested
	}
	for {
		var errs []error
		waiting := false
		for _, s := range k.switches {
			n, there := due[s]
			switch {
			case !there:
			case s.answered < n:
				waiting = true
			case s.err != nil:
				errs = append(errs, fmt.Errorf("switch %s: %w", s.info.Dpid, s.err))
			}
		}
		moved := k.progress
		k.mu.Unlock()
		if !waiting {
			return errors.Join(errs...)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-moved:
		}
		k.mu.Lock()
	}
}

// SettleWithin is Settle with a time limit. It logs the failures; these sets are
// sent again. what names the objects in the log.
func (k *BaselineFlows) SettleWithin(ctx context.Context, limit time.Duration, what string) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := k.Settle(ctx); err != nil {
		k.env.Log.Warn(what+" are not in force on all switches yet", "error", err)
	}
}

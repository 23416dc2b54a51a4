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

// Standing keeps the entries that a service wants on switches whatever the
// traffic: it declares them when a switch connects, when they change, and when
// flowrules has started anew, and again at growing intervals until the switch
// has confirmed them.
type Standing struct {
	env   *Env
	owner flow.Owner
	want  func(*api.Switch) *api.SetStandingRequest // nil if the set is made of pieces
	slots chan struct{}                             // how many switches are seen to at once
	told  func(flow.DPID, []string, []*api.WantedFlow)

	names     func(*api.Switch) []string
	piece     func(*api.Switch, string) *api.SetStandingRequest
	seed      maphash.Seed
	revisions atomic.Uint64 // the last that was given

	mu       sync.Mutex // guards the following
	ctx      context.Context
	switches map[flow.DPID]*standing
	settled  map[flow.DPID]bool // by RolesSettled
	moved    chan struct{}      // closed and replaced when something is done
	work     sync.WaitGroup
}

// standing is what is known of one connected switch.
type standing struct {
	info   *api.Switch
	asked  uint64 // counts the reasons to declare
	tried  uint64 // up to which of them the switch has answered
	busy   bool   // a goroutine sees to it
	again  chan struct{}
	cancel context.CancelFunc // nil while nobody sees to it
	err    error              // of the last try

	whole    bool            // the whole set is to be declared
	dirty    map[string]bool // or these pieces
	pieces   *pieces         // declared last
	revision uint64          // of that set, if the switch has confirmed all of it; else 0
}

// The times between tries.
const (
	standingFirst = 250 * time.Millisecond
	standingLast  = 15 * time.Second
	standingSlots = 32
)

// KeepStanding returns a keeper of an owner's entries. The service's Spec calls
// flowrules.SetStanding; its handlers of SwitchChanged and of FlowsObserved hand
// their events on, and Run does the work. If the Spec subscribes to RolesSettled, its
// handler hands that on, too, and until a switch has settled, what it has of an earlier
// run stays: a set made before may lack what the ports of links have.
//
// want returns the whole set for a
// switch, nil for none; it is called for several switches at once, and not for
// hybrid nodes if the owner has no entries there. Dpid and Owner of the request
// are filled in.
func KeepStanding(env *Env, owner flow.Owner, want func(*api.Switch) *api.SetStandingRequest) *Standing {
	k := &Standing{env: env, owner: owner, want: want, told: func(flow.DPID, []string, []*api.WantedFlow) {}, slots: make(chan struct{}, standingSlots),
		switches: map[flow.DPID]*standing{}, settled: map[flow.DPID]bool{}, moved: make(chan struct{}), seed: maphash.MakeSeed()}
	k.revisions.Store(rand.Uint64() >> 1) // no two runs have the same
	return k
}

// OnAnswered has f called whenever a switch has answered, with what it has
// refused or not confirmed, before Settle returns for that: of some pieces, while it has
// all of the others, or of the whole set if none is named. It is called before Run.
func (k *Standing) OnAnswered(f func(sw flow.DPID, pieces []string, failed []*api.WantedFlow)) {
	k.told = f
}

// SwitchChanged takes the event: a switch that has connected is declared its
// entries, one that has gone is forgotten.
func (k *Standing) SwitchChanged(ev *api.SwitchChanged) {
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
			k.announce()
		}
		return
	}
	if s == nil {
		s = &standing{again: make(chan struct{}, 1)}
		k.switches[sw] = s
	}
	s.info = proto.CloneOf(ev.Switch)
	k.ask(s)
}

// NetworkChanged takes the switches that have changed, as SwitchChanged would; the
// service then needs no handler of that event.
func (k *Standing) NetworkChanged(c nib.Change) {
	for _, s := range c.Switches() {
		if s.Is == nil { // nobody says anything of it any more
			continue
		}
		if nib.Anew(s) && s.Was != nil { // it was gone meanwhile
			k.SwitchChanged(&api.SwitchChanged{Switch: &api.Switch{Dpid: s.Is.Key.String()}})
		}
		k.SwitchChanged(s.Is.Is)
	}
}

// FlowsObserved takes the event: flowrules, which may have started anew, has
// read a switch and asks for the set of the owner.
func (k *Standing) FlowsObserved(ev *api.FlowsObserved) {
	if sw, err := flow.ParseDPID(ev.GetDpid()); err == nil && ev.Owner == k.owner.String() {
		k.Changed(sw)
	}
}

// RolesSettled takes the event: what the roles of a switch's ports add to its set is known.
func (k *Standing) RolesSettled(ev *api.RolesSettled) {
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
		k.ask(s)
	}
	k.settled[sw] = true
}

// keeps reports whether a switch is to keep what it has beyond the set, because not all
// that is wanted is known. Roles that no service of the plan would publish are not waited for.
func (k *Standing) keeps(dpid string) bool {
	if Damage(k.env) != "" {
		return true
	}
	settling := func(s Subject) bool { return s.SubjectName() == api.RolesSettledEvent.Name }
	if !slices.ContainsFunc(k.env.spec.Subscribes, settling) ||
		!slices.ContainsFunc(k.env.runtime.Specs(), func(s Spec) bool { return slices.ContainsFunc(s.Publishes, settling) }) {
		return false
	}
	sw, err := flow.ParseDPID(dpid)
	k.mu.Lock()
	defer k.mu.Unlock()
	return err == nil && !k.settled[sw]
}

// Changed has the entries of some switches, or of all if none is named,
// computed and declared again.
func (k *Standing) Changed(switches ...flow.DPID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(switches) == 0 {
		for _, s := range k.switches {
			k.ask(s)
		}
	}
	for _, sw := range switches {
		if s := k.switches[sw]; s != nil {
			k.ask(s)
		}
	}
}

// ask has the whole set of a switch seen to. It is called with mu held.
func (k *Standing) ask(s *standing) {
	s.whole = true
	k.askPart(s)
}

// askPart has a switch seen to. It is called with mu held.
func (k *Standing) askPart(s *standing) {
	s.asked++
	select {
	case s.again <- struct{}{}:
	default:
	}
	if k.ctx != nil && !s.busy {
		k.see(s)
	}
}

// see starts a goroutine for a switch. It is called with mu held.
func (k *Standing) see(s *standing) {
	ctx, cancel := context.WithCancel(k.ctx)
	s.busy, s.cancel = true, cancel
	k.work.Go(func() { defer cancel(); k.keep(ctx, s) })
}

// announce tells those who wait that something is done. It is called with mu held.
func (k *Standing) announce() {
	close(k.moved)
	k.moved = make(chan struct{})
}

// Run declares what there is to declare until ctx ends. It begins when what others retain
// has been heard: a set made before would lack, say, what the ports of links have.
func (k *Standing) Run(ctx context.Context) {
	select {
	case <-k.env.runtime.Synced():
	case <-ctx.Done():
	}
	k.mu.Lock()
	k.ctx = ctx
	for _, s := range k.switches {
		if s.asked > s.tried && !s.busy {
			k.see(s)
		}
	}
	k.mu.Unlock()
	<-ctx.Done()
	k.mu.Lock()
	k.ctx = nil // nothing begins any more
	k.mu.Unlock()
	k.work.Wait()
}

// keep declares the entries of one switch until it has confirmed them and
// nothing has changed since.
func (k *Standing) keep(ctx context.Context, s *standing) {
	var retry api.Retry
	for {
		select {
		case <-s.again:
		default:
		}
		k.mu.Lock()
		asked, info, dirty, whole := s.asked, s.info, s.dirty, s.whole
		s.dirty, s.whole = nil, false
		k.mu.Unlock()
		err := k.declare(ctx, s, info, dirty, whole)
		k.mu.Lock()
		if ctx.Err() != nil {
			k.mu.Unlock()
			return
		}
		s.tried, s.err = asked, err
		k.announce()
		if err == nil && s.asked == asked {
			s.busy, s.cancel = false, nil
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
		if err == nil {
			retry = api.Retry{}
			continue
		}
		pause, news := retry.After(err, standingFirst, standingLast)
		if news {
			k.env.Log.Warn("standing entries not confirmed; tried again, ever more rarely", "dpid", info.Dpid, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.again:
			retry.Soon()
		case <-time.After(pause):
		}
	}
}

// declare hands over the whole set of a switch once, or of some pieces what has
// changed.
func (k *Standing) declare(ctx context.Context, s *standing, info *api.Switch, dirty map[string]bool, whole bool) error {
	select {
	case k.slots <- struct{}{}:
		defer func() { <-k.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	keep := k.keeps(info.Dpid) // before the set is made: what settles it meanwhile has it declared again
	if keep {
		whole = true
	}
	req := k.request(s, info, dirty, whole, keep)
	s.revision = 0
	resp, err := Call(ctx, k.env, api.SetStanding, req)
	if req.Base != 0 && api.KindOf(err) == codes.FailedPrecondition { // flowrules has started anew
		req = k.request(s, info, nil, true, keep)
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
		k.told(sw, changed, resp.Failed)
	}
	if err := resp.Confirmed(len(req.Flows)); err != nil {
		return err
	}
	s.revision = req.Revision
	return nil
}

// Status returns how a switch stands: away, syncing, in_sync, or failing with
// the reason, which is tried again.
func (k *Standing) Status(sw flow.DPID) (state string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch s := k.switches[sw]; {
	case s == nil:
		return "away", nil
	case s.err != nil:
		return "failing", s.err
	case s.tried < s.asked:
		return "syncing", nil
	}
	return "in_sync", nil
}

// Overall returns how all connected switches stand together: failing if any is, with the
// reason of the first of them, else syncing if any is, else in_sync.
func (k *Standing) Overall() (state string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	state = "in_sync"
	first := flow.DPID(0)
	for sw, s := range k.switches {
		switch {
		case s.err != nil && (err == nil || sw < first):
			state, first, err = "failing", sw, fmt.Errorf("switch %v: %w", sw, s.err)
		case s.tried < s.asked && state == "in_sync":
			state = "syncing"
		}
	}
	return state, err
}

// Settle waits until every connected switch has confirmed what had been asked
// for when it was called, or has failed to, or is gone; it returns what failed.
func (k *Standing) Settle(ctx context.Context) error {
	k.mu.Lock()
	due := make(map[*standing]uint64, len(k.switches))
	for _, s := range k.switches {
		due[s] = s.asked
	}
	for {
		var errs []error
		waiting := false
		for _, s := range k.switches {
			n, there := due[s]
			switch {
			case !there:
			case s.tried < n:
				waiting = true
			case s.err != nil:
				errs = append(errs, fmt.Errorf("switch %s: %w", s.info.Dpid, s.err))
			}
		}
		moved := k.moved
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

// Confirm is Settle for at most a time. It logs what is not in force by then,
// which is tried again.
func (k *Standing) Confirm(ctx context.Context, most time.Duration, what string) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if err := k.Settle(ctx); err != nil {
		k.env.Log.Warn(what+" are not in force on all switches yet", "error", err)
	}
}

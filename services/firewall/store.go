package firewall

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
)

// keeper makes sure that switches have their wanted entries.
type keeper interface {
	Recompute(switches ...flow.DPID)
	Settle(ctx context.Context) error
	Status(sw flow.DPID) (state string, err error)
}

// store holds all rules, and the known state of the switches.
type store struct {
	cfg     *Config
	net     network
	network func() nib.Snapshot
	bucket  object.Bucket
	changes *object.Log // of bucket
	keeper  keeper
	log     *slog.Logger
	now     atomic.Pointer[ruleset]
	reached object.Limits // of the configuration
	line    chan *site    // those with verdicts to be installed
	damage  func() string // what is wrong with the store
	sites   sites

	// Changes of the rules take turns, and lock mu while they write: the holder
	// of the turn may read what follows without the lock, others lock. Nobody
	// holds the lock while something is stored or a switch is awaited.
	mu       object.Guard
	rules    map[string]*rule
	numbers  map[uint32]*rule
	free     []uint32 // free numbers below next
	next     uint32   // the lowest number never used
	all      *builder
	own      map[flow.DPID]*builder
	back     string // the default
	ownBack  map[flow.DPID]string
	segments map[uint16]string // tenant whose virtual network a VLAN carries

	newsMu      sync.Mutex        // guards segmentNews
	segmentNews map[uint16]string // changed segments; empty: it has gone
	news        chan struct{}     // notified then

}

func newStore(cfg *Config, net network, kept object.Bucket, log *slog.Logger) *store {
	b := &store{
		cfg: cfg, net: net, bucket: kept, changes: object.NewLog(kept), log: log, line: make(chan *site, 4096),
		rules: map[string]*rule{}, numbers: map[uint32]*rule{}, next: 1, all: newBuilder(), own: map[flow.DPID]*builder{},
		back: actionAllow, ownBack: map[flow.DPID]string{}, sites: sites{m: map[flow.DPID]*site{}},
		segments: map[uint16]string{}, segmentNews: map[uint16]string{}, news: make(chan struct{}, 1),
		damage: func() string { return "" }, network: func() nib.Snapshot { return nib.Snapshot{} },
	}
	b.now.Store(&ruleset{all: b.all.now, fallback: actionAllow})
	return b
}

// change is what a call changes.
type change struct {
	add, remove map[flow.DPID][]*cond // by switch, of rules of one switch
	addAll      []*cond
	removeAll   []*cond
	defaults    map[flow.DPID]bool // of switches
	anyDefault  bool
	rules       int // number of deleted rules
}

// of returns the conditions that come or go.
func (x *change) of(sw flow.DPID) []*cond {
	return slices.Concat(x.addAll, x.removeAll, x.add[sw], x.remove[sw])
}

// switches returns the switches that the change concerns; false: all.
func (x *change) switches() ([]flow.DPID, bool) {
	if x.anyDefault || len(x.addAll)+len(x.removeAll) > 0 {
		return nil, false
	}
	set := map[flow.DPID]bool{}
	for sw := range x.add {
		set[sw] = true
	}
	for sw := range x.remove {
		set[sw] = true
	}
	for sw := range x.defaults {
		set[sw] = true
	}
	return slices.Sorted(maps.Keys(set)), true
}

// empty reports whether nothing changes.
func (x *change) empty() bool {
	list, some := x.switches()
	return some && len(list) == 0
}

// enter adds a rule to the book and works out the conditions of a tenant's rule.
// The caller has the turn, and holds mu.
func (b *store) enter(r *rule, x *change) {
	to := b.all
	if r.local {
		if to = b.own[r.sw]; to == nil {
			to = newBuilder()
			b.own[r.sw] = to
		}
	}
	conditions := r.parsed
	if r.wide {
		r.vlans = b.vlansOf(r.msg.Tenant)
		conditions, _ = r.conditions() // parseRule has tried
	}
	r.conds, r.parsed = make([]*cond, len(conditions)), nil
	for i := range conditions {
		r.conds[i] = to.cond(r, &conditions[i].match, conditions[i].src, conditions[i].dst)
	}
	b.rules[r.id] = r
	b.numbers[r.number()] = r
	if n := r.number(); n >= b.next {
		for i := b.next; i < n && len(b.free) < b.cfg.MaxRules; i++ {
			b.free = append(b.free, i)
		}
		b.next = n + 1
	}
	if !r.local {
		x.addAll = append(x.addAll, r.conds...)
		return
	}
	if x.add == nil {
		x.add = map[flow.DPID][]*cond{}
	}
	x.add[r.sw] = append(x.add[r.sw], r.conds...)
}

// leave takes a rule out of the book. The caller has the turn, and holds mu.
func (b *store) leave(r *rule, x *change) {
	delete(b.rules, r.id)
	if b.numbers[r.number()] == r {
		delete(b.numbers, r.number())
	}
	if !r.local {
		x.removeAll = append(x.removeAll, r.conds...)
		return
	}
	if x.remove == nil {
		x.remove = map[flow.DPID][]*cond{}
	}
	x.remove[r.sw] = append(x.remove[r.sw], r.conds...)
}

// number returns a free number. The caller has the turn.
func (b *store) number() uint32 {
	for len(b.free) > 0 {
		n := b.free[len(b.free)-1]
		b.free = b.free[:len(b.free)-1]
		if b.numbers[n] == nil {
			return n
		}
	}
	b.next++
	return b.next - 1
}

// publish puts the book's rules into force. The caller has the turn.
func (b *store) publish(x *change) {
	old := b.now.Load()
	s := &ruleset{version: old.version + 1, own: maps.Clone(old.own), fallback: b.back, ownBack: maps.Clone(b.ownBack), rules: len(b.rules)}
	s.all = b.all.change(x.addAll, x.removeAll)
	if s.own == nil {
		s.own = map[flow.DPID]*classifier{}
	}
	local, _ := (&change{add: x.add, remove: x.remove}).switches()
	for _, sw := range local {
		c := b.own[sw].change(x.add[sw], x.remove[sw])
		if s.own[sw] = c; c.size == 0 {
			delete(s.own, sw)
			delete(b.own, sw)
		}
	}
	b.now.Store(s)
	for _, s := range b.sites.all() {
		s.outdate(x)
	}
}

// setDefaults takes the defaults of an earlier run.
func (b *store) setDefaults(m *api.FirewallStatus) error {
	if err := checkDefault(m.DefaultAction); err != nil {
		return err
	}
	b.back = m.DefaultAction
	for _, s := range m.Switches {
		sw, err := flow.ParseDPID(s.Dpid)
		if err == nil {
			err = checkDefault(s.DefaultAction)
		}
		if err != nil {
			return err
		}
		b.ownBack[sw] = s.DefaultAction
	}
	return nil
}

func checkDefault(action string) error {
	if action != actionAllow && action != actionDeny && action != actionBlock {
		return fmt.Errorf("action %q: want allow, deny or block", action)
	}
	return nil
}

// enforce makes the switches do what the rules say after a change. It returns
// those that do not yet; they are tried again.
func (b *store) enforce(ctx context.Context, x *change, wait bool) []*api.FirewallFailure {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.Deadline)
	defer cancel()
	switches, some := x.switches()
	b.keeper.Recompute(switches...)
	sites := b.sites.all()
	if some {
		sites = sites[:0]
		for _, sw := range switches {
			sites = append(sites, b.sites.of(sw))
		}
	}
	revoke := func(s *site) error { return s.revoke(ctx, b.net) }
	each(sites, revoke) // it is tried again below
	if !wait {
		return nil
	}
	_ = b.keeper.Settle(ctx) // Status reports failures
	if b.review() {
		_ = b.keeper.Settle(ctx)
		b.review()
	}
	failed := each(sites, revoke) // where they are no longer used, too
	return append(failed, each(sites, b.standing)...)
}

// unsettled waits for what earlier changes have begun, and returns the switches
// that do not follow the rules.
func (b *store) unsettled(ctx context.Context) []*api.FirewallFailure {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.Deadline)
	defer cancel()
	_ = b.keeper.Settle(ctx) // Status reports failures
	sites := b.sites.all()
	failed := each(sites, func(s *site) error { return s.revoke(ctx, b.net) })
	return append(failed, each(sites, b.standing)...)
}

// standing returns why a switch does not follow the rules.
func (b *store) standing(s *site) error {
	switch state, err := b.keeper.Status(s.dpid); state {
	case "failing":
		return err
	case "syncing":
		return fmt.Errorf("not confirmed within %v", b.cfg.Deadline)
	}
	return nil
}

// serve installs verdicts until ctx ends.
func (b *store) serve(ctx context.Context) {
	var spare []words
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-b.line:
			list := s.take(spare)
			if err := s.install(ctx, b, list, time.Now()); err != nil && ctx.Err() == nil {
				b.log.Warn("verdicts not sent", "dpid", s.dpid, "error", err)
			}
			spare = list
		}
	}
}

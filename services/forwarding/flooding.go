package forwarding

import (
	"context"
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// flooding maintains, on every switch, the entries that carry broadcasts and
// other multicasts along a tree. A tree takes effect in two steps: the first
// removes the ports that the new tree does not have from all switches and waits
// for confirmation; the second adds the new ports. So the ports in force at any
// moment, on any switches, are part of the old tree or part of the new, and
// never form a loop. With several instances the first does this; the others
// follow what it shares and what switches report, so that they can take over.
type flooding struct {
	*baseline
	links  *linkView
	settle time.Duration
	tree   func(context.Context) (*api.Tree, error)
	set    func(context.Context, *api.SetStandingRequest) (*api.SetStandingResponse, error)
	rest   func(context.Context, time.Duration) // sleeps
	kick   chan struct{}

	mu         sync.Mutex // guards all below
	switches   map[flow.DPID]*floodSwitch
	active     bool          // this instance does the flooding
	stop       func()        // ends the commit under way
	lastShared *api.Flooding // what the instance that floods last shared
	urgent     bool          // something was lost: do not wait for quiet
	since      time.Time     // the first unhandled change; zero if there is none
	last       time.Time     // the last change
	early      time.Time     // since when the tree is older than the links known here; zero if it is not
	committed  uint64
	wanted     uint64
}

// floodSwitch is the state of a connected switch.
type floodSwitch struct {
	v10      bool
	table    uint8 // of its entries
	ovs      bool  // it is Open vSwitch
	began    time.Time
	tree     []flow.Port       // tree ports that may be in force, in order
	observed []flow.Port       // tree ports of the reported entries, in order
	reached  []flow.Port       // ports that multicasts went to, as reported, in order
	seen     bool              // its entries have been reported
	dropping []flow.Port       // ports whose multicasts their own entries may drop, in order
	sent     [sha256.Size]byte // digest of the entries last sent
	try      int               // number of reasons to send entries
	done     bool              // the entries last sent are confirmed
	made     inputs            // inputs of the confirmed entries
	refused  error             // why the switch refuses those last sent; nil if it does not
	until    time.Time         // when it is asked again
	retry    api.Retry
}

// flooding follows a topology that never settles after restless all the same.
// It waits for an earlier run's tree for expectFor.
const (
	restless  = 10 * time.Second
	expectFor = 15 * time.Second
)

// drainFor is the time between the two steps of a tree if the first removed
// ports that carry frames. In this time the frames under way leave the network,
// and the datapaths of switches that cache decisions, such as Open vSwitch's,
// catch up with the tables, which takes some milliseconds after the
// confirmation.
const drainFor = 50 * time.Millisecond

// appoint sets whether this instance does the flooding. An instance that takes
// over first asks the switches for a report: they may have more than it knows
// of. appoint reports whether it takes over.
func (f *flooding) appoint(first bool) (takesOver bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	takesOver = first && !f.active
	f.active = first
	if !first {
		f.stop()
		return false
	}
	if takesOver {
		for _, s := range f.switches {
			s.seen, s.done, s.began = false, false, time.Now()
			s.try++
		}
		f.noteLocked(false)
	}
	f.wake()
	return takesOver
}

// handleShared records the tree that the flooding instance shared.
func (f *flooding) handleShared(m *api.Flooding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastShared = m
}

func (f *flooding) note(urgent bool) {
	f.mu.Lock()
	f.noteLocked(urgent)
	f.mu.Unlock()
}

// noteLocked records a change. Only the first change, and the first urgent one,
// wakes run, which finds the others when it looks again.
func (f *flooding) noteLocked(urgent bool) {
	f.last = time.Now()
	first := f.since.IsZero() || urgent && !f.urgent
	if f.since.IsZero() {
		f.since = f.last
	}
	f.urgent = f.urgent || urgent
	if first {
		f.wake()
	}
}

func (f *flooding) wake() { object.Notify(f.kick) }

func (f *flooding) noteChange() { f.note(false) }

func (f *flooding) treeChanged(ev *api.PathsConverged) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted = ev.Version
	f.noteLocked(len(ev.Lost) > 0)
}

func (f *flooding) switchChanged(ev *api.SwitchChanged) {
	sw, err := flow.ParseDPID(ev.Switch.Dpid)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.switches, sw)
	if ev.Switch.Connected {
		f.switches[sw] = &floodSwitch{v10: ev.Switch.Openflow == "1.0", table: tableOf(ev.Switch), ovs: ev.Switch.Hardware == api.OpenVSwitch, began: time.Now()}
	}
	f.noteLocked(!ev.Switch.Connected)
}

// handleReport handles a switch's report of its baseline flows. A switch without
// any gets the indispensable ones at once. All are declared again, because the
// service that maintains them may have restarted and know none.
func (f *flooding) handleReport(ev *api.FlowsObserved) {
	sw, err := flow.ParseDPID(ev.Dpid)
	if err != nil || ev.Owner != flow.OwnerForwarding.String() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.switches[sw]
	if s == nil {
		return
	}
	s.seen, s.done, s.observed, s.reached = true, false, nil, nil
	s.try++
	for _, m := range ev.Flows {
		_, entry, err := m.Entry()
		for _, a := range entry.Apply {
			if port := flow.Port(a.Arg); err == nil && a.Kind == flow.ActionOutput && port <= flow.PortMax {
				s.reached = append(s.reached, port)
			}
		}
		switch {
		case err != nil || entry.Priority != flow.PriorityLinkFlood:
		case dropsAt(&entry):
			s.dropping = append(s.dropping, entry.Match.Key.InPort)
		default:
			s.observed = append(s.observed, entry.Match.Key.InPort)
		}
	}
	slices.Sort(s.observed)
	s.reached = union(s.reached, nil)
	s.tree = union(s.tree, s.observed) // what is being sent may be in force too
	s.dropping = union(s.dropping, nil)
	if len(ev.Flows) == 0 && f.active {
		go f.bootstrap(sw, s)
	}
	f.noteLocked(false)
}

// bootstrap gives an empty switch its table miss and its traps.
func (f *flooding) bootstrap(sw flow.DPID, s *floodSwitch) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = f.sendBaseline(ctx, sw, s, nil) // which logs why not; the tree brings it again
}

// run follows the topology until ctx ends.
func (f *flooding) run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.kick:
		case <-timer.C:
		}
		if again := f.untilDue(time.Now()); again > 0 {
			timer.Reset(again)
			continue
		}
		again := time.Second
		if f.commit(ctx) {
			again = max(f.untilDue(time.Now()), refusedFirst) // what changes meanwhile kicks
		}
		timer.Reset(again)
	}
}

// untilDue returns how long to wait; 0: do not wait.
func (f *flooding) untilDue(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.active {
		return time.Hour
	}
	if f.since.IsZero() {
		return f.untilRetry(now)
	}
	if now.Sub(f.since) > restless+expectFor {
		return 0
	}
	for sw, s := range f.switches {
		if !s.seen && now.Sub(s.began) < expectFor || f.expects(sw, s) && now.Sub(s.began) < expectFor {
			return f.settle / 4
		}
	}
	if f.urgent {
		return 0
	}
	if quiet := now.Sub(f.last); quiet < f.settle && now.Sub(f.since) < restless {
		return f.settle - quiet
	}
	return 0
}

// untilRetry returns how long to wait until a switch is asked again for what it has
// refused; mu is held.
func (f *flooding) untilRetry(now time.Time) time.Duration {
	wait := time.Hour
	for _, s := range f.switches {
		if s.refused != nil {
			wait = min(wait, max(0, s.until.Sub(now)))
		}
	}
	return wait
}

// expects reports whether an earlier run's tree had a port at this switch that
// is up and whose link is not known yet, as while the switch at its other end has not
// connected, or multicasts went to one whose role is not known yet.
func (f *flooding) expects(sw flow.DPID, s *floodSwitch) bool {
	p := f.edge(sw)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, port := range s.observed {
		if p.up[port] && (p.role[port] != flow.RoleLink.String() || !f.links.recentlyUp(flow.Location{Switch: sw, Port: port})) {
			return true
		}
	}
	return slices.ContainsFunc(s.reached, func(port flow.Port) bool {
		role := p.role[port]
		return p.up[port] && (role == "" || role == flow.RoleUnsettled.String())
	})
}

// commit puts the wanted tree into force; it reports whether all switches have
// answered. Those that refuse their entries are left out, unless they may still
// carry a port that is not in the tree: then nothing is added anywhere.
func (f *flooding) commit(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	f.mu.Lock()
	f.stop = cancel
	active := f.active
	f.since, f.urgent = time.Time{}, false // later changes are for the next commit
	f.mu.Unlock()
	if !active {
		return true
	}
	tree, err := f.tree(ctx)
	if err != nil {
		if ctx.Err() == nil {
			f.log.Warn("tree not known", "error", err)
		}
		f.noteChange()
		return false
	}
	next := map[flow.DPID][]flow.Port{}
	for _, l := range tree.Ports {
		at := l.Flow()
		next[at.Switch] = append(next[at.Switch], at.Port)
	}
	f.mu.Lock()
	if f.since.IsZero() {
		f.wanted = tree.Version
	}
	part := map[flow.DPID]*floodSwitch{}
	for sw, s := range f.switches {
		if s.seen {
			part[sw] = s
		}
		slices.Sort(next[sw])
	}
	early := f.isEarly(next, time.Now())
	f.mu.Unlock()
	if early {
		f.noteChange() // paths tell when they know more
		return false
	}

	carried := false
	ok, refused := f.step(ctx, part, func(sw flow.DPID, s *floodSwitch) ([]flow.Port, bool) {
		out := slices.DeleteFunc(slices.Clone(s.tree), func(p flow.Port) bool { return contains(next[sw], p) })
		carried = carried || f.anyUp(sw, out)
		both := slices.DeleteFunc(slices.Clone(s.tree), func(p flow.Port) bool { return !contains(next[sw], p) })
		return both, len(out) > 0
	})
	if ok && !refused && carried {
		f.rest(ctx, drainFor)
	}
	blocked := refused
	if ok && !blocked {
		ok, _ = f.step(ctx, part, func(sw flow.DPID, s *floodSwitch) ([]flow.Port, bool) { return next[sw], true })
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case !ok:
		f.noteLocked(false)
	case !blocked:
		f.committed = tree.Version
	}
	f.shareFlooding(f.stateLocked())
	return ok
}

// isEarly reports whether a tree leaves switches apart that links join which are up: paths do
// not know yet of the links, as after a restart on a busy machine, and a tree without them
// would be taken back at once. What paths do not know of for restless, they do not use. mu is
// held.
func (f *flooding) isEarly(tree map[flow.DPID][]flow.Port, now time.Time) bool {
	known := func(at flow.Location) bool { return f.switches[at.Switch] != nil }
	wanted := f.links.joined(known)
	got := f.links.joined(func(at flow.Location) bool { return known(at) && slices.Contains(tree[at.Switch], at.Port) })
	for sw := range wanted.above {
		if got.of(sw) == got.of(wanted.of(sw)) {
			continue
		}
		if f.early.IsZero() {
			f.early = now
		}
		return now.Sub(f.early) < restless
	}
	f.early = time.Time{}
	return false
}

// step sets the baseline flows of the switches that want selects, in parallel,
// unless they are set already, and waits for all answers: ok is that all have
// come, refused that one is a refusal. It calls want with mu held. Switches that
// have gone meanwhile do not count.
func (f *flooding) step(ctx context.Context, part map[flow.DPID]*floodSwitch, want func(flow.DPID, *floodSwitch) ([]flow.Port, bool)) (ok, refused bool) {
	var g errgroup.Group
	g.SetLimit(64)
	for sw, s := range part {
		f.mu.Lock()
		ports, yes := want(sw, s)
		yes = yes && !f.isConfirmed(sw, s, ports)
		f.mu.Unlock()
		if !yes {
			continue
		}
		g.Go(func() error {
			err := f.sendBaseline(ctx, sw, s, ports)
			f.mu.Lock()
			defer f.mu.Unlock()
			switch {
			case err == nil || f.switches[sw] != s:
				return nil
			case api.RefusedBySwitch(err):
				refused = true
				return nil
			}
			return err
		})
	}
	ok = g.Wait() == nil
	return ok, refused
}

// get answers the call; an instance that does not flood returns what the one
// that does has shared.
func (f *flooding) get(context.Context, *api.GetFloodingRequest) (*api.Flooding, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	resp := f.stateLocked()
	if !f.active {
		resp = proto.CloneOf(f.lastShared)
	}
	resp.Limits = f.reached.List(f.now().UnixNano())
	return resp, nil
}

// share shares the tree with the other instances if this one does the flooding.
func (f *flooding) share() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.active {
		f.shareFlooding(f.stateLocked())
	}
}

func (f *flooding) stateLocked() *api.Flooding {
	resp := &api.Flooding{Committed: f.committed, Wanted: f.wanted}
	for sw, s := range f.switches {
		if s.refused != nil {
			if resp.Refused == nil {
				resp.Refused = map[string]string{}
			}
			resp.Refused[sw.String()] = s.refused.Error()
		}
		for _, p := range s.tree {
			resp.Ports = append(resp.Ports, api.NewLocation(flow.Location{Switch: sw, Port: p}))
		}
	}
	slices.SortFunc(resp.Ports, func(a, b *api.Location) int {
		if a.Dpid != b.Dpid {
			if a.Dpid < b.Dpid {
				return -1
			}
			return 1
		}
		return int(a.Port) - int(b.Port)
	})
	return resp
}

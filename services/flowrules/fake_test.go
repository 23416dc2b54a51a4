package flowrules

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// fakeSwitch is a switch with one flow table that keeps to OpenFlow: an add
// overwrites the entry of the same key and starts it anew, a strict delete
// removes exactly one, and only if the cookie agrees; timeouts end entries.
type fakeSwitch struct {
	dpid    flow.DPID
	version string

	mu         sync.Mutex // guards what follows
	up         bool
	entries    map[flow.EntryKey]*fakeEntry
	refuse     map[flow.EntryKey]string // entries that it will not have, and its words
	drops      map[flow.EntryKey]bool   // entries that it confirms and does not keep
	onePlace   bool                     // a priority has place for one entry
	room       int                      // entries that fit in; 0 is any number
	late       int                      // calls that it will not answer
	mute       error                    // of who asks for its entries; nil: it tells them
	slow       int                      // flow-mods that it carries out in a call; 0 is any number
	distort    func(*flow.Entry)        // how it tells its entries
	adds       []flow.Entry             // in the order in which it took or refused them
	deletes    int
	lost       map[flow.EntryKey]time.Time // when it told that an entry has ended
	rewrites   int                         // adds of what was there already just so, other than
	unsure     map[flow.EntryKey]bool      // after it has refused a change of it
	batches    int
	busy       int // calls at this moment
	crossed    bool
	removed    func(*api.FlowRemoved)
	objects    map[objectKey]body
	history    []string // what was done with groups and meters, and entries that use them
	noMeters   bool
	numberless bool // it knows no numbers of controllers
	fullAt     int  // groups that fit in; 0 is any number
}

func newFakeSwitch(sw flow.DPID) *fakeSwitch {
	return &fakeSwitch{
		dpid: sw, version: "1.3",
		entries: map[flow.EntryKey]*fakeEntry{}, objects: map[objectKey]body{}, refuse: map[flow.EntryKey]string{}, unsure: map[flow.EntryKey]bool{},
		lost: map[flow.EntryKey]time.Time{},
	}
}

type fakeEntry struct {
	flow.Entry
	since time.Time
}

// noticeTime is how long the notice of an entry's end may be on its way: what has been read
// meanwhile does not have the entry, which is written then, and again for the notice.
const noticeTime = 10 * time.Millisecond

// expire ends the entries whose time is over.
func (s *fakeSwitch) expire(now time.Time) {
	for k, e := range s.entries {
		if e.HardTimeout != 0 && now.Sub(e.since) >= time.Duration(e.HardTimeout)*time.Second {
			s.lose(k, "hard_timeout")
		} else if e.IdleTimeout != 0 && now.Sub(e.since) >= time.Duration(e.IdleTimeout)*time.Second {
			s.lose(k, "idle_timeout") // there is no traffic
		}
	}
}

// lose removes an entry and tells so if that was asked for.
func (s *fakeSwitch) lose(k flow.EntryKey, reason string) {
	e := s.entries[k]
	delete(s.entries, k)
	if s.up && e.Flags&flow.FlagSendRem != 0 && s.removed != nil {
		s.lost[k] = time.Now()
		m := &api.FlowRemoved{Flow: api.NewFlowEntry(s.dpid, &e.Entry), Reason: reason}
		go s.removed(m)
	}
}

// mod carries out one flow-mod; it returns the switch's error.
func (s *fakeSwitch) mod(m *flow.Mod, now time.Time) *api.ApplyFailure {
	k := m.Entry.Key()
	have := s.entries[k]
	switch m.Command {
	case flow.Add:
		s.adds = append(s.adds, m.Entry.Clone())
		if words := s.refuse[k]; words != "" {
			s.unsure[k] = have != nil
			return &api.ApplyFailure{Text: words, Type: 5, Code: 6}
		}
		if s.numberless && slices.ContainsFunc(m.Entry.Apply, func(a flow.Action) bool { return a.Kind == flow.ActionExperimenter }) {
			return &api.ApplyFailure{Text: "OFPET_BAD_ACTION OFPBAC_BAD_EXPERIMENTER", Type: 2, Code: 2}
		}
		missing := false
		uses(&m.Entry, func(k objectKey) {
			if _, there := s.objects[k]; !there {
				missing = true
			}
			s.history = append(s.history, fmt.Sprintf("entry %d uses %v", m.Entry.Priority, k))
		})
		if missing {
			return &api.ApplyFailure{Text: "OFPET_BAD_ACTION OFPBAC_BAD_OUT_GROUP", Type: 2, Code: 9}
		}
		if have == nil && s.room > 0 && len(s.entries) >= s.room {
			return &api.ApplyFailure{Text: "OFPET_FLOW_MOD_FAILED OFPFMFC_TABLE_FULL: no room in the table", Type: 5, Code: 1}
		}
		if have != nil && have.Same(&m.Entry) && !s.unsure[k] && now.Sub(s.lost[k]) > noticeTime {
			s.rewrites++
		}
		delete(s.unsure, k)
		if s.drops[k] {
			return nil
		}
		for other := range s.entries {
			if s.onePlace && other != k && other.Priority == k.Priority {
				delete(s.entries, other)
			}
		}
		s.entries[k] = &fakeEntry{m.Entry.Clone(), now}
	case flow.DeleteStrict:
		if s.version == "1.0" && m.CookieMask != 0 {
			return &api.ApplyFailure{Text: "OpenFlow 1.0 cannot express a cookie mask"}
		}
		if have != nil && (have.Cookie^m.Entry.Cookie)&m.CookieMask == 0 {
			s.deletes++
			uses(&have.Entry, func(k objectKey) {
				s.history = append(s.history, fmt.Sprintf("entry %d gone", m.Entry.Priority))
			})
			s.lose(k, "delete")
		}
	default:
		return &api.ApplyFailure{Text: fmt.Sprintf("command %d is not for this service", m.Command)}
	}
	return nil
}

// list returns the entries as the switch tells them.
func (s *fakeSwitch) list(now time.Time) []*api.FlowEntry {
	var flows []*api.FlowEntry
	for _, e := range s.entries {
		c := e.Clone()
		if s.distort != nil {
			s.distort(&c)
		}
		f := api.NewFlowEntry(s.dpid, &c)
		f.Duration = now.Sub(e.since).Seconds()
		flows = append(flows, f)
	}
	return flows
}

// fakeNetwork is a Network of fake switches. Every call takes a millisecond.
type fakeNetwork struct {
	switches map[flow.DPID]*fakeSwitch
}

func (n *fakeNetwork) enter(sw flow.DPID) (*fakeSwitch, error) {
	s := n.switches[sw]
	s.mu.Lock()
	s.busy++
	s.crossed = s.crossed || s.busy > 1
	late := s.late > 0
	if late {
		s.late--
	}
	s.mu.Unlock()
	time.Sleep(time.Millisecond)
	s.mu.Lock()
	s.busy--
	s.expire(time.Now())
	if !s.up {
		return s, fmt.Errorf("switch %v is not connected", sw)
	}
	if late {
		return s, fmt.Errorf("switch %v has not answered in time", sw)
	}
	return s, nil
}

func (n *fakeNetwork) ReadFlows(_ context.Context, sw flow.DPID) ([]*api.FlowEntry, error) {
	s, err := n.enter(sw)
	defer s.mu.Unlock()
	if err == nil {
		err = s.mute
	}
	if err != nil {
		return nil, err
	}
	return s.list(time.Now()), nil
}

func (n *fakeNetwork) Apply(_ context.Context, d *flow.Decision) (*api.ApplyResult, error) {
	s, err := n.enter(d.Ops[0].Switch)
	defer s.mu.Unlock()
	res := &api.ApplyResult{}
	s.batches++
	for i, op := range d.Ops {
		var f *api.ApplyFailure
		if err == nil && s.slow > 0 && len(d.Ops) > s.slow {
			err = fmt.Errorf("switch %v has not confirmed in time", s.dpid)
		}
		if err != nil {
			f = &api.ApplyFailure{Text: err.Error(), Transient: true}
		} else {
			switch op.Kind {
			case flow.OpGroup:
				m := d.Groups[op.Index]
				f = s.object(objectKey{groupObject, m.Group.ID}, m.Command, body{group: m.Group})
			case flow.OpMeter:
				m := d.Meters[op.Index]
				f = s.object(objectKey{meterObject, m.Meter.ID}, m.Command, body{meter: m.Meter})
			default:
				f = s.mod(&d.Flows[op.Index], time.Now())
			}
		}
		if f != nil {
			f.Dpid, f.Op = op.Switch.String(), uint32(i)
			res.Failures = append(res.Failures, f)
		}
	}
	return res, nil
}

// tallies are Counters that can be read.
type tallies struct {
	mu sync.Mutex // guards n
	n  map[string]float64
}

type tallyCounter struct {
	t    *tallies
	name string
}

func (c tallyCounter) Add(v float64) {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	c.t.n[c.name] += v
}

func (t *tallies) counter(name, _ string, labels ...string) Counter {
	for _, l := range labels {
		name += " " + l
	}
	return tallyCounter{t, name}
}

func (t *tallies) get(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int(t.n[name])
}

// rig is the service's logic between fake switches and a store, run in a
// bubble of time (testing/synctest).
type rig struct {
	t        *testing.T
	rules    *Rules
	net      *fakeNetwork
	store    *memory
	batches  *memory
	tallies  *tallies
	mu       sync.Mutex // guards what follows
	observed []*api.FlowsObserved
	failed   []*api.FlowFailed
	stop     func()
}

func newRig(t *testing.T, cfg *Config, switches ...flow.DPID) *rig {
	g := &rig{t: t, net: &fakeNetwork{map[flow.DPID]*fakeSwitch{}}, store: &memory{values: map[string][]byte{}}, batches: &memory{values: map[string][]byte{}}}
	for _, sw := range switches {
		g.net.switches[sw] = newFakeSwitch(sw)
	}
	g.start(cfg)
	t.Cleanup(func() { g.stop() })
	return g
}

// start runs the service anew on the same store and switches, none connected.
func (g *rig) start(cfg *Config) {
	if g.stop != nil {
		g.stop()
	}
	if err := cfg.Validate(); err != nil {
		g.t.Fatal(err)
	}
	g.tallies = &tallies{n: map[string]float64{}}
	g.rules = NewRules(cfg, g.net, g.store, g.batches, discard(), g.tallies.counter, uint8(time.Now().Unix()))
	if err := g.rules.Load(g.t.Context(), time.Now()); err != nil {
		g.t.Fatal(err)
	}
	for _, s := range g.net.switches {
		s.mu.Lock()
		s.up = false
		rules := g.rules
		s.removed = func(m *api.FlowRemoved) { rules.FlowRemoved(context.Background(), m) }
		s.mu.Unlock()
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.rules.Serve(ctx, func(e *api.FlowsObserved) {
			g.mu.Lock()
			g.observed = append(g.observed, e)
			g.mu.Unlock()
		}, func(e *api.FlowFailed) {
			g.mu.Lock()
			g.failed = append(g.failed, e)
			g.mu.Unlock()
		})
	}()
	g.stop = func() { cancel(); <-done }
}

// connect brings a switch up, disconnect down.
func (g *rig) connect(sw flow.DPID) { g.link(sw, true) }

func (g *rig) disconnect(sw flow.DPID) { g.link(sw, false) }

func (g *rig) link(sw flow.DPID, up bool) {
	s := g.net.switches[sw]
	s.mu.Lock()
	s.up = up
	s.mu.Unlock()
	g.rules.SwitchChanged(g.t.Context(), &api.SwitchChanged{Switch: &api.Switch{Dpid: sw.String(), Connected: up, Openflow: s.version}})
}

// with runs f on a switch that nobody else touches meanwhile.
func (g *rig) with(sw flow.DPID, f func(*fakeSwitch)) {
	s := g.net.switches[sw]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(time.Now())
	f(s)
}

// look returns a switch when nothing is going on.
func (g *rig) look(sw flow.DPID) *fakeSwitch {
	synctest.Wait()
	return g.net.switches[sw]
}

func (g *rig) add(flows ...*api.FlowEntry) []*api.WantedFlow {
	g.t.Helper()
	resp, err := g.rules.AddFlows(g.t.Context(), &api.AddFlowsRequest{Flows: flows})
	if err != nil {
		g.t.Fatalf("AddFlows: %v", err)
	}
	return resp.Flows
}

func (g *rig) standing(sw flow.DPID, owner string, flows ...*api.FlowEntry) *api.SetStandingResponse {
	g.t.Helper()
	resp, err := g.rules.SetStanding(g.t.Context(), &api.SetStandingRequest{Dpid: sw.String(), Owner: owner, Flows: flows})
	if err != nil {
		g.t.Fatalf("SetStanding: %v", err)
	}
	return resp
}

func (g *rig) sync(sw flow.DPID) *api.Sync {
	g.t.Helper()
	resp, err := g.rules.ListSync(g.t.Context(), &api.ListSyncRequest{})
	if err != nil {
		g.t.Fatal(err)
	}
	for _, s := range resp.Switches {
		if s.Dpid == sw.String() {
			return s
		}
	}
	g.t.Fatalf("ListSync does not know switch %v", sw)
	return nil
}

// list returns the state and reason of every desired entry of a switch, by
// priority.
func (g *rig) list(sw flow.DPID) map[uint32]string {
	g.t.Helper()
	resp, err := g.rules.ListFlows(g.t.Context(), &api.ListFlowsRequest{Dpid: sw.String()})
	if err != nil {
		g.t.Fatal(err)
	}
	states := map[uint32]string{}
	for _, f := range resp.Flows {
		states[f.Flow.Priority] = f.State
		if f.Reason != "" {
			states[f.Flow.Priority] += ": " + f.Reason
		}
	}
	return states
}

// wanted returns an entry that sends what comes in by a port out of another.
func wanted(sw flow.DPID, priority uint32, in, out flow.Port) *api.FlowEntry {
	return &api.FlowEntry{
		Dpid: sw.String(), Priority: priority, Match: map[string]string{"in_port": in.String()}, Actions: []string{"output:" + out.String()},
	}
}

// entryOf returns the entry of a message, with the cookie of an owner.
func entryOf(t *testing.T, owner flow.Owner, f *api.FlowEntry) flow.Entry {
	t.Helper()
	_, e, err := f.Entry()
	if err != nil {
		t.Fatal(err)
	}
	e.Match.Normalize()
	e.Cookie = flow.NewCookie(owner, 7, numberOf(e.Key()))
	e.Flags |= flow.FlagSendRem
	return e
}

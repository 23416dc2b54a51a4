package flowrules

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// TestConverges: whatever the order of wanted sets, refusals, losses of the
// connection or of the table, and changes by others, in the end every switch
// has what is desired and what others have added, no entry that was right was
// ever written again, and once all is right nothing more is sent.
func TestConverges(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { converges(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

// chaos is one random run.
type chaos struct {
	*rig
	rnd      *rand.Rand
	operator map[flow.DPID]map[flow.EntryKey]flow.Entry
	standing map[flow.DPID]map[flow.Owner]map[flow.EntryKey]flow.Entry
	asked    map[flow.EntryKey]time.Time
}

var chaosOwners = []flow.Owner{flow.OwnerDiscovery, flow.OwnerForwarding}

func converges(t *testing.T, rnd *rand.Rand) {
	cfg := defaults()
	cfg.VerifyInterval = 20 * time.Second
	cfg.MaxBatch = 1 + rnd.IntN(6)
	c := &chaos{
		rig: newRig(t, cfg, 1, 2), rnd: rnd,
		operator: map[flow.DPID]map[flow.EntryKey]flow.Entry{},
		standing: map[flow.DPID]map[flow.Owner]map[flow.EntryKey]flow.Entry{},
		asked:    map[flow.EntryKey]time.Time{},
	}
	for sw := range c.net.switches {
		c.operator[sw] = map[flow.EntryKey]flow.Entry{}
		c.standing[sw] = map[flow.Owner]map[flow.EntryKey]flow.Entry{}
		c.connect(sw)
	}
	for range 150 {
		c.disturb(flow.DPID(1 + rnd.IntN(2)))
		if rnd.IntN(3) == 0 {
			time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
		}
	}
	// Calm: switches are there and take everything, services declare their sets.
	for sw, s := range c.net.switches {
		c.with(sw, func(s *fakeSwitch) { clear(s.refuse); s.room, s.late = 0, 0 })
		if !s.up {
			c.connect(sw)
		}
		for _, o := range chaosOwners {
			c.declare(sw, o, c.standing[sw][o])
		}
		var again []*api.FlowEntry // what was refused often enough is asked for again
		for _, e := range c.operator[sw] {
			again = append(again, api.NewFlowEntry(sw, &e))
		}
		c.add(again...)
	}
	time.Sleep(10 * time.Minute)
	adds := 0
	for sw := range c.net.switches {
		c.check(sw)
		adds += len(c.net.switches[sw].adds)
	}
	time.Sleep(10 * time.Minute)
	for sw, s := range c.net.switches {
		c.check(sw)
		adds -= len(s.adds)
		if s.rewrites > 0 {
			t.Errorf("switch %v: %d entries that were right were written again", sw, s.rewrites)
		}
		if s.crossed {
			t.Errorf("switch %v: two calls at the same time", sw)
		}
	}
	if adds != 0 {
		t.Errorf("%d entries sent to switches on which all was right", -adds)
	}
}

// entry returns a random entry: few keys, so that they meet.
func (c *chaos) entry(sw flow.DPID, owner flow.Owner) flow.Entry {
	prio := map[flow.Owner]uint32{flow.OwnerOperator: 100, flow.OwnerDiscovery: 200, flow.OwnerForwarding: 300, flow.OwnerForeign: 400}[owner]
	return entryOf(c.t, owner, wanted(sw, prio+uint32(c.rnd.IntN(3)), flow.Port(1+c.rnd.IntN(4)), flow.Port(10+c.rnd.IntN(3))))
}

func (c *chaos) disturb(sw flow.DPID) {
	s := c.net.switches[sw]
	switch n := c.rnd.IntN(100); {
	case n < 25:
		e := c.entry(sw, flow.OwnerOperator)
		if time.Since(c.asked[e.Key()]) < 10*time.Second {
			return // there and back while the first is on its way would have to be sent
		}
		c.asked[e.Key()] = time.Now()
		c.operator[sw][e.Key()] = e
		if _, err := c.rules.AddFlows(c.t.Context(), &api.AddFlowsRequest{Flows: []*api.FlowEntry{api.NewFlowEntry(sw, &e)}, NoWait: c.rnd.IntN(2) == 0}); err != nil {
			c.t.Fatalf("AddFlows: %v", err)
		}
	case n < 35:
		for k, e := range c.operator[sw] {
			delete(c.operator[sw], k)
			if _, err := c.rules.DeleteFlows(c.t.Context(), &api.DeleteFlowsRequest{Flows: []*api.FlowEntry{api.NewFlowEntry(sw, &e)}}); err != nil {
				c.t.Fatalf("DeleteFlows: %v", err)
			}
			break
		}
	case n < 55:
		set := map[flow.EntryKey]flow.Entry{}
		owner := chaosOwners[c.rnd.IntN(len(chaosOwners))]
		for range c.rnd.IntN(8) {
			e := c.entry(sw, owner)
			set[e.Key()] = e
		}
		c.declare(sw, owner, set)
	case n < 62:
		if s.up {
			c.disconnect(sw)
		}
	case n < 74:
		if s.up {
			return
		}
		if c.rnd.IntN(3) == 0 { // it has restarted
			c.with(sw, func(s *fakeSwitch) { clear(s.entries) })
		}
		c.connect(sw)
	case n < 79:
		e := c.entry(sw, flow.OwnerOperator)
		c.with(sw, func(s *fakeSwitch) { s.refuse[e.Key()] = "OFPFMFC_UNKNOWN: no such port here" })
	case n < 82:
		c.with(sw, func(s *fakeSwitch) { clear(s.refuse); s.room = c.rnd.IntN(2) * 6 })
	case n < 85:
		c.with(sw, func(s *fakeSwitch) { s.late = c.rnd.IntN(4) })
	case n < 92: // somebody deletes, and the switch tells if it was asked to
		c.with(sw, func(s *fakeSwitch) {
			for k := range s.entries {
				s.lose(k, "delete")
				break
			}
		})
	case n < 96: // somebody changes what an entry does
		c.with(sw, func(s *fakeSwitch) {
			for _, e := range s.entries {
				if e.Cookie.Owner() != flow.OwnerForeign {
					e.Apply = []flow.Action{flow.Output(99)}
					break
				}
			}
		})
	default: // somebody adds entries, of their own or in our name
		owner := []flow.Owner{flow.OwnerForeign, flow.OwnerOperator, flow.OwnerForwarding}[c.rnd.IntN(3)]
		e := c.entry(sw, owner)
		if owner == flow.OwnerForeign {
			e.Cookie = 42
		}
		e.Apply = []flow.Action{flow.Output(98)} // never right by chance
		c.with(sw, func(s *fakeSwitch) {
			if s.entries[e.Key()] == nil {
				s.entries[e.Key()] = &fakeEntry{e, time.Now()}
			}
		})
	}
}

func (c *chaos) declare(sw flow.DPID, owner flow.Owner, set map[flow.EntryKey]flow.Entry) {
	c.standing[sw][owner] = set
	req := &api.SetStandingRequest{Dpid: sw.String(), Owner: owner.String()}
	for _, e := range set {
		req.Flows = append(req.Flows, api.NewFlowEntry(sw, &e))
	}
	_, _ = c.rules.SetStanding(context.Background(), req) // Unavailable where the switch is away
}

// check compares a switch with what is desired.
func (c *chaos) check(sw flow.DPID) {
	c.t.Helper()
	c.with(sw, func(s *fakeSwitch) {
		want := map[flow.EntryKey]flow.Entry{}
		for k, e := range c.operator[sw] {
			e.Flags |= flow.FlagSendRem
			want[k] = e
		}
		for _, set := range c.standing[sw] {
			for k, e := range set {
				want[k] = e
			}
		}
		for k, e := range want {
			switch have := s.entries[k]; {
			case have == nil:
				c.t.Errorf("switch %v: missing %v %v", sw, k.Priority, k.Match)
			case !have.Same(&e):
				c.t.Errorf("switch %v: wrong %v %v: %+v, want %+v", sw, k.Priority, k.Match, have.Entry, e)
			}
		}
		for k, have := range s.entries {
			if _, ok := want[k]; !ok && have.Cookie.Owner() != flow.OwnerForeign {
				c.t.Errorf("switch %v: too much: %v %v of %v", sw, k.Priority, k.Match, have.Cookie.Owner())
			}
		}
	})
	if s := c.sync(sw); s.State != "in_sync" {
		c.t.Errorf("switch %v: %v", sw, s)
	}
}

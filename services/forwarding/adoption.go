package forwarding

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// adoption rebuilds the routes that an earlier run or another instance
// programmed. It joins the entries that switches report, hop by hop, over the
// links that discovery has found. It keeps entries that form a whole route as
// they are. It mends or removes the others once no more reports are expected.
type adoption struct {
	pending atomic.Int64 // len(pools), for the packet path

	mu       sync.Mutex // guards all below
	changed  time.Time  // time of the last link or report
	pools    map[pair]*pool
	switches map[flow.DPID]*switchReport // the connected switches
	reports  []report                    // not audited yet
	former   map[flow.DPID]formerEntries
	again    map[flow.DPID]time.Time // when to ask a switch once more
	askAll   bool
	asked    time.Time
}

// switchReport records when a connected switch reported its entries.
type switchReport struct {
	began   time.Time // begin of its session; zero if unknown
	address string    // address of that session
	noticed time.Time // when this instance noticed the session
	at      time.Time // time of its last report; zero if there is none
}

// pool holds the entries of one route seen so far.
type pool struct {
	since   time.Time
	age     time.Duration // of the first entry
	hops    map[hop]hop   // by switch and ingress port
	groups  []flow.DPID   // where the route has a group
	rewrite []flow.Action
}

const (
	adoptQuiet  = 1500 * time.Millisecond // no news for so long: try, even if reports are missing
	adoptWithin = 15 * time.Second        // then give up
	oneRound    = 5 * time.Second         // reports within it count as of the same time
	roundQuiet  = 500 * time.Millisecond  // no news for so long: the round is over
)

func newAdoption() *adoption {
	return &adoption{pools: map[pair]*pool{}, switches: map[flow.DPID]*switchReport{}, former: map[flow.DPID]formerEntries{}, again: map[flow.DPID]time.Time{}}
}

// notePending restarts the quiet period, because more reports may follow.
func (a *adoption) notePending(now time.Time) {
	a.mu.Lock()
	a.changed = now
	a.mu.Unlock()
}

// expectReport expects a report from a switch that has connected.
func (a *adoption) expectReport(sw flow.DPID, m *api.Switch, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !m.Connected {
		delete(a.switches, sw)
		delete(a.again, sw)
		return
	}
	began, err := time.Parse(time.RFC3339, m.Since)
	if err != nil {
		began = now
	}
	if t := a.switches[sw]; t != nil && t.began.Equal(began) && t.address == m.Address {
		return // the same session, published again: by a new master, which reads nothing
	}
	delete(a.again, sw) // it reports after it has connected
	a.switches[sw] = &switchReport{began: began, address: m.Address, noticed: now}
}

// expectReports expects reports from switches that were asked for one.
func (a *adoption) expectReports(dpids []string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.askAll = false
	for _, dpid := range dpids {
		if sw, err := flow.ParseDPID(dpid); err == nil && a.switches[sw] == nil {
			a.switches[sw] = &switchReport{noticed: now}
		}
	}
}

// isSettled reports whether the contents of all switches are known and stable.
func (a *adoption) isSettled() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.askAll && len(a.pools) == 0 && (len(a.switches) == 0 || !a.oldestReport().IsZero())
}

// oldestReport returns the time since which every connected switch has reported its
// entries; zero if there is none, or one has not.
func (a *adoption) oldestReport() (at time.Time) {
	first := true
	for _, t := range a.switches {
		if first || t.at.Before(at) {
			at, first = t.at, false
		}
	}
	return at
}

// takePool drops the pool of a pair whose route was just programmed. It returns
// the entries of the pool, which that route replaces, or nil if there are none.
func (a *adoption) takePool(p pair) *route {
	if a.pending.Load() == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	pl := a.pools[p]
	if pl == nil {
		return nil
	}
	a.dropPool(p)
	return pl.route(p)
}

// yieldPair drops the pool of a pair that another instance programmed or removed.
// It asks the switches that reported entries of the pair again, because some may
// remain.
func (a *adoption) yieldPair(p pair, now time.Time) {
	remains := a.takePool(p)
	if remains == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, h := range remains.hops {
		a.askSwitchAt(h.sw, now.Add(unsure))
	}
}

// askSwitchesAgain asks the switches of a pool once more, after a pause.
func (a *adoption) askSwitchesAgain(pl *pool, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, h := range pl.hops {
		a.askSwitchAt(h.sw, now.Add(unsure))
	}
}

// askSwitchAt asks a switch once more at a time, because its report was
// inconclusive. The caller holds the lock.
func (a *adoption) askSwitchAt(sw flow.DPID, at time.Time) {
	if at.After(a.again[sw]) {
		a.again[sw] = at
	}
}

// dropPool forgets a pool.
func (a *adoption) dropPool(p pair) {
	delete(a.pools, p)
	a.pending.Store(int64(len(a.pools)))
}

// route returns the entries of a pool, in no order, insofar as they must be
// removed.
func (pl *pool) route(p pair) *route {
	r := &route{pair: p, rewrite: pl.rewrite}
	for _, h := range pl.hops {
		r.hops = append(r.hops, h)
	}
	for _, sw := range pl.groups {
		for i, h := range r.hops {
			if h.sw != sw {
				continue
			}
			if r.detours == nil {
				r.detours = make([]detour, len(r.hops))
			}
			r.detours[i].out = flow.PortAny // any port: there is a group
			break
		}
	}
	return r
}

// report is the set of route entries that a switch reported.
type report struct {
	sw      flow.DPID
	at      time.Time
	entries map[entryAt]action
	known   []pair // of entries whose routes were known
}

// entryAt is an entry of a route at one switch.
type entryAt struct {
	pair
	in flow.Port
}

// action is what an entry does with packets: how it rewrites them, and where it
// sends them; port 0 if that is not known.
type action struct {
	rewrite []flow.Action
	out     flow.Port
}

// unsure is how long after a route was programmed a report may still date from
// before. The switch is then asked once more.
const unsure = 10 * time.Second

// hasAction reports whether the entry of hop i does what it should.
func (r *route) hasAction(i int, a action) bool {
	var rewrite []flow.Action
	if i == len(r.hops)-1 {
		rewrite = r.rewrite
	}
	return a.out == 0 || a.out == r.hops[i].out && slices.Equal(a.rewrite, rewrite)
}

// mayPredate reports whether a report may date from before a route was programmed.
func (rep *report) mayPredate(r *route) bool { return rep.at.UnixNano()-r.sent < int64(unsure) }

// formerEntries holds the entries of a switch in the table of a former version, and
// the time since which there are copies of them in the right table.
type formerEntries struct {
	entries []flow.Entry
	since   time.Time
}

package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/weft-sdn/weft"
)

// MoveCost is what it costs to move a shard: a service is away for a moment, and
// what comes meanwhile waits (docs/internals/processes.md: packets and calls for a service that
// is away are held, none is lost).
type MoveCost struct {
	// Pause is how long a service is away that moves, in seconds, without its
	// state.
	Pause float64
	// Session is how much longer for each switch whose session it holds.
	Session float64
	// Bandwidth is how fast state goes from server to server, in octets per second.
	Bandwidth float64
	// Horizon is how long, in seconds, the new placement has to pay the move back.
	Horizon float64
}

// DefaultMoveCost are assumptions, to be replaced by what was measured.
func DefaultMoveCost() MoveCost {
	return MoveCost{Pause: 0.5, Session: 0.001, Bandwidth: 100e6, Horizon: 3600}
}

func (c MoveCost) horizon() float64 {
	if c.Horizon <= 0 {
		return 1
	}
	return c.Horizon
}

// Away is how long a shard is away that moves, in seconds.
func (c MoveCost) Away(s Shard) float64 {
	away := c.Pause + c.Session*float64(s.Sessions)
	if c.Bandwidth > 0 {
		away += float64(s.Memory) / c.Bandwidth
	}
	return away
}

// Once is what a move costs: the latency, in µs, that it adds to all events that
// wait meanwhile, of so many per second; each waits half of the time on average.
func (c MoveCost) Once(s Shard, rate float64) float64 {
	away := c.Away(s)
	return rate * away * away / 2 * 1e6
}

// Move is a shard that changes its server, process or partition when one plan
// takes the place of another.
type Move struct {
	Shard string `json:"shard"`
	// From and To are servers, and workers on them: SERVER:WORKER. From is empty
	// for a shard that is new, To for one that goes.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Twice is whether it may run in both places for a moment, so that it is
	// never away.
	Twice bool `json:"twice"`
	// State is what it keeps in memory, in octets.
	State uint64 `json:"state"`
	// Sessions is how many switches connect anew.
	Sessions int `json:"sessions"`
	// Away is how long it is away, in seconds; 0 if it may run twice.
	Away float64 `json:"away"`
	// Events is how many per second wait meanwhile.
	Events float64 `json:"events"`
	// Cost is the latency that this adds to all events that wait, in µs, once.
	Cost float64 `json:"cost"`
	// Why says why it comes in its turn.
	Why string `json:"why"`
}

// Update is the moves from one plan to another, with their cost and gain.
type Update struct {
	Moves []Move `json:"moves"` // in the order in which they are to be made
	// Switches is how many change their partition.
	Switches int `json:"switches"`
	// Before and After are the costs of the two plans, in µs of latency a second.
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// Once is what the moves cost together, in µs.
	Once float64 `json:"once"`
}

// Gain is how much less the new plan costs, in µs of latency a second.
func (u *Update) Gain() float64 {
	if gain := u.Before - u.After; math.Abs(gain) > 1e-9*max(u.Before, u.After) { // not rounding
		return gain
	}
	return 0
}

// PaysBack returns after how many seconds the gain outweighs the moves; false
// if it never does.
func (u *Update) PaysBack() (seconds float64, ever bool) {
	switch {
	case u.Once <= 0:
		return 0, u.Gain() >= 0
	case u.Gain() <= 0:
		return 0, false
	}
	return u.Once / u.Gain(), true
}

// Moves compares two plans of one network, both by one model, or each by its
// own where partitions differ, and orders the moves: first shards that may run
// twice, which cost nothing; then services without sessions, from overloaded
// servers to those with room; sessions of switches last, when everything that
// packets need is in place.
func Moves(old, new *Made, cost MoveCost) *Update {
	u := &Update{Before: old.Solution.Latency, After: new.Solution.Latency, Switches: moved(old, new)}
	was, is, kin := old.places(), new.places(), predecessors(old, new)
	left := map[string]bool{} // old shards that new ones replace
	for i, x := range new.Shards {
		from := old.before(x)
		m := Move{Shard: x.Name(), From: was[from], To: is[x.Name()], State: uint64(x.Memory), Events: new.model.sends(i)}
		left[from] = true
		spec := specOf(new.model.specs, x.Service)
		m.Twice = spec != nil && spec.Scale == weft.Any
		switch {
		case m.From != "" && m.From == kin[m.To] && (from == x.Name() || !left["stays "+from]):
			left["stays "+from] = true
			continue
		case m.From == "":
			m.Why, m.Events = "it is new", 0
		case m.Twice:
			m.Why = "it runs in both places for a moment, so that nothing waits"
		default:
			m.Sessions, m.Away, m.Cost = x.Sessions, cost.Away(x), cost.Once(x, m.Events)
			m.Why = "it is away for a moment, and what comes meanwhile waits"
			if m.Sessions > 0 {
				m.Why = "its switches connect anew; it comes when all that packets need is in its place"
			}
		}
		u.Moves = append(u.Moves, m)
		u.Once += m.Cost
	}
	for _, x := range old.Shards {
		if name := x.Name(); !left[name] {
			u.Moves = append(u.Moves, Move{Shard: name, From: was[name], State: uint64(x.Memory), Sessions: x.Sessions, Why: "the new plan has none"})
		}
	}
	slices.SortStableFunc(u.Moves, func(a, b Move) int {
		return cmp.Or(cmp.Compare(a.turn(), b.turn()), cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Shard, b.Shard))
	})
	return u
}

// before returns the name of the older plan's shard that another shard
// replaces: the one of the same name, or one of the service's; empty if there
// is none.
func (m *Made) before(x Shard) string {
	same := ""
	for _, o := range m.Shards {
		switch {
		case o.Name() == x.Name():
			return o.Name()
		case o.Service == x.Service && same == "":
			same = o.Name()
		}
	}
	return same
}

// predecessors returns which worker of an older plan each worker of a new one
// continues, by their servers. It matches as an applied plan does: first the
// workers that hold the sessions of switches, then those of the same name, then
// those with most services in common. A process stays on its server.
func predecessors(old, new *Made) map[string]string {
	kin, taken := map[string]string{}, map[string]bool{}
	holds := func(m *Made, w *Worker) bool {
		return slices.ContainsFunc(w.Services, func(name string) bool { s := specOf(m.model.specs, name); return s != nil && s.Pipeline })
	}
	pair := func(score func(o, w *Worker) int) {
		for i := range new.Plan.Workers {
			w := &new.Plan.Workers[i]
			to := new.Where[w.Name] + ":" + w.Name
			best, most := "", 0
			for k := range old.Plan.Workers {
				o := &old.Plan.Workers[k]
				from := old.Where[o.Name] + ":" + o.Name
				if n := score(o, w); !taken[from] && kin[to] == "" && old.Where[o.Name] == new.Where[w.Name] && n > most {
					best, most = from, n
				}
			}
			if best != "" {
				kin[to], taken[best] = best, true
			}
		}
	}
	common := func(o, w *Worker) (n int) {
		for _, s := range w.Services {
			if slices.Contains(o.Services, s) {
				n++
			}
		}
		return n
	}
	pair(func(o, w *Worker) int {
		if !holds(old, o) || !holds(new, w) {
			return 0
		}
		return 1 + common(o, w)
	})
	pair(func(o, w *Worker) int {
		if o.Name != w.Name {
			return 0
		}
		return 1
	})
	pair(common)
	return kin
}

// turn is a move's place in the order.
func (m *Move) turn() int {
	switch {
	case m.From == "":
		return 0
	case m.Twice && m.To != "":
		return 1
	case m.To == "":
		return 4
	case m.Sessions > 0:
		return 3
	}
	return 2
}

// places returns the place of each shard: SERVER:WORKER.
func (m *Made) places() map[string]string {
	at := map[string]string{}
	used := map[string]bool{}
	for i, x := range m.Shards {
		server := m.Servers[m.Solution.Server[i]].Name
		for k := range m.Plan.Workers {
			w := &m.Plan.Workers[k]
			key := w.Name + " " + x.Service
			if w.Partition == x.Partition && slices.Contains(w.Services, x.Service) && m.Where[w.Name] == server && !used[key] {
				at[x.Name()], used[key] = server+":"+w.Name, w.Replicas <= 1
				break
			}
		}
	}
	return at
}

// Places returns the server of each shard, by the shard's name:
// MakeOptions.Current for the next plan.
func (m *Made) Places() map[string]string {
	at := map[string]string{}
	for i, x := range m.Shards {
		at[x.Name()] = m.Servers[m.Solution.Server[i]].Name
	}
	return at
}

// moved counts the switches that change partition.
func moved(old, new *Made) (count int) {
	for _, s := range new.model.network.Switches {
		if a, b := old.Plan.PartitionOf(s.DPID), new.Plan.PartitionOf(s.DPID); a != b {
			count++
		}
	}
	return count
}

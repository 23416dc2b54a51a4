package forwarding

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
)

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

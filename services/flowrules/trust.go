package flowrules

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// State is a Store that knows whether it is whole.
type State interface {
	// Damage returns what is wrong with it, empty if it is whole.
	Damage() string
	// Report marks it as damaged: it may lack what switches have.
	Report(ctx context.Context, reason string) error
	// Recorded returns the times that it covers: from born to alive, and since
	// opened. Unknown times are zero.
	Recorded() (born, alive, opened time.Time)
}

// recordedSlack is how much the times of switches and of the store may differ.
const recordedSlack = 10 * time.Second

// trust decides whether an entry missing from the store counts as unwanted.
type trust struct {
	state State         // nil: it is whole
	ahead time.Duration // how far the clock of its times is ahead of this machine's
}

// Trust leaves entries that the store does not know on the switches while the
// store is not whole. ahead is how far its clock is ahead of this machine's.
func (r *Rules) Trust(s State, ahead time.Duration) { r.trust = trust{s, ahead} }

// damaged reports whether the store may lack entries that are wanted.
func (t trust) damaged() bool { return t.state != nil && t.state.Damage() != "" }

// history is the times that the store covers.
type history struct{ born, alive, opened time.Time }

func (t trust) history() (h history) {
	if t.state == nil {
		return h
	}
	h.born, h.alive, h.opened = t.state.Recorded()
	for _, at := range []*time.Time{&h.born, &h.alive, &h.opened} {
		if !at.IsZero() {
			*at = at.Add(-t.ahead)
		}
	}
	return h
}

// before reports whether a time is before the store's first start: an entry
// written then belongs to another store, such as one whose directory was emptied.
func (h history) before(at time.Time) bool {
	return !h.born.IsZero() && at.Before(h.born.Add(-recordedSlack))
}

// between reports whether a time is after the store's last sign of life and
// before it was opened: an entry written then was known to a later state of the
// store, and this is an older copy.
func (h history) between(at time.Time) bool {
	return !h.alive.IsZero() && at.After(h.alive.Add(recordedSlack)) && at.Before(h.opened.Add(-recordedSlack))
}

// storeDoubts is why the store may lack entries that are wanted on a switch.
type storeDoubts struct {
	doubtful bool     // entries missing from the store may still be wanted
	doubts   []string // why the store cannot be whole, to be reported
	history  history  // of the store
}

// countUnknown counts an owner's entries on a switch that are not wanted and that the
// store cannot know of, and says whether any of them is older than the store.
func (d *storeDoubts) countUnknown(owner flow.Owner, have map[entryID]*seen, wanted map[entryID]*rule, now time.Time) (n int, older bool) {
	for k, h := range have {
		if h.entry.Cookie.Owner() != owner || wanted[k] != nil {
			continue
		}
		at := now.Add(-h.age)
		if before := d.history.before(at); before || owner == flow.OwnerOperator && d.history.between(at) {
			n, older = n+1, older || before
		}
	}
	return n, older
}

// keepUnknown keeps all unwanted entries on the switch, because the switch has n
// entries that the store cannot know of, some of them older than the store or none.
func (d *storeDoubts) keepUnknown(sw flow.DPID, owner flow.Owner, n int, older bool) {
	d.doubtful = true
	what := "a later state of this store wrote, of which it is an older copy"
	if older {
		what = "were there before this store began: it is new, and they are of an earlier controller, or its directory was emptied"
	}
	d.doubts = append(d.doubts, fmt.Sprintf("switch %v has %d entries of %v that %s; they stay until weft store repair --from BACKUP, or weft store repair --accept-loss, which deletes them, if the store is to begin anew", sw, n, owner, what))
}

// tellDoubts marks the store as one that may lack entries if a switch has shown that it may:
// nothing is written to it until people have decided.
func (r *Rules) tellDoubts(ctx context.Context, doubts []string) {
	for _, reason := range doubts {
		r.log.Warn("entries are left on a switch that the store does not know", "reason", reason, "remedy", "weft store repair")
		if r.trust.state == nil {
			continue
		}
		if err := r.trust.state.Report(ctx, reason); err != nil {
			r.log.Error("that the store may lack entries could not be recorded", "error", err)
		}
	}
}

// readOnly reports whether the store has refused a change because it is damaged.
func readOnly(err error) bool { return api.KindOf(err) == codes.FailedPrecondition }

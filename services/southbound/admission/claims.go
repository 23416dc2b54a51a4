package admission

import (
	"errors"
	"hash/maphash"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Claims records who owns the places of a switch's tables (table, priority and
// match) that the entries of the operator and of apps use. Both choose places
// freely, and a switch would replace an entry by another owner's at the same
// place (OpenFlow 1.3.5, 6.4): apps may replace only their own. The entries of
// services have reserved places (flow.Entry.Reserved).
type Claims struct {
	mu sync.Mutex // guards what follows
	of map[uint64]claimant
}

// claimant is the operator, or an app, as the upper half of their cookies.
type claimant uint32

// claimsMost bounds the recorded places of a switch; beyond it apps get no
// more.
const claimsMost = 1 << 20

// ErrClaimed says that an app's entry was left out.
var ErrClaimed = errors.New("an app's entry would replace somebody else's")

// places is the seed for hashes of places; nobody can foresee it.
var places = maphash.MakeSeed()

// claimantOf returns the owner of a cookie; false if it is neither the operator
// nor an app.
func claimantOf(c flow.Cookie) (claimant, bool) {
	if _, app := c.App(); app {
		return claimant(c >> 32), true
	}
	const generation = flow.Cookie(0xff) << 32
	return claimant((c &^ generation) >> 32), c.Owner() == flow.OwnerOperator
}

// Change records a flow-mod, and refuses that of an app at a place of another
// owner.
func (c *Claims) Change(m *flow.Mod) error {
	who, ok := claimantOf(m.Entry.Cookie)
	if !ok {
		return nil
	}
	return c.change(who, m)
}

// change is Change for a claimant's flow-mod.
func (c *Claims) change(who claimant, m *flow.Mod) error {
	if m.Command != flow.Add && m.Command != flow.DeleteStrict {
		return nil
	}
	at := maphash.Comparable(places, m.Entry.Key())
	c.mu.Lock()
	defer c.mu.Unlock()
	has, there := c.of[at]
	_, app := m.Entry.Cookie.App()
	switch {
	case m.Command == flow.DeleteStrict:
		if has == who {
			delete(c.of, at)
		}
	case app && (there && has != who || !there && len(c.of) >= claimsMost):
		return api.Errorf(codes.PermissionDenied, "%w: table %d, priority %d", ErrClaimed, m.Entry.Table, m.Entry.Priority)
	default:
		c.set(at, who)
	}
	return nil
}

// Seen records an entry that the switch has.
func (c *Claims) Seen(e *flow.Entry) {
	if who, ok := claimantOf(e.Cookie); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.set(maphash.Comparable(places, e.Key()), who)
	}
}

// Removed records that the switch removed an entry.
func (c *Claims) Removed(e *flow.Entry) {
	if who, ok := claimantOf(e.Cookie); ok {
		at := maphash.Comparable(places, e.Key())
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.of[at] == who {
			delete(c.of, at)
		}
	}
}

// set records the owner of a place; mu is held.
func (c *Claims) set(at uint64, who claimant) {
	if c.of == nil {
		c.of = map[uint64]claimant{}
	}
	if _, there := c.of[at]; there || len(c.of) < claimsMost {
		c.of[at] = who
	}
}

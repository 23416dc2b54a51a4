package southbound

import (
	"errors"
	"hash/maphash"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// claims is whose the places of a switch's tables are that the operator's entries
// and those of apps' decisions have. Both choose them freely, and a switch would
// replace an entry by another one's of the same table, priority and match
// (OpenFlow 1.3.5, 6.4): apps replace their own only. Those of services have
// places of their own (flow.Entry.Reserved).
type claims struct {
	mu sync.Mutex // guards what follows
	of map[uint64]claimant
}

// claimant is the operator, or an app, by the upper half of their cookies.
type claimant uint32

// claimsMost is how many places of a switch are known; an app gets no more.
const claimsMost = 1 << 20

// errClaimed says that an app's entry was left out.
var errClaimed = errors.New("an app's entry would replace somebody else's")

// places makes hashes of places that nobody can foresee.
var places = maphash.MakeSeed()

// claimantOf returns whose a cookie is; false if it is neither's.
func claimantOf(c flow.Cookie) (claimant, bool) {
	if _, app := c.App(); app {
		return claimant(c >> 32), true
	}
	const generation = flow.Cookie(0xff) << 32
	return claimant((c &^ generation) >> 32), c.Owner() == flow.OwnerOperator
}

// change takes note of what a flow-mod does, and refuses that of an app in
// somebody else's place.
func (c *claims) change(m *flow.Mod) error {
	who, ok := claimantOf(m.Entry.Cookie)
	if !ok || m.Command != flow.Add && m.Command != flow.DeleteStrict {
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
		return api.Errorf(codes.PermissionDenied, "%w: table %d, priority %d", errClaimed, m.Entry.Table, m.Entry.Priority)
	default:
		c.set(at, who)
	}
	return nil
}

// seen takes note of an entry that the switch has.
func (c *claims) seen(e *flow.Entry) {
	if who, ok := claimantOf(e.Cookie); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.set(maphash.Comparable(places, e.Key()), who)
	}
}

// removed takes note of an entry that the switch has removed.
func (c *claims) removed(e *flow.Entry) {
	if who, ok := claimantOf(e.Cookie); ok {
		at := maphash.Comparable(places, e.Key())
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.of[at] == who {
			delete(c.of, at)
		}
	}
}

// set is for those who hold mu.
func (c *claims) set(at uint64, who claimant) {
	if c.of == nil {
		c.of = map[uint64]claimant{}
	}
	if _, there := c.of[at]; there || len(c.of) < claimsMost {
		c.of[at] = who
	}
}

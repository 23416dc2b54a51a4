package southbound

import (
	"cmp"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/southbound/session"
)

// failures are the peers whose connections end before they are switches of this
// controller's, so that people see who tries and what is missing.
type failures struct {
	mu sync.Mutex // guards by
	by map[peer]*failure
}

// peer is a switch as far as a failed handshake shows it.
type peer struct {
	address string // without the port; "" is a Unix socket
	dpid    flow.DPID
}

// failure is what is known of a peer's failed connections.
type failure struct {
	reason, remedy string
	times, said    uint64 // said: at how many times the log has said it last
	at             time.Time
}

// The bounds of failures: the number of peers, and how long one that does not
// try any more is remembered.
const (
	failuresMost = 64
	failuresLast = 10 * time.Minute
)

func peerOf(a net.Addr, sw flow.DPID) peer {
	host, _, _ := net.SplitHostPort(a.String())
	return peer{host, sw}
}

// add records a failed connection. It reports whether the log should say so: for
// the first, the second, the fourth and so on with the same reason. A peer that
// hangs up without a word has not tried to be a switch.
func (f *failures) add(a net.Addr, sw flow.DPID, err error, now time.Time) (say bool) {
	e := (*session.HandshakeError)(nil)
	errors.As(err, &e)
	if e != nil && e.Silent {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expire(now)
	p := peerOf(a, sw)
	x := f.by[p]
	if x == nil {
		if len(f.by) >= failuresMost {
			return true
		}
		if f.by == nil {
			f.by = map[peer]*failure{}
		}
		x = &failure{}
		f.by[p] = x
	}
	x.times++
	x.at = now
	reason := "closed"
	if err != nil {
		reason = session.Printable(err.Error())
	}
	if x.reason != reason {
		x.reason, x.remedy, x.said = reason, "", 0
		if e != nil {
			x.remedy = e.Remedy
		}
	}
	if x.said != 0 && x.times < 2*x.said {
		return false
	}
	x.said = x.times
	return true
}

// forgetPeer forgets the failures of a peer that has completed its handshake.
func (f *failures) forgetPeer(a net.Addr, sw flow.DPID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.by, peerOf(a, sw))
	delete(f.by, peerOf(a, 0))
}

// expire needs mu held.
func (f *failures) expire(now time.Time) {
	for p, x := range f.by {
		if now.Sub(x.at) > failuresLast {
			delete(f.by, p)
		}
	}
}

// list returns the peers, by address and identity.
func (f *failures) list(now time.Time) (list []*api.FailedSwitch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expire(now)
	for p, x := range f.by {
		m := &api.FailedSwitch{Address: p.address, Reason: x.reason, Remedy: x.remedy, Times: x.times, At: x.at.UTC().Format(time.RFC3339)}
		if p.dpid != 0 {
			m.Dpid = p.dpid.String()
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b *api.FailedSwitch) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Dpid, b.Dpid))
	})
	return list
}

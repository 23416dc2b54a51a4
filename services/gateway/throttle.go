package gateway

import (
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"

	"github.com/weft-sdn/weft/internal/northbound"
)

// throttle bounds how many wrong tokens an address may try in a minute. Tokens
// that have been right from there go on being looked at, so whoever guesses, or
// has an old token, shuts out only those who are new.
type throttle struct {
	perMinute int
	now       func() time.Time

	mu    sync.Mutex // guards what follows
	peers map[netip.Addr]*attempts
}

// attempts is what an address has tried.
type attempts struct {
	left  float64
	at    time.Time // when left was reckoned
	right [][sha256.Size]byte
}

const (
	peersMax = 4096 // addresses that are remembered
	rightMax = 8    // right tokens that are remembered of each
)

func newThrottle(perMinute int, now func() time.Time) *throttle {
	return &throttle{perMinute: perMinute, now: now, peers: map[netip.Addr]*attempts{}}
}

// refill adds what the time has brought; mu is held.
func (t *throttle) refill(a *attempts, now time.Time) {
	a.left = min(float64(t.perMinute), a.left+now.Sub(a.at).Minutes()*float64(t.perMinute))
	a.at = now
}

// wait returns how long an address has to wait before another token of its is
// looked at; 0 is not at all.
func (t *throttle) wait(from, token string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.peers[northbound.Address(from)]
	if a == nil {
		return 0
	}
	t.refill(a, t.now())
	if a.left >= 1 {
		return 0
	}
	sum := sha256.Sum256([]byte(token))
	for _, r := range a.right {
		if r == sum {
			return 0
		}
	}
	return time.Duration((1 - a.left) / float64(t.perMinute) * float64(time.Minute))
}

// tried notes how a token of an address was.
func (t *throttle) tried(from, token string, right bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	peer, now := northbound.Address(from), t.now()
	a := t.peers[peer]
	if a == nil {
		a = &attempts{left: float64(t.perMinute), at: now}
		t.room(now)
		t.peers[peer] = a
	}
	t.refill(a, now)
	sum := sha256.Sum256([]byte(token))
	if !right {
		a.left = max(0, a.left-1)
		return
	}
	for _, r := range a.right {
		if r == sum {
			return
		}
	}
	if len(a.right) == rightMax {
		a.right = a.right[1:]
	}
	a.right = append(a.right, sum)
}

// room forgets addresses that have nothing to wait for, and if there are none,
// the one that has to wait least.
func (t *throttle) room(now time.Time) {
	if len(t.peers) < peersMax {
		return
	}
	var best netip.Addr
	most := -1.0
	for peer, a := range t.peers {
		t.refill(a, now)
		if a.left >= float64(t.perMinute) {
			delete(t.peers, peer)
		} else if a.left > most {
			best, most = peer, a.left
		}
	}
	if len(t.peers) >= peersMax {
		delete(t.peers, best)
	}
}

package gateway

import (
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/internal/northbound"
)

// throttle bounds how many wrong tokens a client may try in a minute: a user of
// this machine, or an address. Tokens from there that were right are still
// accepted, so a client that guesses locks out only new ones of its own; the same
// wrong token again is no further guess, so one that has an old token locks out
// nobody.
type throttle struct {
	perMinute int
	now       func() time.Time

	mu    sync.Mutex // guards what follows
	peers map[northbound.Client]*attempts
}

// attempts is the attempts of one client.
type attempts struct {
	left  float64
	at    time.Time // when left was computed
	right recent
	wrong recent
}

// recent are the hashes of the last few tokens of a kind.
type recent [][sha256.Size]byte

func (r *recent) add(sum [sha256.Size]byte) {
	if len(*r) == recentMax {
		*r = slices.Delete(*r, 0, 1)
	}
	*r = append(*r, sum)
}

const (
	peersMax  = 4096 // remembered clients
	recentMax = 8    // remembered right tokens of each, and wrong ones
)

func newThrottle(perMinute int, now func() time.Time) *throttle {
	return &throttle{perMinute: perMinute, now: now, peers: map[northbound.Client]*attempts{}}
}

// refill adds the allowance for the time passed; mu is held.
func (t *throttle) refill(a *attempts, now time.Time) {
	a.left = min(float64(t.perMinute), a.left+now.Sub(a.at).Minutes()*float64(t.perMinute))
	a.at = now
}

// wait returns how long a client must wait before its next token is checked; 0
// is not at all.
func (t *throttle) wait(from northbound.Client, token string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.peers[from]
	if a == nil {
		return 0
	}
	t.refill(a, t.now())
	if a.left >= 1 {
		return 0
	}
	if sum := sha256.Sum256([]byte(token)); slices.Contains(a.right, sum) || slices.Contains(a.wrong, sum) {
		return 0
	}
	return time.Duration((1 - a.left) / float64(t.perMinute) * float64(time.Minute))
}

// tried records whether a token of a client was right.
func (t *throttle) tried(from northbound.Client, token string, right bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	a := t.peers[from]
	if a == nil {
		a = &attempts{left: float64(t.perMinute), at: now}
		t.room(now)
		t.peers[from] = a
	}
	t.refill(a, now)
	sum := sha256.Sum256([]byte(token))
	switch {
	case right && !slices.Contains(a.right, sum):
		a.right.add(sum)
	case !right && !slices.Contains(a.wrong, sum):
		a.wrong.add(sum)
		a.left = max(0, a.left-1)
	}
}

// room forgets clients that need not wait, or if there are none, the one that
// has the shortest wait.
func (t *throttle) room(now time.Time) {
	if len(t.peers) < peersMax {
		return
	}
	var best northbound.Client
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

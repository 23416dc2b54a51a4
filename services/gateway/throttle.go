package gateway

import (
	"crypto/sha256"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/internal/northbound"
	"github.com/weft-sdn/weft/internal/ratelimit"
)

// throttle bounds how many wrong tokens a client may try in a minute: a user of
// this machine, or an address. Tokens from there that were right are still
// accepted, so a client that guesses locks out only new ones of its own; the same
// wrong token again is no further guess, so one that has an old token locks out
// nobody.
type throttle struct {
	gap int64        // between wrong tokens
	now func() int64 // in nanoseconds

	mu    sync.Mutex // guards what follows
	peers map[northbound.Client]*attempts
}

// attempts is the attempts of one client.
type attempts struct {
	tries ratelimit.Bucket
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
	minute    = int64(time.Minute)
	peersMax  = 4096 // remembered clients
	recentMax = 8    // remembered right tokens of each, and wrong ones
)

func newThrottle(perMinute int, now func() time.Time) *throttle {
	began := now()
	return &throttle{gap: minute / int64(perMinute), now: func() int64 { return int64(now().Sub(began)) }, peers: map[northbound.Client]*attempts{}}
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
	wait := a.tries.Wait(t.now(), t.gap, minute)
	if wait == 0 {
		return 0
	}
	if sum := sha256.Sum256([]byte(token)); slices.Contains(a.right, sum) || slices.Contains(a.wrong, sum) {
		return 0
	}
	return time.Duration(wait)
}

// tried records whether a token of a client was right.
func (t *throttle) tried(from northbound.Client, token string, right bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	a := t.peers[from]
	if a == nil {
		a = &attempts{}
		t.room(now)
		t.peers[from] = a
	}
	sum := sha256.Sum256([]byte(token))
	switch {
	case right && !slices.Contains(a.right, sum):
		a.right.add(sum)
	case !right && !slices.Contains(a.wrong, sum):
		a.wrong.add(sum)
		a.tries.Take(now, t.gap, minute)
	}
}

// room forgets clients that need not wait, or if there are none, the one that
// has the shortest wait.
func (t *throttle) room(now int64) {
	if len(t.peers) < peersMax {
		return
	}
	var best northbound.Client
	soonest := int64(math.MaxInt64)
	for peer, a := range t.peers {
		if full := a.tries.Wait(now, minute, minute); full == 0 {
			delete(t.peers, peer)
		} else if full < soonest {
			best, soonest = peer, full
		}
	}
	if len(t.peers) >= peersMax {
		delete(t.peers, best)
	}
}

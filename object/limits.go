package object

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Limits remembers which limits of the configuration were reached lately, and by
// whom, so that users learn why packets are missing. The zero value is empty.
type Limits struct {
	mu sync.Mutex // guards m
	m  map[limitKey]*reach
}

// limitKey is a key of the configuration and whom its limit has met: who, or a port.
type limitKey struct {
	key, who string
	at       flow.Location
}

// reach is how often a limit was reached, and when last.
type reach struct {
	limit int
	times uint64
	last  int64
}

// limitsFor is how long a limit counts as reached, limitsMost how many are remembered.
const (
	limitsFor  = 10 * time.Minute
	limitsMost = 256
)

// Reach notes that the limit of a key of the configuration was reached, at a time in
// nanoseconds since 1970, by somebody; empty is all.
func (l *Limits) Reach(now int64, key string, limit int, who string) {
	l.noteReached(now, limitKey{key: key, who: who}, limit)
}

// ReachAt is Reach by a port. It allocates only the first time.
func (l *Limits) ReachAt(now int64, key string, limit int, at flow.Location) {
	l.noteReached(now, limitKey{key: key, at: at}, limit)
}

func (l *Limits) noteReached(now int64, k limitKey, limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.m[k]
	if one == nil {
		if len(l.m) >= limitsMost {
			l.forget(now)
		}
		if len(l.m) >= limitsMost {
			return
		}
		if l.m == nil {
			l.m = map[limitKey]*reach{}
		}
		one = &reach{}
		l.m[k] = one
	}
	one.limit, one.last = limit, now
	one.times++
}

// forget drops those that were not reached lately; mu is held.
func (l *Limits) forget(now int64) {
	for k, one := range l.m {
		if one.last < now-int64(limitsFor) {
			delete(l.m, k)
		}
	}
}

// List returns the limits reached lately, by key and by whom.
func (l *Limits) List(now int64) (list []*api.LimitReached) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	for k, one := range l.m {
		who := k.who
		if k.at != (flow.Location{}) {
			who = fmt.Sprintf("port %x/%d", uint64(k.at.Switch), uint32(k.at.Port))
		}
		list = append(list, &api.LimitReached{Key: k.key, Limit: uint64(one.limit), Who: who, Times: one.times, Last: time.Unix(0, one.last).UTC().Format(time.RFC3339)})
	}
	slices.SortFunc(list, func(a, b *api.LimitReached) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Who, b.Who))
	})
	return list
}

package object

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
)

// Limits remembers which limits of the configuration were reached lately, and by
// whom, so that users learn why packets are missing. The zero value is empty.
type Limits struct {
	mu sync.Mutex // guards m
	m  map[limitKey]*api.LimitReached
}

type limitKey struct{ key, who string }

// limitsFor is how long a limit counts as reached, limitsMost how many are remembered.
const (
	limitsFor  = 10 * time.Minute
	limitsMost = 256
)

// Reach notes that the limit of a key of the configuration was reached, at a time in
// nanoseconds since 1970, by somebody; empty is all.
func (l *Limits) Reach(now int64, key string, limit int, who string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := limitKey{key, who}
	one := l.m[k]
	if one == nil {
		if len(l.m) >= limitsMost {
			l.forget(now)
		}
		if len(l.m) >= limitsMost {
			return
		}
		if l.m == nil {
			l.m = map[limitKey]*api.LimitReached{}
		}
		one = &api.LimitReached{Key: key, Who: who}
		l.m[k] = one
	}
	one.Limit = uint64(limit)
	one.Times++
	one.Last = time.Unix(0, now).UTC().Format(time.RFC3339)
}

// forget drops those that were not reached lately; mu is held.
func (l *Limits) forget(now int64) {
	since := time.Unix(0, now).UTC().Add(-limitsFor).Format(time.RFC3339)
	for k, one := range l.m {
		if one.Last < since {
			delete(l.m, k)
		}
	}
}

// List returns the limits reached lately, by key and by whom.
func (l *Limits) List(now int64) (list []*api.LimitReached) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	for _, one := range l.m {
		list = append(list, &api.LimitReached{Key: one.Key, Limit: one.Limit, Who: one.Who, Times: one.Times, Last: one.Last})
	}
	slices.SortFunc(list, func(a, b *api.LimitReached) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Who, b.Who))
	})
	return list
}

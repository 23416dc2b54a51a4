package forwarding

import (
	"sync"
	"time"
)

// outdated holds the routes that were removed or replaced shortly after they
// were programmed, or by a packet, or because a stage holds one of their hosts. Their entries
// may still be on the way, by another way than the entries that replace them,
// and reach a switch last. So outdated sends the routes in force once more, and
// again when no old packet can be on the way any more.
type outdated struct {
	mu   sync.Mutex // guards list
	list []outdatedRoute
}

type outdatedRoute struct {
	r    *route
	at   time.Time
	once bool // its pair has been programmed once more
}

// When to program a pair once more: packets take at most that long, and a
// packet that waits for an absent process is given up after 10 s.
const (
	againSoon  = time.Second
	againLater = 15 * time.Second
)

func (x *outdated) add(now time.Time, list ...*route) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range list {
		x.list = append(x.list, outdatedRoute{r: r, at: now})
	}
}

// takeDue returns the routes whose pairs must be programmed once more, and
// removes those that were programmed for the last time.
func (x *outdated) takeDue(now time.Time) (list []*route) {
	x.mu.Lock()
	defer x.mu.Unlock()
	left := x.list[:0]
	for _, one := range x.list {
		age := now.Sub(one.at)
		if age >= againSoon && !one.once || age >= againLater {
			one.once = true
			list = append(list, one.r)
		}
		if age < againLater {
			left = append(left, one)
		}
	}
	clear(x.list[len(left):])
	x.list = left
	return list
}

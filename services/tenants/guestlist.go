package tenants

import (
	"cmp"
	"container/heap"
	"slices"
)

// guestlist is the hosts of a tenant with a limit: those that are let in, and
// those that wait. Hosts seen earlier come first, so that a restart decides
// alike. A host that comes or goes costs O(log n).
type guestlist struct {
	most int
	of   map[hostKey]*guest
	in   guests // the latest first
	out  guests // the earliest first
}

// guest is one host.
type guest struct {
	*seen
	at int // index in its list
	in bool
}

func newGuestlist(most int) *guestlist {
	return &guestlist{most: most, of: map[hostKey]*guest{}, in: guests{last: true}}
}

// full reports whether only those in it are let in.
func (l *guestlist) full() bool { return len(l.in.list) >= l.most }

// lets reports whether a host is let in, if the list is full.
func (l *guestlist) lets(k hostKey) bool {
	g := l.of[k]
	return g != nil && g.in
}

// set updates a host. It reports whether this lets others in.
func (l *guestlist) set(h *seen) bool {
	changed := false
	if g := l.of[h.hostKey]; g != nil {
		if g.first == h.first {
			g.seen = h
			return false
		}
		changed = l.remove(h.hostKey)
	}
	g := &guest{seen: h}
	l.of[h.hostKey] = g
	switch {
	case !l.full():
		l.move(g, true)
		return l.full() || changed
	case g.compare(l.in.list[0]) < 0:
		l.move(heap.Pop(&l.in).(*guest), false)
		l.move(g, true)
		return true
	}
	l.move(g, false)
	return changed
}

// remove forgets a host. It reports whether this lets others in.
func (l *guestlist) remove(k hostKey) bool {
	g := l.of[k]
	if g == nil {
		return false
	}
	delete(l.of, k)
	if !g.in {
		heap.Remove(&l.out, g.at)
		return false
	}
	was := l.full()
	heap.Remove(&l.in, g.at)
	if len(l.out.list) > 0 {
		l.move(heap.Pop(&l.out).(*guest), true)
	}
	return was
}

// move puts a host that is in no list into one.
func (l *guestlist) move(g *guest, in bool) {
	if g.in = in; in {
		heap.Push(&l.in, g)
	} else {
		heap.Push(&l.out, g)
	}
}

// compare orders hosts by arrival.
func (g *guest) compare(o *guest) int {
	return cmp.Or(cmp.Compare(g.first, o.first), cmp.Compare(g.vlan, o.vlan), slices.Compare(g.mac[:], o.mac[:]))
}

// guests is a heap of hosts.
type guests struct {
	list []*guest
	last bool // the latest is first
}

func (g *guests) Len() int { return len(g.list) }

func (g *guests) Less(i, j int) bool { return (g.list[i].compare(g.list[j]) < 0) != g.last }

func (g *guests) Swap(i, j int) {
	g.list[i], g.list[j] = g.list[j], g.list[i]
	g.list[i].at, g.list[j].at = i, j
}

func (g *guests) Push(x any) {
	one := x.(*guest)
	one.at = len(g.list)
	g.list = append(g.list, one)
}

func (g *guests) Pop() any {
	n := len(g.list) - 1
	one := g.list[n]
	g.list[n] = nil
	g.list = g.list[:n]
	return one
}

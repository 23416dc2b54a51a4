package hosts

import (
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// An announcer tracks the hosts whose state differs from the last published
// one. The packet path only marks hosts; events describe the state at the time
// of publishing. So no change is lost, only intermediate ones are merged, and
// no queue is longer than the number of hosts. table.mu comes before its lock.
type announcer struct {
	wake chan struct{}

	mu    sync.Mutex // guards queue and host.queued
	queue []*host
}

// published is the last published state of a host.
type published struct {
	at        flow.Location
	addresses []string
	held      uint32
}

func newAnnouncer() *announcer { return &announcer{wake: make(chan struct{}, 1)} }

// add marks a host as changed.
func (a *announcer) add(h *host) {
	a.mu.Lock()
	if !h.queued {
		h.queued = true
		a.queue = append(a.queue, h)
	}
	a.mu.Unlock()
	a.notify()
}

// notify wakes the publishing goroutine.
func (a *announcer) notify() { object.Notify(a.wake) }

// countMarked returns the number of marked hosts.
func (a *announcer) countMarked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.queue)
}

// takeMarked returns the marked hosts and unmarks them.
func (a *announcer) takeMarked(list []*host) []*host {
	a.mu.Lock()
	defer a.mu.Unlock()
	list = append(list[:0], a.queue...)
	for _, h := range list {
		h.queued = false
	}
	clear(a.queue)
	a.queue = a.queue[:0]
	return list
}

// publishMarked publishes the changes of the marked hosts, and changes their permits.
func (t *table) publishMarked(now int64, list []*host, publish func(*api.HostChanged)) []*host {
	list = t.news.takeMarked(list)
	for i, h := range list {
		t.mu.Lock()
		if h.hasChanged() {
			t.pages.note(h)
		}
		if h.repeat {
			t.unsaid--
		}
		events := h.news(h.message(&t.holds))
		t.permits.update(now, h)
		t.mu.Unlock()
		for _, e := range events {
			publish(e)
		}
		list[i] = nil
	}
	return list
}

// saidAll reports whether each host of an earlier run has been published, or has been
// given up.
func (t *table) saidAll() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unsaid == 0
}

// hasChanged reports whether a host differs from the last published state, or from
// the state that an earlier run stored.
func (h *host) hasChanged() bool {
	now := h.state()
	return h.published == nil || h.gone.Load() || h.published.at != now.at || h.published.held != now.held || !slices.Equal(h.published.addresses, now.addresses)
}

// news returns the events that lead from the published state of a host, whose message
// is given, to the present one.
func (h *host) news(msg *api.Host) (events []*api.HostChanged) {
	now, old := h.state(), h.published
	add := func(change string, from *api.Location) {
		events = append(events, &api.HostChanged{Host: msg, Change: change, From: from})
	}
	repeat := h.repeat && !h.gone.Load()
	h.repeat = false
	switch {
	case h.gone.Load() && old == nil:
	case h.gone.Load():
		add("gone", nil)
		now = nil
	case old == nil, repeat && old.at == now.at:
		add("learnt", nil)
	default:
		if old.at != now.at {
			add("moved", api.NewLocation(old.at))
		}
		if !slices.Equal(old.addresses, now.addresses) {
			add("addresses", nil)
		}
		if old.held != now.held {
			add("held", nil)
		}
	}
	h.published = now
	return events
}

// state returns the part of a host's state that causes events.
func (h *host) state() *published {
	p := &published{at: h.at.Load().Location, held: h.held.Load()}
	for _, v6 := range []bool{false, true} {
		for _, a := range h.addresses {
			if a.ip.Is6() == v6 {
				p.addresses = append(p.addresses, a.ip.String())
			}
		}
	}
	return p
}

// message returns the API's form of a host; table.mu is held.
func (h *host) message(s *holds) *api.Host {
	m := &api.Host{
		Mac: h.id.mac().String(), Vlan: uint32(h.id.vlan()), At: api.NewLocation(h.at.Load().Location),
		FirstSeen: rfc3339(h.first), LastSeen: rfc3339(h.seen.Load()), Moves: h.moves,
		HeldBy: s.names(h.held.Load()),
	}
	for _, a := range h.addresses {
		if a.ip.Is4() {
			m.Ipv4 = append(m.Ipv4, a.ip.String())
		} else {
			m.Ipv6 = append(m.Ipv6, a.ip.String())
		}
	}
	return m
}

func rfc3339(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

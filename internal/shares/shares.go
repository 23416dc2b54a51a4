// Package shares divides a limited number of places among clients: for work that
// is under way, for connections, for streams. A client of a higher rank comes
// first; among clients of a rank, the one with the fewest places does. Who holds
// a place without using it, or holds more than others, may have to leave it.
//
// It imports the standard library only.
package shares

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Rank orders clients by their rights.
type Rank int

// The ranks; a higher one comes first.
const (
	Reader        Rank = iota // may look
	Operator                  // may change the network
	Administrator             // may do everything
)

// Client is who takes a place. All requests with one name share.
type Client struct {
	Name string
	Rank Rank
}

// Limits bound the places.
type Limits struct {
	What      string // is bounded, in the plural, as messages call it
	Places    int    // in all
	Reserved  int    // of them, for administrators alone
	PerClient int    // of them; 0: as many as there are
	// Waiting and WaitingPerClient bound the calls of Acquire that wait; 0: none waits.
	Waiting          int
	WaitingPerClient int
	Evicted          func() // counts places that were taken away; may be nil
}

// Full is the error of a client for which there is no place.
type Full struct{ text string }

// Error returns the limit as text (error).
func (f *Full) Error() string { return f.text }

// Evicted is the reason why a place was taken away.
type Evicted struct{ text string }

// Error returns the reason as text (error).
func (e *Evicted) Error() string { return e.text }

// ErrClosed is the error of calls after Close.
var ErrClosed = errors.New("there are no more places: the service ends")

// Places are the places. The zero value is not usable; New makes them.
type Places struct {
	limits Limits

	mu      sync.Mutex // guards what follows
	holders []*Place   // the oldest first; those that have to leave, too
	waiters []*waiter  // the oldest first
	clients map[string]*client
	turn    uint64 // of the last place that was given, or became idle
	closed  bool
	wait    sync.WaitGroup // of holders
}

// client is what a client has.
type client struct {
	held, waiting int
	turn          uint64 // when it got its last place
}

// Place is a place that a client holds until it calls Release.
type Place struct {
	of     *Places
	client Client
	evict  func(error)
	idle   uint64 // since this turn; 0: it is used
	gone   bool   // it has to leave: it no longer counts
	left   bool   // it was released
}

// waiter is a call of Acquire that waits.
type waiter struct {
	client Client
	evict  func(error)
	done   chan struct{} // is closed once place or err is set
	place  *Place
	err    error
}

// Sparsely returns a function for Limits.Evicted that counts its calls. It reports
// the count at the first call, the second, the fourth and so on, so that nobody can
// fill a log.
func Sparsely(report func(count uint64)) func() {
	var count atomic.Uint64
	return func() {
		if n := count.Add(1); n&(n-1) == 0 {
			report(n)
		}
	}
}

// New returns places with limits.
func New(l Limits) *Places { return &Places{limits: l, clients: map[string]*client{}} }

// Acquire returns a place for a client. It waits for its turn while there is
// none. Its error is a *Full if too many wait already, or that of the context.
// evict, if not nil, asks the holder to leave, once at most and with an *Evicted;
// it must not wait for that.
func (p *Places) Acquire(ctx context.Context, c Client, evict func(error)) (*Place, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	if place, err := p.take(c, evict); place != nil || err != nil {
		p.mu.Unlock()
		return place, err
	}
	if err := p.makeQueueRoom(c); err != nil {
		p.mu.Unlock()
		return nil, err
	}
	w := &waiter{client: c, evict: evict, done: make(chan struct{})}
	p.waiters = append(p.waiters, w)
	p.of(c).waiting++
	p.mu.Unlock()
	select {
	case <-w.done:
		return w.place, w.err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.place != nil { // it got one meanwhile
		p.release(w.place)
	} else if w.err == nil {
		p.dismiss(w, ctx.Err())
	}
	return nil, ctx.Err()
}

// TryAcquire is Acquire for a client that does not wait.
func (p *Places) TryAcquire(c Client, evict func(error)) (*Place, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	place, err := p.take(c, evict)
	if place == nil && err == nil {
		err = p.full(c)
	}
	return place, err
}

// Release gives the place back. It may be called more than once.
func (l *Place) Release() {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.of.release(l)
}

// SetIdle says whether the holder waits for its client, rather than works: then
// any client of its rank may take the place.
func (l *Place) SetIdle(idle bool) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.idle = 0; idle {
		l.of.turn++
		l.idle = l.of.turn
	}
}

// Limit returns how many places there are.
func (p *Places) Limit() int { return p.limits.Places }

// Len returns how many places are held, with those that have to leave.
func (p *Places) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.holders)
}

// Waiting returns how many calls of Acquire wait.
func (p *Places) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiters)
}

// Close gives no more places, and waits until all are free.
func (p *Places) Close() {
	p.mu.Lock()
	p.closed = true
	for len(p.waiters) > 0 {
		p.dismiss(p.waiters[0], ErrClosed)
	}
	p.mu.Unlock()
	p.wait.Wait()
}

// of returns the record of a client; mu is held, as in all that follows.
func (p *Places) of(c Client) *client {
	r := p.clients[c.Name]
	if r == nil {
		r = &client{}
		p.clients[c.Name] = r
	}
	return r
}

// forget removes the record of a client that has nothing.
func (p *Places) forget(c Client) {
	if r := p.clients[c.Name]; r != nil && r.held == 0 && r.waiting == 0 {
		delete(p.clients, c.Name)
	}
}

// held returns how many places are held for good, and how many of them by clients
// below administrators.
func (p *Places) held() (all, low int) {
	for _, l := range p.holders {
		if l.gone {
			continue
		}
		if all++; l.client.Rank < Administrator {
			low++
		}
	}
	return all, low
}

// take gives a client a place that is free, or that another has to leave; nil
// if there is none.
func (p *Places) take(c Client, evict func(error)) (*Place, error) {
	if p.closed {
		return nil, ErrClosed
	}
	if p.free(c) {
		return p.give(c, evict), nil
	}
	v := p.victim(c)
	if v == nil {
		return nil, nil
	}
	v.gone = true
	p.of(v.client).held--
	p.forget(v.client)
	if p.limits.Evicted != nil {
		p.limits.Evicted()
	}
	why := "another client takes the place"
	if v.idle != 0 {
		why = "nothing came for too long, and " + why
	}
	v.evict(&Evicted{fmt.Sprintf("%s: at most %d %s may be at once", why, p.limits.Places, p.limits.What)})
	return p.give(c, evict), nil
}

// free reports whether there is a place for a client.
func (p *Places) free(c Client) bool {
	all, low := p.held()
	return all < p.limits.Places && (c.Rank == Administrator || low < p.limits.Places-p.limits.Reserved) && !p.atShare(c)
}

// atShare reports whether a client has all that it may have.
func (p *Places) atShare(c Client) bool {
	r := p.clients[c.Name]
	return p.limits.PerClient > 0 && r != nil && r.held >= p.limits.PerClient
}

func (p *Places) give(c Client, evict func(error)) *Place {
	l := &Place{of: p, client: c, evict: evict}
	p.holders = append(p.holders, l)
	p.wait.Add(1)
	p.turn++
	r := p.of(c)
	r.held, r.turn = r.held+1, p.turn
	return l
}

// victim returns the holder that has to leave for a client; nil if none has.
func (p *Places) victim(c Client) (v *Place) {
	own := 0
	if r := p.clients[c.Name]; r != nil {
		own = r.held
	}
	for _, l := range p.holders {
		switch {
		case l.gone || l.evict == nil || l.client.Rank > c.Rank:
			continue
		case p.atShare(c) && l.client.Name != c.Name: // another's place does not help
			continue
		case l.idle == 0 && l.client.Rank == c.Rank && p.of(l.client).held <= own+1:
			continue
		}
		if v == nil || p.leavesBefore(l, v) {
			v = l
		}
	}
	return v
}

// leavesBefore reports whether a holder has to leave before another, which is
// older: the idle do, those of lower ranks, those of clients with more places, and
// those idle for longer.
func (p *Places) leavesBefore(a, b *Place) bool {
	x, y := p.of(a.client).held, p.of(b.client).held
	switch {
	case (a.idle != 0) != (b.idle != 0):
		return a.idle != 0
	case a.client.Rank != b.client.Rank:
		return a.client.Rank < b.client.Rank
	case x != y:
		return x > y
	}
	return a.idle < b.idle // 0 both, or neither
}

// release takes a place back, and gives it to the next who waits.
func (p *Places) release(l *Place) {
	if l.left {
		return
	}
	l.left = true
	p.holders = slices.DeleteFunc(p.holders, func(x *Place) bool { return x == l })
	if !l.gone {
		p.of(l.client).held--
	}
	p.forget(l.client)
	p.wait.Done()
	for {
		w := p.next()
		if w == nil {
			return
		}
		w.place = p.give(w.client, w.evict)
		p.dismiss(w, nil)
	}
}

// next returns the waiter whose turn it is; nil if there is no place for any.
func (p *Places) next() (first *waiter) {
	for _, w := range p.waiters {
		if p.free(w.client) && (first == nil || p.before(w.client, first.client)) {
			first = w
		}
	}
	return first
}

// before reports whether a client comes before another.
func (p *Places) before(a, b Client) bool {
	x, y := p.of(a), p.of(b)
	switch {
	case a.Rank != b.Rank:
		return a.Rank > b.Rank
	case x.held != y.held:
		return x.held < y.held
	}
	return x.turn < y.turn
}

// dismiss ends the waiting of a call.
func (p *Places) dismiss(w *waiter, err error) {
	w.err = err
	p.waiters = slices.DeleteFunc(p.waiters, func(x *waiter) bool { return x == w })
	p.of(w.client).waiting--
	p.forget(w.client)
	close(w.done)
}

// makeQueueRoom makes room for one more that waits: a waiter of a lower rank, or
// one of a client with more of them, has to go.
func (p *Places) makeQueueRoom(c Client) error {
	waiting := 0
	if r := p.clients[c.Name]; r != nil {
		waiting = r.waiting
	}
	if waiting >= p.limits.WaitingPerClient {
		return p.full(c)
	}
	if len(p.waiters) < p.limits.Waiting {
		return nil
	}
	var goes *waiter // the newest of those that come last
	for _, w := range p.waiters {
		more := p.of(w.client).waiting
		if w.client.Rank > c.Rank || w.client.Rank == c.Rank && more <= waiting+1 {
			continue
		}
		if goes == nil || w.client.Rank < goes.client.Rank || w.client.Rank == goes.client.Rank && more >= p.of(goes.client).waiting {
			goes = w
		}
	}
	if goes == nil {
		return p.full(c)
	}
	p.dismiss(goes, &Full{fmt.Sprintf("another client comes first, and at most %d requests may wait for %s: try again later", p.limits.Waiting, p.limits.What)})
	return nil
}

// full returns the error of a client for which there is no room.
func (p *Places) full(c Client) *Full {
	of := p.of(c)
	defer p.forget(c)
	all, _ := p.held()
	switch {
	case p.atShare(c):
		return &Full{fmt.Sprintf("there are %d %s of %s already, and one client may have no more at once: end one, or wait", of.held, p.limits.What, c)}
	case of.waiting > 0 && of.waiting >= p.limits.WaitingPerClient:
		return &Full{fmt.Sprintf("%d requests of %s wait already for one of %d places for %s, and no more may wait: try again when one of them has ended", of.waiting, c, p.limits.Places, p.limits.What)}
	case p.limits.Waiting > 0:
		return &Full{fmt.Sprintf("%d requests wait already for one of %d places for %s, and no more may wait: try again later", len(p.waiters), p.limits.Places, p.limits.What)}
	}
	return &Full{fmt.Sprintf("there are %d %s already, and no more may be at once: end one, or wait", all, p.limits.What)}
}

// String names the client in messages (fmt.Stringer).
func (c Client) String() string {
	if c.Name == "" {
		return "this client"
	}
	return c.Name
}

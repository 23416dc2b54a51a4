package northbound

import (
	"container/list"
	"net"
	"time"
)

// state is what a connection is doing.
type state int

const (
	quiet     state = iota // no request: it is idle, or in a handshake or a header
	stalled                // its requests wait for the client to send, or to take an answer
	following              // it follows events
	busy                   // it is being served
	states    = busy + 1
)

// conn is a connection of a Listener. What follows the first two is guarded by
// listener.mu.
type conn struct {
	net.Conn
	listener *Listener

	share                      *share
	rank                       Rank
	known                      bool // a request has authenticated
	requests, streams, waiting int  // requests under way; those that follow events; those that wait for the client
	octets                     int  // that they hold, in bytes
	state                      state
	since                      time.Time // when it entered that state
	inAll, inShare             *list.Element
	gone                       bool
}

// Close closes the connection (net.Conn).
func (c *conn) Close() error {
	c.listener.mu.Lock()
	c.listener.forget(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// change changes the recorded state of a connection.
func (c *conn) change(f func()) {
	l := c.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.gone {
		return
	}
	before, rank, octets := c.state, c.rank, c.octets
	f()
	var after state
	switch {
	case c.requests == 0:
		after = quiet
	case c.requests > c.streams+c.waiting:
		after = busy
	case c.streams > 0:
		after = following
	default:
		after = stalled
	}
	added := c.octets - octets
	if after == before && classOf(rank) == classOf(c.rank) {
		l.count(c, added)
		return
	}
	now := c.rank
	c.rank, c.octets = rank, octets // as in the queues
	l.remove(c)
	c.rank, c.octets, c.state, c.since = now, octets+added, after, time.Now()
	l.insert(c)
}

// The classes of clients whose connections have queues of their own.
const (
	below = iota // those below Operator
	operators
	administrators
	classes
)

func classOf(r Rank) int { return int(max(r, Reader) - Reader) }

// queues hold connections by class and state; the longest in a state comes first.
type queues [classes][states]list.List

func (q *queues) of(c *conn) *list.List { return &q[classOf(c.rank)][c.state] }

func (q *queues) insert(c *conn) *list.Element { return q.of(c).PushBack(c) }

func (q *queues) remove(c *conn, e *list.Element) { q.of(c).Remove(e) }

func (q *queues) len() (n int) {
	for i := range q {
		n += count(&q[i])
	}
	return n
}

func count(of *[states]list.List) (n int) {
	for i := range of {
		n += of[i].Len()
	}
	return n
}

// goes returns the connection to close for another one; nil if all are operators'
// or administrators' that are being served. A sixteenth is reserved for connections
// that have yet to authenticate; those idle since before then go first.
func (q *queues) goes(then time.Time) *conn {
	reserve := q.len() / 16
	first := least(q[below][:], reserve, then)
	if first != nil && count(&q[below]) > reserve {
		return first
	}
	for _, class := range [...]int{operators, administrators} {
		if c := least(q[class][:busy], reserve, then); c != nil {
			return c
		}
	}
	return first
}

// least returns the connection to close among several. It spares new ones while
// there are more of others.
func least(of []list.List, reserve int, then time.Time) *conn {
	first, waits := front(&of[quiet]), front(&of[stalled])
	many := of[quiet].Len() > reserve
	switch {
	case many && !first.since.After(then):
		return first
	case waits != nil && !waits.since.After(then): // and not only just now
		return waits
	}
	most := &of[quiet]
	for s := following; int(s) < len(of); s++ {
		if of[s].Len() > most.Len() || most == &of[quiet] && !many && of[s].Len() > 0 {
			most = &of[s]
		}
	}
	if c := front(most); c != nil {
		return c
	}
	return waits
}

// waits returns the connection, except one, that has waited longest for its
// client, and since before then, among clients of at most a rank.
func (q *queues) waits(rank Rank, but *conn, then time.Time) *conn {
	for class := range classOf(rank) + 1 {
		for e := q[class][stalled].Front(); e != nil; e = e.Next() {
			if c := e.Value.(*conn); c != but && !c.since.After(then) {
				return c
			}
		}
	}
	return nil
}

func front(l *list.List) *conn {
	if e := l.Front(); e != nil {
		return e.Value.(*conn)
	}
	return nil
}

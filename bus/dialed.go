package bus

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/weft-sdn/weft/transport"
)

const (
	// pingEvery is how often a connection with something under way asks
	// whether the peer is still there, awayEvery one whose peer is not.
	pingEvery = 250 * time.Millisecond
	awayEvery = 100 * time.Millisecond
)

// dialed is a connection at the side that dialed.
type dialed struct {
	peers   *peers
	id      string
	address string
	out     sender
	sub     *nats.Subscription
	in      assembler // of the subscription's goroutine

	order turn // of those who number and send events; before mu

	mu      sync.Mutex // guards those below
	calls   map[uint64]chan answer
	lastID  uint64
	events  []frame       // sent and not known to be handled, oldest first
	octets  int           // of events
	sent    uint64        // number of the last event
	handled uint64        // number of the last that is known to be handled
	room    chan struct{} // closed when events become fewer
	epoch   uint64        // of the peer
	heard   time.Time     // when the peer last said something, or was first waited for
	away    time.Time     // since when the peer cannot be reached; zero: it can
	timer   *time.Timer   // of tick; nil: nothing to watch over
	closed  bool          // by Close; events may still be under way
	over    chan struct{} // closed at the end
	ending  sync.Once
}

type answer struct {
	resp []byte
	err  *transport.Error
}

func newDialed(p *peers, address string) *dialed {
	id := nuid.Next()
	up, down := ends(id)
	return &dialed{
		peers: p, id: id, address: address, out: newSender(p.store.conn, up, down), order: newTurn(),
		calls: map[uint64]chan answer{}, room: make(chan struct{}), over: make(chan struct{}),
	}
}

func (c *dialed) lost() *transport.Error {
	return transport.Errorf(transport.Unavailable, "the connection to %q is closed", c.address)
}

func (c *dialed) unreachable() *transport.Error {
	return transport.Errorf(transport.Unavailable, "%q cannot be reached on the bus", c.address)
}

func (c *dialed) Call(ctx context.Context, method string, req []byte) ([]byte, error) {
	if err := sendable(ctx, method, req); err != nil {
		return nil, err
	}
	done := make(chan answer, 1)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, c.lost()
	}
	c.lastID++
	id := c.lastID
	c.calls[id] = done
	c.arm(pingEvery)
	c.mu.Unlock()

	call := frame{kind: kindCall, n: [4]uint64{id}, name: method, body: req}
	if deadline, ok := ctx.Deadline(); ok {
		call.n[1] = uint64(max(time.Until(deadline), 0)) + 1
	}
	if c.out.send(ctx, call) != nil {
		c.forget(id)
		if err := expired(ctx); err != nil {
			return nil, err
		}
		return nil, c.unreachable()
	}
	select {
	case a := <-done:
		if a.err != nil {
			return nil, a.err
		}
		return a.resp, nil
	case <-ctx.Done():
		c.forget(id)
		// If it does not arrive, the peer learns of it by the next ping.
		go c.out.send(context.Background(), frame{kind: kindCancel, n: [4]uint64{id}})
		return nil, transport.ErrorOf(ctx.Err())
	}
}

func (c *dialed) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

// failCalls ends all calls under way. mu is held.
func (c *dialed) failCalls(err *transport.Error) {
	for id, done := range c.calls {
		delete(c.calls, id)
		done <- answer{err: err}
	}
}

func (c *dialed) Send(ctx context.Context, subject string, event []byte) error {
	for {
		if err := sendable(ctx, subject, event); err != nil {
			return err
		}
		wait, err := c.trySend(ctx, subject, event)
		if err != nil {
			return err
		}
		if wait == nil {
			return nil
		}
		select {
		case <-wait:
		case <-c.over:
		case <-ctx.Done():
		}
	}
}

// trySend sends an event, or returns what is closed when there may be room.
func (c *dialed) trySend(ctx context.Context, subject string, event []byte) (wait <-chan struct{}, err error) {
	if err := c.order.take(ctx); err != nil {
		return nil, transport.ErrorOf(err)
	}
	defer c.order.leave()
	c.mu.Lock()
	switch full := c.sent-c.handled >= transport.Window || c.octets+len(event) > transport.WindowOctets && c.sent > c.handled; {
	case c.closed:
		err = c.lost()
	case !c.away.IsZero():
		err = c.unreachable()
	case full:
		wait = c.room
	}
	if err != nil || wait != nil {
		c.mu.Unlock()
		return wait, err
	}
	c.sent++
	f := frame{kind: kindEvent, n: [4]uint64{c.sent}, name: subject, body: bytes.Clone(event)}
	c.events = append(c.events, f)
	c.octets += len(event)
	c.arm(pingEvery)
	c.mu.Unlock()
	_ = c.out.send(ctx, f) // if it does not arrive, it is sent again
	return nil, nil
}

// Close ends the connection for the caller; it goes on until events already
// taken are handled.
func (c *dialed) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.failCalls(c.lost())
	rest := c.sent > c.handled
	if rest {
		c.arm(pingEvery)
	}
	c.mu.Unlock()
	if rest {
		c.ping() // which cancels the calls at the peer
	} else {
		c.end()
	}
	return nil
}

// end ends the connection at both sides.
func (c *dialed) end() {
	c.ending.Do(func() {
		_ = c.out.send(context.Background(), frame{kind: kindBye}) // the peer finds out by itself if it does not arrive
		_ = c.sub.Unsubscribe()                                    // fails only if NATS's connection is closed
		c.mu.Lock()
		c.closed = true
		c.failCalls(c.lost())
		c.events = nil
		if c.timer != nil {
			c.timer.Stop()
		}
		c.mu.Unlock()
		close(c.over)
		c.peers.mu.Lock()
		delete(c.peers.dialed, c)
		c.peers.mu.Unlock()
	})
}

// arm sees to it that tick is called. mu is held.
func (c *dialed) arm(d time.Duration) {
	if c.timer == nil {
		c.heard = time.Now()
		c.timer = time.AfterFunc(d, c.tick)
	}
}

// tick watches over what is under way.
func (c *dialed) tick() {
	c.mu.Lock()
	heard := c.heard
	c.timer = nil
	select {
	case <-c.over:
		c.mu.Unlock()
		return
	default:
	}
	away := !c.away.IsZero()
	busy := away || len(c.calls) > 0 || c.sent > c.handled
	gone := away && c.peers.store.conn.IsConnected() && time.Since(c.away) > awayLimit
	silent := busy && !away && time.Since(heard) > transport.DefaultHeartbeat.Dead
	if gone || silent {
		c.mu.Unlock()
		c.end()
		return
	}
	switch {
	case away:
		c.arm(awayEvery)
	case busy:
		c.arm(pingEvery)
		c.heard = heard
	}
	c.mu.Unlock()
	if busy {
		c.ping()
	}
}

// ping asks the peer for its state, and tells it which calls are given up.
func (c *dialed) ping() {
	ctx := context.Background()
	if c.order.take(ctx) != nil { // events up to sent are sent
		return
	}
	defer c.order.leave()
	c.mu.Lock()
	lowest := c.lastID + 1
	for id := range c.calls {
		lowest = min(lowest, id)
	}
	f := frame{kind: kindPing, n: [4]uint64{c.sent, lowest}}
	c.mu.Unlock()
	_ = c.out.send(ctx, f) // tick sends another
}

// depart notes that the peer cannot be reached.
func (c *dialed) depart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failCalls(c.unreachable())
	if c.away.IsZero() {
		c.away = time.Now()
		if c.timer != nil {
			c.timer.Stop()
			c.timer = nil
		}
		c.arm(awayEvery)
	}
}

func (c *dialed) cut() { c.depart() }

func (c *dialed) mend() {
	c.mu.Lock()
	if !c.away.IsZero() {
		c.away = time.Now() // the time starts now
	}
	c.mu.Unlock()
	c.ping()
}

// take takes what the peer sends.
func (c *dialed) take(m *nats.Msg) {
	if vacated(m) {
		c.depart()
		return
	}
	c.mu.Lock()
	c.heard = time.Now()
	c.mu.Unlock()
	encoded, whole := c.in.take(m.Data)
	if !whole {
		return
	}
	f, err := parseFrame(encoded)
	switch {
	case err != nil:
		c.peers.store.config.Log.Warn("a peer on the bus sends what cannot be read; is it of another version?", "address", c.address)
		c.end()
	case f.kind == kindBye:
		c.end()
	case f.kind == kindAnswer:
		c.answer(f)
	case f.kind == kindState:
		c.state(f)
	}
}

func (c *dialed) answer(f frame) {
	c.mu.Lock()
	done := c.calls[f.n[0]]
	delete(c.calls, f.n[0])
	c.mu.Unlock()
	switch {
	case done == nil: // given up
	case f.n[1] > 0:
		done <- answer{err: &transport.Error{Code: transport.Code(f.n[1] - 1), Text: string(f.body)}}
	default:
		done <- answer{resp: f.body}
	}
}

// state takes note of what the peer has, and sends what it ought to have.
func (c *dialed) state(f frame) {
	expected, received, handled, epoch := f.n[0], f.n[1], f.n[2], f.n[3]
	c.mu.Lock()
	c.away = time.Time{}
	if epoch != c.epoch {
		c.epoch = epoch
		c.failCalls(c.unreachable()) // of what was under way, something is lost
	}
	if n := int(handled - c.handled); handled > c.handled && n <= len(c.events) {
		for i := range n {
			c.octets -= len(c.events[i].body)
			c.events[i] = frame{}
		}
		c.events = c.events[n:]
		c.handled = handled
		close(c.room)
		c.room = make(chan struct{})
	}
	finished := c.closed && c.handled == c.sent
	c.mu.Unlock()
	if finished {
		c.end()
	} else if received < expected {
		go c.resend(received)
	}
}

// resend sends all events after a number again.
func (c *dialed) resend(received uint64) {
	ctx := context.Background()
	if c.order.take(ctx) != nil {
		return
	}
	defer c.order.leave()
	c.mu.Lock()
	var again []frame
	if received >= c.handled && received < c.sent {
		again = append(again, c.events[received-c.handled:]...)
	}
	c.mu.Unlock()
	for _, f := range again {
		if c.out.send(ctx, f) != nil {
			return // tick finds out what is missing
		}
	}
}

package bus

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/weft-sdn/weft/transport"
)

const (
	// awayEvery is how often a connection asks whether an unreachable peer is back.
	awayEvery = 100 * time.Millisecond
)

// pingEvery is how often a connection with calls in progress asks whether the peer is alive.
var pingEvery = transport.DefaultHeartbeat.Tick()

// dialed is the dialing side of a connection.
type dialed struct {
	peers   *peers
	id      string
	address string
	out     sender
	sub     *nats.Subscription
	in      assembler // used by the subscription's goroutine

	mu     sync.Mutex // guards those below
	calls  map[uint64]chan answer
	lastID uint64
	epoch  uint64 // of the peer
	heard  uint64 // messages of the peer
	pulse  transport.Pulse
	away   time.Time   // when the peer became unreachable; zero: it is reachable
	timer  *time.Timer // of tick; nil: nothing is in progress
	closed bool
	ending sync.Once
}

type answer struct {
	resp []byte
	err  *transport.Error
}

func newDialed(p *peers, address string) *dialed {
	id := nuid.Next()
	up, down := ends(id)
	return &dialed{
		peers: p, id: id, address: address, out: newSender(p.store.conn, up, down),
		calls: map[uint64]chan answer{},
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
		// If it is lost, the next ping cancels the call.
		go func() { _ = c.out.send(context.Background(), frame{kind: kindCancel, n: [4]uint64{id}}) }()
		return nil, transport.ErrorOf(ctx.Err())
	}
}

func (c *dialed) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

// failCalls fails all calls in progress. mu is held.
func (c *dialed) failCalls(err *transport.Error) {
	for id, done := range c.calls {
		delete(c.calls, id)
		done <- answer{err: err}
	}
}

// Close ends the connection.
func (c *dialed) Close() error {
	c.end()
	return nil
}

// end ends both sides of the connection.
func (c *dialed) end() {
	c.ending.Do(func() {
		_ = c.out.send(context.Background(), frame{kind: kindBye}) // if it is lost, the peer times out
		_ = c.sub.Unsubscribe()                                    // fails only without NATS
		c.mu.Lock()
		c.closed = true
		c.failCalls(c.lost())
		if c.timer != nil {
			c.timer.Stop()
		}
		c.mu.Unlock()
		c.peers.mu.Lock()
		delete(c.peers.dialed, c)
		c.peers.mu.Unlock()
	})
}

// arm schedules tick. mu is held.
func (c *dialed) arm(d time.Duration) {
	if c.timer == nil {
		c.timer = time.AfterFunc(d, c.tick)
	}
}

// tick watches the calls in progress.
func (c *dialed) tick() {
	c.mu.Lock()
	c.timer = nil
	if c.closed {
		c.mu.Unlock()
		return
	}
	away := !c.away.IsZero()
	busy := away || len(c.calls) > 0
	gone := away && c.peers.store.conn.IsConnected() && time.Since(c.away) > awayLimit
	_, silent := c.pulse.Tick(c.heard, busy && !away, transport.DefaultHeartbeat)
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
	}
	c.mu.Unlock()
	if busy {
		c.ping()
	}
}

// ping asks the peer for its state, and names the calls still in progress.
func (c *dialed) ping() {
	c.mu.Lock()
	lowest := c.lastID + 1
	for id := range c.calls {
		lowest = min(lowest, id)
	}
	c.mu.Unlock()
	_ = c.out.send(context.Background(), frame{kind: kindPing, n: [4]uint64{1: lowest}}) // tick sends another
}

// depart records that the peer is unreachable.
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
		c.away = time.Now() // the wait begins now
	}
	c.mu.Unlock()
	c.ping()
}

// take handles a message of the peer.
func (c *dialed) take(m *nats.Msg) {
	if vacated(m) {
		c.depart()
		return
	}
	c.mu.Lock()
	c.heard++
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
	case done == nil: // cancelled
	case f.n[1] > 0:
		done <- answer{err: &transport.Error{Code: transport.Code(f.n[1] - 1), Text: string(f.body)}}
	default:
		done <- answer{resp: f.body}
	}
}

// state records that the peer is alive, and whether it lost frames.
func (c *dialed) state(f frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = time.Time{}
	if epoch := f.n[3]; epoch != c.epoch {
		c.epoch = epoch
		c.failCalls(c.unreachable()) // frames of calls in progress were lost
	}
}

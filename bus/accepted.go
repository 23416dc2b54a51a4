package bus

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weft-sdn/weft/transport"
)

const (
	// idleCheck is how often the listener's side checks that the peer is alive while it
	// answers no calls; it tells so itself every idleCheck, or Heartbeat.Interval.
	idleCheck = 10 * time.Second
)

// accepted is the listener's side of a connection.
type accepted struct {
	listener *listener
	out      sender
	sub      *nats.Subscription
	in       assembler // used by the subscription's goroutine

	ctx    context.Context // of calls; it ends with the connection
	cancel context.CancelFunc
	ending sync.Once

	mu    sync.Mutex // guards those below
	calls map[uint64]context.CancelFunc
	heard uint64 // messages of the peer
	pulse transport.Pulse
	away  time.Time // when the peer became unreachable
	epoch uint64    // grows when frames from the peer may have been lost
	timer *time.Timer
	bye   bool // the peer has closed the connection
	over  bool // calls are not answered any more
}

// accept takes a new connection.
func (l *listener) accept(id string) error {
	up, down := ends(id)
	c := &accepted{
		listener: l, out: newSender(l.peers.store.conn, down, up),
		calls: map[uint64]context.CancelFunc{},
	}
	c.ctx, c.cancel = context.WithCancel(l.ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return context.Canceled
	}
	var err error
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sub, err = c.out.conn.Subscribe(up, c.take); err != nil {
		return err
	}
	if err := c.sub.SetPendingLimits(-1, -1); err != nil {
		return err
	}
	c.timer = time.AfterFunc(idleCheck, c.tick)
	l.accepted[c] = struct{}{}
	return nil
}

// take handles a message of the peer.
func (c *accepted) take(m *nats.Msg) {
	if c.ctx.Err() != nil {
		return
	}
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
	if err != nil {
		c.listener.peers.store.config.Log.Warn("a peer on the bus sends what cannot be read; is it of another version?", "address", c.listener.address)
		c.end()
		return
	}
	switch f.kind {
	case kindCall:
		c.call(f)
	case kindCancel:
		c.giveUp(func(id uint64) bool { return id == f.n[0] })
	case kindPing:
		c.giveUp(func(id uint64) bool { return id < f.n[1] })
		c.mu.Lock()
		c.away = time.Time{}
		c.mu.Unlock()
		c.state()
	case kindBye:
		c.mu.Lock()
		c.bye = true
		c.mu.Unlock()
		c.end()
	}
}

// call starts the handler of a call.
func (c *accepted) call(f frame) {
	ctx, cancel := c.ctx, context.CancelFunc(nil)
	if f.n[1] > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(f.n[1]-1))
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	id := f.n[0]
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		cancel()
		return
	}
	c.calls[id] = cancel
	if len(c.calls) == 1 && c.away.IsZero() {
		c.timer.Reset(transport.DefaultHeartbeat.Tick())
	}
	c.mu.Unlock()
	go func() {
		resp, err := transport.Answer(ctx, c.listener.handler, f.name, f.body)
		c.mu.Lock()
		_, wanted := c.calls[id]
		delete(c.calls, id)
		c.mu.Unlock()
		cancel()
		if !wanted {
			return
		}
		a := frame{kind: kindAnswer, n: [4]uint64{id}, body: resp}
		if err != nil {
			text := err.Text[:min(len(err.Text), transport.MaxMessage)]
			a.n[1], a.body = uint64(err.Code)+1, []byte(text)
		}
		_ = c.out.send(c.ctx, a) // if NATS is lost, the peer fails the call itself
	}()
}

// giveUp cancels the calls that which selects.
func (c *accepted) giveUp(which func(id uint64) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, cancel := range c.calls {
		if which(id) {
			delete(c.calls, id)
			cancel()
		}
	}
}

// state reports to the peer that this end is alive.
func (c *accepted) state() {
	c.mu.Lock()
	epoch := c.epoch
	c.mu.Unlock()
	// If the frame is lost, the peer asks again.
	_ = c.out.send(c.ctx, frame{kind: kindState, n: [4]uint64{3: epoch}})
}

// tick checks that the peer is still alive.
func (c *accepted) tick() {
	c.mu.Lock()
	next, tell, silent := idleCheck, true, false
	switch away := !c.away.IsZero(); {
	case c.ctx.Err() != nil:
		c.mu.Unlock()
		return
	case away && c.out.conn.IsConnected() && time.Since(c.away) > awayLimit:
		c.mu.Unlock()
		c.end()
		return
	case away:
		next = awayEvery
	case len(c.calls) > 0:
		next = transport.DefaultHeartbeat.Tick()
		tell, silent = c.pulse.Tick(c.heard, true, transport.DefaultHeartbeat)
	}
	c.timer.Reset(next)
	c.mu.Unlock()
	if silent { // a waiting caller sends pings
		c.depart()
	}
	if tell || silent {
		c.state() // NATS reports if nobody receives it
	}
}

// depart records that the peer is unreachable; its calls have failed.
func (c *accepted) depart() {
	c.giveUp(func(uint64) bool { return true })
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away.IsZero() {
		c.away = time.Now()
		c.timer.Reset(awayEvery)
	}
}

// mend restarts the connection after the loss of NATS.
func (c *accepted) mend() {
	c.mu.Lock()
	c.epoch++
	if !c.away.IsZero() {
		c.away = time.Now()
	}
	c.mu.Unlock()
	c.state()
}

// end ends this side of the connection: the peer has closed it, is notified, or
// is gone.
func (c *accepted) end() {
	c.ending.Do(func() {
		c.mu.Lock()
		c.over = true
		c.mu.Unlock()
		c.giveUp(func(uint64) bool { return true })
		c.cancel()
		c.mu.Lock()
		c.timer.Stop()
		bye := c.bye
		c.mu.Unlock()
		if !bye {
			_ = c.out.send(context.Background(), frame{kind: kindBye}) // if it is lost, the peer times out
		}
		_ = c.sub.Unsubscribe() // fails only if the connection to NATS is closed
		c.listener.mu.Lock()
		delete(c.listener.accepted, c)
		c.listener.mu.Unlock()
	})
}

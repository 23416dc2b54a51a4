package bus

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/weft-sdn/weft/transport"
)

const (
	// busyCheck is how often the listener's side looks whether the peer is
	// still there while its calls are at work, idleCheck while none is.
	busyCheck = time.Second
	idleCheck = 10 * time.Second
)

// accepted is a connection at the side of the listener.
type accepted struct {
	listener *listener
	out      sender
	sub      *nats.Subscription
	in       assembler // of the subscription's goroutine

	ctx    context.Context // of calls; ends with the connection
	cancel context.CancelFunc
	ending sync.Once

	mu    sync.Mutex // guards those below
	calls map[uint64]context.CancelFunc
	heard time.Time // when the peer last said something
	away  time.Time // since when the peer cannot be reached
	epoch uint64    // grows when something may have been lost on the way here
	timer *time.Timer
	bye   bool // the peer has closed
	over  bool // no call is answered any more
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

// take takes what the peer sends.
func (c *accepted) take(m *nats.Msg) {
	if c.ctx.Err() != nil {
		return
	}
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
		c.timer.Reset(busyCheck)
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
		_ = c.out.send(c.ctx, a) // if NATS is lost, the peer knows that the call has failed
	}()
}

// giveUp cancels calls.
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

// state tells the peer that this end is there.
func (c *accepted) state() {
	c.mu.Lock()
	epoch := c.epoch
	c.mu.Unlock()
	// If it does not arrive, the peer asks again.
	_ = c.out.send(c.ctx, frame{kind: kindState, n: [4]uint64{3: epoch}})
}

// tick looks whether the peer is still there.
func (c *accepted) tick() {
	c.mu.Lock()
	next, silent := idleCheck, false
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
		next = busyCheck
		silent = time.Since(c.heard) > transport.DefaultHeartbeat.Dead
	}
	c.timer.Reset(next)
	c.mu.Unlock()
	if silent { // a caller that waits asks again and again
		c.depart()
	}
	c.state() // NATS says so if nobody is there
}

// depart notes that the peer cannot be reached; its calls have failed.
func (c *accepted) depart() {
	c.giveUp(func(uint64) bool { return true })
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away.IsZero() {
		c.away = time.Now()
		c.timer.Reset(awayEvery)
	}
}

// mend starts anew after the connection to NATS was lost.
func (c *accepted) mend() {
	c.mu.Lock()
	c.epoch++
	if !c.away.IsZero() {
		c.away = time.Now()
	}
	c.mu.Unlock()
	c.state()
}

// end ends the connection here; the peer has said so, is told, or has gone.
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
			_ = c.out.send(context.Background(), frame{kind: kindBye}) // the peer finds out by itself if it does not arrive
		}
		_ = c.sub.Unsubscribe() // fails only if NATS's connection is closed
		c.listener.mu.Lock()
		delete(c.listener.accepted, c)
		c.listener.mu.Unlock()
	})
}

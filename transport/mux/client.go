package mux

import (
	"context"
	"sync"
	"time"

	"github.com/weft-sdn/weft/transport"
)

// Client is the dialling side of a connection: a transport.Conn.
type Client struct {
	w     writer
	name  string // of the peer, for errors
	beat  transport.Heartbeat
	ended chan struct{} // closed when the link has ended

	mu     sync.Mutex // guards all below
	calls  map[uint64]*call
	next   uint64           // the ID last given
	failed *transport.Error // fails all further calls
}

// call is a call in progress.
type call struct {
	done chan struct{} // gets one value, when resp or err is set
	resp []byte
	err  *transport.Error
	got  assembly
}

var callPool = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

// NewClient returns a connection over a link to a peer of the given name.
func NewClient(link Link, name string, beat transport.Heartbeat) *Client {
	c := &Client{name: name, beat: beat.OrDefault(), ended: make(chan struct{}), calls: map[uint64]*call{}}
	c.w.init(link)
	go c.w.run(c.ended)
	go c.watch()
	go c.read()
	return c
}

// Call makes a call.
func (c *Client) Call(ctx context.Context, method string, req []byte) ([]byte, error) {
	if err := transport.Sendable(ctx, method, req); err != nil {
		return nil, err
	}
	f := Frame{Kind: Call, Name: []byte(method)}
	if deadline, ok := ctx.Deadline(); ok {
		f.Timeout = max(time.Until(deadline), time.Microsecond)
	}
	k := callPool.Get().(*call)
	c.mu.Lock()
	if c.failed != nil {
		c.mu.Unlock()
		callPool.Put(k)
		return nil, c.lost()
	}
	c.next++
	f.ID = c.next
	c.calls[f.ID] = k
	c.mu.Unlock()

	err := c.w.message(ctx, f, req)
	if err == nil {
		select {
		case <-k.done:
			return k.result()
		case <-ctx.Done():
			err = transport.ErrorOf(ctx.Err())
		}
	}
	if !c.forget(f.ID) {
		<-k.done // the answer arrived meanwhile
		return k.result()
	}
	*k = call{done: k.done}
	callPool.Put(k)
	c.w.cancel(f.ID)
	return nil, err
}

// result returns the result of a call, and ends it.
func (k *call) result() ([]byte, error) {
	resp, err := k.resp, k.err
	*k = call{done: k.done}
	callPool.Put(k)
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// forget removes a call from those in progress; false if it is not among them.
func (c *Client) forget(id uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.calls[id]
	delete(c.calls, id)
	return ok
}

// goodbye is how long Close waits for the peer to read everything.
const goodbye = time.Second

// Close ends the connection once the peer has read everything sent.
func (c *Client) Close() error {
	c.fail(transport.Errorf(transport.Unavailable, "the connection to %s is closed", c.name))
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	if err := c.w.put(ctx, &Frame{Kind: Bye}); err == nil {
		select {
		case <-c.ended:
		case <-ctx.Done():
		}
	}
	c.w.fail(c.lost())
	_ = c.w.link.Close() // nobody needs the error
	<-c.ended
	return nil
}

func (c *Client) lost() *transport.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &transport.Error{Code: c.failed.Code, Text: c.failed.Text}
}

// fail fails all calls in progress, and refuses further ones.
func (c *Client) fail(err *transport.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = err
	}
	for id, k := range c.calls {
		e := *c.failed
		k.err = &e
		k.done <- struct{}{}
		delete(c.calls, id)
	}
}

// read handles frames until the link ends.
func (c *Client) read() {
	var err error
	for {
		var b *Buffer
		if b, err = c.w.link.Read(); err != nil {
			break
		}
		err = each(b.B, c.take)
		b.Release()
		if err != nil {
			break
		}
	}
	lost := transport.Errorf(transport.Unavailable, "the connection to %s is lost: %v", c.name, err)
	c.fail(lost)
	c.w.fail(lost)
	_ = c.w.link.Close() // it has failed already
	close(c.ended)
}

func (c *Client) take(f *Frame) error {
	switch f.Kind {
	case Result, Data, Failed:
		return c.answer(f)
	case Ping:
		c.w.putNow(&Frame{Kind: Pong})
	case Pong:
	default:
		return transport.Errorf(transport.Unknown, "a frame of kind %d from the listening side", f.Kind)
	}
	return nil
}

// answer handles an answer or a part of one. It ignores answers to abandoned
// calls.
func (c *Client) answer(f *Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.calls[f.ID]
	if k == nil {
		return nil
	}
	switch {
	case f.Kind == Failed:
		k.err = &transport.Error{Code: f.Code, Text: string(f.Body)}
	case f.Kind == Result && !f.More:
		k.resp = append(make([]byte, 0, len(f.Body)), f.Body...)
	default:
		if f.Kind == Result {
			k.got = assembly{total: f.Total}
		}
		if err := k.got.add(f.Body, !f.More); err != nil {
			return err
		}
		if f.More {
			return nil
		}
		k.resp = k.got.b
	}
	delete(c.calls, f.ID)
	k.done <- struct{}{}
	return nil
}

// watch detects a silent peer.
func (c *Client) watch() {
	if watch(c.beat, c.ended, c.signs, func() { c.w.putNow(&Frame{Kind: Ping}) }) {
		c.fail(transport.Errorf(transport.Unavailable, "%s has been silent for %v", c.name, c.beat.Dead))
		_ = c.w.link.Close() // read reports the error
	}
}

func (c *Client) signs() (heard uint64, underWay bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.w.signs(), len(c.calls) > 0
}

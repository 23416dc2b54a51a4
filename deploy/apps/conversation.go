package apps

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// conversation is the link to an app over a connection on which both sides send
// at any time: gRPC's stream or a WebSocket.
type conversation struct {
	transport, peer string
	ctx             context.Context   // of the connection
	out             chan *api.Packets // to the writing goroutine
	gone            chan struct{}     // closed once the app is detached

	mu      sync.Mutex // guards what follows
	last    uint64     // the highest id that was sent
	pending map[uint64]chan *api.Decisions
}

func newConversation(ctx context.Context, transport, peer string) *conversation {
	return &conversation{
		transport: transport, peer: peer, ctx: ctx, out: make(chan *api.Packets), gone: make(chan struct{}),
		pending: map[uint64]chan *api.Decisions{},
	}
}

// converse attaches the app that said hello.
func (o *Server) converse(ctx context.Context, c *conversation, h *api.Hello) (*app, *api.Welcome, error) {
	info, err := o.apps.check(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	if h.GetUrl() != "" {
		return nil, nil, api.Errorf(codes.InvalidArgument, "hello: url is for REST: leave it out")
	}
	info.Transport, info.Peer = c.transport, c.peer
	a := newApp(c.ctx, info, c, &o.config)
	welcome, err := o.apps.attach(a, func() { close(c.gone) })
	if err != nil {
		return nil, nil, err
	}
	return a, welcome, nil
}

// exchange sends packets and waits for the answer.
func (c *conversation) exchange(ctx context.Context, p *api.Packets) (*api.Decisions, error) {
	answer := make(chan *api.Decisions, 1)
	c.mu.Lock()
	c.pending[p.GetId()] = answer
	c.last = max(c.last, p.GetId())
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, p.GetId())
		c.mu.Unlock()
	}()
	if err := c.deliver(ctx, p); err != nil {
		return nil, err
	}
	select {
	case d := <-answer:
		return d, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// deliver passes packets to the writing goroutine.
func (c *conversation) deliver(ctx context.Context, p *api.Packets) error {
	select {
	case c.out <- p:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answer passes decisions to the goroutine that waits for them. It ignores late
// ones; decisions on packets that were never sent are an error.
func (c *conversation) answer(d *api.Decisions) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.GetId() == 0 || d.GetId() > c.last {
		return api.Errorf(codes.InvalidArgument, "decisions with id %d: no such packets were sent", d.GetId())
	}
	if waiting := c.pending[d.GetId()]; waiting != nil {
		waiting <- d
		delete(c.pending, d.GetId()) // the same again is as if too late
	}
	return nil
}

// write sends packets one batch at a time, until ctx ends or sending fails; it
// returns the reason.
func (c *conversation) write(ctx context.Context, send func(*api.Packets) error) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case p := <-c.out:
			if err := send(p); err != nil {
				return errors.Join(errLost, err)
			}
		}
	}
}

// errLost is why an app is detached whose connection breaks.
var errLost = errors.New("connection lost")

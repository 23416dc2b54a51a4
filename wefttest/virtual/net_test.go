package virtual

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/inproc"
)

// deadAfter is how long a connection on which nothing is heard counts as alive.
const deadAfter = 3 * time.Second

// paths is the network between processes, with the ways in which it fails. The
// address of a run of a process is PROCESS#RUN.
type paths struct {
	*inproc.Network
	chance *chance
	trace  *trace

	mu   sync.Mutex                  // guards what follows
	cuts map[[2]string]chan struct{} // of pairs of processes, in order: closed when they reach each other again
	lag  time.Duration
	lose int // of a thousand calls, answers that are lost
}

func newPaths(c *chance, t *trace) *paths {
	return &paths{Network: inproc.New(), chance: c, trace: t, cuts: map[[2]string]chan struct{}{}, lag: 500 * time.Microsecond}
}

func ordered(a, b string) [2]string {
	if b < a {
		a, b = b, a
	}
	return [2]string{a, b}
}

// cut parts two processes: what one sends does not arrive.
func (p *paths) cut(a, b string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cuts[ordered(a, b)] == nil {
		p.cuts[ordered(a, b)] = make(chan struct{})
	}
}

// worsen has messages take up to lag, and so many of a thousand answers get lost.
func (p *paths) worsen(lag time.Duration, lose int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lag, p.lose = lag, lose
}

func (p *paths) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pair, c := range p.cuts {
		close(c)
		delete(p.cuts, pair)
	}
	p.lag, p.lose = 500*time.Microsecond, 0
}

// carry is the way of one message: it takes its time, and fails if the other
// side is silent for too long.
func (p *paths) carry(ctx context.Context, from, to string) error {
	p.mu.Lock()
	lag, cut := p.lag, p.cuts[ordered(from, to)]
	p.mu.Unlock()
	if !rest(ctx, p.chance.within(lag)) {
		return transport.ErrorOf(ctx.Err())
	}
	if cut == nil {
		return nil
	}
	dead := time.NewTimer(deadAfter)
	defer dead.Stop()
	select {
	case <-cut:
		return nil
	case <-ctx.Done():
		return transport.ErrorOf(ctx.Err())
	case <-dead.C:
		return transport.Errorf(transport.Unavailable, "nothing heard from %q", to)
	}
}

func (p *paths) loses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	lose := p.lose
	return lose > 0 && p.chance.n(1000) < lose
}

// end is the network as one process has it.
type end struct {
	paths *paths
	gate  *gate
}

func (e end) Listen(address string, h transport.Handler) (transport.Listener, error) {
	return e.paths.Listen(address, gatedHandler{h, e.gate})
}

func (e end) Dial(ctx context.Context, address string) (transport.Conn, error) {
	if err := e.gate.pass(ctx); err != nil {
		return nil, transport.ErrorOf(err)
	}
	to, _, _ := strings.Cut(address, "#")
	if err := e.paths.carry(ctx, e.gate.process, to); err != nil {
		return nil, err
	}
	c, err := e.paths.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, end: e, to: to}, nil
}

// conn is a connection of a process to another.
type conn struct {
	transport.Conn
	end end
	to  string // the process
}

func (c *conn) Call(ctx context.Context, method string, req []byte) ([]byte, error) {
	if err := c.end.gate.pass(ctx); err != nil {
		return nil, transport.ErrorOf(err)
	}
	if err := c.end.paths.carry(ctx, c.end.gate.process, c.to); err != nil {
		return nil, err
	}
	c.end.paths.trace.add(c.end.gate.process+">"+c.to+method, req)
	resp, err := c.Conn.Call(ctx, method, req)
	c.end.paths.trace.add(c.end.gate.process+"<"+c.to+method, append([]byte(textOf(err)), resp...))
	if late := c.end.paths.carry(ctx, c.end.gate.process, c.to); late != nil {
		return nil, late
	}
	if gone := c.end.gate.pass(ctx); gone != nil {
		return nil, transport.ErrorOf(gone)
	}
	if err == nil && c.end.paths.loses() {
		return nil, transport.Errorf(transport.Unavailable, "the connection to %q is lost", c.to)
	}
	return resp, err
}

// gatedHandler is what a process answers others with.
type gatedHandler struct {
	transport.Handler
	gate *gate
}

func (h gatedHandler) Call(ctx context.Context, method string, req []byte) ([]byte, error) {
	if err := h.gate.pass(ctx); err != nil {
		return nil, err
	}
	resp, err := h.Handler.Call(ctx, method, req)
	if gone := h.gate.pass(ctx); gone != nil {
		return nil, gone
	}
	return resp, err
}

// textOf returns what an error says; "" if there is none.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Package inproc is the transport within one process. What it carries is
// copied, so it shows whether a system would work across processes.
//
// Package deploy imports it. It imports only transport.
package inproc

import (
	"bytes"
	"context"
	"sync"

	"github.com/weft-sdn/weft/transport"
)

// Network is a set of addresses that can reach each other. Addresses are any
// text that is not empty.
type Network struct {
	mu        sync.Mutex // guards listeners
	listeners map[string]*listener
}

// New returns an empty network.
func New() *Network { return &Network{listeners: map[string]*listener{}} }

// Listen offers a handler at an address.
func (n *Network) Listen(address string, h transport.Handler) (transport.Listener, error) {
	if address == "" {
		return nil, transport.Errorf(transport.Unavailable, "listen: the address is empty; give it a name")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[address] != nil {
		return nil, transport.Errorf(transport.Unavailable, "listen: address %q is in use; close its listener first", address)
	}
	l := &listener{network: n, address: address, handler: h}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	n.listeners[address] = l
	return l, nil
}

// Dial connects to an address.
func (n *Network) Dial(ctx context.Context, address string) (transport.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, transport.ErrorOf(err)
	}
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	if l == nil {
		return nil, transport.Errorf(transport.Unavailable, "dial: nobody listens at %q", address)
	}
	c := &conn{peer: l}
	c.ctx, c.cancel = context.WithCancel(l.ctx)
	return c, nil
}

type listener struct {
	network *Network
	address string
	handler transport.Handler
	ctx     context.Context // of the offer; ends with it
	cancel  context.CancelFunc
}

func (l *listener) Address() string { return l.address }

func (l *listener) Close() error {
	l.network.mu.Lock()
	if l.network.listeners[l.address] == l {
		delete(l.network.listeners, l.address)
	}
	l.network.mu.Unlock()
	l.cancel()
	return nil
}

// conn is one connection.
type conn struct {
	peer   *listener
	ctx    context.Context // of the calls under way
	cancel context.CancelFunc
}

type answer struct {
	resp []byte
	err  error
}

func (c *conn) Call(ctx context.Context, method string, req []byte) ([]byte, error) {
	if err := transport.Sendable(ctx, method, req); err != nil {
		return nil, err
	}
	if c.ctx.Err() != nil {
		return nil, c.lost()
	}
	hctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok {
		hctx, cancel = context.WithDeadline(hctx, deadline)
		defer cancel()
	}
	done := make(chan answer, 1)
	req = bytes.Clone(req)
	go func() {
		resp, err := transport.Answer(hctx, c.peer.handler, method, req)
		if err != nil {
			done <- answer{err: &transport.Error{Code: err.Code, Text: err.Text}}
			return
		}
		done <- answer{resp: bytes.Clone(resp)}
	}()
	select {
	case a := <-done:
		return a.resp, a.err
	case <-ctx.Done():
		return nil, transport.ErrorOf(ctx.Err())
	case <-c.ctx.Done():
		return nil, c.lost()
	}
}

func (c *conn) Close() error {
	c.cancel()
	return nil
}

func (c *conn) lost() error {
	return transport.Errorf(transport.Unavailable, "the connection to %q is closed", c.peer.address)
}

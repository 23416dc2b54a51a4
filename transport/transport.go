// Package transport is the seam between processes: bytes by name. It says what
// every transport offers and promises; the folders below it are transports,
// and transporttest is the suite that all of them pass. A transport knows no
// message and no service.
//
// What all promise, whatever the peer and the network do: a Call returns
// when its context ends; a peer that has gone or fallen silent makes every
// call under way fail with Unavailable, within Heartbeat.Dead
// and one interval; a connection that has failed stays failed, and dialling
// again gives a new one; a handler that panics costs its caller an Unknown; a
// peer that breaks the protocol costs its own connection.
//
// Packages deploy and bus import it. It imports only the standard library, and each
// transport that, the library of its protocol, and of the folders beside it
// mux (many calls over one stream), socket (listening and dialling) and those
// whose protocols it serves.
package transport

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// MaxMessage is the largest request or response, in octets. Larger ones are
// refused with ResourceExhausted.
const MaxMessage = 16 << 20

// MaxName is the longest name of a method, in octets.
const MaxName = 1024

// Heartbeat is how a connection finds out that its peer is silent: while
// calls are under way and nothing is heard for Interval it asks; if
// nothing has been heard for Dead, the peer is taken for gone. The zero value
// means DefaultHeartbeat.
type Heartbeat struct{ Interval, Dead time.Duration }

// DefaultHeartbeat asks after 1 s and gives up after 3 s.
var DefaultHeartbeat = Heartbeat{Interval: time.Second, Dead: 3 * time.Second}

// OrDefault returns h with DefaultHeartbeat's values for those not set.
func (h Heartbeat) OrDefault() Heartbeat {
	if h.Interval <= 0 {
		h.Interval = DefaultHeartbeat.Interval
	}
	if h.Dead <= 0 {
		h.Dead = max(DefaultHeartbeat.Dead, h.Interval)
	}
	return h
}

// Pulse measures how long a peer is silent, in ticks of a clock of this
// process: if this process is suspended, the peer is not blamed.
type Pulse struct {
	heard  uint64
	silent int
}

// ticksPerInterval is how finely silence is measured.
const ticksPerInterval = 4

// Tick records the total number of signs of life. It says whether to ping the
// peer, and whether to give it up.
func (p *Pulse) Tick(heard uint64, underWay bool, h Heartbeat) (ask, dead bool) {
	if heard != p.heard || !underWay {
		p.heard, p.silent = heard, 0
		return false, false
	}
	p.silent++
	tick := h.Interval / ticksPerInterval
	return p.silent%ticksPerInterval == 0, time.Duration(p.silent)*tick >= h.Dead
}

// Tick returns how often Pulse.Tick is to be called.
func (h Heartbeat) Tick() time.Duration {
	return max(h.Interval/ticksPerInterval, time.Millisecond)
}

// Transport carries calls to handlers at addresses. What an address
// looks like is the transport's own business.
type Transport interface {
	// Listen offers a handler at an address. An address in use is an error.
	Listen(address string, h Handler) (Listener, error)
	// Dial connects to an address; Unavailable if nobody listens there.
	Dial(ctx context.Context, address string) (Conn, error)
}

// Listener is a handler on offer.
type Listener interface {
	// Address is where to dial, complete also if Listen was given part of it.
	Address() string
	// Close ends the offer and all its connections: what is sent afterwards
	// gets Unavailable, and the contexts of handlers at work end.
	Close() error
}

// Handler answers what peers send. It keeps none of the bytes that it is given
// after it returns.
type Handler interface {
	// Call answers a unary call. Several run at once. ctx carries the caller's
	// deadline, ends when the caller gives up or its connection is lost, and
	// carries nothing else of the caller's.
	Call(ctx context.Context, method string, req []byte) (resp []byte, err error)
}

// Conn is a connection to one handler; any goroutine may use it.
type Conn interface {
	// Call makes a unary call and returns its response, which is the caller's.
	// req may be used again as soon as it returns. It returns when ctx ends,
	// whether or not the handler does. Errors are *Error: that of the handler,
	// or of the transport; after Unavailable, DeadlineExceeded and Canceled
	// the call may have run. Calls have no order among themselves other than
	// that which waiting for them gives.
	Call(ctx context.Context, method string, req []byte) (resp []byte, err error)
	// Close ends the connection; calls under way fail with Unavailable.
	Close() error
}

// Error is how calls and connections fail: a kind, on which callers branch,
// and a text. Handlers' errors of other types arrive as Unknown.
type Error struct {
	Code Code
	Text string
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Code is the kind of an Error, numbered like the status codes of gRPC.
type Code uint32

// The codes that transports themselves return; handlers may use any.
const (
	Canceled          Code = 1
	Unknown           Code = 2
	DeadlineExceeded  Code = 4
	ResourceExhausted Code = 8
	Unavailable       Code = 14
)

// Errorf returns an error with a code.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// ErrorOf returns err as it crosses a connection: itself if it is an *Error,
// the fitting code if it is that of a context, else Unknown with its text.
func ErrorOf(err error) *Error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: DeadlineExceeded, Text: err.Error()}
	case errors.Is(err, context.Canceled):
		return &Error{Code: Canceled, Text: err.Error()}
	}
	return &Error{Code: Unknown, Text: err.Error()}
}

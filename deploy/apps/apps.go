// Package apps lets services that live outside Weft take part: apps that
// are stages or observers of the packet-in pipeline, and clients that call the
// methods of Weft's services. It offers the same messages, those of
// api/apps.proto and of the services' own .proto files, over REST, a WebSocket
// and gRPC; docs/apps.md is its contract.
//
// Whoever runs services (package deploy, cmd/weft) imports it, gives it a
// Caller and serves its HTTP handler and its gRPC services on a port. All that
// comes from apps is taken as hostile: what is malformed costs its sender the
// connection and changes nothing.
package apps

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/protobuf/proto"
)

// Caller calls the methods of services, wherever they run.
type Caller interface {
	// Call makes a call; req is of the type that Method returns.
	Call(ctx context.Context, method string, req proto.Message) (proto.Message, error)
	// Method returns what makes an empty request for a method, service.Method;
	// false if no service in force serves it.
	Method(name string) (newReq func() proto.Message, ok bool)
	// Methods returns the names of all methods.
	Methods() []string
}

// Config is what a Server needs.
type Config struct {
	Caller Caller
	// Attach is told of every app that has come, and returns what is called
	// once it is gone. An error refuses the app.
	Attach func(AppInfo) (detach func(), err error)
	// Peer returns the identities (URIs such as weft://app/NAME) in the verified
	// certificate of the peer whose request ctx is that of: transport.Peer, on a
	// port of package transport/port. Nil: no certificates are in use, and
	// everything stays on this machine.
	Peer func(ctx context.Context) []string
	// TLS is with what REST apps elsewhere are asked; nil: they cannot be.
	TLS *tls.Config
	Log *slog.Logger // nil: none
	// Changed is told of every call that may have changed something, once it has
	// ended; nil for nobody.
	Changed func(Change)
	// Refused is told of every call and decision that the plan does not give to an
	// app (empty: to a caller without a name), and why in a word; nil for nobody.
	Refused func(app, reason string)
	// Timeout returns how long the stage of a name may take to answer; nil, or 0:
	// Limits.Timeout.
	Timeout func(name string) time.Duration
	// Grant returns what an app of a name may do; nil: all may do everything.
	Grant func(name string) Grant

	Limits Limits // zero fields have their defaults
}

// refused reports a refusal to an app, if the plan is the reason.
func (c *Config) refused(app string, err error) {
	if reason := reasonOf(err); reason != "" && c.Refused != nil {
		c.Refused(app, reason)
	}
}

// Limits bound what apps may use.
type Limits struct {
	Timeout     time.Duration // of a stage's answer; default 1 s
	CallTimeout time.Duration // of a call of a method; default 30 s
	Lease       time.Duration // of a REST app's registration; default 15 s
	Apps        int           // attached at once; default 64
	Connections int           // WebSockets and Attach streams at once, attached or not; default 256
	Batch       int           // packets sent at once; default 256
	Batches     int           // batches of one stage under way at once; default 64
	Queue       int           // packets that may wait for an observer; default 4096
	Calls       int           // calls under way at once, of all clients; default 1024
	CallRate    float64       // calls per second of one WebSocket; default 10,000
	AttachRate  float64       // attachments per second, of all apps; default 50
}

// maxMessage is the largest message from outside, in octets.
const maxMessage = 4 << 20

// maxTimeouts is how many batches in a row an app may leave unanswered before
// it is detached.
const maxTimeouts = 3

func (l Limits) withDefaults() Limits {
	or(&l.Timeout, time.Second)
	or(&l.CallTimeout, 30*time.Second)
	or(&l.Lease, 15*time.Second)
	or(&l.Apps, 64)
	or(&l.Connections, 256)
	or(&l.Batch, 256)
	or(&l.Batches, 64)
	or(&l.Queue, 4096)
	or(&l.Calls, 1024)
	or(&l.CallRate, 10_000)
	or(&l.AttachRate, 50)
	return l
}

func or[T comparable](v *T, standard T) {
	if *v == *new(T) {
		*v = standard
	}
}

// Server is the interface of one worker to apps and clients.
type Server struct {
	config Config
	log    *slog.Logger
	calls  *calls
	apps   *registry
	ctx    context.Context // of all connections; ends by Close
	end    context.CancelCauseFunc
	room   chan struct{} // one token for each WebSocket and Attach stream
}

// New returns the Server of a worker.
func New(c Config) (*Server, error) {
	if c.Caller == nil || c.Attach == nil {
		return nil, errors.New("apps: Config needs a Caller and Attach")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Limits = c.Limits.withDefaults()
	o := &Server{config: c, log: c.Log, room: make(chan struct{}, c.Limits.Connections)}
	o.ctx, o.end = context.WithCancelCause(context.Background())
	o.calls = &calls{caller: c.Caller, timeout: c.Limits.CallTimeout, room: make(chan struct{}, c.Limits.Calls), changed: c.Changed, grant: c.Grant, refused: c.refused}
	o.apps = newRegistry(&o.config, rate.NewLimiter(rate.Limit(c.Limits.AttachRate), int(2*c.Limits.AttachRate)+1))
	return o, nil
}

// timeoutOf returns how long a stage may take to answer.
func (c *Config) timeoutOf(name string) time.Duration {
	if c.Timeout != nil {
		if d := c.Timeout(name); d > 0 {
			return d
		}
	}
	return c.Limits.Timeout
}

func (c *Config) timeoutMs(name string) uint32 { return uint32(c.timeoutOf(name).Milliseconds()) }

// errStops is why apps are detached when the worker stops.
var errStops = errors.New("the worker stops")

// Close detaches all apps and ends their connections; it returns when both is
// done. It is called once.
func (o *Server) Close() {
	o.end(errStops)
	o.apps.close()
	for range cap(o.room) { // all have left, and nobody enters any more
		o.room <- struct{}{}
	}
}

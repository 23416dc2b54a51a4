// Package port serves all transports, and other gRPC and HTTP clients, at one
// TCP port or Unix socket.
//
// Packages deploy and cmd/weft import it. It imports gRPC, transport and the
// transports.
package port

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"sync"

	"google.golang.org/grpc"

	"github.com/weft-sdn/weft/transport"
	weftgrpc "github.com/weft-sdn/weft/transport/grpc"
	"github.com/weft-sdn/weft/transport/mux"
	"github.com/weft-sdn/weft/transport/rest"
	"github.com/weft-sdn/weft/transport/socket"
	"github.com/weft-sdn/weft/transport/ws"
)

// Config is what a port serves.
type Config struct {
	// TLS, with client certificates verified if peers shall have identities
	// (transport.Peer). Nil: only this machine may connect.
	TLS *tls.Config
	// Handler answers calls of all transports; nil for none.
	Handler transport.Handler
	// HTTP answers requests that are no transport's; nil for 404.
	HTTP http.Handler
	// GRPC registers services; methods that they do not have go to Handler.
	GRPC func(*grpc.Server)
	// GRPCOptions are further options of the gRPC server.
	GRPCOptions []grpc.ServerOption
	// Heartbeat of the connections that transports make.
	Heartbeat transport.Heartbeat
	// MaxConns is how many connections there may be; 0 for 4096.
	MaxConns int
}

// Port is a port being served: a transport.Listener.
type Port struct {
	l      *socket.Listener
	links  *mux.Server
	rest   *rest.Server
	grpc   *grpc.Server
	http   *http.Server
	cancel context.CancelFunc // of handlers of rest at work
}

// Listen serves at "host:port" or "unix:PATH".
func Listen(address string, c Config) (*Port, error) {
	l, err := socket.Listen(address, socket.Config{TLS: c.TLS, MaxConns: c.MaxConns})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Port{l: l, links: mux.NewServer(c.Handler, c.Heartbeat), rest: rest.NewServer(ctx, c.Handler), cancel: cancel}
	p.grpc = weftgrpc.NewServer(c.Handler, p.links, c.GRPCOptions...)
	if c.GRPC != nil {
		c.GRPC(p.grpc)
	}
	p.http = socket.NewHTTPServer(route(c, p.links, p.rest))
	go func() { _ = p.grpc.Serve(l.HTTP2()) }() // both end with the listener
	go func() { _ = p.http.Serve(l.HTTP1()) }()
	return p, nil
}

// route returns the handler of HTTP/1.1.
func route(c Config, links *mux.Server, calls *rest.Server) http.Handler {
	other := c.HTTP
	if other == nil {
		other = http.NotFoundHandler()
	}
	link := ws.Handler(links)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		switch {
		case c.Handler != nil && path == ws.Path:
			link.ServeHTTP(w, r)
		case c.Handler != nil && strings.HasPrefix(path, rest.CallPath), path == rest.PingPath:
			calls.ServeHTTP(w, r)
		default:
			if ids := socket.Peer(r.TLS); ids != nil {
				r = r.WithContext(transport.WithPeer(r.Context(), ids))
			}
			other.ServeHTTP(w, r)
		}
	})
}

// Address is where to dial, whatever the transport.
func (p *Port) Address() string { return p.l.Address() }

// Close ends everything: connections, and the contexts of running handlers.
func (p *Port) Close() error {
	p.links.Close()
	err := p.l.Close()
	p.cancel()
	p.grpc.Stop()
	return errors.Join(err, p.http.Close())
}

// Shutdown stops listening, refuses further calls and waits for those in
// progress; then, or when ctx ends, it closes.
func (p *Port) Shutdown(ctx context.Context) error {
	err := p.l.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	done := make(chan struct{})
	wg.Go(func() {
		defer close(done)
		drained := errors.Join(p.links.Drain(ctx), p.rest.Drain(ctx))
		p.links.Close()
		_ = p.http.Shutdown(ctx) // Close does the rest
		if drained == nil {
			p.grpc.GracefulStop() // ends at the latest with Stop
		}
	})
	select {
	case <-done:
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err())
	}
	return errors.Join(err, p.Close())
}

// Package rest is the transport over HTTP/1.1 that any HTTP client can speak:
//
//	POST /weft/call/METHOD   the body is the request, that of the answer the response
//	GET  /weft/ping          answered with 204
//
// The header Weft-Timeout of a call says how much time there is, such as 50ms
// or 1.5s; breaking off the connection gives the call up. An error is an
// answer of another status than 200, with its code in the header Weft-Code
// and its text as the body.
//
// Packages deploy and transport/port import it. It imports transport and
// transport/mux and transport/socket.
package rest

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"

	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/socket"
)

// Paths that the listening side answers at.
const (
	CallPath = "/weft/call/"
	PingPath = "/weft/ping"
)

// Headers of requests and answers.
const (
	TimeoutHeader = "Weft-Timeout"
	CodeHeader    = "Weft-Code"
)

// Transport is the transport over HTTP/1.1.
type Transport struct {
	// Heartbeat may be set before first use.
	Heartbeat transport.Heartbeat
	tls       *tls.Config
}

// New returns a transport, with TLS if a configuration is given. It serves
// for both sides.
func New(tlsConfig *tls.Config) *Transport { return &Transport{tls: tlsConfig} }

// Listen offers a handler at "host:port" or "unix:PATH".
func (t *Transport) Listen(address string, h transport.Handler) (transport.Listener, error) {
	l, err := socket.Listen(address, socket.Config{TLS: t.tls})
	if err != nil {
		return nil, err
	}
	_ = l.HTTP2().Close() // refuse them; never fails
	ctx, cancel := context.WithCancel(context.Background())
	s := socket.NewHTTPServer(NewServer(ctx, h))
	go func() { _ = s.Serve(l.HTTP1()) }() // ends with the listener
	return &listener{l, s, cancel}, nil
}

type listener struct {
	*socket.Listener
	http   *http.Server
	cancel context.CancelFunc
}

func (l *listener) Close() error {
	err := l.Listener.Close() // first, so that no handler's last answer gets out
	l.cancel()
	return errors.Join(err, l.http.Close())
}

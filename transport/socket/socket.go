// Package socket opens sockets as all transports do: the form of addresses,
// TLS and who may listen without it, the peer's identities, bounds on
// connections and on the time that a peer may take to say what it wants.
//
// The transports import it. It imports only transport.
package socket

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/weft-sdn/weft/internal/localsocket"
	"github.com/weft-sdn/weft/transport"
)

// Split takes an address apart: "unix:PATH", where a PATH of the form @NAME is
// abstract, or "HOST:PORT".
func Split(address string) (network, where string, err error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if path == "" {
			return "", "", fmt.Errorf("address %q: no path; write unix:/path/of/socket", address)
		}
		return "unix", path, nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return "", "", fmt.Errorf("address %q: write host:port or unix:/path/of/socket", address)
	}
	return "tcp", address, nil
}

// Dial connects to an address, with TLS if a configuration is given, proposing
// one application protocol. Errors are *transport.Error.
func Dial(ctx context.Context, address string, c *tls.Config, protocol string) (net.Conn, error) {
	network, where, err := Split(address)
	if err != nil {
		return nil, transport.Errorf(transport.Unavailable, "dial: %v", err)
	}
	hello, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	d := net.Dialer{KeepAliveConfig: keepAlive}
	conn, err := d.DialContext(hello, network, where)
	if err != nil {
		return nil, dialError(ctx, address, err)
	}
	prepare(conn)
	conn = &meter{Conn: conn}
	if c == nil {
		return conn, nil
	}
	c = c.Clone()
	c.NextProtos = []string{protocol}
	if c.ServerName == "" {
		c.ServerName = "localhost"
		if host, _, err := net.SplitHostPort(where); err == nil && network == "tcp" {
			c.ServerName = host
		}
	}
	t := tls.Client(conn, c)
	if err := t.HandshakeContext(hello); err != nil {
		_ = conn.Close() // the handshake's error says more
		return nil, dialError(ctx, address, err)
	}
	return t, nil
}

func dialError(ctx context.Context, address string, err error) error {
	if e := ctx.Err(); e != nil {
		return transport.ErrorOf(e)
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= 0 { // the network's clock may be first
		return transport.ErrorOf(context.DeadlineExceeded)
	}
	return transport.Errorf(transport.Unavailable, "dial %s: %v", address, err)
}

// keepAlive finds peers that have gone from idle connections.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}

// userTimeout is how long the network may leave octets unacknowledged.
const userTimeout = 20 * time.Second

// Admit returns an error if nothing may listen at an address: it is malformed, or
// other machines could reach it and there is no TLS.
func Admit(address string, secure bool) error {
	network, where, err := Split(address)
	if err == nil && network == "tcp" && !secure && !localsocket.Loopback(where) {
		err = errors.New("other machines could reach it and there is no TLS; give certificates (weft certs) or listen on 127.0.0.1")
	}
	return err
}

// open listens at an address. Of a socket in the file system nobody else may
// use it, and one that is left over is replaced.
func open(address string, secure bool) (net.Listener, error) {
	if err := Admit(address, secure); err != nil {
		return nil, err
	}
	network, where, err := Split(address)
	if err != nil {
		return nil, err
	}
	lc := net.ListenConfig{KeepAliveConfig: keepAlive}
	if network == "tcp" {
		return lc.Listen(context.Background(), network, where)
	}
	l, err := localsocket.Listen(where)
	if err != nil || where[0] == '@' { // abstract: there is no file (unix(7))
		return l, err
	}
	if err := os.Chmod(where, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Peer returns the identities in the certificate of the peer that a TLS
// connection has verified: its URI names. Nil if there is none.
func Peer(state *tls.ConnectionState) []string {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.PeerCertificates) == 0 {
		return nil
	}
	var identities []string
	for _, uri := range state.PeerCertificates[0].URIs {
		identities = append(identities, uri.String())
	}
	return identities
}

// State returns the state of a connection's TLS; nil if it has none.
func State(conn net.Conn) *tls.ConnectionState {
	t, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	state := t.ConnectionState()
	return &state
}

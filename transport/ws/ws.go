// Package ws is the transport over a WebSocket (RFC 6455) at /weft/link, with
// binary messages and without compression. It passes where only HTTP does.
//
// Packages deploy and transport/port import it. It imports coder/websocket,
// transport, and transport/mux and transport/socket.
package ws

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/mux"
	"github.com/weft-sdn/weft/transport/socket"
)

// Path is where the listening side answers.
const Path = "/weft/link"

// protocol is the WebSocket subprotocol, with the version of what it carries.
const protocol = "weft.v1"

// Transport is the transport over WebSockets.
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
	m := mux.NewServer(h, t.Heartbeat)
	s := socket.NewHTTPServer(Handler(m))
	go func() { _ = s.Serve(l.HTTP1()) }() // ends with the listener
	return &listener{l, m, s}, nil
}

type listener struct {
	*socket.Listener
	links *mux.Server
	http  *http.Server
}

func (l *listener) Close() error {
	l.links.Close()
	return errors.Join(l.Listener.Close(), l.http.Close())
}

// Handler answers requests at Path and opens links to m.
func Handler(m *mux.Server) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := socket.FromPage(r); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		h := &hijacker{ResponseWriter: w}
		ws, err := websocket.Accept(h, r, &websocket.AcceptOptions{
			Subprotocols: []string{protocol}, CompressionMode: websocket.CompressionDisabled,
		})
		if err != nil {
			return // the peer has been told
		}
		if ws.Subprotocol() != protocol {
			_ = ws.Close(websocket.StatusPolicyViolation, "want the subprotocol "+protocol) // the peer may have gone
			return
		}
		m.Serve(newLink(ws, h.conn), socket.Peer(r.TLS))
	})
}

// hijacker puts a gathered connection under the WebSocket.
type hijacker struct {
	http.ResponseWriter
	conn *gathered
}

// Hijack takes the connection over from the HTTP server.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	if err := rw.Flush(); err != nil { // the answer to the request
		return nil, nil, errors.Join(err, conn.Close())
	}
	h.conn = &gathered{Conn: conn, r: conn}
	return h.conn, bufio.NewReadWriter(rw.Reader, bufio.NewWriter(h.conn)), nil
}

// Dial connects to an address.
func (t *Transport) Dial(ctx context.Context, address string) (transport.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, transport.ErrorOf(err)
	}
	conn, err := socket.Dial(ctx, address, t.tls, "http/1.1")
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // what is under way sees it
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))      // if it fails, so will writing
	u := upgrade{conn: conn}
	host := address
	if strings.HasPrefix(address, "unix:") {
		host = "localhost"
	}
	ws, _, err := websocket.Dial(context.Background(), "ws://"+host+Path, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: &u}, Subprotocols: []string{protocol}, CompressionMode: websocket.CompressionDisabled,
	})
	if err == nil && ws.Subprotocol() != protocol {
		err = errors.New("the peer does not speak weft's protocol")
	}
	if !stop() || err != nil {
		_ = conn.Close() // it is of no use
		if e := ctx.Err(); e != nil {
			return nil, transport.ErrorOf(e)
		}
		return nil, transport.Errorf(transport.Unavailable, "dial %s: %v", address, err)
	}
	_ = conn.SetDeadline(time.Time{}) // if it fails, so will reading
	return mux.NewClient(newLink(ws, u.body), address, t.Heartbeat), nil
}

// upgrade is an http.RoundTripper for one request over a connection of its
// own, which it leaves to the WebSocket.
type upgrade struct {
	conn net.Conn
	body *gathered
}

// RoundTrip sends the request and reads the head of the answer.
func (u *upgrade) RoundTrip(r *http.Request) (*http.Response, error) {
	if u.body != nil {
		return nil, errors.New("the peer redirects; dial where it says")
	}
	if err := r.Write(u.conn); err != nil {
		return nil, err
	}
	br := bufio.NewReader(u.conn)
	resp, err := http.ReadResponse(br, r)
	if err != nil {
		return nil, err
	}
	u.body = &gathered{Conn: u.conn, r: u.conn}
	if n := br.Buffered(); n > 0 {
		rest, _ := br.Peek(n) // they are there
		u.body.r = io.MultiReader(strings.NewReader(string(rest)), u.conn)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body = u.body
	}
	return resp, nil
}

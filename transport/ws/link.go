package ws

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/coder/websocket"

	"github.com/weft-sdn/weft/transport/mux"
	"github.com/weft-sdn/weft/transport/socket"
)

// link is a mux.Link over a WebSocket: one binary message for each of its own.
type link struct {
	ws   *websocket.Conn
	conn *gathered
	out  *socket.Outgoing
	in   func() uint64
	last int // octets of the message last read
}

func newLink(ws *websocket.Conn, conn *gathered) *link {
	ws.SetReadLimit(mux.MaxMessage)
	return &link{ws: ws, conn: conn, out: socket.NewOutgoing(conn.Conn), in: socket.Incoming(conn.Conn)}
}

func (l *link) Read() (*mux.Buffer, error) {
	kind, r, err := l.ws.Reader(context.Background())
	if err != nil {
		return nil, err
	}
	if kind != websocket.MessageBinary {
		return nil, errors.New("a text message; weft's are binary")
	}
	b := mux.NewBuffer(l.last + 1) // one more, to meet the end without growing
	for {
		if len(b.B) == cap(b.B) {
			grown := mux.NewBuffer(2 * cap(b.B))
			grown.B = append(grown.B, b.B...)
			b.Release()
			b = grown
		}
		n, err := r.Read(b.B[len(b.B):cap(b.B)])
		b.B = b.B[:len(b.B)+n]
		if err == io.EOF {
			l.last = len(b.B)
			return b, nil
		}
		if err != nil {
			b.Release()
			return nil, err
		}
	}
}

func (l *link) Write(b *mux.Buffer) error {
	defer b.Release()
	l.conn.begin(len(b.B))
	err := l.ws.Write(context.Background(), websocket.MessageBinary, b.B)
	return errors.Join(err, l.conn.finish())
}

func (l *link) Room(n int) bool { return l.out.Room(n) }

func (l *link) Heard() uint64 { return l.in() }

// Close closes the connection below: mux has its own way to say goodbye.
func (l *link) Close() error { return l.conn.Close() }

// gathered is a connection that writes at once what is written between begin
// and finish. It reads from r.
type gathered struct {
	net.Conn
	r io.Reader

	mu        sync.Mutex // guards all below
	gathering bool
	buf       []byte
}

func (g *gathered) Read(p []byte) (int, error) { return g.r.Read(p) }

func (g *gathered) begin(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gathering = true
	if need := n + maxHeader; cap(g.buf) < need {
		g.buf = make([]byte, 0, need)
	}
}

// maxHeader is the longest header of a frame, RFC 6455 section 5.2.
const maxHeader = 14

func (g *gathered) finish() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gathering = false
	_, err := g.Conn.Write(g.buf)
	if g.buf = g.buf[:0]; cap(g.buf) > keep {
		g.buf = nil
	}
	return err
}

// keep is the largest buffer kept for the next message.
const keep = 256 << 10

func (g *gathered) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gathering {
		g.buf = append(g.buf, p...)
		return len(p), nil
	}
	return g.Conn.Write(p)
}

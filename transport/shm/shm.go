// Package shm is the transport over memory that two processes of one machine
// share: a ring of octets for each direction. A Unix socket introduces the two
// and ends with the process at either end; a pair of sockets is the doorbell for
// a side that sleeps.
//
// The dialing side sends its greeting, over TLS if there is a configuration.
// The listening side answers with an octet, and with it the memory and an end of
// the doorbell (SCM_RIGHTS, unix(7)). Nothing else is said on the socket.
//
// Package cmd/weft imports it. It imports internal/localsocket, transport, and
// transport/mux and transport/socket.
package shm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/localsocket"
	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/mux"
	"github.com/weft-sdn/weft/transport/socket"
)

// greeting is what the dialing side says first: the protocol and its version.
const greeting = "shm1"

// maxConns bounds the connections of a listener, and so its memory.
const maxConns = 512

// patience bounds the time that a peer takes to introduce itself.
const patience = 10 * time.Second

// Transport is the transport over shared memory.
type Transport struct {
	// Heartbeat may be set before first use.
	Heartbeat transport.Heartbeat
	tls       *tls.Config
}

// New returns a transport. If a TLS configuration is given, the peers
// authenticate each other with it before they share memory. It serves for both
// sides.
func New(tlsConfig *tls.Config) *Transport { return &Transport{tls: tlsConfig} }

// local returns an error for an address that is not one of this machine.
func local(address string) error {
	if !strings.HasPrefix(address, "unix:") {
		return transport.Errorf(transport.Unavailable, "address %q: shared memory is for processes of one machine; write unix:/path/of/socket, or take another transport", address)
	}
	return nil
}

// Listen offers a handler at "unix:PATH".
func (t *Transport) Listen(address string, h transport.Handler) (transport.Listener, error) {
	if err := local(address); err != nil {
		return nil, err
	}
	c := t.tls
	if c != nil {
		c = c.Clone()
		c.SessionTicketsDisabled = true // the socket carries nothing after the handshake
	}
	s, err := socket.Listen(address, socket.Config{TLS: c, MaxConns: maxConns})
	if err != nil {
		return nil, err
	}
	_ = s.HTTP2().Close() // refuse them; never fails
	l := &listener{Listener: s, links: mux.NewServer(h, t.Heartbeat)}
	go l.accept()
	return l, nil
}

type listener struct {
	*socket.Listener
	links *mux.Server
}

// Close ends listening and all connections.
func (l *listener) Close() error {
	l.links.Close()
	return l.Listener.Close()
}

func (l *listener) accept() {
	for {
		conn, err := l.HTTP1().Accept()
		if err != nil {
			return
		}
		go l.serve(conn)
	}
}

// serve serves one connection until it ends.
func (l *listener) serve(conn net.Conn) {
	k, err := welcome(conn)
	if err != nil {
		_ = conn.Close() // the peer has broken the protocol, or has gone
		return
	}
	l.links.Serve(k, socket.Peer(socket.State(conn)))
}

// welcome reads the greeting and answers with new memory.
func welcome(conn net.Conn) (*link, error) {
	_ = conn.SetDeadline(time.Now().Add(patience)) // fails if the connection has ended; so will reading
	var got [len(greeting)]byte
	if _, err := io.ReadFull(conn, got[:]); err != nil {
		return nil, err
	}
	if string(got[:]) != greeting {
		return nil, fmt.Errorf("greeting %q", got)
	}
	u, err := socket.Unix(conn)
	if err != nil {
		return nil, err
	}
	fd, err := newMemory()
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	here, there, err := newDoorbells()
	if err != nil {
		return nil, err
	}
	defer unix.Close(there)
	m, err := mapMemory(fd)
	if err != nil {
		here.close()
		return nil, err
	}
	if _, _, err := u.WriteMsgUnix([]byte{0}, unix.UnixRights(fd, there), nil); err != nil {
		here.close()
		return nil, errors.Join(err, unix.Munmap(m))
	}
	_ = conn.SetDeadline(time.Time{}) // if it fails, so will reading
	return newLink(conn, u, here, m, listening), nil
}

// Dial connects to an address.
func (t *Transport) Dial(ctx context.Context, address string) (transport.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, transport.ErrorOf(err)
	}
	if err := local(address); err != nil {
		return nil, err
	}
	conn, err := socket.Dial(ctx, address, t.tls, "http/1.1")
	if err != nil {
		return nil, err
	}
	var k *link
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // what is under way sees it
	if err = t.trusted(conn); err == nil {
		k, err = introduce(conn)
	}
	if !stop() && err == nil {
		_ = k.Close() // it is of no use
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close() // it is of no use
		if e := ctx.Err(); e != nil {
			return nil, transport.ErrorOf(e)
		}
		return nil, transport.Errorf(transport.Unavailable, "dial %s: %v", address, err)
	}
	return mux.NewClient(k, address, t.Heartbeat), nil
}

// trusted returns an error if, without TLS, the listening process is not one of
// the user who runs this one, or of root: others may take a name that is free.
func (t *Transport) trusted(conn net.Conn) error {
	if t.tls != nil {
		return nil
	}
	u, err := socket.Unix(conn)
	if err != nil {
		return err
	}
	uid, err := localsocket.Owner(u)
	if err == nil && !localsocket.Own(uid) {
		err = fmt.Errorf("user %d listens there; run all processes as one user, or give certificates (weft certs)", uid)
	}
	return err
}

// introduce sends the greeting and maps the memory that it is answered with.
func introduce(conn net.Conn) (*link, error) {
	_ = conn.SetDeadline(time.Now().Add(patience)) // if it fails, so will writing
	if _, err := io.WriteString(conn, greeting); err != nil {
		return nil, err
	}
	u, err := socket.Unix(conn)
	if err != nil {
		return nil, err
	}
	fd, there, err := receive(u)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	bell, err := openDoorbell(there)
	if err != nil {
		return nil, err
	}
	m, err := mapMemory(fd)
	if err != nil {
		bell.close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{}) // if it fails, so will reading
	return newLink(conn, u, bell, m, dialing), nil
}

// receive returns the memory and the doorbell that a peer sends.
func receive(u *net.UnixConn) (memory, bell int, err error) {
	text, rights := make([]byte, 512), make([]byte, unix.CmsgSpace(2*4)) // the kernel closes those without room
	n, nr, _, _, err := u.ReadMsgUnix(text, rights)
	if err != nil {
		return -1, -1, err
	}
	list, err := unix.ParseSocketControlMessage(rights[:nr])
	if err != nil {
		return -1, -1, err
	}
	var fds []int
	for i := range list {
		if more, err := unix.ParseUnixRights(&list[i]); err == nil {
			fds = append(fds, more...)
		}
	}
	if len(fds) == 2 {
		return fds[0], fds[1], nil
	}
	for _, fd := range fds {
		_ = unix.Close(fd) // nobody uses it
	}
	return -1, -1, fmt.Errorf("the peer shares no memory, but says %q", text[:n])
}

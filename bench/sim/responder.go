package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/openflow"
)

// Responder is the floor for heartbeats: one thread that answers the echoes and,
// like Floor, the packet-ins of all switches, and asks each switch for echoes.
// What is late with it is the machine's and the switches' doing. It takes a
// connection's messages in order, and looks at all connections in turn.
type Responder struct {
	Rate      float64 // of echo requests to each switch, per second; 0: none
	due, late atomic.Uint64

	epoll int
	peers map[int32]*peer
	buf   [2 << 16]byte // more than the longest message and a read beside it
}

// peer is a switch of a responder.
type peer struct {
	fd       int
	v        byte   // 0 before its hello
	in       []byte // the beginning of a message
	out      []byte // what waits to be written
	canned   []byte // the answer to a packet-in
	bufferID int    // where in it the packet is named
	next     int64  // when the next echo request is due, ns
	asked    bool
	answered bool // the last one, before the next was due
}

// Counts returns how many echo requests were due, without those that may still
// be answered, and how many of these were not answered before the next was due.
func (r *Responder) Counts() (due, late uint64) { return r.due.Load(), r.late.Load() }

// Run answers the switches that connect, until ctx ends.
func (r *Responder) Run(ctx context.Context, ln *net.TCPListener) (err error) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	file, err := ln.File()
	if err != nil {
		return fmt.Errorf("responder: %w", err)
	}
	defer file.Close()
	accepts := int(file.Fd())
	if err := unix.SetNonblock(accepts, true); err != nil {
		return fmt.Errorf("responder: %w", err)
	}
	if r.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("responder: epoll: %w", err)
	}
	defer unix.Close(r.epoll)
	r.peers = map[int32]*peer{}
	defer func() {
		for _, p := range r.peers {
			unix.Close(p.fd)
		}
	}()
	if err := r.watch(accepts); err != nil {
		return err
	}
	events := make([]unix.EpollEvent, 512)
	for ctx.Err() == nil {
		n, err := unix.EpollWait(r.epoll, events, 1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("responder: epoll: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			if int(e.Fd) == accepts {
				if err := r.accept(accepts); err != nil {
					return err
				}
			} else if p := r.peers[e.Fd]; p != nil && !p.read(r) {
				delete(r.peers, e.Fd)
				unix.Close(p.fd)
			}
		}
		if r.Rate > 0 {
			r.ask(time.Now().UnixNano())
		}
		for _, p := range r.peers {
			p.flush()
		}
	}
	return nil
}

// watch has epoll report what can be read.
func (r *Responder) watch(fd int) error {
	if err := unix.EpollCtl(r.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("responder: epoll: %w", err)
	}
	return nil
}

// accept accepts the connections that wait.
func (r *Responder) accept(fd int) error {
	for {
		c, _, err := unix.Accept4(fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return nil // there is none, or it has gone
		}
		_ = unix.SetsockoptInt(c, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		r.peers[int32(c)] = &peer{fd: c}
		if err := r.watch(c); err != nil {
			return err
		}
	}
}

// ask sends the echo requests that are due.
func (r *Responder) ask(now int64) {
	every := int64(1e9 / r.Rate)
	for _, p := range r.peers {
		if p.v == 0 {
			continue
		}
		if p.next == 0 { // spread over the interval
			p.next = now + every*int64(p.fd%64)/64
		}
		for ; p.next <= now; p.next += every {
			if p.asked {
				r.due.Add(1)
				if !p.answered {
					r.late.Add(1)
				}
			}
			p.asked, p.answered = true, false
			p.out = append(p.out, p.v, byte(openflow.TypeEchoRequest), 0, 16, 0, 0, 0, 3)
			p.out = binary.BigEndian.AppendUint64(p.out, uint64(p.next))
			p.flush()
		}
	}
}

// flush writes what the socket takes.
func (p *peer) flush() {
	if len(p.out) == 0 {
		return
	}
	if n, err := unix.Write(p.fd, p.out); err == nil {
		p.out = p.out[:copy(p.out, p.out[n:])]
	}
}

// read handles what has arrived; it returns false at the end of the connection.
func (p *peer) read(r *Responder) bool {
	have := copy(r.buf[:], p.in)
	n, err := unix.Read(p.fd, r.buf[have:])
	if err != nil {
		return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)
	}
	if n == 0 {
		return false
	}
	b, now := r.buf[:have+n], time.Now().UnixNano()
	for len(b) >= openflow.HeaderLen {
		size := int(binary.BigEndian.Uint16(b[2:]))
		if size < openflow.HeaderLen {
			return false
		}
		if size > len(b) {
			break
		}
		p.message(b[:size], now, r)
		b = b[size:]
	}
	p.in = append(p.in[:0], b...)
	p.flush()
	return true
}

// message handles a message.
func (p *peer) message(msg []byte, now int64, r *Responder) {
	switch openflow.Type(msg[1]) {
	case openflow.TypeHello:
		p.v = msg[0]
		p.canned, p.bufferID = cannedAnswer(openflow.Version(p.v))
		p.out = append(p.out, p.v, byte(openflow.TypeHello), 0, 8, 0, 0, 0, 1, p.v, byte(openflow.TypeFeaturesRequest), 0, 8, 0, 0, 0, 2)
	case openflow.TypePacketIn:
		if p.v != 0 && len(msg) >= 12 {
			copy(p.canned[p.bufferID:p.bufferID+4], msg[8:12])
			p.out = append(p.out, p.canned...)
		}
	case openflow.TypeEchoRequest:
		p.out = append(p.out, msg[0], byte(openflow.TypeEchoReply))
		p.out = append(p.out, msg[2:]...)
	case openflow.TypeEchoReply:
		if len(msg) == openflow.HeaderLen+8 && r.Rate > 0 {
			due := int64(binary.BigEndian.Uint64(msg[openflow.HeaderLen:]))
			p.answered = p.answered || due+int64(1e9/r.Rate) == p.next && now <= p.next
		}
	}
}

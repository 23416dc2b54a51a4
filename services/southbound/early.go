package southbound

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/openflow"
)

// early is what has been read of a connection before its goroutine has come to
// it: by the watch, or by the goroutine itself. Echoes in it are dealt with at
// once, whatever waits before them; whole messages wait for the goroutine, and
// what is there of the last waits for its end.
type early struct {
	s       *session
	raw     syscall.RawConn
	read    func(uintptr) bool // once, into room
	id      int32              // the watch's
	watched bool               // the watch looks after it; only of the goroutine

	mu     sync.Mutex    // guards what follows
	on     bool          // it is read here, not by the goroutine alone
	buf    []byte        // what has been read and not been taken
	space  *[]byte       // of the pool, that buf is in; nil while there is nothing
	whole  int           // octets of buf that are whole messages
	full   bool          // there may be more to read than there was room for, or than one turn takes
	left   bool          // echoes are left to the goroutine until it has dealt with all that was read
	broken bool          // buf ends with what is no message: nothing behind it is looked at
	err    error         // why nothing more can be read
	parked bool          // the goroutine waits
	wake   chan struct{} // holds one

	room   []byte // of the read that is under way, and what has come of it
	got    int
	failed syscall.Errno
	answer []byte // echo replies
	kept   buffer // of a message that is incomplete
}

// earlyMost is how much of a connection is read before its goroutine has dealt
// with what was: then the switch has to wait, and so have its echoes.
const earlyMost = readMax

// turnMost is how often a connection is read in one turn, though nothing of it be
// left, as of echoes without end: then it is others' turn.
const turnMost = 32

// earlySpaces is room for what has been read early that nobody uses now.
type earlySpaces struct{ pool sync.Pool }

func (p *earlySpaces) get() *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, readQuiet)
	return &b
}

func newEarly(s *session, raw syscall.RawConn) *early {
	e := &early{s: s, raw: raw, wake: make(chan struct{}, 1), kept: buffer{account: s.account}}
	e.read = func(fd uintptr) bool {
		e.got, e.failed = readNow(fd, e.room)
		return true
	}
	return e
}

// look reads what has come, and wakes the goroutine if there is something for
// it. It is called by the watch.
func (e *early) look(now int64, events uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.on {
		return
	}
	e.fill(now, events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0)
	if e.parked && (e.whole > 0 || e.err != nil || e.full) {
		e.rouse()
	}
}

// rouse wakes the goroutine; it is called with the lock.
func (e *early) rouse() {
	e.parked = false
	e.wake <- struct{}{}
}

// stop has the goroutine find that the connection is closed.
func (e *early) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = net.ErrClosed
	}
	if e.parked {
		e.rouse()
	}
}

// fill reads what there is, as far as there is room; it is called with the lock.
// toEnd is to read until nothing is left, though a read has brought less than it
// might: its end may have been told of with the rest.
func (e *early) fill(now int64, toEnd bool) {
	first := e.s.hub.cfg.Load().RealtimeFirst
	reads, finished := 0, false
	for e.full = false; e.err == nil; reads++ {
		if len(e.buf) >= earlyMost && e.whole > 0 || e.broken || reads >= turnMost {
			e.full = true
			break
		}
		e.widen()
		e.room = (*e.space)[len(e.buf):min(cap(e.buf), len(e.buf)+readMax)]
		if err := e.raw.Read(e.read); err != nil {
			e.err = err
			break
		}
		if e.failed == syscall.EINTR {
			continue
		}
		if e.failed == syscall.EAGAIN {
			break
		}
		if e.failed != 0 {
			e.err = e.failed
			break
		}
		if e.got == 0 {
			e.err = io.EOF
			break
		}
		e.s.lastRead.Store(now)
		n := e.got
		e.buf = e.buf[:len(e.buf)+n]
		finished = e.scan(now, first) || finished
		if n < len(e.room) && !toEnd {
			break // what comes from now on is told of
		}
	}
	e.s.unfinished(e.whole < len(e.buf) && !e.full, finished, now) // where it is full, the switch waits for us
	if err := e.kept.resize(len(e.buf) - e.whole); err != nil && e.err == nil {
		e.err = err
	}
	e.shrink()
}

// widen makes room for a read.
func (e *early) widen() {
	if e.space == nil {
		e.space = e.s.hub.early.get()
		e.buf = (*e.space)[:0]
		return
	}
	if room := cap(e.buf) - len(e.buf); room >= readQuiet/2 {
		return
	}
	wide := make([]byte, 2*readMax)
	e.buf = wide[:copy(wide, e.buf)]
	e.space = &wide
}

// begin has it read here from now on, behind what has been read of a message.
func (e *early) begin(tail []byte) {
	e.on = true
	if len(tail) > 0 {
		e.widen()
		if len(tail) > readQuiet/2 {
			wide := make([]byte, 2*readMax)
			e.space, e.buf = &wide, wide[:0]
		}
		e.buf = append(e.buf, tail...)
	}
}

// end has it not read here any more and returns what has been read of a message.
// It is called with the lock.
func (e *early) end() []byte {
	rest := bytes.Clone(e.buf)
	e.on, e.buf = false, e.buf[:0]
	e.shrink()
	return rest
}

// handOver makes the room in which the whole messages are that of a workspace,
// and takes the workspace's for what is there of the next. It reads what there was
// no room for: that is not told of again.
func (e *early) handOver(ws *workspace) {
	rest := e.buf[e.whole:]
	if len(rest) > len(ws.buf) {
		ws.widen()
	}
	ws.buf, *e.space = *e.space, ws.buf
	e.buf = (*e.space)[:copy(*e.space, rest)]
	e.whole = 0
	if e.full && !e.broken {
		e.fill(time.Now().UnixNano(), true)
	}
	e.shrink()
}

// shrink gives the room back when there is nothing in it.
func (e *early) shrink() {
	if e.space != nil && len(e.buf) == 0 {
		e.s.hub.early.pool.Put(e.space)
		e.space, e.buf, e.whole = nil, nil, 0
	}
}

// scan looks at the messages that are whole now. Echoes are dealt with if first
// says so, and become hellos, which say nothing, or disappear where nothing
// comes behind them. Where one is left to the goroutine, because the switch takes
// no answers, so are those behind it: they are answered in their order. It reports
// whether there has been any.
func (e *early) scan(now int64, first bool) (any bool) {
	s, packetIns := e.s, int64(0)
	if !first || !s.out.roomFirst(len(e.buf)-e.whole) {
		e.left = true
	}
	for {
		rest := e.buf[e.whole:]
		if len(rest) < openflow.HeaderLen {
			break
		}
		n := int(binary.BigEndian.Uint16(rest[2:]))
		if n < openflow.HeaderLen {
			e.broken, e.whole = true, len(e.buf) // the goroutine finds what is wrong
			break
		}
		if n > len(rest) {
			break
		}
		msg := rest[:n:n]
		any = true
		if !e.left && msg[0] == byte(s.version) && (msg[1] == byte(openflow.TypeEchoRequest) || msg[1] == byte(openflow.TypeEchoReply)) && e.echo(msg, now) {
			if n == len(rest) {
				e.buf = e.buf[:e.whole]
				break
			}
			msg[1] = byte(openflow.TypeHello)
		}
		if msg[1] == byte(openflow.TypePacketIn) {
			packetIns++
		}
		e.whole += n
	}
	s.progress.read(packetIns)
	if len(e.answer) > 0 {
		if err := s.out.putFirst(e.answer); err != nil {
			s.shed(err)
		}
		e.answer = e.answer[:0]
	}
	return any
}

// echo deals with an echo; false if that is for the goroutine.
func (e *early) echo(msg []byte, now int64) bool {
	s := e.s
	s.pulse.beat(now)
	xid := binary.BigEndian.Uint32(msg[4:])
	if msg[1] == byte(openflow.TypeEchoReply) {
		s.echoReply(xid, time.Now().UnixNano()) // to have looked at others before may have taken long
		return true
	}
	b, err := s.version.AppendEchoReply(e.answer, xid, msg[openflow.HeaderLen:])
	if err != nil {
		return false
	}
	e.answer = b
	return true
}

// pulse tells whether there are heartbeats on a session: echoes one after the other,
// not only where there is nothing else to say.
type pulse struct{ last, until atomic.Int64 } // ns

// Heartbeats are echoes that follow each other within pulseWithin; they go on
// for pulseFor after the last.
const (
	pulseWithin = int64(2 * time.Second)
	pulseFor    = int64(4 * time.Second)
)

// beat takes an echo.
func (p *pulse) beat(now int64) {
	if now-p.last.Swap(now) < pulseWithin {
		p.until.Store(now + pulseFor)
	}
}

// beats reports whether there are heartbeats.
func (p *pulse) beats() bool {
	until := p.until.Load()
	return until != 0 && time.Now().UnixNano() < until
}

// echoReply takes the answer to an echo request of ours, which has been read at a
// time.
func (s *session) echoReply(xid uint32, read int64) {
	if took, ok := s.echoes.answered(xid, time.Duration(max(0, time.Now().UnixNano()-read))); ok {
		s.roundTrip(int64(took))
		return
	}
	if at := s.asked.Swap(0); at != 0 {
		s.roundTrip(read - at)
		s.doubted.Store(false)
	}
}

// roundTrip notes how long an answer has taken to come, in nanoseconds.
func (s *session) roundTrip(took int64) {
	s.echo.Store(took)
	if f := s.fastest.Load(); f == 0 || took < f {
		s.fastest.Store(max(took, 1))
	}
}

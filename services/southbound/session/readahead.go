package session

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/recovery"
)

// readAhead buffers bytes that the watch, or the session's goroutine itself, reads
// from a connection ahead of their turn. It answers echoes at once, even if other
// messages wait before them. Whole messages wait for the goroutine, and the
// beginning of a message waits for its end.
type readAhead struct {
	alive    *liveness
	progress *recovery.Progress
	raw      syscall.RawConn
	read     func(uintptr) bool // reads once, into room
	id       int32              // the id in the watch
	watched  bool               // the watch reads it; only the goroutine uses this field

	mu     sync.Mutex    // guards what follows
	on     bool          // the watch reads the connection, too
	buf    []byte        // bytes read but not yet taken
	space  *[]byte       // the pooled buffer that holds buf; nil while buf is empty
	whole  int           // bytes of buf that form whole messages
	full   bool          // there may be more to read than the room, or one turn, allowed
	dry    bool          // the last read took all that there was: the watch finds what comes from now on
	left   bool          // the goroutine answers the echoes until it has handled all that was read
	broken bool          // buf ends with a malformed message; nothing after it is scanned
	err    error         // why reading ended
	parked bool          // the goroutine is waiting
	wake   chan struct{} // capacity one

	room   []byte // target of the current read, and its result
	got    int
	failed syscall.Errno
	answer []byte           // echo replies
	kept   admission.Buffer // memory for an incomplete message
}

// EarlyMost bounds how much of a connection is read ahead of its goroutine.
// Beyond it the switch has to wait, and so do its echoes.
const EarlyMost = ReadMax

// turnMost bounds the reads of a connection in one turn, even if nothing stays
// in the buffer, as with endless echoes. Then other connections have their
// turn.
const turnMost = 32

// earlySpaces is a pool of buffers for readAhead.
type earlySpaces struct{ pool sync.Pool }

func (p *earlySpaces) get() *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, readQuiet)
	return &b
}

func newReadAhead(l *liveness, p *recovery.Progress, raw syscall.RawConn) *readAhead {
	e := &readAhead{alive: l, progress: p, raw: raw, wake: make(chan struct{}, 1), kept: admission.Buffer{Account: l.account}}
	e.read = func(fd uintptr) bool {
		e.got, e.failed = readNow(fd, e.room)
		return true
	}
	return e
}

// Look reads what has arrived and wakes the goroutine if there is something for
// it. The watch calls it.
func (e *readAhead) Look(now int64, events uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.on {
		return
	}
	e.fill(now, events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0)
	if e.parked && (e.whole > 0 || e.err != nil || e.full) {
		e.wakeReader()
	}
}

// wakeReader wakes the session's goroutine. The caller holds the lock.
func (e *readAhead) wakeReader() {
	e.parked = false
	e.wake <- struct{}{}
}

// stop makes the goroutine find the connection closed.
func (e *readAhead) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = net.ErrClosed
	}
	if e.parked {
		e.wakeReader()
	}
}

// fill reads what there is, as far as there is room. The caller holds the lock.
// toEnd makes it read on after a short read, until nothing is left: epoll may
// have reported the end of the connection together with the data.
func (e *readAhead) fill(now int64, toEnd bool) {
	first := e.alive.shared.Config.Load().RealtimeFirst
	reads, finished := 0, false
	for e.full, e.dry = false, false; e.err == nil; reads++ {
		if len(e.buf) >= EarlyMost && e.whole > 0 || e.broken || reads >= turnMost {
			e.full = true
			break
		}
		e.grow()
		e.room = (*e.space)[len(e.buf):min(cap(e.buf), len(e.buf)+ReadMax)]
		if err := e.raw.Read(e.read); err != nil {
			e.err = err
			break
		}
		if e.failed == syscall.EINTR {
			continue
		}
		if e.failed == syscall.EAGAIN {
			e.dry = true
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
		e.alive.lastRead.Store(now)
		n := e.got
		e.buf = e.buf[:len(e.buf)+n]
		finished = e.scan(now, first) || finished
		if n < len(e.room) && !toEnd {
			e.dry = true // epoll reports what comes from now on
			break
		}
	}
	e.alive.notePartial(e.whole < len(e.buf) && !e.full, finished, now) // full: the switch waits for us
	if err := e.kept.Resize(len(e.buf) - e.whole); err != nil && e.err == nil {
		e.err = err
	}
	e.shrink()
}

// grow enlarges the buffer for a read.
func (e *readAhead) grow() {
	if e.space == nil {
		e.space = e.alive.shared.early.get()
		e.buf = (*e.space)[:0]
		return
	}
	if room := cap(e.buf) - len(e.buf); room >= readQuiet/2 {
		return
	}
	wide := make([]byte, 2*ReadMax)
	e.buf = wide[:copy(wide, e.buf)]
	e.space = &wide
}

// start starts early reading; tail is the partial message read so far.
func (e *readAhead) start(tail []byte) {
	e.on, e.dry = true, false
	if len(tail) > 0 {
		e.grow()
		if len(tail) > readQuiet/2 {
			wide := make([]byte, 2*ReadMax)
			e.space, e.buf = &wide, wide[:0]
		}
		e.buf = append(e.buf, tail...)
	}
}

// stopReading stops early reading and returns the partial message read so far. The
// caller holds the lock.
func (e *readAhead) stopReading() []byte {
	rest := bytes.Clone(e.buf)
	e.on, e.buf = false, e.buf[:0]
	e.shrink()
	return rest
}

// handOver swaps buffers with a workspace: the workspace gets the whole
// messages, and its former buffer takes the beginning of the next one. handOver
// then reads what had no room before, because epoll does not report that again.
func (e *readAhead) handOver(ws *workspace) {
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

// shrink returns an empty buffer to the pool.
func (e *readAhead) shrink() {
	if e.space != nil && len(e.buf) == 0 {
		e.alive.shared.early.pool.Put(e.space)
		e.space, e.buf, e.whole = nil, nil, 0
	}
}

// scan looks at the messages that are now whole and reports whether there were
// any. If first is set it answers echoes, and turns them into hellos, which
// mean nothing, or removes them if nothing follows. If it leaves one echo to
// the goroutine because the switch does not read its answers, it leaves the
// later ones too: they are answered in order.
func (e *readAhead) scan(now int64, first bool) (any bool) {
	l, packetIns := e.alive, int64(0)
	if !first || !l.out.roomFirst(len(e.buf)-e.whole) {
		e.left = true
	}
	for {
		rest := e.buf[e.whole:]
		if len(rest) < openflow.HeaderLen {
			break
		}
		n := int(binary.BigEndian.Uint16(rest[2:]))
		if n < openflow.HeaderLen {
			e.broken, e.whole = true, len(e.buf) // the goroutine finds the fault
			break
		}
		if n > len(rest) {
			break
		}
		msg := rest[:n:n]
		any = true
		if !e.left && msg[0] == byte(l.Version) && (msg[1] == byte(openflow.TypeEchoRequest) || msg[1] == byte(openflow.TypeEchoReply)) && e.echo(msg, now) {
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
	e.progress.Read(packetIns)
	if len(e.answer) > 0 {
		if err := l.out.putFirst(e.answer); err != nil {
			l.out.shed(err, e.answer)
		}
		e.answer = e.answer[:0]
	}
	return any
}

// echo handles an echo; it returns false if the goroutine must do so.
func (e *readAhead) echo(msg []byte, now int64) bool {
	e.alive.pulse.beat(now)
	xid := binary.BigEndian.Uint32(msg[4:])
	if msg[1] == byte(openflow.TypeEchoReply) {
		e.alive.echoReply(xid, time.Now().UnixNano()) // handling the messages before it may have taken long
		return true
	}
	b, err := e.alive.Version.AppendEchoReply(e.answer, xid, msg[openflow.HeaderLen:])
	if err != nil {
		return false
	}
	e.answer = b
	return true
}

package session

import (
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/secure"
)

// ReadMax is how much is read and handled at once, in bytes. A message is
// shorter. A smaller value costs more system calls; a larger one exceeds the
// processor's caches.
const ReadMax = 64 << 10

// readQuiet is the room for a session that has little to say, like thousands of
// idle switches. In a large network many such sessions may be handled at once.
const readQuiet = 16 << 10

// workspace is the memory in which a batch is handled. A session holds one only
// from reading a batch until its results are sent, so that quiet switches cost
// little and busy ones share memory that is warm in the caches.
type workspace struct {
	buf      []byte // readQuiet or 2 * readMax
	packet   flow.PacketIn
	decision flow.Decision
	messages        // of the batch
	urgent   []byte // messages to the session's own switch that go before all others
}

// messages are what decisions have sent to switches and is not written yet.
type messages struct {
	own     []byte // to the session's own switch
	foreign []byte // to another one
}

// workspaces is a pool of unused workspaces.
type workspaces struct{ pool sync.Pool }

func (w *workspaces) get() *workspace {
	if ws, ok := w.pool.Get().(*workspace); ok {
		return ws
	}
	return &workspace{buf: make([]byte, readQuiet)}
}

// widen gives a workspace all the room that a batch may need.
func (ws *workspace) widen() {
	if len(ws.buf) < 2*ReadMax {
		wide := make([]byte, 2*ReadMax)
		copy(wide, ws.buf)
		ws.buf = wide
	}
}

func (w *workspaces) put(ws *workspace) { w.pool.Put(ws) }

// reader cuts whole messages off a connection. They point into its workspace
// and are valid until the next fill.
type reader struct {
	conn       net.Conn
	raw        syscall.RawConn // nil where the connection has no file descriptor
	records    *secure.Records // under TLS; nil without
	spaces     *workspaces
	ws         *workspace
	start, end int              // bounds of what was read into ws.buf but not yet taken
	tail       []byte           // the beginning of a message, between batches
	kept       admission.Buffer // tail's
	wide       bool             // the last read filled its room
	early      *readAhead       // what was read early; nil under TLS and without a file descriptor
	ahead      bool             // the last fill came from readAhead
	full       bool             // and there was more to read

	soon [followMost][]byte // the frames that following returned last
	told int                // how many of them are still to come
}

// followMost is how many frames stages are told of in advance: about as many
// loads from memory as a processor has under way at once.
const followMost = 8

func newReader(conn net.Conn, spaces *workspaces, a *admission.Account) *reader {
	r := &reader{conn: conn, raw: secure.RawConn(conn), spaces: spaces, kept: admission.Buffer{Account: a}}
	if s, ok := conn.(*secure.Secured); ok {
		r.records = s.Under
	}
	return r
}

// take returns the next whole message that was read, nil if there is none. It
// does no I/O.
func (r *reader) take() ([]byte, error) {
	if r.ws == nil {
		return nil, nil
	}
	b := r.ws.buf[r.start:r.end]
	if len(b) >= openflow.HeaderLen {
		if n := int(binary.BigEndian.Uint16(b[2:])); openflow.HeaderLen <= n && n <= len(b) {
			r.start += n
			return b[:n:n], nil
		}
	}
	msg, _, err := openflow.Next(b) // incomplete, or malformed
	return msg, err
}

// waiting returns what was read but not yet taken.
func (r *reader) waiting() []byte {
	if r.ws == nil {
		return nil
	}
	return r.ws.buf[r.start:r.end]
}

// following returns, for the first of followMost packets, the frames of the next
// ones as far as they were read; for the others none.
func (r *reader) following(v openflow.Version) [][]byte {
	if r.told > 0 {
		r.told--
		return nil
	}
	b, n := r.waiting(), 0
	for n < followMost && len(b) >= openflow.HeaderLen {
		size := int(binary.BigEndian.Uint16(b[2:]))
		if size < openflow.HeaderLen || size > len(b) {
			break
		}
		r.soon[n] = v.Frame(b[:size])
		b = b[size:]
		n++
	}
	r.told = max(n-1, 0)
	return r.soon[:n]
}

// partial reports whether the beginning of a message waits for its end.
func (r *reader) partial() bool { return r.start < r.end }

// release gives the workspace back and keeps what was not taken.
func (r *reader) release() error {
	if r.ws == nil {
		return nil
	}
	rest := r.ws.buf[r.start:r.end]
	if len(rest) < admission.BufferStep && cap(r.tail) >= admission.BufferStep {
		r.tail = nil
	}
	r.tail = append(r.tail[:0], rest...)
	r.spaces.put(r.ws)
	r.ws = nil
	return r.kept.Resize(cap(r.tail))
}

// acquire gets a workspace and copies what was kept into it.
func (r *reader) acquire() {
	r.ws = r.spaces.get()
	if r.wide || len(r.tail) > readQuiet/2 {
		r.ws.widen()
	}
	r.start, r.end = 0, copy(r.ws.buf, r.tail)
}

// room returns where the next read goes.
func (r *reader) room() []byte { return r.ws.buf[r.end:min(r.end+ReadMax, len(r.ws.buf))] }

// fill reads once, as soon as there is something to read. While it waits, the
// session has no workspace. Messages taken before are no longer valid.
func (r *reader) fill() error {
	if err := r.release(); err != nil {
		return err
	}
	if r.records != nil {
		return r.fillSecured()
	}
	if r.raw == nil {
		r.acquire()
		n, err := r.conn.Read(r.room())
		r.end += n
		if n > 0 {
			return nil
		}
		return err
	}
	var n int
	var failed error
	err := r.raw.Read(func(fd uintptr) bool {
		if r.ws == nil {
			r.acquire()
		}
		for {
			n, failed = syscall.Read(int(fd), r.room())
			if failed != syscall.EINTR {
				break
			}
		}
		if failed == syscall.EAGAIN {
			r.spaces.put(r.ws)
			r.ws = nil
			return false
		}
		if failed == nil && n == len(r.room()) && len(r.ws.buf) < 2*ReadMax {
			n += r.more(int(fd), n)
		}
		return true
	})
	switch {
	case err != nil:
		return err
	case failed != nil:
		return failed
	case n <= 0:
		return io.EOF
	}
	r.wide = n >= len(r.room()) || r.wide && n >= readQuiet
	r.end += n
	return nil
}

// more reads what a read of n bytes left behind because it filled a narrow
// room, so that urgent messages in it are seen. It returns the number of bytes;
// an error, or the end, occurs again on the next read.
func (r *reader) more(fd, n int) int {
	r.ws.widen()
	r.wide = true
	k, err := syscall.Read(fd, r.ws.buf[r.end+n:ReadMax])
	if err != nil {
		return 0
	}
	return max(k, 0)
}

// fillSecured is fill for TLS: it reads all records that have arrived.
func (r *reader) fillSecured() error {
	if err := r.records.Wait(); err != nil {
		return err
	}
	r.wide = true
	r.acquire()
	for got := false; ; got = true {
		n, err := r.conn.Read(r.room())
		r.end += n
		if err != nil || !r.records.Whole() || r.end > ReadMax {
			if got || n > 0 {
				return nil // the error occurs again
			}
			return err
		}
	}
}

// wasFull reports whether the last fill brought as much as a fill can, so that
// more is likely to wait.
func (r *reader) wasFull() bool { return r.end >= ReadMax || r.ahead && r.full }

// fewOctets is what a switch has sent if it hardly sends anything: it took so
// little time to handle that no more will have come meanwhile.
const fewOctets = 512

// fillFor is fill. If early is true it takes what was read early, and leaves
// the connection to the watch while it waits.
func (r *reader) fillFor(early bool) error {
	e := r.early
	if e == nil {
		return r.fill()
	}
	few := r.end <= fewOctets
	if err := r.release(); err != nil {
		return err
	}
	if early && !e.watched {
		var err error
		if e.id, err = e.alive.shared.watch.Add(e.raw, e); err != nil {
			return err
		}
		e.watched = true
	}
	e.mu.Lock()
	if !early && (!e.on || e.whole == 0) {
		if e.on {
			r.tail = append(r.tail, e.stopReading()...)
		}
		e.mu.Unlock()
		r.ahead = false
		r.endEarly()
		return r.fill()
	}
	if !e.on {
		e.start(r.tail)
		r.tail = r.tail[:0]
	}
	e.dry = e.dry && few
	for e.whole == 0 {
		e.left = false
		if !e.dry {
			if e.fill(time.Now().UnixNano(), true); e.whole > 0 {
				break
			}
		}
		if e.err != nil {
			e.mu.Unlock()
			return e.err
		}
		again := e.full
		e.parked = !again
		e.mu.Unlock()
		if again {
			runtime.Gosched() // let other goroutines run
		} else {
			<-e.wake
		}
		e.mu.Lock()
	}
	defer e.mu.Unlock()
	r.wide = false
	r.acquire()
	r.end, r.ahead, r.full = e.whole, true, e.full
	e.handOver(r.ws)
	return nil
}

// endEarly stops the watch from reading this connection.
func (r *reader) endEarly() {
	if e := r.early; e != nil && e.watched {
		e.alive.shared.watch.Remove(e.raw, e.id)
		e.watched = false
	}
}

// next waits for the next message and returns it.
func (r *reader) next() ([]byte, error) {
	for {
		msg, err := r.take()
		if msg != nil || err != nil {
			return msg, err
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

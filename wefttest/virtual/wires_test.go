package virtual

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// wires is the network between switches and the processes that hold their
// sessions: byte streams in memory.
type wires struct {
	trace *trace

	mu        sync.Mutex // guards what follows
	listeners map[string]*socket
	until     map[flow.DPID]time.Time // nothing arrives from and at a switch before
}

// socket is a listener at an address.
type socket struct {
	wires   *wires
	address string
	gate    *gate
	backlog chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// wire is a process's end of a connection of a switch.
type wire struct {
	net.Conn
	gate    *gate
	wires   *wires
	sw      flow.DPID
	in, out string // what the trace calls messages of the switch and to it

	mu   sync.Mutex // guards what follows
	late [][]byte   // what is under way to the switch for long, in order
	shut bool       // it ends when all that has arrived
}

// lateLook is how often what is late is looked at: a stall may end before its time.
const lateLook = 100 * time.Millisecond

// stall has nothing arrive from and at a switch before a time.
func (w *wires) stall(sw flow.DPID, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until[sw] = until
}

// mend has what is under way arrive in a moment, and what is sent from now on at once.
func (w *wires) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.until)
}

// delay returns after how long something may arrive from or at a switch.
func (w *wires) delay(sw flow.DPID) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Until(w.until[sw])
}

// listen returns what opens addresses for a process, in the place of net.Listen.
func (w *wires) listen(g *gate) func(network, address string) (net.Listener, error) {
	return func(_, address string) (net.Listener, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if g.dead() || w.listeners[address] != nil && !w.listeners[address].gate.dead() {
			return nil, fmt.Errorf("listen %s: address already in use", address)
		}
		s := &socket{wires: w, address: address, gate: g, backlog: make(chan net.Conn, 16), closed: make(chan struct{})}
		w.listeners[address] = s
		return s, nil
	}
}

// dial connects a switch.
func (w *wires) dial(sw flow.DPID, address string) (net.Conn, error) {
	w.mu.Lock()
	s := w.listeners[address]
	w.mu.Unlock()
	if s == nil || s.gate.dead() {
		return nil, fmt.Errorf("dial %s: connection refused", address)
	}
	near, far := net.Pipe()
	c := &wire{Conn: far, gate: s.gate, wires: w, sw: sw, in: fmt.Sprintf("s%d>%s", sw, s.gate.process), out: fmt.Sprintf("%s>s%d", s.gate.process, sw)}
	s.gate.hold(c)
	select {
	case s.backlog <- c:
		return near, nil
	default:
		c.Close()
		return nil, fmt.Errorf("dial %s: connection refused", address)
	}
}

func (s *socket) Accept() (net.Conn, error) {
	select {
	case c := <-s.backlog:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *socket) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.wires.mu.Lock()
		defer s.wires.mu.Unlock()
		if s.wires.listeners[s.address] == s {
			delete(s.wires.listeners, s.address)
		}
		for {
			select {
			case c := <-s.backlog:
				c.Close()
			default:
				return
			}
		}
	})
	return nil
}

func (s *socket) Addr() net.Addr  { return s }
func (s *socket) Network() string { return "wire" }
func (s *socket) String() string  { return s.address }

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	for d := w.wires.delay(w.sw); d > 0 && err == nil; d = w.wires.delay(w.sw) {
		time.Sleep(min(d, lateLook))
		if w.closed() {
			return 0, net.ErrClosed
		}
	}
	if gone := w.gate.pass(context.Background()); gone != nil {
		return 0, gone
	}
	w.wires.trace.add(w.in, b[:n])
	return n, err
}

// Write returns at once while packets are delayed, as TCP does with room in its buffers.
func (w *wire) Write(b []byte) (int, error) {
	if err := w.gate.pass(context.Background()); err != nil {
		return 0, err
	}
	w.wires.trace.add(w.out, b)
	w.mu.Lock()
	if w.shut {
		w.mu.Unlock()
		return 0, net.ErrClosed
	}
	if delay := w.wires.delay(w.sw); len(w.late) > 0 || delay > 0 {
		if w.late = append(w.late, bytes.Clone(b)); len(w.late) == 1 {
			time.AfterFunc(min(delay, lateLook), w.deliver)
		}
		w.mu.Unlock()
		return len(b), nil
	}
	w.mu.Unlock()
	return w.Conn.Write(b)
}

// deliver brings the switch what is late, once nothing delays it any more.
func (w *wire) deliver() {
	if delay := w.wires.delay(w.sw); delay > 0 {
		time.AfterFunc(min(delay, lateLook), w.deliver)
		return
	}
	for {
		w.mu.Lock()
		if len(w.late) == 0 {
			if w.shut {
				w.Conn.Close()
			}
			w.mu.Unlock()
			return
		}
		first := w.late[0]
		w.mu.Unlock()
		_, _ = w.Conn.Write(first) // if the switch has hung up it does not want it
		w.mu.Lock()
		w.late = w.late[1:]
		w.mu.Unlock()
	}
}

func (w *wire) closed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shut
}

// Close ends the connection, when what is late has arrived: as a process that is killed
// leaves it to the kernel.
func (w *wire) Close() error {
	w.gate.drop(w)
	return w.hangUp()
}

func (w *wire) hangUp() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shut = true
	if len(w.late) > 0 {
		return w.Conn.SetReadDeadline(time.Now())
	}
	return w.Conn.Close()
}

// plug has a switch connect to every address, again and again, until ctx ends:
// after a second, and more seldom where connections do not last.
func (w *world) plug(ctx context.Context, d *device) {
	for i, address := range w.addresses {
		w.work.Go(func() {
			pause := retry
			for n := 0; ; n++ {
				began := time.Now()
				if conn, err := w.wires.dial(d.sw, address); err == nil {
					_ = d.Serve(ctx, conn) // until the connection ends, for whatever reason
				}
				if time.Since(began) > retryMost {
					pause = retry
				}
				if !rest(ctx, pause+spread(uint64(d.sw), uint64(i), uint64(n))) {
					return
				}
				pause = min(2*pause, retryMost)
			}
		})
	}
}

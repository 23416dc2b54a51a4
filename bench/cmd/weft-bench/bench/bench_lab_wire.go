package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// benchWire joins the switches of a lab to their controller and notes what
// crosses, and when. Behind the flow-mods that change a route it asks each
// switch for a barrier of its own, whose reply the controller never sees: so it
// is the switch that says when it has done them, whatever the controller claims.
type benchWire struct {
	listener   net.Listener
	controller string
	wg         sync.WaitGroup
	cancel     context.CancelFunc

	mu    sync.Mutex // guards notes
	notes []benchNote
}

// benchNote is a message that has crossed.
type benchNote struct {
	at    time.Time
	kind  openflow.Type
	again bool // a flow-mod that changes nothing at its switch
}

// benchBarrier is the transaction id of the wire's own barriers.
const benchBarrier = 0xbe4c4001

// newBenchWire listens on a Unix socket for switches.
func newBenchWire(ctx context.Context, socket, controller string) (*benchWire, error) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &benchWire{listener: l, controller: controller, cancel: cancel}
	w.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.wg.Go(func() { w.join(ctx, c) })
		}
	})
	return w, nil
}

func (w *benchWire) close() {
	w.cancel()
	w.listener.Close()
	w.wg.Wait()
}

// join carries messages between a switch and the controller until either ends.
func (w *benchWire) join(ctx context.Context, sw net.Conn) {
	defer sw.Close()
	ctl, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.controller)
	if err != nil {
		return
	}
	defer ctl.Close()
	stop := context.AfterFunc(ctx, func() { sw.Close(); ctl.Close() })
	defer stop()
	done := make(chan struct{}, 2)
	carry := func(to, from net.Conn, pass func(out, message []byte) []byte, end func([]byte) []byte) {
		benchCarry(to, from, pass, end)
		sw.Close()
		ctl.Close()
		done <- struct{}{}
	}
	entries := benchEntries{}
	var barrier []byte // due at the end of what was read
	go carry(ctl, sw, w.fromSwitch, func(out []byte) []byte { return out })
	go carry(sw, ctl, func(out, m []byte) []byte {
		if w.fromController(entries, m) {
			barrier = []byte{m[0], byte(openflow.TypeBarrierRequest), 0, 8, 0, 0, 0, 0}
			binary.BigEndian.PutUint32(barrier[4:], benchBarrier)
		}
		return append(out, m...)
	}, func(out []byte) []byte {
		out, barrier = append(out, barrier...), nil
		return out
	})
	<-done
	<-done
}

// benchCarry copies OpenFlow messages: pass appends each to what is written,
// end adds to it before it is.
func benchCarry(to, from net.Conn, pass func(out, message []byte) []byte, end func([]byte) []byte) {
	in, out := make([]byte, 0, 1<<17), make([]byte, 0, 1<<17)
	for {
		n, err := from.Read(in[len(in):cap(in)])
		if err != nil {
			return
		}
		in, out = in[:len(in)+n], out[:0]
		rest := in
		for len(rest) >= 8 {
			size := int(binary.BigEndian.Uint16(rest[2:]))
			if size < 8 {
				return
			}
			if len(rest) < size {
				break
			}
			out = pass(out, rest[:size])
			rest = rest[size:]
		}
		in = in[:copy(in, rest)]
		if out = end(out); len(out) > 0 {
			if _, err := to.Write(out); err != nil {
				return
			}
		}
	}
}

// fromSwitch notes port-status messages and replies to the wire's barriers,
// which it keeps.
func (w *benchWire) fromSwitch(out, m []byte) []byte {
	switch openflow.Type(m[1]) {
	case openflow.TypePortStatus:
		w.note(benchNote{kind: openflow.TypePortStatus})
	case openflow.TypeBarrierReply:
		if binary.BigEndian.Uint32(m[4:]) == benchBarrier {
			w.note(benchNote{kind: openflow.TypeBarrierReply})
			return out
		}
	}
	return append(out, m...)
}

// fromController notes the flow-mods of routes, and reports whether m is one
// that changes something.
func (w *benchWire) fromController(entries benchEntries, m []byte) (changes bool) {
	if openflow.Type(m[1]) != openflow.TypeFlowMod || openflow.Version(m[0]) != openflow.V13 {
		return false
	}
	var mod flow.Mod
	if openflow.V13.DecodeFlowMod(m, &mod) != nil || mod.Entry.Cookie.Owner() != flow.OwnerRoutes {
		return false
	}
	changes = entries.change(&mod)
	w.note(benchNote{kind: openflow.TypeFlowMod, again: !changes})
	return changes
}

// benchEntries is the entries that a switch was sent, with their actions.
type benchEntries map[flow.EntryKey]string

// change carries out a flow-mod, and reports whether it has changed anything.
func (e benchEntries) change(m *flow.Mod) bool {
	k, actions := m.Entry.Key(), fmt.Sprint(m.Entry.Apply)
	old, there := e[k]
	if m.Command == flow.DeleteStrict {
		delete(e, k)
		return there
	}
	e[k] = actions
	return !there || old != actions
}

func (w *benchWire) note(n benchNote) {
	n.at = time.Now()
	w.mu.Lock()
	w.notes = append(w.notes, n)
	w.mu.Unlock()
}

// take returns the notes since the last call.
func (w *benchWire) take() []benchNote {
	w.mu.Lock()
	defer w.mu.Unlock()
	notes := w.notes
	w.notes = nil
	return notes
}

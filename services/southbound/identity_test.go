package southbound

import (
	"strings"
	"testing"
	"time"

	"weft/api"
	"weft/openflow/oftest"
	"weft/wefttest"
)

// TestCVE_2024_29461 stands for CVE-2013-7333 too: a second connection with
// the identity of a switch is refused, counted and visible, and the switch that
// has it hears nothing of it.
func TestCVE_2024_29461_DuplicateRefused(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		first := w.device(oftest.Config{DPID: 1})
		for n := uint64(1); n <= 3; n++ {
			second := oftest.NewDevice(oftest.Config{DPID: 1, Ports: 9}, nil)
			select {
			case <-w.dial(second):
			case <-time.After(time.Second):
				t.Fatal("the second connection is open after a second")
			}
			s := w.info(1)
			if s.Duplicates != n || !s.Connected || s.Ports != 4 {
				t.Errorf("after %d: %v", n, s)
			}
			w.works(1)
			if len(second.Flows()) != 0 {
				t.Error("the second switch was programmed")
			}
		}
		wefttest.None(w.h, api.SwitchChangedEvent, 50*time.Millisecond)
		if first.Connections() != 1 || len(first.Flows()) != 1 {
			t.Errorf("the first has %d connections, %d entries", first.Connections(), len(first.Flows()))
		}
		if n := w.h.Metric("connections_refused_total", "reason", "duplicate"); n != 3 {
			t.Errorf("%v counted", n)
		}
	})
}

// TestDuplicateDuringHandshake: an identity is taken as soon as it is claimed.
func TestDuplicateDuringHandshake(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		slow := w.wire()
		slow.send(v13.AppendHello(nil, 1), nil)
		slow.want(0)
		slow.answer(1, slow.want(5))
		role := slow.want(24)
		second := oftest.NewDevice(oftest.Config{DPID: 1}, nil)
		select {
		case <-w.dial(second):
		case <-time.After(time.Second):
			t.Fatal("the second connection is open after a second")
		}
		for msg := role; !slow.answer(1, msg); {
			var err error
			if msg, err = slow.read(time.Second); err != nil {
				t.Fatal(err)
			}
		}
		w.up(1)
		// Whoever fails in the handshake leaves the identity free.
		slow.conn.Close()
		w.down(1)
		half := w.wire()
		half.send(v13.AppendHello(nil, 1), nil)
		half.want(0)
		half.answer(1, half.want(5))
		half.want(24)
		half.conn.Close()
		w.eventually("the switch is let in", func() bool {
			w.dial(oftest.NewDevice(oftest.Config{DPID: 1}, nil))
			time.Sleep(20 * time.Millisecond)
			s := w.info(1)
			return s != nil && s.Connected
		})
	})
}

// TestHalfOpenReplaced: a switch that has lost its connection without the
// service's noticing is let in again once the old connection gives no sign of
// life, long before dead_after.
func TestHalfOpenReplaced(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		t.Parallel()
		old := w.device(oftest.Config{DPID: 1})
		old.SetFaults(oftest.Faults{Silent: true})
		start := time.Now()
		back := oftest.NewDevice(oftest.Config{DPID: 1}, nil)
		for refused := w.dial(back); ; refused = w.dial(back) {
			select {
			case <-refused:
				time.Sleep(100 * time.Millisecond)
				if time.Since(start) > 10*time.Second {
					t.Fatal("the switch is not let in")
				}
				continue
			case <-time.After(500 * time.Millisecond):
			}
			break
		}
		if reason := w.down(1); !strings.Contains(reason, "claims this datapath id") {
			t.Errorf("reason %q", reason)
		}
		w.up(1)
		w.works(1)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		if len(old.Flows())+len(back.Flows()) != 1 {
			t.Error("the wrong one is programmed")
		}
	})
}

// TestSilentSwitchClosed: a switch that gives no sign of life for dead_after
// is given up; one that answers is not.
func TestSilentSwitchClosed(t *testing.T) {
	inAllModes(t, "echo_interval: 100ms\ndead_after: 1s", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		silent := w.device(oftest.Config{DPID: 2})
		start := time.Now()
		silent.SetFaults(oftest.Faults{Silent: true})
		if reason := w.down(2); !strings.Contains(reason, "silent") {
			t.Errorf("reason %q", reason)
		}
		if took := time.Since(start); took < 800*time.Millisecond || took > time.Second+prompt {
			t.Errorf("given up after %v", took)
		}
		s := w.info(2)
		if s.Connected || !strings.Contains(s.Reason, "silent") {
			t.Errorf("%v", s)
		}
		time.Sleep(250 * time.Millisecond)
		w.works(1)
		if s := w.info(1); s.EchoUs == 0 {
			t.Error("no round trip is measured")
		}
	})
}

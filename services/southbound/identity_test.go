package southbound

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/wefttest"
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
			case <-time.After(testwait.Limit):
				t.Fatal("the second connection is open after a second")
			}
			s := w.info(1)
			if s.Duplicates != n || !s.Connected || s.Ports != 4 || s.Local != w.address {
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

// TestStalledHandshakeHoldsNothing has connections stall at every step of the
// handshake with the identity of a switch: it is let in at once, and they are
// refused.
func TestStalledHandshakeHoldsNothing(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		stall := func(at openflow.Type, nth int) *wire {
			c := w.wire()
			c.send(v13.AppendHello(nil, 1), nil)
			for {
				msg, err := c.read(testwait.Limit)
				if err != nil {
					t.Fatal(err)
				}
				if h, _ := openflow.ParseHeader(msg); h.Type == at {
					if nth--; nth < 0 {
						return c
					}
				}
				c.answer(1, msg)
			}
		}
		var stalled []*wire
		for range 3 {
			stalled = append(stalled, stall(openflow.TypeRoleRequest, 0), stall(openflow.TypeMultipartRequest, 0), stall(openflow.TypeMultipartRequest, 1))
		}
		if w.info(1) != nil {
			t.Error("the switch is known, which has not come yet")
		}
		first := w.device(oftest.Config{DPID: 1})
		for _, c := range stalled {
			c.closed()
		}
		w.works(1)
		late := w.wire()
		late.send(v13.AppendHello(nil, 1), nil)
		late.want(openflow.TypeHello)
		late.answer(1, late.want(openflow.TypeFeaturesRequest))
		if msg, err := late.read(testwait.Limit); err == nil {
			t.Errorf("%x is asked of a second connection", msg)
		}
		w.works(1)
		if s := w.info(1); s.Duplicates != 10 || first.Connections() != 1 {
			t.Errorf("%d duplicates, %d connections; want 10 and 1", s.Duplicates, first.Connections())
		}
		w.eventually("10 connections are counted, each once", func() bool {
			return w.h.Metric("connections_refused_total", "reason", "duplicate") == 10 && w.h.Metric("connections_refused_total", "reason", "handshake") == 0
		})
	})
}

// TestRoleIsConfirmed: of two connections of one switch that have both been
// granted the role of master, the first to finish asks for it again, because the
// switch has taken it from the first when it granted it to the second.
func TestRoleIsConfirmed(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		first, second := w.wire(), w.wire()
		ports := first.begin(1, openflow.MultipartDesc)
		second.begin(1, openflow.MultipartDesc)
		first.answer(1, ports)
		if role, _, err := v13.DecodeRoleRequest(first.want(openflow.TypeRoleRequest)); err != nil || role != openflow.RoleMaster {
			t.Errorf("role %v is asked for, %v", role, err)
		}
		w.up(1)
		second.closed()
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
		back := oftest.NewDevice(oftest.Config{DPID: 1}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var dialling sync.WaitGroup
		defer dialling.Wait()
		defer cancel()
		dialling.Go(func() { // until it is let in
			for ctx.Err() == nil {
				_ = back.Dial(ctx, w.network, w.address)
				_ = backoff.Sleep(ctx, 100*time.Millisecond)
			}
		})
		if reason := w.down(1); !strings.Contains(reason, "claims this datapath id") {
			t.Errorf("reason %q", reason)
		}
		w.up(1)
		w.works(1)
		if len(old.Flows())+len(back.Flows()) != 1 {
			t.Error("the wrong one is programmed")
		}
	})
}

// TestSilentSwitchClosed: a switch that gives no sign of life for dead_after
// is given up; one that answers is not.
func TestSilentSwitchClosed(t *testing.T) {
	t.Parallel()
	inAllModes(t, "echo_interval: 100ms\ndead_after: 2s", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		silent := w.device(oftest.Config{DPID: 2})
		start := time.Now()
		silent.SetFaults(oftest.Faults{Silent: true})
		if reason := w.down(2); !strings.Contains(reason, "silent") {
			t.Errorf("reason %q", reason)
		}
		if took := time.Since(start); took < 1800*time.Millisecond {
			t.Errorf("given up after %v", took)
		}
		s := w.info(2)
		if s.Connected || !strings.Contains(s.Reason, "silent") {
			t.Errorf("%v", s)
		}
		testwait.Until(t, "a round trip is measured", func() bool { return w.info(1).EchoUs != 0 })
		w.works(1)
	})
}

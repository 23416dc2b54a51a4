package scp

import (
	"context"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
)

// What is for the NRF comes to a front without a host by two entries of a switch: its
// gate leads to TableProxy, where those are that lead to the controller. The switch removes
// the gate by itself unless it is renewed: then packets go on to the NRF. A switch with one
// table has no gate.
const (
	gateTime  = 4 // seconds that a gate stays
	gateRenew = time.Second
)

// gate returns the gate of a switch.
func (w *wire) gate() flow.Entry {
	return flow.Entry{
		Table: flow.TableTranslate, Goto: flow.TableProxy, Priority: flow.PriorityProxy, HardTimeout: gateTime,
		Match: w.toward(w.nrf.Addr()).WithTCPDst(w.nrf.Port()), Cookie: flow.NewCookie(flow.OwnerSCP, 0, 0),
	}
}

// keepGates renews the gates until ctx ends: of the switches that have confirmed the
// entries behind them.
func (w *wire) keepGates(ctx context.Context) {
	for {
		w.renewGates(ctx, time.Now().UnixNano())
		select {
		case <-w.gateDue:
		case <-ctx.Done():
			return
		case <-time.After(gateRenew):
		}
	}
}

// renewGates sends the gates of all switches that are due.
func (w *wire) renewGates(ctx context.Context, now int64) {
	w.gating.Lock()
	defer w.gating.Unlock()
	d, list := &flow.Decision{}, []flow.DPID{}
	w.mu.Lock()
	for sw, s := range w.switches {
		if !w.open.Load() || !s.there || s.single {
			continue
		}
		if !s.gated || now-s.sent > gateTime*int64(time.Second) {
			w.older.begin(now) // clients have had connections with the NRF meanwhile
		}
		d.AddFlow(sw).Entry = w.gate()
		list = append(list, sw)
	}
	w.mu.Unlock()
	if d.Empty() {
		return
	}
	failures, err := w.apply(ctx, d)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, sw := range list {
		failed := slices.ContainsFunc(failures, func(f *api.ApplyFailure) bool { return int(f.Op) == i })
		if s := w.switches[sw]; s != nil && !failed {
			s.gated, s.sent = true, now
		}
	}
}

// removeGates removes the gates: no more packets come to the front.
func (w *wire) removeGates(ctx context.Context) {
	w.gating.Lock() // a gate that is on its way would come after its removal
	defer w.gating.Unlock()
	d := &flow.Decision{}
	w.mu.Lock()
	for sw, s := range w.switches {
		if s.gated {
			s.gated = false
			mod := d.AddFlow(sw)
			mod.Command, mod.CookieMask, mod.Entry = flow.DeleteStrict, ^flow.Cookie(0), w.gate()
		}
	}
	w.mu.Unlock()
	if !d.Empty() {
		_, _ = w.apply(ctx, d) // else they end by themselves
	}
}

// leftRest is how long packets for the NRF may take from a switch to the controller.
const leftRest = 100 * time.Millisecond

// leave has new connections go on to the NRF; packets of those that there are come to the
// front (exit).
func (w *wire) leave(context.Context) { w.leaving.Store(true) }

// left has all packets go on to the NRF (exit). The gate to the doors leads what is for the
// NRF to the entries behind the front's gate, too, so switches have to confirm that they are gone.
func (w *wire) left(ctx context.Context) {
	w.open.Store(false)
	w.leaving.Store(false)
	w.changed()
	w.removeGates(ctx)
	w.settle(ctx)
	_ = backoff.Sleep(ctx, leftRest)
}

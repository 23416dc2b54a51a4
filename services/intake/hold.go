package intake

import (
	"context"
	"log/slog"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// holder repeatedly asks flowrules to direct the packets of switches here. If it
// falls silent, they go to the southbound.
type holder struct {
	number   uint32
	run      uint64 // identifies this run
	lease    time.Duration
	switches func() []flow.DPID
	direct   func(context.Context, *api.DirectPacketsRequest) (*api.DirectPacketsResponse, error)
	changed  chan struct{} // holds one: the switches may have changed
	log      *slog.Logger

	revision uint64
	failing  bool
}

// renewals is how often a lease is renewed while it lasts.
const renewals = 5

// notify notifies the holder that the switches may have changed.
func (h *holder) notify() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// keep renews the leases until ctx ends, and then releases them.
func (h *holder) keep(ctx context.Context) {
	whole := true
	idle := true // no lease is held that would need a renewal
	for {
		req := h.request(whole)
		if !idle || len(req.Dpids) > 0 {
			whole = !h.renew(ctx, req)
			idle = !whole && !req.Same && len(req.Dpids) == 0
		}
		var again <-chan time.Time
		if !idle {
			again = time.After(h.lease / renewals)
		}
		select {
		case <-ctx.Done():
			h.release(ctx)
			return
		case <-again:
		case <-h.changed:
			whole = true
		}
	}
}

func (h *holder) request(whole bool) *api.DirectPacketsRequest {
	req := &api.DirectPacketsRequest{Controller: h.number, Run: h.run, Same: !whole, Milliseconds: uint32(h.lease.Milliseconds())}
	if whole {
		h.revision++
		for _, sw := range h.switches() {
			req.Dpids = append(req.Dpids, sw.String())
		}
	}
	req.Revision = h.revision
	return req
}

// renew makes one call; false if flowrules needs the whole list again.
func (h *holder) renew(ctx context.Context, req *api.DirectPacketsRequest) bool {
	limited, cancel := context.WithTimeout(ctx, h.lease)
	defer cancel()
	resp, err := h.direct(limited, req)
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		if !h.failing {
			h.log.Warn("packets go to the southbound: flowrules does not direct them here", "error", err)
		}
		h.failing = true
		return false
	}
	if h.failing {
		h.failing = false
		h.log.Info("flowrules directs packets here again")
	}
	for _, sw := range resp.GetRefused() {
		h.log.Warn("switch refuses entries that name a number of controllers: the southbound gets its packets", "dpid", sw)
	}
	return !resp.GetUnknown()
}

// farewell is how long switches have to learn that packets go elsewhere, before
// their connections end.
const farewell = 150 * time.Millisecond

// release gives the packets back to the southbound.
func (h *holder) release(ctx context.Context) {
	if h.revision == 0 {
		return
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.lease)
	defer cancel()
	h.revision++
	req := &api.DirectPacketsRequest{Controller: h.number, Run: h.run, Revision: h.revision, Milliseconds: uint32(h.lease.Milliseconds())}
	if _, err := h.direct(limited, req); err != nil {
		h.log.Warn("flowrules was not notified that this receiver stops", "error", err)
	}
	time.Sleep(farewell)
}

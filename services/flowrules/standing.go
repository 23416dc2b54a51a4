package flowrules

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"weft/api"
	"weft/flow"
)

// SetStanding answers the call.
func (r *Rules) SetStanding(ctx context.Context, req *api.SetStandingRequest) (*api.SetStandingResponse, error) {
	sw, owner, entries, err := admitStanding(req)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Deadline)
	defer cancel()
	w := r.worker(sw)
	if err := w.arrived(ctx, r.cfg.ConnectGrace); err != nil { // returns holding mu
		return nil, err
	}
	l := w.ledger
	session := l.session
	d := l.declare(owner, entries, time.Now())
	waits := make([]<-chan struct{}, 0, len(d.rules)+len(d.removals))
	for _, rule := range d.rules {
		waits = append(waits, rule.waiting())
	}
	for _, m := range d.removals {
		waits = append(waits, m.settled)
	}
	w.mu.Unlock()
	w.ring()
	await(ctx, waits)

	w.mu.Lock()
	defer w.mu.Unlock()
	if l.session != session || !l.connected {
		return nil, api.Errorf(codes.Unavailable, "standing entries of %v: switch %v has gone away", owner, sw)
	}
	resp := &api.SetStandingResponse{Sent: d.sent, Kept: d.kept, Failed: d.refused}
	for _, rule := range d.rules {
		if l.rules[rule.entry.Key()] != rule { // a later set, or its timeout, has taken it back
			continue
		}
		if rule.state != confirmed {
			f := l.wantedFlow(rule)
			if f.Reason == "" {
				f.Reason = fmt.Sprintf("not confirmed within %v", r.cfg.Deadline)
			}
			resp.Failed = append(resp.Failed, f)
		}
	}
	return resp, nil
}

// arrived waits until the switch is connected and its entries have been read,
// and returns holding w.mu; or an Unavailable error, not holding it, if the
// switch stays away for the grace, or does not tell its entries in time.
func (w *worker) arrived(ctx context.Context, grace time.Duration) error {
	away := time.NewTimer(grace)
	defer away.Stop()
	for {
		w.mu.Lock()
		l := w.ledger
		if l.connected && l.viewed {
			return nil
		}
		changed, connected, text := w.changed, l.connected, l.readError
		w.mu.Unlock()
		expired := away.C
		if connected {
			expired = nil
		}
		select {
		case <-changed:
		case <-expired:
			return api.Errorf(codes.Unavailable, "switch %v is away; declare the entries when it has connected", l.sw)
		case <-ctx.Done():
			if !connected {
				return api.Errorf(codes.Unavailable, "switch %v is away; declare the entries when it has connected", l.sw)
			}
			if text != "" {
				text = ": " + text
			}
			return api.Errorf(codes.Unavailable, "switch %v has not told its entries yet%s", l.sw, text)
		}
	}
}

// await waits until all channels are closed (nil ones are) or ctx ends.
func await(ctx context.Context, waits []<-chan struct{}) {
	for _, c := range waits {
		if c == nil {
			continue
		}
		select {
		case <-c:
		case <-ctx.Done():
			return
		}
	}
}

// wantedFlow returns the API's view of a rule of the ledger.
func (l *ledger) wantedFlow(r *rule) *api.WantedFlow {
	return &api.WantedFlow{Flow: api.NewFlowEntry(l.sw, &r.entry), State: r.state.String(), Reason: r.reason}
}

func invalid(err error) error {
	return api.Errorf(codes.InvalidArgument, "%w", err)
}

// target is one admitted entry of a request.
type target struct {
	sw    flow.DPID
	entry flow.Entry
	rule  *rule
}

package flowrules

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
)

// ListFlows answers the call: the entries that the operator and the services
// want, by switch, table, falling priority, and the order of their requests.
func (r *Rules) ListFlows(_ context.Context, req *api.ListFlowsRequest) (*api.ListFlowsResponse, error) {
	workers, err := r.all(req.GetDpid())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(workers, func(a, b *worker) int { return cmp.Compare(a.ledger.sw, b.ledger.sw) })
	resp := &api.ListFlowsResponse{}
	for _, w := range workers {
		w.mu.Lock()
		resp.Flows = append(resp.Flows, w.ledger.list(time.Now())...)
		w.mu.Unlock()
	}
	return resp, nil
}

// ListSync answers the call.
func (r *Rules) ListSync(context.Context, *api.ListSyncRequest) (*api.ListSyncResponse, error) {
	workers, err := r.all("")
	if err != nil {
		return nil, err
	}
	resp := &api.ListSyncResponse{}
	for _, w := range workers {
		w.mu.Lock()
		resp.Switches = append(resp.Switches, w.ledger.sync())
		w.mu.Unlock()
	}
	slices.SortFunc(resp.Switches, func(a, b *api.Sync) int { return cmp.Compare(a.Dpid, b.Dpid) })
	return resp, nil
}

// sync returns how far the switch agrees with the desired entries.
func (l *ledger) sync() *api.Sync {
	s := &api.Sync{
		Dpid: l.sw.String(), Wanted: uint32(len(l.rules) + len(l.hidden)), Failed: uint32(len(l.hidden)), Foreign: uint32(l.foreign),
		Kept: l.tally.kept, Added: l.tally.added, Removed: l.tally.removed,
	}
	if !l.since.IsZero() {
		s.Since = l.since.UTC().Format(time.RFC3339)
	}
	if l.unknown {
		s.Unread = l.readError
	}
	pending := len(l.removals) + len(l.objects.removals)
	for _, w := range l.objects.wanted {
		switch w.state {
		case confirmed:
		case failed:
			s.Failed++
		default:
			pending++
		}
	}
	for _, r := range l.rules {
		switch r.state {
		case confirmed:
			s.Confirmed++
		case failed:
			s.Failed++
		default:
			pending++
		}
	}
	switch {
	case !l.connected:
		s.State = "away"
	case s.Failed > 0 || l.readLate >= lateMax && !l.unknown:
		s.State = "failing"
	case !l.viewed || pending > 0:
		s.State = "syncing"
	case l.unknown:
		s.State = "unknown"
	default:
		s.State = "in_sync"
	}
	return s
}

// Totals are counts over all switches.
type Totals struct {
	Wanted, Confirmed, Failed, Foreign              int
	Spared                                          int // entries that stay because the store is not whole
	InSync, Syncing, Failing, Unknown, AwaySwitches int
}

// totalsAt is the totals at some moment; counting them has a cost.
type totalsAt struct {
	mu     sync.Mutex // guards what follows
	at     time.Time
	totals Totals
}

// Totals returns the totals, at most a second old.
func (r *Rules) Totals() Totals {
	s := &r.snapshot
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.at) >= time.Second {
		s.at, s.totals = now, r.totals()
	}
	return s.totals
}

func (r *Rules) totals() (t Totals) {
	workers, _ := r.all("")
	for _, w := range workers {
		w.mu.Lock()
		s := w.ledger.sync()
		for _, n := range w.ledger.spared {
			t.Spared += n
		}
		w.mu.Unlock()
		t.Wanted += int(s.Wanted)
		t.Confirmed += int(s.Confirmed)
		t.Failed += int(s.Failed)
		t.Foreign += int(s.Foreign)
		switch s.State {
		case "in_sync":
			t.InSync++
		case "syncing":
			t.Syncing++
		case "failing":
			t.Failing++
		case "unknown":
			t.Unknown++
		default:
			t.AwaySwitches++
		}
	}
	return t
}

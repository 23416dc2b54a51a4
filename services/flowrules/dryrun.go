package flowrules

import (
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The effects of requests.
const (
	effectAdded     = "added"
	effectReplaced  = "replaced"
	effectUnchanged = "unchanged"
	effectDeleted   = "deleted"
	effectAbsent    = "absent"
)

// effectsListed bounds the entries that the answer to a request for all of them
// lists.
const effectsListed = 1000

// effects returns what a request does to each of its entries. Of entries with
// the same key the last counts, for all of them.
func (o *operatorEntries) effects(targets []target) []*api.WantedFlow {
	type place struct {
		sw flow.DPID
		id entryID
	}
	last := make(map[place]int, len(targets))
	for i := range targets {
		last[place{targets[i].sw, idOf(&targets[i].entry)}] = i
	}
	list := make([]*api.WantedFlow, len(targets))
	for i := range targets {
		t := &targets[last[place{targets[i].sw, idOf(&targets[i].entry)}]]
		list[i] = o.effect(t)
	}
	return list
}

// effect returns what adding one entry does.
func (o *operatorEntries) effect(t *target) *api.WantedFlow {
	out := &api.WantedFlow{Flow: api.NewFlowEntry(t.sw, &t.entry), Effect: effectAdded}
	if t.app != "" {
		out.Flow.Owner = api.AppOwner(t.app)
	}
	w := o.known(t.sw)
	if w == nil {
		return out
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.ledger.operatorRule(idOf(&t.entry))
	switch {
	case old == nil:
	case old.equalsRequest(t.app, &t.entry, expiry(&t.entry, time.Now())):
		out.Effect = effectUnchanged
	default:
		out.Effect, out.Replaces = effectReplaced, w.ledger.wantedFlow(old).Flow
	}
	return out
}

// writable refuses a dry run of changes if the store takes none.
func (o *operatorEntries) writable() error {
	if o.trust.damaged() {
		return api.Errorf(codes.FailedPrecondition, "flow entries: not stored, so not installed: the store is read-only: %s; run weft store repair", o.trust.state.Damage())
	}
	return nil
}

// wouldAdd answers a dry run of AddFlows whose entries are admitted.
func (o *operatorEntries) wouldAdd(targets []target) (*api.AddFlowsResponse, error) {
	list := o.effects(targets)
	for _, f := range list {
		if f.Effect != effectUnchanged {
			if err := o.writable(); err != nil {
				return nil, err
			}
			break
		}
	}
	return &api.AddFlowsResponse{Flows: list}, nil
}

// tryPrefix is what the dry run of a batch is known by before the name, which
// has no such character.
const tryPrefix = "try:"

// batchKey returns what the batch of a request is known by.
func batchKey(req *api.AddFlowsRequest) string {
	if req.GetDryRun() {
		return tryPrefix + req.GetBatch()
	}
	return req.GetBatch()
}

// title returns the name that its client has given a batch.
func (b *batch) title() string { return strings.TrimPrefix(b.name, tryPrefix) }

// tryBatch ends the dry run of a batch all of whose parts have come: it keeps
// what would happen to the first of its entries, and drops them. It does nothing
// if that has been done.
func (r *Rules) tryBatch(b *batch, total int) error {
	s := r.batches
	s.mu.Lock()
	if b.state != batchOpen {
		s.mu.Unlock()
		return nil
	}
	b.state = batchChecking // so that nobody else tries or drops it
	s.mu.Unlock()
	list, err := r.wouldAddBatch(b, total)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.forget(b.name)
		return err
	}
	b.state, b.outcome = batchTried, &api.FlowBatch{Name: b.title(), State: batchTried, Entries: uint32(len(b.changes))}
	b.refused, b.changes = list[:min(len(list), effectsListed)], nil
	return nil
}

// wouldAddBatch returns what would happen to the entries of a batch.
func (r *Rules) wouldAddBatch(b *batch, total int) ([]*api.WantedFlow, error) {
	if err := r.complete(b, total); err != nil {
		return nil, err
	}
	targets := targetsOf(lastOfEach(b.changes))
	if _, err := r.checkRoom(targets); err != nil {
		return nil, err
	}
	resp, err := r.wouldAdd(targets)
	return resp.GetFlows(), err
}

// removals returns what deleting entries does to each of them; of entries with
// the same key the first counts. most bounds the list; 0 is no bound.
func (o *operatorEntries) removals(targets []target, most int) (list []*api.WantedFlow, deleted int) {
	type place struct {
		sw flow.DPID
		id entryID
	}
	gone := map[place]bool{}
	for i := range targets {
		t := &targets[i]
		out := &api.WantedFlow{Flow: api.NewFlowEntry(t.sw, &t.entry), Effect: effectAbsent}
		at := place{t.sw, idOf(&t.entry)}
		if w := o.known(t.sw); w != nil && !gone[at] {
			w.mu.Lock()
			if old := w.ledger.operatorRule(at.id); old != nil && (t.app == "" || old.app == t.app) {
				out = w.ledger.wantedFlow(old)
				out.State, out.Reason, out.Effect = "", "", effectDeleted
				gone[at] = true
				deleted++
			}
			w.mu.Unlock()
		}
		if most == 0 || len(list) < most {
			list = append(list, out)
		}
	}
	return list, deleted
}

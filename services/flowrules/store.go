package flowrules

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Store is durable key-value state; a change is on disk before the call
// returns. The key of an entry is its switch and a digest of table, priority
// and match.
type Store interface {
	Put(ctx context.Context, key string, value []byte) (revision uint64, err error)
	// Update is Put if the revision is still the given one, else an error.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	Delete(ctx context.Context, key string) error
	All(ctx context.Context, f func(key string, value []byte, revision uint64) error) error
}

// stored is an operator's entry in the store. Times are absolute, so that a timed
// entry has only the rest of its time after a restart (CVE-2018-1078).
type stored struct {
	Flow *api.FlowEntry `json:"flow"`
	// 1 since the tables have gaps; before, they had others' numbers.
	Tables int `json:"tables,omitempty"`
	// The app that has asked for it; empty: the operator.
	App string `json:"app,omitempty"`
	// When it was asked for.
	Added time.Time `json:"added"`
	// When it is over; zero is never.
	Expires time.Time `json:"expires,omitzero"`
	// Whether the switch has had it, for entries with an idle timeout.
	Delivered bool `json:"delivered,omitempty"`
}

// encode returns the stored form of an operator's rule.
func encode(sw flow.DPID, r *rule) ([]byte, error) {
	return json.Marshal(stored{Flow: api.NewFlowEntry(sw, &r.entry), Tables: 1, App: r.app, Added: r.added, Expires: r.expires, Delivered: r.delivered})
}

// decode returns the rule stored under a key. The rule's own key is another if
// its table has been renumbered.
func decode(key string, value []byte) (flow.DPID, *rule, error) {
	var s stored
	if err := json.Unmarshal(value, &s); err != nil {
		return 0, nil, fmt.Errorf("stored entry %s: %w", key, err)
	}
	sw, e, err := s.Flow.Entry()
	if err != nil {
		return 0, nil, fmt.Errorf("stored entry %s: %w", key, err)
	}
	e.Match.Normalize()
	if err := reserved("", &e); err != nil {
		return 0, nil, fmt.Errorf("stored entry %s: %w", key, err)
	}
	if want := storeKey(sw, e.Key()); want != key {
		return 0, nil, fmt.Errorf("stored entry %s: describes the entry of key %s", key, want)
	}
	if s.Tables == 0 {
		e.Table, e.Goto = flow.MovedTable(e.Table), flow.MovedTable(e.Goto)
	}
	return sw, &rule{app: s.App, entry: e, added: s.Added, expires: s.Expires, delivered: s.Delivered, progress: progress{since: s.Added, reason: reasonAway}}, nil
}

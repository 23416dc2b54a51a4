package flowrules

import (
	"context"
	"encoding/json"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Store is durable key-value state; a change is on disk before the call
// returns. The key of a page is its switch and a name of its own; that of a
// single entry, as there were before there were pages, its switch and a digest of
// table, priority and match.
type Store interface {
	// Get returns the value and its revision, nil and 0 if there is none.
	Get(ctx context.Context, key string) (value []byte, revision uint64, err error)
	Put(ctx context.Context, key string, value []byte) (revision uint64, err error)
	// Update is Put if the revision is still the given one (0: no value yet), else
	// an error.
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
	return json.Marshal(stored{Flow: api.NewFlowEntry(sw, r.entry()), Tables: 1, App: r.app, Added: r.added, Expires: r.expires, Delivered: r.delivered})
}

// decode returns a stored rule, its switch, and the key that it had when it was
// stored: its table may have been renumbered since.
func decode(value []byte) (sw flow.DPID, r *rule, was flow.EntryKey, err error) {
	var s stored
	if err := json.Unmarshal(value, &s); err != nil {
		return 0, nil, was, err
	}
	sw, e, err := s.Flow.Entry()
	if err != nil {
		return 0, nil, was, err
	}
	e.Match.Normalize()
	if err := reserved("", &e); err != nil {
		return 0, nil, was, err
	}
	was = e.Key()
	if s.Tables == 0 {
		e.Table, e.Goto = flow.MovedTable(e.Table), flow.MovedTable(e.Goto)
	}
	r = newRule(&e, s.Added)
	r.app, r.expires, r.delivered, r.reason = s.App, s.Expires, s.Delivered, reasonAway
	return sw, r, was, nil
}

package flowrules

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// journal stores the batches that are certain and not finished, so that the next
// run can finish them.
type journal struct{ records object.Journal }

func newJournal(store Store) journal { return journal{object.Journal{Store: store}} }

// journalHead is the head of a batch's record.
type journalHead struct {
	Parts int `json:"parts"`
	// Its entries are being taken back.
	Undoing bool `json:"undoing,omitempty"`
	// Why, if they are.
	Reason string `json:"reason,omitempty"`
	// What became of the batch, if it is finished; then it has no parts.
	Outcome *api.FlowBatch `json:"outcome,omitempty"`
	// The entries that switches have refused.
	Refused []*api.WantedFlow `json:"refused,omitempty"`
	// When it was finished.
	Ended time.Time `json:"ended,omitzero"`
}

// journalEntry is an entry of a batch and what it replaces.
type journalEntry struct {
	Entry  *api.FlowEntry `json:"entry"`
	Before *stored        `json:"before,omitempty"`
}

// write makes a batch certain. If it fails, the batch is not.
func (j journal) write(ctx context.Context, b *batch) error {
	var list []json.RawMessage
	octets := 0
	flush := func() error {
		value, err := json.Marshal(list)
		if err == nil && len(list) > 0 {
			err = j.records.PutPart(ctx, b.name, b.written, value)
			b.written++
		}
		list, octets = nil, 0
		return err
	}
	for i := range b.changes {
		c := &b.changes[i]
		e := journalEntry{Entry: api.NewFlowEntry(c.sw, &c.entry)}
		if c.before != nil {
			e.Before = &stored{Flow: api.NewFlowEntry(c.sw, c.before.entry()), Added: c.before.added, Expires: c.before.expires, Delivered: c.before.delivered}
		}
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if octets+len(text) > object.JournalPart {
			if err := flush(); err != nil {
				return err
			}
		}
		list, octets = append(list, text), octets+len(text)
	}
	if err := flush(); err != nil {
		return err
	}
	return j.put(ctx, b.name, journalHead{Parts: b.written})
}

// mark records that a batch is being undone.
func (j journal) mark(ctx context.Context, b *batch) error {
	return j.put(ctx, b.name, journalHead{Parts: b.written, Undoing: true, Reason: b.reason})
}

// finish records what became of a batch, for clients that ask later, and removes its
// entries.
func (j journal) finish(ctx context.Context, b *batch, outcome *api.FlowBatch, now time.Time) error {
	if err := j.put(ctx, b.name, journalHead{Outcome: outcome, Refused: b.refused, Ended: now}); err != nil {
		return err
	}
	return j.records.RemoveParts(ctx, b.name, b.written)
}

// remove removes a batch that has failed, or whose outcome nobody asks for any more.
func (j journal) remove(ctx context.Context, b *batch) error {
	return j.records.Remove(ctx, b.name, b.written)
}

func (j journal) put(ctx context.Context, name string, h journalHead) error {
	value, err := json.Marshal(h)
	if err == nil {
		err = j.records.PutHead(ctx, name, value)
	}
	return err
}

// load returns the batches that former runs have made certain, those that are finished
// first and in their order, and removes the remains of others. Unreadable data is an
// error.
func (j journal) load(ctx context.Context) ([]*batch, error) {
	var list []*batch
	records, err := j.records.Load(ctx, func(name string, head []byte) (int, error) {
		var h journalHead
		if err := json.Unmarshal(head, &h); err != nil {
			return 0, fmt.Errorf("batch %s in the store: %w", name, err)
		}
		b := &batch{name: name, state: batchStoring, reason: h.Reason, written: h.Parts}
		if h.Undoing {
			b.state = batchUndoing
		}
		if h.Outcome != nil {
			b.state, b.outcome, b.refused, b.touched = h.Outcome.State, h.Outcome, h.Refused, h.Ended
		}
		list = append(list, b)
		return h.Parts, nil
	})
	if err != nil {
		return nil, err
	}
	for i, b := range list {
		for _, value := range records[i].Parts {
			if err := b.read(value); err != nil {
				return nil, fmt.Errorf("batch %s in the store: %w", b.name, err)
			}
		}
	}
	unfinished := func(b *batch) int {
		if b.outcome != nil {
			return 0
		}
		return 1
	}
	slices.SortFunc(list, func(a, b *batch) int {
		return cmp.Or(cmp.Compare(unfinished(a), unfinished(b)), a.touched.Compare(b.touched), cmp.Compare(a.name, b.name))
	})
	return list, nil
}

// read adds the entries of a part.
func (b *batch) read(value []byte) error {
	var list []journalEntry
	if err := json.Unmarshal(value, &list); err != nil {
		return err
	}
	for _, e := range list {
		sw, entry, err := readEntry(e.Entry)
		if err != nil {
			return err
		}
		c := changed{target: target{sw: sw, entry: entry}}
		if e.Before != nil {
			_, before, err := readEntry(e.Before.Flow)
			if err != nil {
				return err
			}
			c.before = newRule(&before, e.Before.Added)
			c.before.expires, c.before.delivered = e.Before.Expires, e.Before.Delivered
		}
		b.changes = append(b.changes, c)
	}
	return nil
}

// readEntry returns an entry stored as text, in the form in which entries are
// compared.
func readEntry(f *api.FlowEntry) (flow.DPID, flow.Entry, error) {
	sw, e, err := f.Entry()
	e.Match.Normalize()
	return sw, e, err
}

package members

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/plan"
)

// HistoryBucket holds the plans that have been in force.
const HistoryBucket = "deploy.plans"

// plansKept is how many plans the history keeps.
const plansKept = 50

// Former is a plan of the history.
type Former struct {
	Generation uint64 // of the plan in force
	Name       string
	Plan       string    // YAML, without the configuration, which has its own history
	Source     string    // where it came from, for people
	Applied    time.Time // zero: not known
}

// History is the plans that have been in force.
type History struct{ bucket weft.Bucket }

// OpenHistory opens the history of a store.
func OpenHistory(ctx context.Context, store local.Store) (*History, error) {
	b, err := store.Bucket(ctx, HistoryBucket)
	if err != nil {
		return nil, err
	}
	return &History{b}, nil
}

// FormerOf returns a record of a plan in force.
func FormerOf(c *Current, source string, applied time.Time) (*Former, error) {
	text, err := c.plan.WithConfig(nil).YAML()
	return &Former{Generation: c.Generation, Name: c.plan.Name, Plan: string(text), Source: source, Applied: applied}, err
}

// Is reports whether a plan in force is that of the record, whatever its
// configuration and however its workers are scaled.
func (f *Former) Is(c *Current) bool {
	p, err := plan.Parse(fmt.Sprintf("plan %d", f.Generation), []byte(f.Plan))
	return err == nil && f.Generation <= c.Generation && len(plan.Diff(p.KeepScale(c.plan), c.plan.WithConfig(nil))) == 0
}

func historyKey(generation uint64) string { return fmt.Sprintf("%020d", generation) }

// Get returns the record of a generation; nil if the history lacks it.
func (h *History) Get(ctx context.Context, generation uint64) (*Former, error) {
	data, revision, err := h.bucket.Get(ctx, historyKey(generation))
	if err != nil || revision == 0 {
		return nil, err
	}
	f := &Former{}
	if err := json.Unmarshal(data, f); err != nil {
		return nil, fmt.Errorf("plan %d of the history cannot be read: %w", generation, err)
	}
	return f, nil
}

// List returns all records, the newest first.
func (h *History) List(ctx context.Context) ([]*Former, error) {
	var list []*Former
	err := h.bucket.All(ctx, func(_ string, value []byte, _ uint64) error {
		f := &Former{}
		if json.Unmarshal(value, f) == nil { // an unreadable one is of another version
			list = append(list, f)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b *Former) int {
		return strings.Compare(historyKey(b.Generation), historyKey(a.Generation))
	})
	return list, err
}

// Add records plans, and forgets the oldest.
func (h *History) Add(ctx context.Context, added ...*Former) error {
	for _, f := range added {
		data, err := json.Marshal(f)
		if err == nil {
			_, err = h.bucket.Put(ctx, historyKey(f.Generation), data)
		}
		if err != nil {
			return err
		}
	}
	list, err := h.List(ctx)
	for i, f := range list {
		if i >= plansKept && err == nil {
			err = h.bucket.Delete(ctx, historyKey(f.Generation))
		}
	}
	return err
}

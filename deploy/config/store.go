package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/plan"
)

// configBucket holds the configurations that have been in force, and those that
// were tried.
const configBucket = "deploy.config"

// configState is the key of the state in the bucket; the others are numbers.
const configState = "state"

// configsKept is how many configurations the history keeps.
const configsKept = 50

// The states of a configuration.
const (
	Trial   = "applying" // on trial; it may still be undone
	Good    = "good"     // it has been in force, or is
	Failed  = "failed"   // it failed, and the one before was restored
	Dropped = "dropped"  // the controller restarted before the trial ended
)

// Record is a configuration that was in force, or was tried.
type Record struct {
	Number  uint64
	Text    string // as it was written
	Hash    string // of plan.Hash
	Base    string // hash of the start configuration at that time
	Source  string // origin, for people
	Given   bool   // the controller was started with it
	State   string
	Error   string // if it has failed
	Applied time.Time
	Process string // that applied it
}

// Sections reads the record's text.
func (r *Record) Sections() ([]plan.Section, error) {
	d, err := plan.ParseConfig(fmt.Sprintf("configuration %d", r.Number), []byte(r.Text))
	if err != nil {
		return nil, err
	}
	return d.Sections, nil
}

// Message returns a record without its text.
func (r *Record) Message(now Now) *api.Configuration {
	m := &api.Configuration{Number: r.Number, Hash: r.Hash, State: r.State, Source: r.Source, Error: r.Error}
	if r.State == Good && r.Number == now.Good {
		m.State = "in-force"
	}
	if !r.Applied.IsZero() {
		m.Applied = r.Applied.UTC().Format(time.RFC3339)
	}
	return m
}

// Now says which configuration is in force.
type Now struct {
	Good  uint64 // the last good one; 0: the unrecorded start configuration
	Trial uint64 // on trial; 0 if none is
	Last  uint64 // last number used
}

// buckets keeps durable state.
type buckets interface {
	Bucket(ctx context.Context, name string) (weft.Bucket, error)
}

// Store is the history of configurations.
type Store struct{ bucket weft.Bucket }

// Open opens the history.
func Open(ctx context.Context, store buckets) (*Store, error) {
	b, err := store.Bucket(ctx, configBucket)
	if err != nil {
		return nil, err
	}
	return &Store{b}, nil
}

func configKey(number uint64) string { return fmt.Sprintf("%020d", number) }

// InForce returns the configuration in force, and the revision for change.
func (c *Store) InForce(ctx context.Context) (Now, uint64, error) {
	var s Now
	data, revision, err := c.bucket.Get(ctx, configState)
	if err == nil && revision > 0 {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return s, 0, fmt.Errorf("which configuration is in force cannot be read: %w", err)
	}
	return s, revision, nil
}

// change writes the configuration in force, unless somebody else has written it
// since.
func (c *Store) change(ctx context.Context, s Now, revision uint64) (uint64, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return 0, err
	}
	revision, err = c.bucket.Update(ctx, configState, data, revision)
	if errors.Is(err, weft.ErrRevision) {
		return 0, api.Errorf(codes.Aborted, "another configuration is being applied at the same time; look at it with weft config history, and try again")
	}
	return revision, err
}

// Get returns a record; nil if the history lacks it.
func (c *Store) Get(ctx context.Context, number uint64) (*Record, error) {
	data, revision, err := c.bucket.Get(ctx, configKey(number))
	if err != nil || revision == 0 {
		return nil, err
	}
	r := &Record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("configuration %d cannot be read: %w", number, err)
	}
	return r, nil
}

func (c *Store) put(ctx context.Context, r *Record) error {
	data, err := json.Marshal(r)
	if err == nil {
		_, err = c.bucket.Put(ctx, configKey(r.Number), data)
	}
	return err
}

// List returns all records, the newest first.
func (c *Store) List(ctx context.Context) ([]*Record, error) {
	var list []*Record
	err := c.bucket.All(ctx, func(key string, value []byte, _ uint64) error {
		r := &Record{}
		if key != configState && json.Unmarshal(value, r) == nil {
			list = append(list, r)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b *Record) int { return strings.Compare(configKey(b.Number), configKey(a.Number)) })
	return list, err
}

// Begin records a configuration on trial. former is the one in force, in case
// it is not recorded yet.
func (c *Store) Begin(ctx context.Context, r, former *Record) error {
	s, revision, err := c.InForce(ctx)
	if err != nil {
		return err
	}
	if s.Trial != 0 {
		return api.Errorf(codes.Aborted, "configuration %d is being applied; wait until weft config history shows what has become of it", s.Trial)
	}
	if s.Good == 0 && former != nil {
		s.Last++
		former.Number, former.State = s.Last, Good
		s.Good = former.Number
	} else {
		former = nil
	}
	s.Last++
	s.Trial, r.Number, r.State = s.Last, s.Last, Trial
	if former != nil {
		if err := c.put(ctx, former); err != nil {
			return err
		}
	}
	if err := c.put(ctx, r); err != nil {
		return err
	}
	_, err = c.change(ctx, s, revision)
	return err
}

// End records the result of the configuration on trial.
func (c *Store) End(ctx context.Context, r *Record, state, why string) error {
	s, revision, err := c.InForce(ctx)
	if err != nil || s.Trial != r.Number {
		return err // somebody else has ended it
	}
	r.State, r.Error = state, why
	if err := c.put(ctx, r); err != nil {
		return err
	}
	s.Trial = 0
	if state == Good {
		s.Good = r.Number
	}
	if _, err := c.change(ctx, s, revision); err != nil {
		return err
	}
	return c.trim(ctx, s)
}

// trim removes the oldest records.
func (c *Store) trim(ctx context.Context, s Now) error {
	list, err := c.List(ctx)
	for i, r := range list {
		if i >= configsKept && r.Number != s.Good && err == nil {
			err = c.bucket.Delete(ctx, configKey(r.Number))
		}
	}
	return err
}

// Chosen is the configuration with which a controller starts.
type Chosen struct {
	Sections []plan.Section
	Source   string // of the sections
	Text     string // as it was written; empty if that is not known
	Number   uint64 // 0 if it is not recorded
	Why      string // for the log: which is in force, and why
	Base     string // what counts as given now
	fresh    bool   // it is given, and not yet in force
}

// Given is the configuration that a controller is started with, or that of a
// plan to apply.
type Given struct {
	Sections []plan.Section
	Text     string
	Source   string // for people: configuration file weft.yaml, plan split
	Named    bool   // the user named it; else it is the default
}

// Choose returns the configuration to use: the one applied while the controller
// ran, unless the given one differs from the one it was applied over. A
// configuration on trial does not count: a restarted controller begins with the
// last good one.
func (c *Store) Choose(ctx context.Context, g Given) (*Chosen, error) {
	base := plan.Hash(g.Sections)
	given := &Chosen{Sections: g.Sections, Source: g.Source, Text: g.Text, Base: base, fresh: true}
	s, _, err := c.InForce(ctx)
	if err != nil {
		return nil, err
	}
	var note string
	if s.Trial != 0 {
		note = fmt.Sprintf("configuration %d was not known to be good and is dropped; ", s.Trial)
	}
	if s.Good == 0 {
		given.Why = note + "that of the " + g.Source
		return given, nil
	}
	last, err := c.Get(ctx, s.Good)
	if err != nil || last == nil {
		return nil, errors.Join(err, fmt.Errorf("the last good configuration, number %d, is not in the store", s.Good))
	}
	sections, err := last.Sections()
	if err != nil {
		return nil, err
	}
	kept := &Chosen{Sections: sections, Source: last.Source, Text: last.Text, Number: last.Number, Base: last.Base}
	switch {
	case last.Hash == base:
		kept.Why = fmt.Sprintf("%sconfiguration %d; the %s says the same", note, last.Number, g.Source)
		return kept, nil
	case !last.Given && !g.Named:
		kept.Why = fmt.Sprintf("%sconfiguration %d (%s), the last good one; no other is given", note, last.Number, last.Source)
		return kept, nil
	case !last.Given && last.Base == base:
		kept.Why = fmt.Sprintf("%sconfiguration %d (%s), the last good one; the %s has not changed since it was applied", note, last.Number, last.Source, g.Source)
		return kept, nil
	}
	given.Why = fmt.Sprintf("%sthat of the %s, which has changed since configuration %d (%s) came into force", note, g.Source, last.Number, last.Source)
	if last.Given {
		given.Why = fmt.Sprintf("%sthat of the %s; configuration %d was that of the %s", note, g.Source, last.Number, last.Source)
	}
	return given, nil
}

// GivenBy returns the configuration that a plan gives.
func GivenBy(p *plan.Plan) Given {
	return Given{Sections: p.Config, Source: "plan " + p.Name, Named: len(p.Config) > 0}
}

// Kept reports whether an applied configuration is used instead of the given
// one.
func (c *Chosen) Kept() bool { return !c.fresh }

// In returns a plan with that configuration.
func (c *Chosen) In(p *plan.Plan) *plan.Plan {
	if c.fresh {
		return p
	}
	return p.WithConfig(c.Sections)
}

// Start records the start configuration of a controller, once it runs. It drops
// a configuration left on trial.
func (c *Store) Start(ctx context.Context, chosen *Chosen, now time.Time) error {
	s, revision, err := c.InForce(ctx)
	if err != nil {
		return err
	}
	if s.Trial != 0 {
		if r, err := c.Get(ctx, s.Trial); err == nil && r != nil {
			r.State, r.Error = Dropped, "the controller was started again, or another plan applied, before it was known to be good"
			if err := c.put(ctx, r); err != nil {
				return err
			}
		}
		s.Trial = 0
		if revision, err = c.change(ctx, s, revision); err != nil {
			return err
		}
	}
	if s.Good == 0 || !chosen.fresh { // a given one needs no record before another one is applied
		return nil
	}
	r, err := chosen.Record(now)
	if err != nil {
		return err
	}
	s.Last++
	r.Number, r.State, s.Good = s.Last, Good, s.Last
	if err := c.put(ctx, r); err != nil {
		return err
	}
	chosen.Number = r.Number
	if _, err = c.change(ctx, s, revision); err != nil {
		return err
	}
	return c.trim(ctx, s)
}

// Record returns a record of what a controller was started with.
func (c *Chosen) Record(now time.Time) (*Record, error) {
	text := []byte(c.Text)
	if len(text) == 0 {
		var err error
		if text, err = plan.ConfigYAML(c.Sections); err != nil {
			return nil, err
		}
	}
	return &Record{Text: string(text), Hash: plan.Hash(c.Sections), Base: c.Base, Source: c.Source, Given: true, Applied: now}, nil
}

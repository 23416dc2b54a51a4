package flowrules

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// memory is a Store that can fail.
type memory struct {
	mu        sync.Mutex // guards what follows
	values    map[string][]byte
	revisions map[string]uint64
	fails     error
	puts      int
	left      *atomic.Int64 // changes until it fails; nil: any number
	lose      int           // updates that are not confirmed
	carried   bool          // those are carried out all the same
}

// change reports why the store cannot be changed; mu is held.
func (m *memory) change() error {
	if m.fails == nil && m.left != nil && m.left.Add(-1) < 0 {
		return errors.New("the store is away")
	}
	return m.fails
}

func (m *memory) Get(_ context.Context, key string) ([]byte, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], m.revisions[key], nil
}

func (m *memory) Put(_ context.Context, key string, value []byte) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.change(); err != nil {
		return 0, err
	}
	m.puts++
	m.values[key] = slices.Clone(value)
	if m.revisions == nil {
		m.revisions = map[string]uint64{}
	}
	m.revisions[key] = uint64(m.puts)
	return uint64(m.puts), nil
}

func (m *memory) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	m.mu.Lock()
	have := m.revisions[key]
	m.mu.Unlock()
	if have != revision {
		return 0, errors.New("the key has changed since it was read")
	}
	if m.lose > 0 {
		m.lose--
		if m.carried {
			m.Put(ctx, key, value) //nolint:errcheck // it is not told
		}
		return 0, errors.New("no answer")
	}
	return m.Put(ctx, key, value)
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.change(); err != nil {
		return err
	}
	delete(m.values, key)
	delete(m.revisions, key)
	return nil
}

func (m *memory) All(_ context.Context, f func(string, []byte, uint64) error) error {
	m.mu.Lock()
	values, revisions := maps.Clone(m.values), maps.Clone(m.revisions)
	m.mu.Unlock()
	for k, v := range values {
		if err := f(k, v, revisions[k]); err != nil {
			return err
		}
	}
	return nil
}

// set has the store fail after some changes.
func (m *memory) set(left *atomic.Int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = left
}

// size returns how many entries, or other values, there are.
func (m *memory) size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, value := range m.values {
		var s storedPage
		if json.Unmarshal(value, &s); s.Entries == nil { //nolint:errcheck // then it is a value of its own
			s.Entries = make([]json.RawMessage, 1)
		}
		n += len(s.Entries)
	}
	return n
}

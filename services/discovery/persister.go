package discovery

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/weft-sdn/weft/flow"
)

// store is durable key-value storage; Update changes a value only if its
// revision is still the given one.
type store interface {
	Get(ctx context.Context, key string) (value []byte, revision uint64, err error)
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	Delete(ctx context.Context, key string) error
	All(ctx context.Context, f func(key string, value []byte, revision uint64) error) error
}

// aliveKey is the key of the sign of life; the others are switches.
const aliveKey = "alive"

// runKey is the key of the number of the last run.
const runKey = "run"

// errSuperseded is the error for an instance that goes on after its successor
// has started.
var errSuperseded = errors.New("another instance has taken over")

// A persister stores the roles of ports for the next run. Late writes of a dying
// instance cannot replace those of its successor: a value is written only over
// its known revision.
type persister struct {
	store store
	run   string // this one's number

	mu        sync.Mutex // guards revisions
	revisions map[string]uint64
}

// load passes on what the last run stored, and returns when it was last alive,
// in nanoseconds since 1970. It reports and leaves out what cannot be read.
func (s *persister) load(ctx context.Context, port func(flow.Location, memory), bad func(key string, err error)) (alive int64, err error) {
	s.revisions = map[string]uint64{}
	if err := s.begin(ctx); err != nil {
		return 0, fmt.Errorf("discovery: number this run: %w", err)
	}
	err = s.store.All(ctx, func(key string, value []byte, revision uint64) (err error) {
		if key == runKey {
			return nil
		}
		s.revisions[key] = revision
		if key == aliveKey {
			if alive, err = strconv.ParseInt(string(value), 10, 64); err != nil {
				bad(key, err)
			}
			return nil
		}
		sw, err := flow.ParseDPID(key)
		if err != nil {
			bad(key, err)
			return nil
		}
		ports, err := decodePorts(value)
		if err != nil {
			bad(key, err)
		}
		for p, m := range ports {
			port(flow.Location{Switch: sw, Port: p}, m)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("discovery: read ports of an earlier run: %w", err)
	}
	return alive, nil
}

// save stores the roles of a switch's ports.
func (s *persister) save(ctx context.Context, sw flow.DPID, ports map[flow.Port]memory) error {
	if len(ports) > 0 {
		return s.put(ctx, sw.String(), encodePorts(ports))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.revisions, sw.String())
	return s.store.Delete(ctx, sw.String())
}

// storeSign stores a sign of life.
func (s *persister) storeSign(ctx context.Context, now int64) error {
	return s.put(ctx, aliveKey, strconv.AppendInt(nil, now, 10))
}

// put writes a value over the known revision. If there is another revision, a
// dying instance has written it, or this is the dying one.
func (s *persister) put(ctx context.Context, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision, err := s.store.Update(ctx, key, value, s.revisions[key])
	if err != nil {
		run, _, err := s.store.Get(ctx, runKey)
		if err != nil {
			return err
		}
		if string(run) != s.run {
			return errSuperseded
		}
		if _, revision, err = s.store.Get(ctx, key); err != nil {
			return err
		}
		if revision, err = s.store.Update(ctx, key, value, revision); err != nil {
			return err
		}
	}
	s.revisions[key] = revision
	return nil
}

// begin numbers this run, so that earlier ones find that they are over.
func (s *persister) begin(ctx context.Context) error {
	last, revision, err := s.store.Get(ctx, runKey)
	if err != nil {
		return err
	}
	n, _ := strconv.ParseUint(string(last), 10, 64) // 0 before the first
	s.run = strconv.FormatUint(n+1, 10)
	_, err = s.store.Update(ctx, runKey, []byte(s.run), revision)
	return err
}

package discovery

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/weft-sdn/weft/flow"
)

// store is durable key-value state; Update changes a value only if its
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

// errSuperseded is what an instance gets that goes on after its successor has
// started.
var errSuperseded = errors.New("another instance has taken over")

// A shelf is where what ports are is kept for the next run. What a dying
// instance still writes cannot replace what its successor has written: each
// value is written over the one that is known only.
type shelf struct {
	store store
	run   string // this one's number

	mu        sync.Mutex // guards revisions
	revisions map[string]uint64
}

// load hands over what the last run has kept, and when it last was alive, in
// nanoseconds since 1970. What cannot be read is reported and left out.
func (s *shelf) load(ctx context.Context, port func(flow.Location, memory), bad func(key string, err error)) (alive int64, err error) {
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

// save keeps what the ports of a switch are.
func (s *shelf) save(ctx context.Context, sw flow.DPID, ports map[flow.Port]memory) error {
	if len(ports) > 0 {
		return s.put(ctx, sw.String(), encodePorts(ports))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.revisions, sw.String())
	return s.store.Delete(ctx, sw.String())
}

// alive keeps a sign of life.
func (s *shelf) alive(ctx context.Context, now int64) error {
	return s.put(ctx, aliveKey, strconv.AppendInt(nil, now, 10))
}

// put writes a value over the one that is known. If it is another, a dying
// instance has written it, or this is the dying one.
func (s *shelf) put(ctx context.Context, key string, value []byte) error {
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

// begin numbers this run; earlier ones then know that they are over.
func (s *shelf) begin(ctx context.Context) error {
	last, revision, err := s.store.Get(ctx, runKey)
	if err != nil {
		return err
	}
	n, _ := strconv.ParseUint(string(last), 10, 64) // 0 before the first
	s.run = strconv.FormatUint(n+1, 10)
	_, err = s.store.Update(ctx, runKey, []byte(s.run), revision)
	return err
}

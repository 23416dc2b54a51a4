package session

import (
	"iter"
	"sync"
	"sync/atomic"
)

// roster is the map from switches that are up to their sessions. Joining and
// leaving cost the same with many switches as with few. It is divided into
// shards, so that readers and writers rarely wait for each other.
type roster struct {
	count  atomic.Int64
	shards [64]struct {
		mu sync.RWMutex // guards m
		m  map[dpid]*Session
		_  [32]byte // keeps shards on cache lines of their own
	}
}

// index returns the shard of a switch.
func (r *roster) index(sw dpid) int { return int(uint64(sw) * 0x9e3779b97f4a7c15 >> 58) }

// get returns the session of a switch, nil if the switch is not up.
func (r *roster) get(sw dpid) *Session {
	s := &r.shards[r.index(sw)]
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.m[sw]
}

// Put adds the session of a switch that was not up.
func (r *roster) Put(sw dpid, one *Session) {
	s := &r.shards[r.index(sw)]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[dpid]*Session{}
	}
	s.m[sw] = one
	r.count.Add(1)
}

// Drop removes the session of a switch that was up.
func (r *roster) Drop(sw dpid) {
	s := &r.shards[r.index(sw)]
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.m, sw)
	r.count.Add(-1)
}

// All returns the switches with their sessions. Those that join or leave
// meanwhile may or may not be among them.
func (r *roster) All() iter.Seq2[dpid, *Session] {
	return func(yield func(dpid, *Session) bool) {
		var list []*Session
		for i := range r.shards {
			s := &r.shards[i]
			list = list[:0]
			s.mu.RLock()
			for _, one := range s.m {
				list = append(list, one)
			}
			s.mu.RUnlock()
			for _, one := range list {
				if !yield(one.DPID, one) {
					return
				}
			}
		}
	}
}

package southbound

import (
	"log/slog"
	"time"
)

// alone owns sessions without a hub: all are those of a master.
type alone struct{ *shared }

func (alone) Identify(*session, dpid) error { return nil }
func (alone) Claim(*session) error          { return nil }
func (alone) Mandate(dpid) (uint64, bool)   { return 1, true }
func (alone) Surpassed(uint64) bool         { return false }
func (alone) Enlist(s *session) error       { s.activate(); return nil }
func (o alone) Join(s *session)             { o.up.put(s.dpid, s) }
func (o alone) Leave(s *session, _ error)   { o.up.drop(s.dpid) }
func (alone) Coming(dpid) bool              { return false }

// newAlone returns what sessions without a hub share.
func newAlone() *shared {
	h := &shared{}
	h.init(alone{h}, nil, newMemory(256<<20, 1<<30), slog.New(slog.DiscardHandler))
	h.config.Store(&sessionConfig{
		handshakeTimeout: time.Second, confirmTimeout: time.Second, queueBytes: 4 << 20, portEventsPerSecond: 20,
		flood: floodRule{rate: 5000, factor: 4, floor: 1000, probes: 1000}, realtimeFirst: true,
	})
	return h
}

// trialAccount is the memory of a session.
func trialAccount() *account { return newMemory(256<<20, 1<<30).newAccount(time.Now(), nil, nil) }

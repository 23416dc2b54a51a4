package hosts

import (
	"context"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// silences tells the silence of hosts from that of their switch. While the control channel of a switch is held up,
// questions and answers wait there, and no host can be heard. So a host counts as silent only if its switch has
// answered an echo that was sent after the host had had time to answer. mu guards the maps.
type silences struct {
	shared
	places *places
	heard  func(now int64) // called with mu held when a switch has answered
	wanted map[flow.DPID]struct{}
	since  map[flow.DPID]int64 // when the last echo was sent that the switch has answered
	wake   chan struct{}       // capacity one: some are wanted
}

func newSilences(with shared, p *places, heard func(now int64)) silences {
	return silences{with, p, heard, map[flow.DPID]struct{}{}, map[flow.DPID]int64{}, make(chan struct{}, 1)}
}

// isHeard reports whether a switch has answered an echo that was sent at the time at or later. If it has not, one is
// sent to it.
func (s *silences) isHeard(sw flow.DPID, at int64) bool {
	if s.since[sw] >= at {
		return true
	}
	s.wanted[sw] = struct{}{}
	object.Notify(s.wake)
	return false
}

// forget forgets what a switch has answered: from now on it must be of its next connection.
func (s *silences) forget(sw flow.DPID) {
	delete(s.wanted, sw)
	delete(s.since, sw)
}

const (
	echoesAtOnce = 64          // switches in one call
	echoPatience = time.Second // how long an answer is waited for
)

// toEcho returns the switches that are to be sent an echo.
func (s *silences) toEcho() (dpids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sw := range s.wanted {
		if len(dpids) == echoesAtOnce {
			object.Notify(s.wake)
			break
		}
		dpids = append(dpids, sw.String())
		delete(s.wanted, sw)
	}
	return dpids
}

// recordEcho records the answer of a switch to an echo, and when the echo was sent.
func (s *silences) recordEcho(now, sent int64, sw flow.DPID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.places.switches[sw]; a != nil && !a.gone && sent >= a.connected {
		s.since[sw] = sent
		s.heard(now)
	}
}

// run sends switches the echoes that are wanted, until ctx ends. Who still wants one that was not answered asks again.
func (s *silences) run(ctx context.Context, send func(context.Context, *api.EchoSwitchesRequest) (*api.EchoSwitchesResponse, error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		dpids, sent := s.toEcho(), now()
		r, err := send(ctx, &api.EchoSwitchesRequest{Dpids: dpids, DeadlineUs: uint64(echoPatience.Microseconds())})
		if err != nil {
			continue
		}
		for sw := range r.Trips(dpids) {
			s.recordEcho(now(), sent, sw)
		}
	}
}

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
	wanted map[flow.DPID]struct{}
	since  map[flow.DPID]int64 // when the last echo was sent that the switch has answered
	wake   chan struct{}       // capacity one: some are wanted
}

func newSilences() silences {
	return silences{map[flow.DPID]struct{}{}, map[flow.DPID]int64{}, make(chan struct{}, 1)}
}

// isHeard reports whether a switch has answered an echo that was sent at a time or later. If it has not, it is sent one.
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
func (t *table) toEcho() (dpids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for sw := range t.silences.wanted {
		if len(dpids) == echoesAtOnce {
			object.Notify(t.silences.wake)
			break
		}
		dpids = append(dpids, sw.String())
		delete(t.silences.wanted, sw)
	}
	return dpids
}

// recordEcho records that a switch has answered an echo that was sent at a time.
func (t *table) recordEcho(now, sent int64, sw flow.DPID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.places.switches[sw]; a != nil && !a.gone && sent >= a.connected {
		t.silences.since[sw] = sent
		t.claims.due.moveUp(now)
	}
}

// echo sends switches the echoes that are wanted, until ctx ends. Who still wants one that was not answered asks again.
func (t *table) echo(ctx context.Context, send func(context.Context, *api.EchoSwitchesRequest) (*api.EchoSwitchesResponse, error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.silences.wake:
		}
		dpids, sent := t.toEcho(), now()
		r, err := send(ctx, &api.EchoSwitchesRequest{Dpids: dpids, DeadlineUs: uint64(echoPatience.Microseconds())})
		if err != nil {
			continue
		}
		for i, e := range r.GetEchoes() {
			if sw, err := flow.ParseDPID(dpids[i]); err == nil && e.GetError() == "" {
				t.recordEcho(now(), sent, sw)
			}
		}
	}
}

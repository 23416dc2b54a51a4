package discovery

import (
	"time"

	"github.com/weft-sdn/weft/flow"
)

// An echo is the shortest recent round trip to a switch.
type echo struct {
	least int64 // nanoseconds; 0 if not measured
	n     int
	at    int64
}

// echoFor is how long a round trip counts if no new one follows.
const echoFor = int64(time.Minute)

// recordEchoes records the round trips of one echo to each of several switches, and
// how much longer than the longest of them the call took.
func (t *topology) recordEchoes(now int64, trips map[flow.DPID]int64, more int64) {
	for id, trip := range trips {
		dp := t.switches[id]
		if dp == nil || !dp.connected {
			continue
		}
		e := &dp.echo
		if now-e.at > echoFor {
			*e = echo{}
		}
		if e.n > 0 {
			t.jitter.add(now, more+trip-e.least)
		} else {
			e.least = trip
		}
		e.least, e.at = min(e.least, trip), now
		e.n++
	}
}

// echoesAtOnce bounds the switches in one echo call.
const echoesAtOnce = 64

// toEcho returns the switches to measure: those of links on trial.
func (t *topology) toEcho() map[flow.DPID]bool {
	list := map[flow.DPID]bool{}
	for _, trials := range []map[*trial]struct{}{t.trials, t.passing} {
		for tr := range trials {
			if len(list) >= echoesAtOnce {
				break
			}
			if !tr.held {
				list[tr.from.at.Switch], list[tr.to.at.Switch] = true, true
			}
		}
	}
	return list
}

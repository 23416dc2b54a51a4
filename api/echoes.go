package api

import (
	"time"

	"github.com/weft-sdn/weft/flow"
)

// Trips returns the round trips, in nanoseconds, to the switches that have answered, of those
// that were asked for.
func (x *EchoSwitchesResponse) Trips(dpids []string) map[flow.DPID]int64 {
	trips := map[flow.DPID]int64{}
	for i, answer := range x.GetEchoes() {
		if sw, err := flow.ParseDPID(dpids[i]); err == nil && answer.GetError() == "" {
			trips[sw] = int64(answer.GetRttUs()) * int64(time.Microsecond)
		}
	}
	return trips
}

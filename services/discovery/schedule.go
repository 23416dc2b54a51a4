package discovery

import (
	"math"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// A schedule says when a switch sends probes next.
type schedule struct {
	next   int64   // earliest time at which anything is to be sent
	rounds int64   // of all ports
	fast   int64   // of established links, where liveness is on
	phase  float64 // its place in each interval, 0 up to 1
	turn   int64   // in which of several intervals guarded links are probed, where they are not in each
}

// A prober says when a port sends probes next.
type prober struct {
	frame      []byte // probe without stamp and signature; read-only
	actions    []flow.Action
	soon       int64 // an extra probe; 0 if none
	sent       int   // probes since the last burst began
	told       int   // of these, the probes that the southbound has sent
	waits      bool  // it waits in the pace
	quiet      int64 // no probes until then
	unanswered int   // probes sent since the last one that arrived
}

// burstGaps are the times between the extra probes of a port after it comes up.
var burstGaps = [...]int64{50e6, 100e6, 200e6}

// trapHope is how long extra probes of a switch that has connected wait for it
// to confirm the LLDP trap, and trapHopeEach by how much longer for each switch
// that there is. Then they begin anyway, and the answers to them can be heard;
// what is sent before is lost where a whole network connects.
const (
	trapHope     = int64(time.Second)
	trapHopeEach = int64(2 * time.Millisecond)
)

// burst begins extra probes.
func (p *prober) burst(now int64) { p.soon, p.sent, p.told = now, 0, 0 }

// start begins the schedule of a switch that has connected.
func (s *schedule) start(cfg *Config, now int64) {
	s.next = now
	s.rounds = s.after(now, int64(cfg.Interval))
	s.fast = math.MaxInt64
	if cfg.Liveness.Interval > 0 {
		s.fast = s.after(now, int64(cfg.Liveness.Interval))
	}
}

// after returns the first of the switch's moments after a time; every interval
// has one.
func (s *schedule) after(at, interval int64) int64 {
	return (s.number(at, interval)+1)*interval + int64(s.phase*float64(interval))
}

// number numbers the intervals, each from one of the switch's moments to the
// next.
func (s *schedule) number(at, interval int64) int64 {
	return (at - int64(s.phase*float64(interval))) / interval
}

// following returns the round after one whose time has come: at most an
// interval later, whatever has become of the phase.
func (s *schedule) following(now, last, interval int64) int64 {
	if next := s.after(last, interval); next > now {
		return next
	}
	return s.after(now, interval)
}

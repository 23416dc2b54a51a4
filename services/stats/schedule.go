package stats

import (
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
)

// load is the size of the network, which sets the work of the readings.
type load struct {
	switches int // that are connected
	entries  int // flow entries of all of them
}

// pace is how fast one switch has answered.
type pace struct {
	took     time.Duration // the last reading of its ports
	flowTook time.Duration // the last reading of its tables and flow entries
	failures int           // consecutive failed readings
}

// portInterval returns the time from one reading of a switch's ports to the
// next.
func portInterval(c *Config, l load, p pace) time.Duration {
	d := max(c.Interval, time.Duration(l.switches)*c.PerSwitch, time.Duration(c.SlowFactor)*p.took)
	most := max(c.MaxInterval, time.Duration(l.switches)*c.PerSwitch)
	return backoff.Exponential{First: d, Last: most}.After(1 + p.failures)
}

// flowInterval returns the time from one reading of a switch's tables and flow
// entries to the next.
func flowInterval(c *Config, l load, p pace) time.Duration {
	every := time.Duration(c.FlowsEvery)
	return max(every*portInterval(c, l, p), min(time.Duration(c.SlowFactor)*p.flowTook, every*c.MaxInterval), time.Duration(l.entries)*c.PerEntry)
}

// firstReadings returns when to read a switch first after it has connected: its
// ports a little after the switch that connected before it, so that many that
// connect at once are not all read at once, and its flow entries within the
// interval for those of all. jitter is in [0, 1).
func firstReadings(c *Config, l load, before, now time.Time, jitter float64) (ports, flows time.Time) {
	ports = now
	if next := before.Add(c.PerSwitch); next.After(now) {
		ports = next
	}
	all := time.Duration(l.switches) * c.PerSwitch * time.Duration(c.FlowsEvery)
	return ports, ports.Add(time.Duration(jitter * float64(all)))
}

// jittered returns d give or take a tenth; jitter is in [0, 1).
func jittered(d time.Duration, jitter float64) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*jitter))
}

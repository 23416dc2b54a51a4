package stats

import (
	"fmt"
	"time"
)

// Config is how often counters are read. The defaults keep the cost within one
// to two percent of a core for 1,000 switches of 12 ports each.
type Config struct {
	// Interval is the shortest time between two readings of a switch's ports.
	Interval time.Duration `yaml:"interval"`
	// MaxInterval bounds how rare the readings of a slow switch become.
	MaxInterval time.Duration `yaml:"max_interval"`
	// PerSwitch makes readings rarer as the network grows: the interval is at
	// least this times the number of switches.
	PerSwitch time.Duration `yaml:"per_switch"`
	// FlowsEvery is the number of readings of the ports for one of the tables
	// and flow entries, which cost more.
	FlowsEvery int `yaml:"flows_every"`
	// PerEntry makes readings of the flow entries rarer as entries become
	// many: their interval is at least this times the number of all entries.
	PerEntry time.Duration `yaml:"per_entry"`
	// SlowFactor makes readings of a slow switch rarer: the interval is at
	// least this times what the last reading took.
	SlowFactor int `yaml:"slow_factor"`
	// Deadline is how long a switch may take to answer one question.
	Deadline time.Duration `yaml:"deadline"`
	// Parallel bounds the switches that are read at the same time.
	Parallel int `yaml:"parallel"`
	// MetricSwitches bounds the switches that have metrics of their own; those
	// beyond it count in the totals only.
	MetricSwitches int `yaml:"metric_switches"`
}

// defaults returns the configuration that a plan changes.
func defaults() *Config {
	return &Config{
		Interval:       5 * time.Second,
		MaxInterval:    5 * time.Minute,
		PerSwitch:      20 * time.Millisecond,
		FlowsEvery:     3,
		PerEntry:       time.Millisecond,
		SlowFactor:     10,
		Deadline:       10 * time.Second,
		Parallel:       32,
		MetricSwitches: 1000,
	}
}

// Validate says which key is wrong and what it may be.
func (c *Config) Validate() error {
	for _, d := range []struct {
		key        string
		value, min time.Duration
	}{
		{"interval", c.Interval, 100 * time.Millisecond}, {"per_switch", c.PerSwitch, 0}, {"per_entry", c.PerEntry, 0},
		{"deadline", c.Deadline, 10 * time.Millisecond},
	} {
		if d.value < d.min {
			return fmt.Errorf("%s: %v: want at least %v", d.key, d.value, d.min)
		}
	}
	if c.MaxInterval < c.Interval {
		return fmt.Errorf("max_interval: %v: want at least interval (%v)", c.MaxInterval, c.Interval)
	}
	for _, n := range []struct {
		key             string
		value, min, max int
	}{
		{"flows_every", c.FlowsEvery, 1, 10_000}, {"slow_factor", c.SlowFactor, 1, 10_000},
		{"parallel", c.Parallel, 1, 10_000}, {"metric_switches", c.MetricSwitches, 0, 100_000},
	} {
		if n.value < n.min || n.value > n.max {
			return fmt.Errorf("%s: %d: want %d to %d", n.key, n.value, n.min, n.max)
		}
	}
	return nil
}

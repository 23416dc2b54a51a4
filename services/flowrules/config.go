package flowrules

import (
	"fmt"
	"time"
)

// Config is how flow entries are brought to switches and kept there.
type Config struct {
	// Deadline is how long AddFlows, DeleteFlows and SetStanding wait for the
	// switches to confirm, and how long one batch may take.
	Deadline time.Duration `yaml:"deadline"`
	// ReadDeadline is how long a switch may take to tell its entries.
	ReadDeadline time.Duration `yaml:"read_deadline"`
	// ConnectGrace is how long SetStanding waits for a switch that is away, so
	// that a caller who has heard of a connection first is not turned away.
	ConnectGrace time.Duration `yaml:"connect_grace"`
	// MaxBatch bounds the flow-mods of one switch that are not confirmed yet.
	MaxBatch int `yaml:"max_batch"`
	// Rate bounds the flow-mods per second to one switch.
	Rate int `yaml:"rate"`
	// Parallel bounds the switches that are read or written at the same time.
	Parallel int `yaml:"parallel"`
	// VerifyInterval is how often the entries of a switch are read again to
	// find what has changed behind our back; 0 is never. It grows with the
	// number of switches, and up to five times with how long a switch takes to
	// answer.
	VerifyInterval time.Duration `yaml:"verify_interval"`
	// VerifyAge is how old an entry must be to be judged.
	VerifyAge time.Duration `yaml:"verify_age"`
	// Retries is how often an entry that a switch refuses is tried again.
	Retries int `yaml:"retries"`
	// RetryAfter is the pause before the first such retry; each further one
	// is four times as long.
	RetryAfter time.Duration `yaml:"retry_after"`
	// RetryFull is the pause before an entry is tried again for which the
	// switch's table had no room.
	RetryFull time.Duration `yaml:"retry_full"`
	// MaxFlows bounds the operator's entries in the whole network.
	MaxFlows int `yaml:"max_flows"`
}

// defaults returns the configuration that a plan changes.
func defaults() *Config {
	return &Config{
		Deadline:       5 * time.Second,
		ReadDeadline:   30 * time.Second,
		ConnectGrace:   500 * time.Millisecond,
		MaxBatch:       256,
		Rate:           5000,
		Parallel:       128,
		VerifyInterval: time.Minute,
		VerifyAge:      5 * time.Second,
		Retries:        3,
		RetryAfter:     5 * time.Second,
		RetryFull:      time.Minute,
		MaxFlows:       100_000,
	}
}

// Validate says which key is wrong and what it may be.
func (c *Config) Validate() error {
	for _, d := range []struct {
		key        string
		value, min time.Duration
	}{
		{"deadline", c.Deadline, 10 * time.Millisecond}, {"read_deadline", c.ReadDeadline, 10 * time.Millisecond},
		{"connect_grace", c.ConnectGrace, 0}, {"verify_age", c.VerifyAge, 0},
		{"retry_after", c.RetryAfter, 10 * time.Millisecond}, {"retry_full", c.RetryFull, 100 * time.Millisecond},
	} {
		if d.value < d.min {
			return fmt.Errorf("%s: %v: want at least %v", d.key, d.value, d.min)
		}
	}
	if c.VerifyInterval != 0 && c.VerifyInterval < time.Second {
		return fmt.Errorf("verify_interval: %v: want at least 1s, or 0 for never", c.VerifyInterval)
	}
	for _, n := range []struct {
		key             string
		value, min, max int
	}{
		{"max_batch", c.MaxBatch, 1, 100_000}, {"rate", c.Rate, 1, 10_000_000}, {"parallel", c.Parallel, 1, 10_000},
		{"retries", c.Retries, 0, 10}, {"max_flows", c.MaxFlows, 0, 10_000_000},
	} {
		if n.value < n.min || n.value > n.max {
			return fmt.Errorf("%s: %d: want %d to %d", n.key, n.value, n.min, n.max)
		}
	}
	return nil
}

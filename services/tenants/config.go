package tenants

import (
	"fmt"
	"time"
)

// Config is the configuration of tenants.
type Config struct {
	// Tenants is how many tenants there may be.
	Tenants int `yaml:"tenants"`
	// Members is how many members all virtual networks may have together.
	Members int `yaml:"members"`
	// FirstSegment and LastSegment are the VLANs that are given to virtual
	// networks that do not ask for one. One that a host of the common network is
	// known in is not given.
	FirstSegment int `yaml:"first_segment"`
	LastSegment  int `yaml:"last_segment"`
	// Deadline is how long a change waits for the switches to confirm it.
	Deadline time.Duration `yaml:"deadline"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() *Config {
	return &Config{Tenants: 1000, Members: 20_000, FirstSegment: segmentMin, LastSegment: segmentMax, Deadline: 5 * time.Second}
}

// Validate says which key is wrong, what it is and what is allowed.
func (c *Config) Validate() error {
	for _, n := range []struct {
		key          string
		is, min, max int
	}{
		{"tenants", c.Tenants, 1, metersMax}, {"members", c.Members, 1, 1_000_000},
		{"first_segment", c.FirstSegment, segmentMin, segmentMax}, {"last_segment", c.LastSegment, c.FirstSegment, segmentMax},
	} {
		if n.is < n.min || n.is > n.max {
			return fmt.Errorf("%s is %d: want %d to %d", n.key, n.is, n.min, n.max)
		}
	}
	if c.Deadline < 100*time.Millisecond || c.Deadline > time.Minute {
		return fmt.Errorf("deadline is %v: want 100ms to 1m", c.Deadline)
	}
	return nil
}

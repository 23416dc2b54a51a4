package policy

import (
	"fmt"
	"time"
)

// Config is the configuration of a service that has no other.
type Config struct {
	// Most is how many objects there may be.
	Most int `yaml:"most"`
	// Deadline is how long a call waits for the switches to confirm its entries.
	Deadline time.Duration `yaml:"deadline"`
}

// Validate says which key is wrong and what it may be.
func (c *Config) Validate() error {
	switch {
	case c.Most < 1 || c.Most > 10_000:
		return fmt.Errorf("most: %d: want 1 to 10000", c.Most)
	case c.Deadline < time.Second || c.Deadline > time.Minute:
		return fmt.Errorf("deadline: %v: want 1s to 1m", c.Deadline)
	}
	return nil
}

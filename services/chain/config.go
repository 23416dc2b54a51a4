package chain

import (
	"fmt"
	"time"
)

// Config is the configuration of chain.
type Config struct {
	// Chains is how many chains there may be.
	Chains int `yaml:"chains"`
	// FirstTag and LastTag are the VLAN identifiers that packets of chains have
	// between switches; nobody else may use them.
	FirstTag uint16 `yaml:"first_tag"`
	// LastTag is the last of them.
	LastTag uint16 `yaml:"last_tag"`
	// Deadline is how long a change waits for the switches to confirm it.
	Deadline time.Duration `yaml:"deadline"`
}

func defaults() *Config {
	return &Config{Chains: 256, FirstTag: 3072, LastTag: 4094, Deadline: 5 * time.Second}
}

// Validate says which key is wrong, what it is and what is allowed.
func (c *Config) Validate() error {
	switch {
	case c.Chains < 1 || c.Chains > numberMax:
		return fmt.Errorf("chains: %d: want 1 to %d", c.Chains, numberMax)
	case c.FirstTag < 1 || c.FirstTag > 4094:
		return fmt.Errorf("first_tag: %d: want 1 to 4094", c.FirstTag)
	case c.LastTag < c.FirstTag || c.LastTag > 4094:
		return fmt.Errorf("last_tag: %d: want first_tag, %d, to 4094", c.LastTag, c.FirstTag)
	case c.Deadline < 100*time.Millisecond || c.Deadline > time.Minute:
		return fmt.Errorf("deadline: %v: want 100ms to 1m", c.Deadline)
	}
	return nil
}

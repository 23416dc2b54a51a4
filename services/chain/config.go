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
	// ProbeInterval is the time between two probes of a copy of a function in one
	// direction; it is longer where there are more than probe_rate allows. 0: none is sent.
	ProbeInterval time.Duration `yaml:"probe_interval"`
	// ProbeRate is how many probes a second are sent through all functions together.
	ProbeRate int `yaml:"probe_rate"`
	// Deadline is how long a change waits for the switches to confirm it.
	Deadline time.Duration `yaml:"deadline"`
}

func defaults() *Config {
	return &Config{Chains: 256, FirstTag: 3072, LastTag: 4094, ProbeInterval: 50 * time.Millisecond, ProbeRate: 1000, Deadline: 5 * time.Second}
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
	case c.ProbeInterval != 0 && (c.ProbeInterval < 20*time.Millisecond || c.ProbeInterval > time.Minute):
		return fmt.Errorf("probe_interval: %v: want 0 (no probes), or 20ms to 1m", c.ProbeInterval)
	case c.ProbeRate < 10 || c.ProbeRate > 10000:
		return fmt.Errorf("probe_rate: %d: want 10 to 10000", c.ProbeRate)
	case c.Deadline < 100*time.Millisecond || c.Deadline > time.Minute:
		return fmt.Errorf("deadline: %v: want 100ms to 1m", c.Deadline)
	}
	return nil
}

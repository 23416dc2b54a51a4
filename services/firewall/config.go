package firewall

import (
	"fmt"
	"time"
)

// Config is the configuration of firewall.
type Config struct {
	// TableLimit is how many entries the rules of a switch may take in it. Where
	// they would take more, packets of new flows are judged by the controller,
	// which installs its verdicts; 0 has it so everywhere.
	TableLimit int `yaml:"table_limit"`
	// VerdictIdle is how long such a verdict stays without packets, in whole
	// seconds.
	VerdictIdle time.Duration `yaml:"verdict_idle"`
	// VerdictLimit is how many verdicts a switch may have at once; beyond it,
	// packets of new flows are judged one by one.
	VerdictLimit int `yaml:"verdict_limit"`
	// MaxRules bounds the rules.
	MaxRules int `yaml:"max_rules"`
	// Deadline is how long a change waits for the switches to confirm.
	Deadline time.Duration `yaml:"deadline"`
	// Rules are those of the configuration. They are replaced as a whole when it
	// changes; rules made by the API stay beside them.
	Rules []RuleConfig `yaml:"rules"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() *Config {
	return &Config{TableLimit: 2000, VerdictIdle: 30 * time.Second, VerdictLimit: 10_000, MaxRules: 100_000, Deadline: 10 * time.Second}
}

// Validate says which key is wrong, what it is and what is allowed.
func (c *Config) Validate() error {
	for _, n := range []struct {
		key     string
		is, max int
	}{{"table_limit", c.TableLimit, 50_000}, {"verdict_limit", c.VerdictLimit, 1_000_000}, {"max_rules", c.MaxRules, 1_000_000}} {
		if n.is < 0 || n.is > n.max {
			return fmt.Errorf("%s is %d: want 0 to %d", n.key, n.is, n.max)
		}
	}
	if c.VerdictIdle < time.Second || c.VerdictIdle > time.Hour || c.VerdictIdle%time.Second != 0 {
		return fmt.Errorf("verdict_idle is %v: want 1s to 1h, in whole seconds", c.VerdictIdle)
	}
	if c.Deadline < 100*time.Millisecond || c.Deadline > 10*time.Minute {
		return fmt.Errorf("deadline is %v: want 100ms to 10m", c.Deadline)
	}
	return c.validateRules()
}

package intake

import (
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	if err := defaults().Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Config){
		"number: 0":     func(c *Config) { c.Number = 0 },
		"number: 65536": func(c *Config) { c.Number = 65536 },
		"lease: 99ms":   func(c *Config) { c.Lease = 99 * time.Millisecond },
		"lease: 2m0s":   func(c *Config) { c.Lease = 2 * time.Minute },
		"listen: ":      func(c *Config) { c.Listen = []string{"6653"} },
		"plain: true":   func(c *Config) { c.Listen = []string{"tcp:0.0.0.0:6663"} },
		"certificate: ": func(c *Config) { c.Certificate = "x" },
		"max_sessions":  func(c *Config) { c.MaxSessions = 0 },
		"flood_rate":    func(c *Config) { c.FloodRate = 1 },
		"rest":          func(c *Config) { c.Switches = []string{"x"} },
	} {
		c := defaults()
		change(c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

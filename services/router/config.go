package router

import (
	"fmt"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// Config is the configuration of router.
type Config struct {
	// Routers is how many routers there may be, Routes and Addresses how many
	// static routes and addresses each may have.
	Routers   int `yaml:"routers"`
	Addresses int `yaml:"addresses"`
	Routes    int `yaml:"routes"`
	// Entries is how many entries a switch is given. What is beyond it is routed
	// by the controller, packet by packet.
	Entries int `yaml:"entries"`
	// Waiting is how many packets wait, in all, for a destination whose Ethernet
	// address is being asked for. Those of one port may be an eighth of it.
	Waiting int `yaml:"waiting"`
	// Resolve is for how long an address is asked for before the senders of
	// packets to it are told that it cannot be reached.
	Resolve time.Duration `yaml:"resolve"`
	// AskInterval is how often a gateway that is not known is asked for.
	AskInterval time.Duration `yaml:"ask_interval"`
	// ErrorsPerSecond bounds the answers, such as ICMP errors and echo replies,
	// that are sent because of packets that come in by one port.
	ErrorsPerSecond int `yaml:"errors_per_second"`
	// Deadline is how long a change waits for the switches to confirm it.
	Deadline time.Duration `yaml:"deadline"`
	// MACPrefix is what the Ethernet addresses of routers begin with: three octets.
	MACPrefix string `yaml:"mac_prefix"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() *Config {
	return &Config{Routers: 1024, Addresses: 256, Routes: 4096, Entries: 20_000, Waiting: 1024, Resolve: 2 * time.Second, AskInterval: time.Second,
		ErrorsPerSecond: 100, Deadline: 5 * time.Second, MACPrefix: "06:57:72"}
}

// Validate says which key is wrong, what it is and what is allowed.
func (c *Config) Validate() error {
	for _, n := range []struct {
		key     string
		is, max int
	}{
		{"routers", c.Routers, 100_000}, {"addresses", c.Addresses, 10_000}, {"routes", c.Routes, 100_000}, {"entries", c.Entries, 1_000_000},
		{"waiting", c.Waiting, 100_000}, {"errors_per_second", c.ErrorsPerSecond, 1_000_000},
	} {
		if n.is < 1 || n.is > n.max {
			return fmt.Errorf("%s: %d: want 1 to %d", n.key, n.is, n.max)
		}
	}
	for _, d := range []struct {
		key string
		is  time.Duration
	}{{"resolve", c.Resolve}, {"ask_interval", c.AskInterval}, {"deadline", c.Deadline}} {
		if d.is < 100*time.Millisecond || d.is > time.Minute {
			return fmt.Errorf("%s: %v: want 100ms to 1m", d.key, d.is)
		}
	}
	if mac, err := flow.ParseMAC(c.MACPrefix + ":00:00:00"); err != nil || mac.Multicast() {
		return fmt.Errorf("mac_prefix: %q: want three octets of an address that is no group's, such as 06:57:72", c.MACPrefix)
	}
	return nil
}

// tick is how often it is looked after who is asked for.
func (c *Config) tick() time.Duration {
	return max(min(c.Resolve, c.AskInterval)/4, 20*time.Millisecond)
}

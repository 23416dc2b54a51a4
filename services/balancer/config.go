package balancer

import (
	"fmt"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// idleMax bounds idle timeouts, in seconds: the way back has twice as long, and
// that must fit into an entry's timeout.
const idleMax = 32_000

// Config is the configuration of the balancer.
type Config struct {
	// Vips is how many virtual IPs there may be, and Members how many members
	// a pool may have.
	Vips    int `yaml:"vips"`
	Members int `yaml:"members"`
	// Connections is how many connections may be balanced at once; each takes
	// an entry at two switches.
	Connections int `yaml:"connections"`
	// IdleTimeout is how long a connection may be silent before it is over,
	// unless its VIP says otherwise.
	IdleTimeout time.Duration `yaml:"idle_timeout"`
	// AskInterval is how often a member that is not known as a host is asked
	// for, by ARP or neighbour solicitation at all edge ports.
	AskInterval time.Duration `yaml:"ask_interval"`
	// Deadline is how long a call waits for switches to confirm groups.
	Deadline time.Duration `yaml:"deadline"`
	// MACPrefix is what the Ethernet addresses of VIPs begin with, unless they
	// say otherwise: three octets.
	MACPrefix string `yaml:"mac_prefix"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() *Config {
	return &Config{
		Vips: 1000, Members: 256, Connections: 100_000, IdleTimeout: 5 * time.Minute, AskInterval: 5 * time.Second,
		Deadline: 5 * time.Second, MACPrefix: "06:57:62",
	}
}

// Validate says which key is wrong, what it is and what is allowed.
func (c *Config) Validate() error {
	for _, n := range []struct {
		key     string
		is, max int
	}{{"vips", c.Vips, 10_000}, {"members", c.Members, 10_000}, {"connections", c.Connections, 10_000_000}} {
		if n.is < 1 || n.is > n.max {
			return fmt.Errorf("%s: %d: want 1 to %d", n.key, n.is, n.max)
		}
	}
	for _, d := range []struct {
		key          string
		is, min, max time.Duration
	}{
		{"idle_timeout", c.IdleTimeout, time.Second, idleMax * time.Second},
		{"ask_interval", c.AskInterval, 100 * time.Millisecond, time.Hour}, {"deadline", c.Deadline, 10 * time.Millisecond, time.Minute},
	} {
		if d.is < d.min || d.is > d.max {
			return fmt.Errorf("%s: %v: want %v to %v", d.key, d.is, d.min, d.max)
		}
	}
	if mac, err := flow.ParseMAC(c.MACPrefix + ":00:00:00"); err != nil || mac.Multicast() {
		return fmt.Errorf("mac_prefix: %q: want three octets of an address that is no group's, such as 06:57:62", c.MACPrefix)
	}
	return nil
}

// prefix returns the Ethernet address that MACPrefix begins.
func (c *Config) prefix() flow.MAC {
	mac, _ := flow.ParseMAC(c.MACPrefix + ":00:00:00")
	return mac
}

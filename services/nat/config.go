package nat

import (
	"fmt"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// Config is the configuration of nat.
type Config struct {
	// Gateways is how many gateways there may be.
	Gateways int `yaml:"gateways"`
	// Hosts is how many hosts inside a gateway reaches; each takes an entry.
	Hosts int `yaml:"hosts"`
	// AskInterval is how often a next hop that is not known is asked for, by ARP
	// at the outside port. One that is known is asked six times as seldom.
	AskInterval time.Duration `yaml:"ask_interval"`
	// Poll is how often the switches are asked for the packets that were refused
	// for want of a port.
	Poll time.Duration `yaml:"poll"`
	// Exhausted is for how long after such a packet a gateway is said to be
	// exhausted.
	Exhausted time.Duration `yaml:"exhausted"`
	// Deadline is how long a change waits for the switches to confirm it.
	Deadline time.Duration `yaml:"deadline"`
	// MACPrefix is what the Ethernet addresses of gateways begin with: three octets.
	MACPrefix string `yaml:"mac_prefix"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() *Config {
	return &Config{Gateways: 64, Hosts: 4096, AskInterval: time.Second, Poll: 2 * time.Second, Exhausted: 30 * time.Second,
		Deadline: 5 * time.Second, MACPrefix: "06:57:6e"}
}

// Validate says which key is wrong, what it is and what is allowed.
func (c *Config) Validate() error {
	for _, n := range []struct {
		key     string
		is, max int
	}{{"gateways", c.Gateways, 1000}, {"hosts", c.Hosts, 60_000}} {
		if n.is < 1 || n.is > n.max {
			return fmt.Errorf("%s: %d: want 1 to %d", n.key, n.is, n.max)
		}
	}
	for _, d := range []struct {
		key string
		is  time.Duration
	}{{"ask_interval", c.AskInterval}, {"poll", c.Poll}, {"exhausted", c.Exhausted}, {"deadline", c.Deadline}} {
		if d.is < 100*time.Millisecond || d.is > time.Hour {
			return fmt.Errorf("%s: %v: want 100ms to 1h", d.key, d.is)
		}
	}
	if mac, err := flow.ParseMAC(c.MACPrefix + ":00:00:00"); err != nil || mac.Multicast() {
		return fmt.Errorf("mac_prefix: %q: want three octets of an address that is no group's, such as 06:57:6e", c.MACPrefix)
	}
	return nil
}

package intake

import (
	"fmt"
	"time"

	"github.com/weft-sdn/weft/services/southbound"
)

// Config is how switches are received that send packet-ins here.
type Config struct {
	// Listen lists where switches connect, with a connection beside that to the
	// southbound: tls:HOST:PORT, tcp:HOST:PORT or unix:PATH. None is that no
	// switch does.
	Listen []string `yaml:"listen" start:"file"`
	// Number is that of the connections (Open vSwitch's controller id), which
	// entries name that send packets here: 1 to 65535. Each intake of a switch
	// has another.
	Number int `yaml:"number"`
	// Lease is for how long packets still come here when the service is silent;
	// then the southbound gets them.
	Lease time.Duration `yaml:"lease"`
	// Plain, and what follows down to Elsewhere, are as those of the southbound.
	Plain       bool                `yaml:"plain"`
	Certificate string              `yaml:"certificate" start:"true"`
	Key         string              `yaml:"key" start:"true"`
	Authority   string              `yaml:"authority" start:"true"`
	Identities  map[string][]string `yaml:"identities"`
	Switches    []string            `yaml:"switches"`
	Elsewhere   map[string][]string `yaml:"elsewhere"`
	// MaxSessions bounds the connections at any time.
	MaxSessions int `yaml:"max_sessions"`
	// FloodRate, FloodFactor and FloodFloor are as those of the southbound: a
	// port that floods is limited here on arrival.
	FloodRate   int `yaml:"flood_rate"`
	FloodFactor int `yaml:"flood_factor"`
	FloodFloor  int `yaml:"flood_floor"`
}

func defaults() *Config {
	s := southbound.DefaultConfig()
	return &Config{
		Number: 1, Lease: 500 * time.Millisecond,
		MaxSessions: s.MaxSessions, FloodRate: s.FloodRate, FloodFactor: s.FloodFactor, FloodFloor: s.FloodFloor,
	}
}

// The limits of Lease: less is lost on a busy machine, more loses packets.
const (
	leaseLeast = 100 * time.Millisecond
	leaseMost  = time.Minute
)

// Validate says which key is wrong and what it may be.
func (c *Config) Validate() error {
	if c.Number < 1 || c.Number > 0xffff {
		return fmt.Errorf("number: %d: want 1 to 65535; 0 is the southbound's", c.Number)
	}
	if c.Lease < leaseLeast || c.Lease > leaseMost {
		return fmt.Errorf("lease: %v: want %v to %v", c.Lease, leaseLeast, leaseMost)
	}
	s := c.sessions()
	if len(s.Listen) == 0 {
		s.Listen = southbound.DefaultConfig().Listen // what else is wrong shows
	}
	return s.Validate()
}

// sessions is the configuration of the sessions.
func (c *Config) sessions() *southbound.Config {
	s := southbound.DefaultConfig()
	s.Listen, s.Plain, s.Certificate, s.Key, s.Authority, s.Identities = c.Listen, c.Plain, c.Certificate, c.Key, c.Authority, c.Identities
	s.Switches, s.Elsewhere = c.Switches, c.Elsewhere
	s.MaxSessions, s.FloodRate, s.FloodFactor, s.FloodFloor = c.MaxSessions, c.FloodRate, c.FloodFactor, c.FloodFloor
	return s
}

package tunnels

import (
	"fmt"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// Config is the configuration of tunnels.
type Config struct {
	// Tunnels is how many tunnels there may be.
	Tunnels int `yaml:"tunnels"`
	// Steers is how many steers there may be.
	Steers int `yaml:"steers"`
	// FirstLabel and LastLabel are the labels that tunnels take, on each switch
	// anew.
	FirstLabel uint32 `yaml:"first_label"`
	// LastLabel is the last of them.
	LastLabel uint32 `yaml:"last_label"`
	// Deadline is how long a change waits for the switches to confirm it.
	Deadline time.Duration `yaml:"deadline"`
	// Retry is how long after a try without success the path of a tunnel is sought
	// again, if the network has not changed before.
	Retry time.Duration `yaml:"retry"`
	// Optimise says how often tunnels that book bandwidth move to paths that are better
	// for all of them together.
	Optimise Optimise `yaml:"optimise"`
}

// Optimise is the continuous optimisation of tunnels.
type Optimise struct {
	// Every is how often they are looked at; 0: only when weft tunnel optimise asks for it.
	// A tunnel that has moved stays for two such times, unless it must move.
	Every time.Duration `yaml:"every"`
	// Gain is the least that all moves together have to gain, percent of the mean delay;
	// nothing moves for less.
	Gain uint32 `yaml:"gain"`
}

// gainLeast is what moves gain together unless something else is said, percent of the mean delay.
const gainLeast = 5

func defaults() *Config {
	return &Config{Tunnels: 10_000, Steers: 1000, FirstLabel: flow.TunnelLabels, LastLabel: flow.TunnelLabelsLast, Deadline: 5 * time.Second, Retry: 10 * time.Second,
		Optimise: Optimise{Gain: gainLeast}}
}

// Validate says which key is wrong, what it is and what is allowed.
func (c *Config) Validate() error {
	switch {
	case c.Tunnels < 1 || c.Tunnels > 100_000:
		return fmt.Errorf("tunnels is %d: want 1 to 100000", c.Tunnels)
	case c.Steers < 1 || c.Steers > 10_000:
		return fmt.Errorf("steers is %d: want 1 to 10000", c.Steers)
	case c.FirstLabel < flow.TunnelLabels || c.FirstLabel > flow.TunnelLabelsLast:
		return fmt.Errorf("first_label is %d: want %d to %d", c.FirstLabel, flow.TunnelLabels, flow.TunnelLabelsLast)
	case c.LastLabel < c.FirstLabel || c.LastLabel > flow.TunnelLabelsLast:
		return fmt.Errorf("last_label is %d: want first_label, %d, to %d", c.LastLabel, c.FirstLabel, flow.TunnelLabelsLast)
	case c.Deadline < 100*time.Millisecond || c.Deadline > time.Minute:
		return fmt.Errorf("deadline is %v: want 100ms to 1m", c.Deadline)
	case c.Retry < time.Second || c.Retry > time.Hour:
		return fmt.Errorf("retry is %v: want 1s to 1h", c.Retry)
	case c.Optimise.Every != 0 && (c.Optimise.Every < 10*time.Second || c.Optimise.Every > 30*24*time.Hour):
		return fmt.Errorf("optimise.every is %v: want 10s to 720h, or 0 for never", c.Optimise.Every)
	case c.Optimise.Gain > 100:
		return fmt.Errorf("optimise.gain is %d: want at most 100 (percent)", c.Optimise.Gain)
	}
	return nil
}

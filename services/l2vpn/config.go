package l2vpn

import (
	"fmt"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// Config is the configuration of l2vpn.
type Config struct {
	// Circuits is how many circuits there may be.
	Circuits int `yaml:"circuits"`
	// FirstLabel and LastLabel are the labels that circuits take, on each switch
	// anew.
	FirstLabel uint32 `yaml:"first_label"`
	// LastLabel is the last of them.
	LastLabel uint32 `yaml:"last_label"`
	// Deadline is how long a change waits for tunnels and switches to confirm it.
	Deadline time.Duration `yaml:"deadline"`
	// History is how many states of each circuit are kept.
	History int `yaml:"history"`
}

func defaults() *Config {
	return &Config{Circuits: 20_000, FirstLabel: flow.CircuitLabels, LastLabel: flow.CircuitLabelsLast, Deadline: 5 * time.Second, History: 64}
}

// Validate says which key is wrong, what it is and what is allowed.
func (c *Config) Validate() error {
	switch {
	case c.Circuits < 1 || c.Circuits > 100_000:
		return fmt.Errorf("circuits is %d: want 1 to 100000", c.Circuits)
	case c.FirstLabel < flow.CircuitLabels || c.FirstLabel > flow.CircuitLabelsLast:
		return fmt.Errorf("first_label is %d: want %d to %d", c.FirstLabel, flow.CircuitLabels, flow.CircuitLabelsLast)
	case c.LastLabel < c.FirstLabel || c.LastLabel > flow.CircuitLabelsLast:
		return fmt.Errorf("last_label is %d: want first_label, %d, to %d", c.LastLabel, c.FirstLabel, flow.CircuitLabelsLast)
	case c.Deadline < 100*time.Millisecond || c.Deadline > time.Minute:
		return fmt.Errorf("deadline is %v: want 100ms to 1m", c.Deadline)
	case c.History < 1 || c.History > 1000:
		return fmt.Errorf("history is %d: want 1 to 1000", c.History)
	}
	return nil
}

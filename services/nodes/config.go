package nodes

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// Config is the configuration of nodes.
type Config struct {
	// BFD is how often the two ends of a link between hybrid nodes ask each other
	// whether they are there; after three times without a word the port is dead for
	// groups, without the controller. 0: they do not.
	BFD time.Duration `yaml:"bfd"`
	// BFDRate is how many such packets the nodes of one machine send in a second at
	// most; with more sessions they are rarer.
	BFDRate int `yaml:"bfd_rate"`
	// Stale is after how long without a report a node is taken not to be looked after.
	Stale time.Duration `yaml:"stale"`
	// Nodes is how many nodes there may be.
	Nodes int `yaml:"nodes"`
	// Agents says who may report which nodes, such as "site1 00000000000000a?": a
	// name of a token, and the switches, in which *, ? and [a-c] stand for other
	// digits. Empty: whoever may report at all may report all, each node by one at a
	// time, and one whose token or certificate has the node's name or number before others.
	Agents []string `yaml:"agents"`
}

func defaults() *Config {
	return &Config{BFD: 50 * time.Millisecond, BFDRate: 4000, Stale: 5 * time.Second, Nodes: 10_000}
}

// Validate says which key is wrong, what it is and what is allowed.
func (c *Config) Validate() error {
	switch {
	case c.BFD != 0 && (c.BFD < leastBFD || c.BFD > mostBFD || c.BFD%time.Millisecond != 0):
		return fmt.Errorf("bfd is %v: want 0, or whole milliseconds from %v to %v", c.BFD, leastBFD, mostBFD)
	case c.BFDRate < 100 || c.BFDRate > 1_000_000:
		return fmt.Errorf("bfd_rate is %d: want 100 to 1000000", c.BFDRate)
	case c.Stale < 2*time.Second || c.Stale > time.Hour:
		return fmt.Errorf("stale is %v: want 2s to 1h", c.Stale)
	case c.Nodes < 1 || c.Nodes > 100_000:
		return fmt.Errorf("nodes is %d: want 1 to 100000", c.Nodes)
	}
	for _, text := range c.Agents {
		words := strings.Fields(text)
		if len(words) != 2 {
			return fmt.Errorf("agents: %.80q: want the name of a token and switches of 16 hex digits, such as \"site1 00000000000000a?\"", text)
		}
		if _, err := path.Match(words[1], ""); err != nil {
			return fmt.Errorf("agents: %.80q: %w", text, err)
		}
	}
	return nil
}

// mayReport reports whether an agent may report a switch.
func (c *Config) mayReport(agent, dpid string) bool {
	for _, text := range c.Agents {
		words := strings.Fields(text)
		if match, _ := path.Match(words[1], dpid); match && words[0] == agent {
			return true
		}
	}
	return len(c.Agents) == 0
}

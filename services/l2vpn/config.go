package l2vpn

import (
	"fmt"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/l2vpn/oam"
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
	// MACs is how many addresses an end of a vpls may have that does not say; frames
	// to more go to all ends.
	MACs int `yaml:"macs"`
	// MACAge is after how long without a frame an address of a vpls is asked for; it is
	// forgotten half a minute later.
	MACAge time.Duration `yaml:"mac_age"`
	// StormKbps is how much an end of a circuit that does not say may send as broadcast and multicast,
	// and, in a vpls, to addresses that are not known, kilobits per second.
	StormKbps uint32 `yaml:"storm_kbps"`
	// ProbeRate is how many probes a second all circuits together are sent.
	ProbeRate int `yaml:"probe_rate"`
	// ProbeInterval is the time between two probes of one direction of a circuit; it
	// is longer where there are more than probe_rate allows.
	ProbeInterval time.Duration `yaml:"probe_interval"`
	// RingInterval is how often each end sends its customer a frame by which loops of circuits are
	// found; it is longer where there are more than a tenth of probe_rate allows. 0: never.
	RingInterval time.Duration `yaml:"ring_interval"`
	// MaxLoss is the part of probes, 0 to 1, more of which may not be lost: else the
	// circuit is degraded. 0: no bound.
	MaxLoss float64 `yaml:"max_loss"`
}

func defaults() *Config {
	return &Config{Circuits: 20_000, FirstLabel: flow.CircuitLabels, LastLabel: flow.CircuitLabelsLast, Deadline: 5 * time.Second, History: 64,
		MACs: 1000, MACAge: 5 * time.Minute, StormKbps: 50_000, ProbeRate: 1000, ProbeInterval: 200 * time.Millisecond, RingInterval: 2 * time.Second, MaxLoss: 0.1}
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
	case c.MACs < 1 || c.MACs > lanMACs:
		return fmt.Errorf("macs is %d: want 1 to %d", c.MACs, lanMACs)
	case c.MACAge < time.Second || c.MACAge > 24*time.Hour:
		return fmt.Errorf("mac_age is %v: want 1s to 24h", c.MACAge)
	case c.StormKbps < 1 || c.StormKbps > mostStorm:
		return fmt.Errorf("storm_kbps is %d: want 1 to %d", c.StormKbps, mostStorm)
	case c.History < 1 || c.History > 1000:
		return fmt.Errorf("history is %d: want 1 to 1000", c.History)
	case c.ProbeRate < 10 || c.ProbeRate > 1000:
		return fmt.Errorf("probe_rate is %d: want 10 to 1000", c.ProbeRate)
	case c.ProbeInterval < 20*time.Millisecond || c.ProbeInterval > time.Minute:
		return fmt.Errorf("probe_interval is %v: want 20ms to 1m", c.ProbeInterval)
	case c.RingInterval != 0 && (c.RingInterval < 500*time.Millisecond || c.RingInterval > time.Hour):
		return fmt.Errorf("ring_interval is %v: want 500ms to 1h, or 0 for none", c.RingInterval)
	case !(c.MaxLoss >= 0 && c.MaxLoss <= 1):
		return fmt.Errorf("max_loss is %v: want 0 to 1", c.MaxLoss)
	}
	return nil
}

// probes is the part of the configuration that says how probes are sent: those inside circuits.
func (c *Config) probes() oam.Config {
	return oam.Config{Rate: c.ProbeRate - c.ProbeRate/ringParts, Interval: int64(c.ProbeInterval), Timeout: int64(probeTimeout)}
}

// limits returns how many addresses an end of a vpls may have, and how much it may
// send to all, kbit/s.
func (c *Config) limits(of *circuit) (macs int, storm uint32) {
	macs, storm = int(of.MaxMacs), uint32(of.StormKbps)
	if macs == 0 {
		macs = c.MACs
	}
	if storm == 0 {
		storm = c.StormKbps
	}
	return macs, storm
}

// stormOf returns how much each end of a circuit may send to all, kbit/s.
func (c *Config) stormOf(of *circuit) uint32 {
	_, storm := c.limits(of)
	return storm
}

// stormy reports whether the ends of a circuit have a meter for what they send to all: a
// vpws with a smaller rate is bounded by that of its rate.
func (c *Config) stormy(of *circuit) bool {
	return of.Type == vpls || of.RateKbps == 0 || of.RateKbps+of.ExcessKbps > uint64(c.stormOf(of))
}

// boundOf returns how much each end of a circuit may send to all, whatever meter says so.
func (c *Config) boundOf(of *circuit) uint64 {
	if c.stormy(of) {
		return uint64(c.stormOf(of))
	}
	return of.RateKbps + of.ExcessKbps
}

package discovery

import (
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Config is the configuration of discovery.
type Config struct {
	// Interval is the time between two probes out of a port. A link that has not
	// been heard of for longer is probed more often until Timeout.
	Interval time.Duration `yaml:"interval"`
	// Timeout is how long a link lives without a probe: a silent failure is
	// found at most this long after it. Two probes must be missing, too.
	Timeout time.Duration `yaml:"timeout"`
	// ProbesPerSecond is about how many probes are sent in a second in all, and up
	// to twice as many more while neighbours are looked for. Where there are so many
	// links that Interval would take more, it is two, three … times as long for
	// those that are up, and a silent failure is found that much later; those that
	// have failed without port status in the last Forget are probed as often as ever.
	ProbesPerSecond int `yaml:"probes_per_second"`
	// Settle is how long a port that has come up must stay without a neighbour
	// of ours until it is an edge port.
	Settle time.Duration `yaml:"settle"`
	// Forget is how long a port that was a link and has fallen silent stays
	// unsettled before it may become an edge port without having been down. If
	// its switch or that of its old neighbour has returned after it was gone, it
	// is two timeouts once both are connected, four if the other is not.
	Forget time.Duration `yaml:"forget"`
	// MaxAge is the age beyond which a probe is refused.
	MaxAge time.Duration `yaml:"max_age"`
	// LockAfter is how long a port must have been an edge port, and had a host
	// on it, to be refused as the end of a new link whose other end is such a
	// port, too; 0 is never.
	LockAfter time.Duration `yaml:"lock_after"`
	// Rate is how many LLDP frames per second of one port are looked at.
	Rate int `yaml:"rate"`
	// ReferenceKbps is the speed at which a link costs 1; slower ones cost in
	// proportion more. 0: every link costs 1.
	ReferenceKbps uint32 `yaml:"reference_kbps"`
	// Key signs the probes: 64 hex digits. Empty: a random one, kept in the
	// bucket discovery.keys.
	Key      string   `yaml:"key"`
	Liveness Liveness `yaml:"liveness"`
	Flap     Flap     `yaml:"flap"`
	Latency  Latency  `yaml:"latency"`
	// LinkPorts are the ports that may be ends of links, as patterns
	// DPID:PORT with 16 hex digits, in both of which *, ? and [a-c] stand for
	// others: *:49. On other ports probes are refused, and a port that
	// receives one is blocked. Empty: all may be.
	LinkPorts []string `yaml:"link_ports"`
	// Hybrid names switches of hybrid nodes that do not say so themselves, with the
	// ports that are no links: 00000000000000a? access=3,4 internal=101-199
	// tunnel=200-299. The first that matches counts. Nodes say so by the datapath
	// description of their switch, which begins with hybrid and continues as here.
	Hybrid []string `yaml:"hybrid"`
	// NewLinks is judge or hold. With judge, a link between ports that were not a
	// link before comes up if its latency is plausible. With hold, it waits until
	// it is allowed.
	NewLinks string `yaml:"new_links"`
	// HostMemory is how long a port that is down keeps its history of hosts,
	// which LockAfter uses; Timeout at least.
	HostMemory time.Duration `yaml:"host_memory"`
	// Allow lists links that come up whatever their ports and latency are:
	// DPID:PORT DPID:PORT each. weft link allow adds more.
	Allow []string `yaml:"allow"`
}

// Latency says what the latency of a link means.
type Latency struct {
	// Max is how much longer than the control channels of its switches the
	// fastest probe of a new link may take, unless that is usual for the
	// links of the network. Slower links are held until they are allowed. Raise
	// it where links are long: light takes 50 ms for 10,000 km of fibre. 0: links
	// are not judged by latency.
	Max time.Duration `yaml:"max"`
	// Weight is what each millisecond of latency adds to the weight of a link.
	Weight uint32 `yaml:"weight"`
}

// Liveness makes probes on established links frequent enough to find silent
// failures fast. An Interval of 0 turns it off.
type Liveness struct {
	Interval time.Duration `yaml:"interval"`
	Timeout  time.Duration `yaml:"timeout"`
}

// Flap dampens links that go down too often: more than Downs times within
// Window. Paths and the broadcast tree use such a link only where there is no
// other way, until it has been up for Hold, doubled each time it happens again,
// up to MaxHold; the doubling is forgotten after MaxHold without. A Downs of 0
// turns damping off.
type Flap struct {
	Downs   int           `yaml:"downs"`
	Window  time.Duration `yaml:"window"`
	Hold    time.Duration `yaml:"hold"`
	MaxHold time.Duration `yaml:"max_hold"`
}

// DefaultConfig returns the defaults: a silent failure is found within 3 s.
func DefaultConfig() *Config {
	return &Config{
		Interval:        2200 * time.Millisecond,
		Timeout:         2750 * time.Millisecond,
		Settle:          700 * time.Millisecond,
		ProbesPerSecond: 15_000,
		Forget:          10 * time.Minute,
		MaxAge:          time.Second,
		LockAfter:       time.Minute,
		Rate:            100,
		ReferenceKbps:   100_000_000,
		Liveness:        Liveness{Timeout: 250 * time.Millisecond},
		Flap:            Flap{Downs: 5, Window: time.Minute, Hold: 10 * time.Second, MaxHold: 5 * time.Minute},
		Latency:         Latency{Max: 3 * time.Millisecond},
		NewLinks:        "judge",
	}
}

// Validate says which key is wrong, what it is and what is allowed.
func (c *Config) Validate() error {
	for _, d := range []struct {
		key      string
		is       time.Duration
		min, max time.Duration
	}{
		{"interval", c.Interval, 10 * time.Millisecond, time.Minute},
		{"timeout", c.Timeout, c.Interval / 4 * 5, 10 * time.Minute},
		{"settle", c.Settle, 200 * time.Millisecond, time.Minute},
		{"forget", c.Forget, c.Timeout, 24 * time.Hour},
		{"max_age", c.MaxAge, 10 * time.Millisecond, time.Minute},
		{"lock_after", c.LockAfter, 0, 24 * time.Hour},
		{"latency.max", c.Latency.Max, 0, c.MaxAge},
		{"host_memory", c.HostMemory, 0, 365 * 24 * time.Hour},
		{"flap.window", c.Flap.Window, time.Second, time.Hour},
		{"flap.hold", c.Flap.Hold, 100 * time.Millisecond, time.Hour},
		{"flap.max_hold", c.Flap.MaxHold, c.Flap.Hold, 24 * time.Hour},
	} {
		if d.is < d.min || d.is > d.max {
			return fmt.Errorf("%s is %v: want %v to %v", d.key, d.is, d.min, d.max)
		}
	}
	if l := c.Liveness; l.Interval != 0 {
		if l.Interval < 5*time.Millisecond || l.Interval > c.Interval {
			return fmt.Errorf("liveness.interval is %v: want 0 (off) or 5ms to interval, %v", l.Interval, c.Interval)
		}
		if l.Timeout < 2*l.Interval || l.Timeout > c.Timeout {
			return fmt.Errorf("liveness.timeout is %v: want twice liveness.interval, %v, to timeout, %v", l.Timeout, 2*l.Interval, c.Timeout)
		}
	}
	if c.ProbesPerSecond < 100 || c.ProbesPerSecond > 1e7 {
		return fmt.Errorf("probes_per_second is %d: want 100 to 10000000", c.ProbesPerSecond)
	}
	if c.Rate < 10 || c.Rate > 100_000 {
		return fmt.Errorf("rate is %d: want 10 to 100000 frames per second", c.Rate)
	}
	if c.Flap.Downs < 0 || c.Flap.Downs > 1000 {
		return fmt.Errorf("flap.downs is %d: want 0 (off) to 1000", c.Flap.Downs)
	}
	if c.Latency.Weight > maxWeight {
		return fmt.Errorf("latency.weight is %d: want 0 to %d", c.Latency.Weight, maxWeight)
	}
	if c.NewLinks != "judge" && c.NewLinks != "hold" {
		return fmt.Errorf("new_links is %.80q: want judge or hold", c.NewLinks)
	}
	for _, pattern := range c.LinkPorts {
		if err := validPattern(pattern); err != nil {
			return fmt.Errorf("link_ports: %w", err)
		}
	}
	for _, text := range c.Hybrid {
		if _, _, err := parseHybrid(text); err != nil {
			return fmt.Errorf("hybrid: %w", err)
		}
	}
	for _, text := range c.Allow {
		if _, err := parsePair(text); err != nil {
			return fmt.Errorf("allow: %w", err)
		}
	}
	if c.Key != "" {
		if k, err := hex.DecodeString(c.Key); err != nil || len(k) != keySize {
			return fmt.Errorf("key is %d characters long: want %d hex digits, such as openssl rand -hex %d prints", len(c.Key), 2*keySize, keySize)
		}
	}
	return nil
}

// holdsNew reports whether new links are held.
func (c *Config) holdsNew() bool { return c.NewLinks == "hold" }

// allows returns the links of Allow.
func (c *Config) allows() []pair {
	list := make([]pair, 0, len(c.Allow))
	for _, text := range c.Allow {
		if p, err := parsePair(text); err == nil { // Validate has said what is wrong
			list = append(list, p)
		}
	}
	return list
}

// linkInterval returns the time between two probes of a link.
func (c *Config) linkInterval() int64 {
	if c.Liveness.Interval > 0 {
		return int64(c.Liveness.Interval)
	}
	return int64(c.Interval)
}

// linkTimeout returns how long a link lives without a probe.
func (c *Config) linkTimeout() int64 {
	if c.Liveness.Interval > 0 {
		return int64(c.Liveness.Timeout)
	}
	return int64(c.Timeout)
}

// hybrid returns what is known of a switch as a hybrid node, nil if it is none:
// from Hybrid, else from what the switch says of itself.
func (c *Config) hybrid(sw flow.DPID, m *api.Switch) (*flow.Hybrid, error) {
	for _, text := range c.Hybrid {
		pattern, h, err := parseHybrid(text)
		if match, _ := path.Match(pattern, sw.String()); match && err == nil { // Validate has said what is wrong
			return h, nil
		}
	}
	return flow.ParseHybrid(m.GetDescription())
}

// mayLink reports whether a port may be the end of a link.
func (c *Config) mayLink(at flow.Location) bool {
	if len(c.LinkPorts) == 0 {
		return true
	}
	name := fmt.Sprintf("%v:%d", at.Switch, uint32(at.Port))
	return slices.ContainsFunc(c.LinkPorts, func(pattern string) bool {
		match, _ := path.Match(pattern, name) // Validate has checked it
		return match
	})
}

// maxWeight is the largest weight that paths accepts.
const maxWeight = 1<<16 - 1

// weight returns the cost of a link by the slower of its ports; an unknown
// speed counts as 10 Gb/s.
func weight(cfg *Config, a, b uint32) uint32 {
	const usual = 10_000_000
	if cfg.ReferenceKbps == 0 {
		return 1
	}
	if a == 0 {
		a = usual
	}
	if b == 0 {
		b = usual
	}
	return min(max(cfg.ReferenceKbps/min(a, b), 1), maxWeight)
}

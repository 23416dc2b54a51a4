package forwarding

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// The modes.
const (
	modeReactive  = "reactive"  // a path is programmed when its first packet comes
	modeProactive = "proactive" // and between all hosts that are known, before it comes
	modeLearning  = "learning"  // every switch learns by itself; for comparison, on loop-free networks only
)

// Config is how packets are forwarded.
type Config struct {
	// Mode is reactive, proactive or learning.
	Mode string `yaml:"mode"`
	// IdleTimeout is after how long without a packet a path is removed, whole seconds.
	IdleTimeout time.Duration `yaml:"idle_timeout"`
	// FastFailover protects every hop by a group whose second bucket is a
	// detour around the next link (OpenFlow 1.3 only).
	FastFailover bool `yaml:"fast_failover"`
	// Proxy passes ARP requests and neighbour solicitations for the address of a
	// known host to that host alone, instead of flooding them.
	Proxy bool `yaml:"proxy"`
	// Settle is how long the topology must be quiet before flooding follows it.
	Settle time.Duration `yaml:"settle"`
	// FloodsPerSecond bounds the packets that the controller floods for one port.
	FloodsPerSecond int `yaml:"floods_per_second"`
	// MaxRoutes bounds the directions between hosts that are programmed.
	MaxRoutes int `yaml:"max_routes"`
	// Subnets are those between which packets are routed.
	Subnets []Subnet `yaml:"subnets"`
	// RouterMAC is the Ethernet address of all gateways.
	RouterMAC flow.MAC `yaml:"router_mac"`
}

// Subnet is one subnet that is routed.
type Subnet struct {
	// Gateway is the router's address in the subnet, with the prefix length.
	Gateway string `yaml:"gateway"`
	// VLAN is the subnet's VLAN; 0 is untagged.
	VLAN uint16 `yaml:"vlan"`
}

func defaults() *Config {
	return &Config{
		Mode: modeReactive, IdleTimeout: 2 * time.Minute, Proxy: true, Settle: time.Second,
		FloodsPerSecond: 200, MaxRoutes: 500_000,
		RouterMAC: flow.MAC{0x02, 0x57, 0x45, 0x46, 0x54, 0x01},
	}
}

// Validate says which key is wrong and what it may be.
func (c *Config) Validate() error {
	switch c.Mode {
	case modeReactive, modeProactive, modeLearning:
	default:
		return fmt.Errorf("mode: %q: want %s, %s or %s", c.Mode, modeReactive, modeProactive, modeLearning)
	}
	if c.IdleTimeout < time.Second || c.IdleTimeout > 65535*time.Second || c.IdleTimeout%time.Second != 0 {
		return fmt.Errorf("idle_timeout: %v: want whole seconds, 1s to 65535s", c.IdleTimeout)
	}
	if c.Settle < 10*time.Millisecond || c.Settle > time.Minute {
		return fmt.Errorf("settle: %v: want 10ms to 1m", c.Settle)
	}
	if c.FloodsPerSecond < 1 {
		return fmt.Errorf("floods_per_second: %d: want at least 1", c.FloodsPerSecond)
	}
	if c.MaxRoutes < 1 {
		return fmt.Errorf("max_routes: %d: want at least 1", c.MaxRoutes)
	}
	if c.RouterMAC.Multicast() || c.RouterMAC == (flow.MAC{}) {
		return fmt.Errorf("router_mac: %v: want a unicast address", c.RouterMAC)
	}
	_, err := parseSubnets(c.Subnets)
	return err
}

// subnet is a Subnet, read.
type subnet struct {
	gateway netip.Addr
	prefix  netip.Prefix
	vlan    uint16
}

func parseSubnets(list []Subnet) ([]subnet, error) {
	var out []subnet
	for i, s := range list {
		p, err := netip.ParsePrefix(s.Gateway)
		if err != nil {
			return nil, fmt.Errorf("subnets[%d].gateway: %q: want an address with a prefix length, such as 10.0.1.1/24", i, s.Gateway)
		}
		if s.VLAN > 4094 {
			return nil, fmt.Errorf("subnets[%d].vlan: %d: want 0 (untagged) to 4094", i, s.VLAN)
		}
		for j, o := range out {
			if o.prefix.Overlaps(p) {
				return nil, fmt.Errorf("subnets[%d].gateway: %v overlaps with subnets[%d] (%v)", i, p, j, o.prefix)
			}
		}
		out = append(out, subnet{gateway: p.Addr(), prefix: p.Masked(), vlan: s.VLAN})
	}
	return out, nil
}

package topology

import (
	"fmt"
	"net/netip"
	"time"
)

// Kind is what a switch of a topology is.
type Kind string

const (
	// KindOpenFlow is an Open vSwitch bridge with a controller.
	KindOpenFlow Kind = "openflow"
	// KindHybrid is such a bridge beside IP routing, a node of a provider as in
	// the OSHI paper, section IV: the bridge has the ports, each but those of
	// hosts without gateway has an internal port that leads to the kernel's
	// routing, and FRR speaks OSPF there.
	KindHybrid Kind = "hybrid"
	// KindRouter is IP routing alone, by the kernel and FRR.
	KindRouter Kind = "router"
	// KindBridge is a learning switch that no controller knows.
	KindBridge Kind = "bridge"
)

const kindRule = "openflow, hybrid, router, bridge"

// String names the kind in a sentence.
func (k Kind) String() string {
	switch k {
	case KindOpenFlow:
		return "an OpenFlow switch"
	case KindHybrid:
		return "a hybrid node"
	}
	return "a " + string(k)
}

// Routing is the routing protocol of the hybrid nodes and routers: OSPF for IPv4
// and, unless IPv4Only, OSPFv3, all in area 0.
type Routing struct {
	Hello Seconds `json:"hello,omitempty"`
	Dead  Seconds `json:"dead,omitempty"`
	// BFD is how often neighbours ask each other by BFD (RFC 5880) whether they
	// are there; three times without answer end their adjacency. 0 is never.
	BFD      Delay `json:"bfd,omitempty"`
	IPv4Only bool  `json:"ipv4_only,omitempty"` // no IPv6 between nodes
}

// Seconds is a time of whole seconds, up to what OSPF can say.
type Seconds time.Duration

const mostSeconds = Seconds(65535 * time.Second)

func (s Seconds) String() string { return time.Duration(s).String() }

// MarshalText writes the time as UnmarshalText reads it.
func (s Seconds) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a time such as 4s or 1m.
func (s *Seconds) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	if err != nil || d < time.Second || d > time.Duration(mostSeconds) || d%time.Second != 0 {
		return fmt.Errorf("%q is not allowed; allowed: 1s to 65535s, in whole seconds", b)
	}
	*s = Seconds(d)
	return nil
}

const (
	defaultHello = Seconds(time.Second)
	defaultDead  = Seconds(4 * time.Second)
	defaultBFD   = Delay(50 * time.Millisecond)
)

// Control is how the hybrid nodes reach their controllers.
type Control struct {
	// Mode is ControlInBand or ControlOutOfBand; empty is the latter.
	Mode string `json:"mode,omitempty"`
	// At is, in band, the hybrid node or router that the controllers' machine is
	// linked to.
	At string `json:"at,omitempty"`
}

const (
	// ControlInBand has the sessions of hybrid nodes go over the links and by the
	// routing of the nodes themselves.
	ControlInBand = "in-band"
	// ControlOutOfBand has them go as those of other switches do.
	ControlOutOfBand = "out-of-band"
)

// The two ways in which hybrid nodes have Open vSwitch.
const (
	OVSShared = "shared" // one for all
	OVSOwn    = "own"    // one each, in the node's namespace
)

// The addresses of nodes: loopbacks that files do not say, links between two
// nodes, segments of bridges, hosts with gateway, and the controllers' machine.
func Loopback4(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 255, byte(n >> 8), byte(n)}) }

func loopback6(n int) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 3: 0xff, 14: byte(n >> 8), 15: byte(n)})
}

// LinkPrefixes returns the prefixes of the nth link between two nodes, from 0;
// the first addresses are those of its end A.
func LinkPrefixes(n int) (netip.Prefix, netip.Prefix) {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 254, byte(n >> 7), byte(n << 1)}), 31),
		netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 3: 0xfe, 14: byte(n >> 7), 15: byte(n << 1)}), 127)
}

const mostNodeLinks = 1 << 15

// SegmentPrefixes returns the prefixes of the nth segment of bridges, from 0.
func SegmentPrefixes(n int) (netip.Prefix, netip.Prefix) {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 253, byte(n), 0}), 24),
		netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 3: 0xfd, 7: byte(n)}), 64)
}

const mostSegments = 1 << 8

// gatewayHost returns the addresses of the nth host with a gateway, from 1; the
// gateway's are the first of their prefixes.
func gatewayHost(n int) (netip.Prefix, netip.Prefix) {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 64 + byte(n>>8), byte(n), 2}), 24),
		netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 3: 0x64, 6: byte(n >> 8), 7: byte(n), 15: 2}), 64)
}

const mostGateways = 1<<14 - 1

// ControlPrefix is the link between the controllers' machine, which has the
// second address, and its node.
func ControlPrefix() netip.Prefix { return netip.MustParsePrefix("198.18.0.0/31") }

package flow

import (
	"encoding/binary"
	"hash/fnv"
)

// LabelMax is the largest MPLS label; those below 16 have meanings of their own
// (RFC 3032 §2.1).
const LabelMax = 1<<20 - 1

// The ranges of labels, by what they stand for.
const (
	ExplicitNullIPv4  uint32 = 0  // an IPv4 packet to be routed by what is inside (RFC 3032 §2.1)
	ExplicitNullIPv6  uint32 = 2  // an IPv6 packet
	TunnelLabels      uint32 = 16 // of label-switched paths
	TunnelLabelsLast  uint32 = 199_999
	CircuitLabels     uint32 = 200_000 // of circuits, under those of tunnels
	CircuitLabelsLast uint32 = 799_999
	SegmentLabels     uint32 = 800_000 // reserved: of segment routing
	VPNLabels         uint32 = 900_000 // reserved: of layer-3 VPNs, up to LabelMax
)

// The times to live of the label at the bottom of a tunnel's frames. By it the switch at the end tells
// probes, which it gives to the controller, from what customers sent (as RFC 5085's VCCV does; its type 3
// lets the label run out there, but Open vSwitch copies the time to live to the tunnel's label, where 1
// runs out at the first hop).
const (
	CarriedTTL uint8 = 64
	ProbeTTL   uint8 = 255
)

// TunnelMAC returns the Ethernet address that the frames of tunnels have at a port, locally
// administered: 02:57 and a hash of switch and port (FNV-1a).
func TunnelMAC(sw DPID, port Port) MAC {
	var at [12]byte
	binary.BigEndian.PutUint64(at[:], uint64(sw))
	binary.BigEndian.PutUint32(at[8:], uint32(port))
	h := fnv.New32a()
	h.Write(at[:])
	return MACFrom(0x0257<<32 | uint64(h.Sum32()))
}

// EthTypeProbe is the EtherType of the frames by which chains probe functions: IEEE 802's
// second for local experiments.
const EthTypeProbe uint16 = 0x88b6

// ProbeMAC returns the address of one side of a function: probes go from one to the other.
func ProbeMAC(side uint8) MAC { return MAC{0x06, 'W', 'P', 'R', 'B', side} }

// Probe reports whether a packet is a probe of a function.
func (k *Key) Probe() bool {
	return k.EthType == EthTypeProbe && k.EthDst[5] <= 1 && k.EthDst == ProbeMAC(k.EthDst[5])
}

// TunnelFrame reports whether a packet is a frame of a tunnel: it has a label, and a source
// as TunnelMAC returns.
func (k *Key) TunnelFrame() bool {
	return k.EthType == EthTypeMPLS && k.EthSrc[0] == 0x02 && k.EthSrc[1] == 0x57
}

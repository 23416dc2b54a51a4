package openflow

import "github.com/weft-sdn/weft/flow"

// Bits of PortDesc.Config and PortMod.Config (OpenFlow 1.3.5 §7.2.1).
const (
	PortConfigDown       uint32 = 1 << 0 // administratively down
	PortConfigNoRecv     uint32 = 1 << 2 // drop what comes in
	PortConfigNoFlood    uint32 = 1 << 4 // OpenFlow 1.0 only: leave out of floods
	PortConfigNoFwd      uint32 = 1 << 5 // drop what goes out
	PortConfigNoPacketIn uint32 = 1 << 6 // send no packet-in
)

// Bits of PortDesc.State (OpenFlow 1.3.5 §7.2.1).
const (
	PortStateLinkDown uint32 = 1 << 0 // no physical link
	PortStateBlocked  uint32 = 1 << 1 // blocked by a protocol of the switch's own
	PortStateLive     uint32 = 1 << 2 // live for fast-failover groups
)

// Bits of PortDesc.Curr, Advertised, Supported and Peer (OpenFlow 1.3.5 §7.2.1).
const (
	Port10MbHD    uint32 = 1 << 0
	Port10MbFD    uint32 = 1 << 1
	Port100MbHD   uint32 = 1 << 2
	Port100MbFD   uint32 = 1 << 3
	Port1GbHD     uint32 = 1 << 4
	Port1GbFD     uint32 = 1 << 5
	Port10GbFD    uint32 = 1 << 6
	Port40GbFD    uint32 = 1 << 7
	Port100GbFD   uint32 = 1 << 8
	Port1TbFD     uint32 = 1 << 9
	PortOther     uint32 = 1 << 10
	PortCopper    uint32 = 1 << 11
	PortFiber     uint32 = 1 << 12
	PortAutoneg   uint32 = 1 << 13
	PortPause     uint32 = 1 << 14
	PortPauseAsym uint32 = 1 << 15
)

// PortDesc describes a port (OpenFlow 1.3.5 §7.2.1).
type PortDesc struct {
	No         flow.Port
	HWAddr     flow.MAC
	Name       string
	Config     uint32 // PortConfig…
	State      uint32 // PortState…
	Curr       uint32 // features in use
	Advertised uint32
	Supported  uint32
	Peer       uint32 // features that the far end advertises
	CurrSpeed  uint32 // kbit/s; for OpenFlow 1.0 by Curr
	MaxSpeed   uint32 // kbit/s; for OpenFlow 1.0 by Supported
}

// Up reports whether the port is enabled and has a link.
func (p *PortDesc) Up() bool {
	return p.Config&PortConfigDown == 0 && p.State&PortStateLinkDown == 0
}

// PortReason says what happened to a port (OpenFlow 1.3.5 §7.4.3).
type PortReason uint8

// The reasons.
const (
	PortAdded    PortReason = 0
	PortDeleted  PortReason = 1
	PortModified PortReason = 2
)

// PortMod changes the behaviour of a port (OpenFlow 1.3.5 §7.3.4.3).
type PortMod struct {
	Port      flow.Port
	HWAddr    flow.MAC // must be that of the port
	Config    uint32   // PortConfig…, those in Mask
	Mask      uint32
	Advertise uint32 // features; 0 changes nothing
}

const (
	portLen   = 64
	portLen10 = 48
	nameLen   = 16
)

// appendPort appends the description of a port.
func (v Version) appendPort(dst []byte, op string, p *PortDesc) ([]byte, error) {
	if v == V10 {
		no, ok := port10(p.No)
		if !ok {
			return dst, unsupported(v, op, "port "+p.No.String(), badRequestPort)
		}
		dst = be.AppendUint16(dst, no)
		dst = append(dst, p.HWAddr[:]...)
		dst = appendName(dst, p.Name, nameLen)
		dst = be.AppendUint32(dst, p.Config)
		dst = be.AppendUint32(dst, p.State)
		for _, f := range [...]uint32{p.Curr, p.Advertised, p.Supported, p.Peer} {
			dst = be.AppendUint32(dst, portFeatures10(f))
		}
		return dst, nil
	}
	dst = be.AppendUint64(dst, uint64(p.No)<<32)
	dst = append(dst, p.HWAddr[:]...)
	dst = append(dst, 0, 0)
	dst = appendName(dst, p.Name, nameLen)
	for _, x := range [...]uint32{p.Config, p.State, p.Curr, p.Advertised, p.Supported, p.Peer, p.CurrSpeed, p.MaxSpeed} {
		dst = be.AppendUint32(dst, x)
	}
	return dst, nil
}

// portSize is the length of the description of a port.
func (v Version) portSize() int {
	if v == V10 {
		return portLen10
	}
	return portLen
}

// parsePort reads the description of a port from b, portSize long.
func (v Version) parsePort(b []byte) PortDesc {
	var p PortDesc
	if v == V10 {
		p = PortDesc{
			No: portFrom10(be.Uint16(b)), HWAddr: flow.MAC(b[2:8]), Name: name(b[8:24]),
			Config: be.Uint32(b[24:]), State: be.Uint32(b[28:]),
			Curr: portFeaturesFrom10(be.Uint32(b[32:])), Advertised: portFeaturesFrom10(be.Uint32(b[36:])),
			Supported: portFeaturesFrom10(be.Uint32(b[40:])), Peer: portFeaturesFrom10(be.Uint32(b[44:])),
		}
		p.CurrSpeed, p.MaxSpeed = portSpeed(p.Curr), portSpeed(p.Supported)
		return p
	}
	return PortDesc{
		No: flow.Port(be.Uint32(b)), HWAddr: flow.MAC(b[8:14]), Name: name(b[16:32]),
		Config: be.Uint32(b[32:]), State: be.Uint32(b[36:]), Curr: be.Uint32(b[40:]), Advertised: be.Uint32(b[44:]),
		Supported: be.Uint32(b[48:]), Peer: be.Uint32(b[52:]), CurrSpeed: be.Uint32(b[56:]), MaxSpeed: be.Uint32(b[60:]),
	}
}

// Port features up to 10 Gbit/s have the same bits in both versions; those from
// copper on are four bits lower in OpenFlow 1.0, which has no faster ones.
const (
	portSpeeds10   = 1<<7 - 1
	portMedia10    = 1<<12 - 1 - portSpeeds10
	portMediaShift = 4
)

func portFeatures10(f uint32) uint32 {
	return f&portSpeeds10 | f>>portMediaShift&portMedia10
}

func portFeaturesFrom10(f uint32) uint32 {
	return f&portSpeeds10 | f&portMedia10<<portMediaShift
}

// portSpeed is the highest speed among features, in kbit/s.
func portSpeed(f uint32) uint32 {
	switch {
	case f&Port1TbFD != 0:
		return 1000000000
	case f&Port100GbFD != 0:
		return 100000000
	case f&Port40GbFD != 0:
		return 40000000
	case f&Port10GbFD != 0:
		return 10000000
	case f&(Port1GbFD|Port1GbHD) != 0:
		return 1000000
	case f&(Port100MbFD|Port100MbHD) != 0:
		return 100000
	case f&(Port10MbFD|Port10MbHD) != 0:
		return 10000
	}
	return 0
}

// AppendPortStatus appends a port-status (OpenFlow 1.3.5 §7.4.3).
func (v Version) AppendPortStatus(dst []byte, xid uint32, reason PortReason, p *PortDesc) ([]byte, error) {
	start := len(dst)
	out := appendHeader(dst, v, uint8(TypePortStatus), xid)
	out = be.AppendUint64(out, uint64(reason)<<56)
	out, err := v.appendPort(out, "port-status", p)
	if err != nil {
		return out[:start], err
	}
	return finish(out, start, TypePortStatus)
}

// DecodePortStatus reads a port-status.
func (v Version) DecodePortStatus(msg []byte) (PortReason, PortDesc, error) {
	if len(msg) < 16+v.portSize() {
		return 0, PortDesc{}, malformed(TypePortStatus, len(msg), "cut short", badRequestLen)
	}
	return PortReason(msg[8]), v.parsePort(msg[16:]), nil
}

// AppendPortMod appends a port-mod.
func (v Version) AppendPortMod(dst []byte, xid uint32, m *PortMod) ([]byte, error) {
	start := len(dst)
	wire := typeToWire(v, TypePortMod)
	out := appendHeader(dst, v, wire, xid)
	advertise := m.Advertise
	if v == V10 {
		no, ok := port10(m.Port)
		if !ok {
			return dst, unsupported(v, "port-mod", "port "+m.Port.String(), badRequestPort)
		}
		out = be.AppendUint16(out, no)
		out = append(out, m.HWAddr[:]...)
		advertise = portFeatures10(advertise)
	} else {
		out = be.AppendUint64(out, uint64(m.Port)<<32)
		out = append(out, m.HWAddr[:]...)
		out = append(out, 0, 0)
	}
	out = be.AppendUint32(out, m.Config)
	out = be.AppendUint32(out, m.Mask)
	out = be.AppendUint64(out, uint64(advertise)<<32)
	return finish(out, start, TypePortMod)
}

// DecodePortMod reads a port-mod.
func (v Version) DecodePortMod(msg []byte) (PortMod, error) {
	n := 40
	if v == V10 {
		n = 32
	}
	if len(msg) < n {
		return PortMod{}, malformed(TypePortMod, len(msg), "cut short", badRequestLen)
	}
	b := msg[n-16:]
	m := PortMod{Config: be.Uint32(b), Mask: be.Uint32(b[4:]), Advertise: be.Uint32(b[8:])}
	if v == V10 {
		m.Port, m.HWAddr, m.Advertise = portFrom10(be.Uint16(msg[8:])), flow.MAC(msg[10:16]), portFeaturesFrom10(m.Advertise)
	} else {
		m.Port, m.HWAddr = flow.Port(be.Uint32(msg[8:])), flow.MAC(msg[16:22])
	}
	return m, nil
}

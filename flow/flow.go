// Package flow is the vocabulary of the packet path: switches, ports, matches,
// actions, flow entries, packet-ins and the decisions on them, as plain values in
// reused memory. It holds no logic beyond reading, writing and comparing these
// values.
//
// Anyone may import it; it imports only the standard library.
//
// Numbers follow OpenFlow 1.3.5 (ONF TS-023); other versions are translated at
// the wire by package openflow.
package flow

import (
	"fmt"
	"strconv"
	"strings"
)

// DPID is the datapath identifier of a switch (OpenFlow 1.3.5 §7.3.1).
type DPID uint64

// String returns the 16 lower-case hex digits by which operators know a switch.
func (d DPID) String() string { return fmt.Sprintf("%016x", uint64(d)) }

// MarshalText is String, for JSON and YAML.
func (d DPID) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what ParseDPID reads.
func (d *DPID) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDPID(string(b))
	return err
}

// ParseDPID reads a DPID as hex digits, with or without 0x, colons allowed:
// "0000000000000001", "0x1", "00:00:00:00:00:00:00:01".
func ParseDPID(s string) (DPID, error) {
	hex := strings.TrimPrefix(strings.ReplaceAll(s, ":", ""), "0x")
	v, err := strconv.ParseUint(hex, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("datapath id %q: want up to 16 hex digits, such as 00000000000000a1", s)
	}
	return DPID(v), nil
}

// Port is a port number of a switch (OpenFlow 1.3.5 §7.2.1); numbers above
// PortMax are reserved.
type Port uint32

// The reserved ports of OpenFlow 1.3.5 §4.5.
const (
	PortMax        Port = 0xffffff00
	PortIn         Port = 0xfffffff8 // back out of the port it came in by
	PortTable      Port = 0xfffffff9 // through the flow tables; packet-outs only
	PortNormal     Port = 0xfffffffa
	PortFlood      Port = 0xfffffffb
	PortAll        Port = 0xfffffffc
	PortController Port = 0xfffffffd
	PortLocal      Port = 0xfffffffe
	PortAny        Port = 0xffffffff
)

// Physical reports whether p numbers a port of the switch itself, not a
// reserved one.
func (p Port) Physical() bool { return p > 0 && p <= PortMax }

// String returns the number, or the lower-case name of a reserved port.
func (p Port) String() string {
	switch p {
	case PortIn:
		return "in_port"
	case PortTable:
		return "table"
	case PortNormal:
		return "normal"
	case PortFlood:
		return "flood"
	case PortAll:
		return "all"
	case PortController:
		return "controller"
	case PortLocal:
		return "local"
	case PortAny:
		return "any"
	}
	return strconv.FormatUint(uint64(p), 10)
}

// ParsePort reads a port number or the name of a reserved port.
func ParsePort(s string) (Port, error) {
	for p := PortIn; p != 0; p++ {
		if strings.EqualFold(s, p.String()) {
			return p, nil
		}
	}
	v, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		return 0, fmt.Errorf("port %q: want a number or one of in_port, table, normal, flood, all, controller, local, any", s)
	}
	return Port(v), nil
}

// Location is a port of a switch; the zero value is nowhere.
type Location struct {
	Switch DPID
	Port   Port
}

// String returns DPID/port.
func (l Location) String() string { return l.Switch.String() + "/" + l.Port.String() }

// ParseLocation reads SWITCH:PORT, or SWITCH/PORT as String writes it, with the switch as
// ParseDPID reads it and the port in decimal digits.
func ParseLocation(s string) (Location, error) {
	i := strings.LastIndexAny(s, ":/")
	if i < 0 {
		return Location{}, fmt.Errorf("%.80q: want SWITCH:PORT, such as 1:3", s)
	}
	sw, err := ParseDPID(s[:i])
	port, err2 := strconv.ParseUint(s[i+1:], 10, 32)
	if err != nil || err2 != nil {
		return Location{}, fmt.Errorf("%.80q: want SWITCH:PORT, such as 1:3", s)
	}
	return Location{sw, Port(port)}, nil
}

// MAC is an Ethernet address.
type MAC [6]byte

// Broadcast is the Ethernet broadcast address.
var Broadcast = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// Multicast reports whether the address names a group, broadcast included.
func (m MAC) Multicast() bool { return m[0]&1 != 0 }

// Uint64 returns the address as a number, for hashing and as a map key.
func (m MAC) Uint64() uint64 {
	return uint64(m[0])<<40 | uint64(m[1])<<32 | uint64(m[2])<<24 | uint64(m[3])<<16 | uint64(m[4])<<8 | uint64(m[5])
}

// MACFrom returns the address whose number is v.
func MACFrom(v uint64) MAC {
	return MAC{byte(v >> 40), byte(v >> 32), byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
}

// String returns xx:xx:xx:xx:xx:xx.
func (m MAC) String() string {
	const hex = "0123456789abcdef"
	b := make([]byte, 0, 17)
	for i, c := range m {
		if i > 0 {
			b = append(b, ':')
		}
		b = append(b, hex[c>>4], hex[c&15])
	}
	return string(b)
}

// MarshalText is String, for JSON and YAML.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what ParseMAC reads.
func (m *MAC) UnmarshalText(b []byte) (err error) {
	*m, err = ParseMAC(string(b))
	return err
}

// ParseMAC reads xx:xx:xx:xx:xx:xx.
func ParseMAC(s string) (MAC, error) {
	var m MAC
	parts := strings.Split(s, ":")
	if len(parts) == len(m) {
		for i, p := range parts {
			v, err := strconv.ParseUint(p, 16, 8)
			if err != nil || len(p) > 2 {
				break
			}
			m[i] = byte(v)
			if i == len(m)-1 {
				return m, nil
			}
		}
	}
	return MAC{}, fmt.Errorf("ethernet address %q: want six hex octets, such as 02:00:00:00:00:01", s)
}

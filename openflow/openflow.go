// Package openflow is the wire codec of OpenFlow 1.3.5 (ONF TS-023) and
// OpenFlow 1.0.1, for both ends of the channel: controllers, and switches as
// simulators and fakes play them. It is pure: bytes in, values out, no
// connection, no clock, no state.
//
// Messages are encoded from and decoded into the plain values of package flow,
// and into the types below where flow has none. Numbers are those of OpenFlow
// 1.3; whatever OpenFlow 1.0 numbers otherwise (message types, reserved ports,
// error codes, port features) is translated, and what OpenFlow 1.0 cannot
// express is an *UnsupportedError.
//
// Encoders append one message to a buffer and return it; on an error the
// buffer comes back as it was given. Decoders read one whole message, as Next
// cuts it from a receive buffer; byte slices in what they return point into
// that message. Every length is checked before it is used: a message that
// breaks the format is a *MalformedError, never a panic.
//
// The methods of Version work for V10 and V13. The services southbound, the
// simulators and the fakes import this package; it imports package flow and
// the standard library.
package openflow

import "strconv"

// Version is a wire protocol version, as in the first octet of a message.
type Version uint8

// The versions that this package speaks.
const (
	V10 Version = 0x01
	V13 Version = 0x04
)

// String returns "OpenFlow 1.3" and the like.
func (v Version) String() string {
	if v >= 1 && v <= 6 {
		return "OpenFlow 1." + strconv.Itoa(int(v)-1)
	}
	return "OpenFlow version " + strconv.Itoa(int(v))
}

// Versions is a set of versions, one bit per wire version number (the bitmap
// of OpenFlow 1.3.5 §7.5.1).
type Versions uint32

// VersionsOf returns the set of the given versions.
func VersionsOf(versions ...Version) Versions {
	var s Versions
	for _, v := range versions {
		if v < 32 {
			s |= 1 << v
		}
	}
	return s
}

// Has reports whether v is in the set.
func (s Versions) Has(v Version) bool { return v < 32 && s&(1<<v) != 0 }

// Highest returns the highest version in the set, 0 if it is empty.
func (s Versions) Highest() Version {
	for v := Version(31); v > 0; v-- {
		if s.Has(v) {
			return v
		}
	}
	return 0
}

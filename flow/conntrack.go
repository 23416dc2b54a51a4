package flow

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Nicira is the experimenter of Open vSwitch's extensions.
const Nicira uint32 = 0x2320

// The bits of FieldCTState (NX_CT_STATE, ovs-fields(7), "ct_state").
const (
	CTNew         uint32 = 1 << iota // the first packet of a connection that is not committed yet
	CTEstablished                    // of a committed connection
	CTRelated                        // belongs to a connection, such as an ICMP error
	CTReply                          // against the direction of the first packet
	CTInvalid                        // fits no connection
	CTTracked                        // has been through ct
	CTSrcNAT                         // its source was translated
	CTDstNAT                         // its destination was translated
)

// NoTable as Table of a CT sends the packet on without tracking state.
const NoTable uint8 = 0xff

// CT is Open vSwitch's action ct (NXAST_CT, ovs-actions(7)): it gives a packet
// to the connection tracking of the switch.
type CT struct {
	Commit bool   // keep the connection
	Force  bool   // with Commit: of both directions, take this as the first
	Zone   uint16 // connections of different zones are apart
	Table  uint8  // where the packet goes on with its state; NoTable: nowhere
	HasNAT bool   // translate addresses as NAT says
	NAT    NAT
}

// The numbers of the two actions and their bits (nicira-ext.h and ofp-actions.c
// of Open vSwitch).
const (
	niciraCT      = 35
	niciraNAT     = 36
	ctCommit      = 1 << 0
	ctForce       = 1 << 1
	natSrc        = 1 << 0
	natDst        = 1 << 1
	natPersistent = 1 << 2
	natHash       = 1 << 3
	natRandom     = 1 << 4
	natIPv4Min    = 1 << 0
	natIPv4Max    = 1 << 1
	natIPv6Min    = 1 << 2
	natIPv6Max    = 1 << 3
	natPortMin    = 1 << 4
	natPortMax    = 1 << 5
)

// Check returns an error if a switch would reject the action.
func (c *CT) Check() error {
	switch {
	case c.Force && !c.Commit:
		return fmt.Errorf("ct: force needs commit")
	case !c.HasNAT && c.NAT != (NAT{}):
		return fmt.Errorf("ct: a translation, but HasNAT is false")
	case c.HasNAT:
		return c.NAT.check(c.Commit)
	}
	return nil
}

// Action returns the action as OpenFlow 1.3 carries it: an experimenter's.
func (c CT) Action() Action {
	b := make([]byte, 16, 64)
	var flags uint16
	if c.Commit {
		flags |= ctCommit
	}
	if c.Force {
		flags |= ctForce
	}
	binary.BigEndian.PutUint16(b, niciraCT)
	binary.BigEndian.PutUint16(b[2:], flags)
	binary.BigEndian.PutUint16(b[8:], c.Zone)
	b[10] = c.Table
	if c.HasNAT {
		b = c.NAT.append(b)
	}
	return Action{Kind: ActionExperimenter, Arg: Nicira, Data: string(b)}
}

// append appends the whole nested action.
func (n *NAT) append(b []byte) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint16(b, uint16(ActionExperimenter))
	b = binary.BigEndian.AppendUint16(b, 0)
	b = binary.BigEndian.AppendUint32(b, Nicira)
	b = binary.BigEndian.AppendUint16(b, niciraNAT)
	b = append(b, 0, 0)
	var flags, ranges uint16
	for _, f := range []struct {
		on  bool
		bit uint16
	}{{n.Src, natSrc}, {n.Dst, natDst}, {n.Persistent, natPersistent}, {n.Hash, natHash}, {n.Random, natRandom}} {
		if f.on {
			flags |= f.bit
		}
	}
	b = binary.BigEndian.AppendUint16(b, flags)
	at := len(b)
	b = append(b, 0, 0)
	address := func(a netip.Addr, v4, v6 uint16) {
		switch {
		case a.Is4():
			ranges |= v4
		case a.Is6():
			ranges |= v6
		}
		b = append(b, a.AsSlice()...)
	}
	address(n.Min, natIPv4Min, natIPv6Min)
	address(n.Max, natIPv4Max, natIPv6Max)
	if n.MinPort != 0 {
		ranges |= natPortMin
		b = binary.BigEndian.AppendUint16(b, n.MinPort)
	}
	if n.MaxPort != 0 {
		ranges |= natPortMax
		b = binary.BigEndian.AppendUint16(b, n.MaxPort)
	}
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	binary.BigEndian.PutUint16(b[at:], ranges)
	binary.BigEndian.PutUint16(b[start+2:], uint16(len(b)-start))
	return b
}

// ParseCT reads a ct action from an experimenter's; false if it is another
// action, malformed, or asks for what CT cannot express, such as a zone from a
// register.
func ParseCT(a Action) (CT, bool) {
	b := []byte(a.Data)
	if a.Kind != ActionExperimenter || a.Arg != Nicira || len(b) < 16 || len(b) > 16+56 || binary.BigEndian.Uint16(b) != niciraCT {
		return CT{}, false
	}
	flags := binary.BigEndian.Uint16(b[2:])
	c := CT{Commit: flags&ctCommit != 0, Force: flags&ctForce != 0, Zone: binary.BigEndian.Uint16(b[8:]), Table: b[10]}
	if b = b[16:]; len(b) > 0 {
		if len(b) < 16 || int(binary.BigEndian.Uint16(b[2:])) != len(b) {
			return CT{}, false
		}
		c.HasNAT = true
		if !c.NAT.read(binary.BigEndian.Uint16(b[12:]), binary.BigEndian.Uint16(b[14:]), b[16:]) {
			return CT{}, false
		}
	}
	// What c does not hold, such as padding that is not zero, shows in its
	// octets.
	return c, c.Check() == nil && c.Action() == a
}

// read reads the parts that flags and the presence bits of ranges declare from b.
func (n *NAT) read(flags, ranges uint16, b []byte) bool {
	n.Src, n.Dst, n.Persistent = flags&natSrc != 0, flags&natDst != 0, flags&natPersistent != 0
	n.Hash, n.Random = flags&natHash != 0, flags&natRandom != 0
	ok := true
	take := func(bit uint16, size int) []byte {
		if ranges&bit == 0 || !ok {
			return nil
		}
		if ok = len(b) >= size; !ok {
			return nil
		}
		v := b[:size]
		b = b[size:]
		return v
	}
	for _, bit := range []uint16{natIPv4Min, natIPv4Max, natIPv6Min, natIPv6Max} {
		size, to := 4, &n.Min
		if bit >= natIPv6Min {
			size = 16
		}
		if bit == natIPv4Max || bit == natIPv6Max {
			to = &n.Max
		}
		if v := take(bit, size); v != nil {
			*to, _ = netip.AddrFromSlice(v)
		}
	}
	if v := take(natPortMin, 2); v != nil {
		n.MinPort = binary.BigEndian.Uint16(v)
	}
	if v := take(natPortMax, 2); v != nil {
		n.MaxPort = binary.BigEndian.Uint16(v)
	}
	return ok
}

// WithCTState asks for the bits of the connection tracking state that are one
// in mask (Open vSwitch's ct_state).
func (m Match) WithCTState(value, mask uint32) Match {
	m.put(FieldCTState, 0, uint64(value), 0, uint64(mask))
	return m
}

// WithCTZone asks for the zone that a packet was tracked in.
func (m Match) WithCTZone(zone uint16) Match { return m.with(FieldCTZone, uint64(zone)) }

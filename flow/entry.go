package flow

import (
	"slices"
)

// Table-modification limits of OpenFlow 1.3.5.
const (
	TableAll      uint8  = 0xff
	GroupAny      uint32 = 0xffffffff
	GroupAll      uint32 = 0xfffffffc
	MeterAll      uint32 = 0xffffffff
	BufferNone    uint32 = 0xffffffff
	PriorityMax   uint16 = 0xffff
	FlagSendRem   uint16 = 1 << 0 // OFPFF_SEND_FLOW_REM
	FlagOverlap   uint16 = 1 << 1 // OFPFF_CHECK_OVERLAP
	FlagReset     uint16 = 1 << 2 // OFPFF_RESET_COUNTS
	FlagNoPackets uint16 = 1 << 3 // OFPFF_NO_PKT_COUNTS
	FlagNoBytes   uint16 = 1 << 4 // OFPFF_NO_BYT_COUNTS
)

// Entry is a flow entry (OpenFlow 1.3.5 §5.2) with its instructions (§5.9).
// Apply and Write may point into memory that is used again: Clone keeps one.
type Entry struct {
	Table       uint8
	Goto        uint8 // next table; 0 is none, for no table may go to itself or back
	Clear       bool  // clear-actions instruction
	HasWrite    bool  // write-actions instruction present; true whenever Write is not empty
	Priority    uint16
	IdleTimeout uint16 // seconds; 0 is never
	HardTimeout uint16 // seconds; 0 is never
	Flags       uint16 // OFPFF_*
	Meter       uint32 // 0 is none
	Cookie      Cookie
	Metadata    uint64 // write-metadata instruction where MetaMask is not 0
	MetaMask    uint64
	Match       Match
	Apply       []Action
	Write       []Action
}

// Clone returns a copy that shares no memory with e.
func (e *Entry) Clone() Entry {
	c := *e
	c.Apply = append([]Action(nil), e.Apply...)
	c.Write = append([]Action(nil), e.Write...)
	return c
}

// EntryKey identifies an entry on its switch: two entries with the same key
// cannot exist side by side (OpenFlow 1.3.5 §6.4).
type EntryKey struct {
	Table    uint8
	Priority uint16
	Match    Match
}

// Key returns the key of e.
func (e *Entry) Key() EntryKey { return EntryKey{e.Table, e.Priority, e.Match} }

// Same reports whether two entries with the same key also do the same:
// instructions, timeouts, flags and owner. Cookies are compared by owner and
// id, not by generation, so that what an earlier run installed counts as right.
func (e *Entry) Same(o *Entry) bool {
	return e.Goto == o.Goto && e.Clear == o.Clear && e.Meter == o.Meter &&
		e.IdleTimeout == o.IdleTimeout && e.HardTimeout == o.HardTimeout && e.Flags == o.Flags &&
		e.MetaMask == o.MetaMask && e.Metadata&e.MetaMask == o.Metadata&o.MetaMask &&
		e.Cookie.Owner() == o.Cookie.Owner() && e.Cookie.ID() == o.Cookie.ID() &&
		slices.Equal(e.Apply, o.Apply) && slices.Equal(e.Write, o.Write)
}

// Cookie names the writer of a flow entry: a mark that distinguishes Weft's
// entries from others' (16 bits), the owner (8), the generation of its writer
// (8), and an identifier of the owner's own (32).
type Cookie uint64

const cookieMark = 0x5745 // "WE"

// NewCookie returns the cookie of an owner, its generation and its own number.
func NewCookie(o Owner, generation uint8, id uint32) Cookie {
	return cookieMark<<48 | Cookie(o)<<40 | Cookie(generation)<<32 | Cookie(id)
}

// Owner returns the owner, OwnerForeign if the entry is not Weft's.
func (c Cookie) Owner() Owner {
	if c>>48 != cookieMark {
		return OwnerForeign
	}
	return Owner(c >> 40)
}

// Generation returns the generation of the writer.
func (c Cookie) Generation() uint8 { return uint8(c >> 32) }

// ID returns the owner's own number; the whole cookie's low half if foreign.
func (c Cookie) ID() uint32 { return uint32(c) }

// OwnerMask selects, as cookie mask, all entries of one owner.
const OwnerMask Cookie = 0xffffff << 40

// NodeCookie is the cookie of the entries that a hybrid node has by itself.
const NodeCookie Cookie = 0x4e4f4445 // "NODE"

// Command is what a flow-mod does (OpenFlow 1.3.5 §7.3.4.1).
type Command uint8

// The commands.
const (
	Add Command = iota
	Modify
	ModifyStrict
	Delete
	DeleteStrict
)

// Mod is a flow-mod: a command and the entry it is about. OutPort, OutGroup
// and CookieMask narrow a delete; BufferID releases a packet kept by the switch.
type Mod struct {
	Command    Command
	Entry      Entry
	BufferID   uint32
	OutPort    Port
	OutGroup   uint32
	CookieMask Cookie
}

// ethernetFields are the fields of a match that an entry for Ethernet frames has.
const ethernetFields = 1<<FieldInPort | 1<<FieldEthDst | 1<<FieldEthSrc | 1<<FieldEthType | 1<<FieldVLAN

// clear makes m the zero Mod. Of a match it clears only what may be set: a
// match is wide, and most have a few fields of Ethernet alone.
func (m *Mod) clear() {
	e := &m.Entry
	k := &e.Match.Key
	if e.Match.Masked != 0 {
		e.Match.Mask = Key{}
	}
	if e.Match.Set&^ethernetFields != 0 {
		*k = Key{}
	} else {
		k.InPort, k.EthDst, k.EthSrc, k.EthType, k.VLAN = 0, MAC{}, MAC{}, 0, 0
	}
	e.Match.Set, e.Match.Masked = 0, 0
	e.Table, e.Goto, e.Clear, e.HasWrite, e.Priority = 0, 0, false, false, 0
	e.IdleTimeout, e.HardTimeout, e.Flags, e.Meter = 0, 0, 0, 0
	e.Cookie, e.Metadata, e.MetaMask, e.Apply, e.Write = 0, 0, 0, nil, nil
	m.Command, m.BufferID, m.OutPort, m.OutGroup, m.CookieMask = 0, 0, 0, 0, 0
}

// GroupKind is the type of a group (OpenFlow 1.3.5 §5.6.1).
type GroupKind uint8

// The group types.
const (
	GroupKindAll GroupKind = iota
	GroupKindSelect
	GroupKindIndirect
	GroupKindFastFailover
)

// Bucket is one bucket of a group.
type Bucket struct {
	Weight     uint16
	WatchPort  Port   // PortAny is none
	WatchGroup uint32 // GroupAny is none
	Actions    []Action
}

// Group is a group table entry.
type Group struct {
	Kind    GroupKind
	ID      uint32
	Buckets []Bucket
}

// GroupMod is a group-mod; Command is Add, Modify or Delete.
type GroupMod struct {
	Command Command
	Group   Group
}

// MeterKind is the type of a meter band (OpenFlow 1.3.5 §5.7.1).
type MeterKind uint16

// The meter bands.
const (
	MeterDrop       MeterKind = 1
	MeterDSCPRemark MeterKind = 2
)

// Meter is a meter; rates in the unit that Flags says (OFPMF_*), kilobits per
// second or packets per second.
type Meter struct {
	ID    uint32
	Flags uint16
	Bands []Band
}

// Band is one band of a meter.
type Band struct {
	Kind      MeterKind
	Rate      uint32
	BurstSize uint32
	PrecLevel uint8
}

// MeterMod is a meter-mod; Command is Add, Modify or Delete.
type MeterMod struct {
	Command Command
	Meter   Meter
}

// PacketOut sends a packet: one kept by the switch under BufferID, or Data.
type PacketOut struct {
	BufferID uint32 // BufferNone: Data holds the packet
	InPort   Port   // PortController where the controller made the packet
	Actions  []Action
	Data     []byte
}

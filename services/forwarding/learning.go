package forwarding

import (
	"time"

	"weft/flow"
)

// learner is the learning mode: one switch that remembers behind which of its
// ports an address was last seen, forgets it after a while, and floods what it
// does not know. It belongs to the goroutine of its switch. It knows nothing
// of other switches, so a loop of switches in this mode storms.
type learner struct {
	sw    flow.DPID
	idle  uint16 // seconds
	table macTable
}

// learnedFor is how long an address that is not seen again is remembered.
const learnedFor = 5 * time.Minute

const (
	etherTypeLLDP = 0x88cc
	etherTypeARP  = 0x0806
	etherTypeIPv4 = 0x0800
	etherTypeIPv6 = 0x86dd
)

// packet decides about one packet: an entry towards a known address, which
// also releases the packet, or a flood.
func (l *learner) packet(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	k := &in.Key
	if k.EthType == etherTypeLLDP {
		return flow.Done
	}
	vlan := uint64(k.VLAN) << 48
	l.table.put(k.EthSrc.Uint64()|vlan, k.InPort, in.Time)
	out := flow.PortFlood
	if !k.EthDst.Multicast() {
		if p, ok := l.table.get(k.EthDst.Uint64()|vlan, in.Time-int64(learnedFor)); ok {
			if p == k.InPort {
				return flow.Drop
			}
			out = p
		}
	}
	if out == flow.PortFlood {
		releaseAt(l.sw, in, d, out)
		return flow.Done
	}
	m := d.AddFlow(l.sw)
	e := &m.Entry
	e.Priority, e.IdleTimeout, e.Cookie = priorityRoute, l.idle, flow.NewCookie(flow.OwnerRoutes, 0, 0)
	e.Match.Set = flow.FieldInPort.Bit() | flow.FieldEthDst.Bit() | flow.FieldEthSrc.Bit() | flow.FieldVLAN.Bit()
	e.Match.Key.InPort, e.Match.Key.EthDst, e.Match.Key.EthSrc, e.Match.Key.VLAN = k.InPort, k.EthDst, k.EthSrc, k.VLAN
	e.Apply = d.Actions(flow.Output(out))
	if m.BufferID = in.BufferID; in.BufferID == flow.BufferNone {
		releaseAt(l.sw, in, d, out)
	}
	return flow.Done
}

// releaseAt sends the packet on its way at the switch that it came from.
func releaseAt(sw flow.DPID, in *flow.PacketIn, d *flow.Decision, out flow.Port) {
	o := flow.PacketOut{BufferID: in.BufferID, InPort: in.Key.InPort, Actions: d.Actions(flow.Output(out))}
	if in.BufferID == flow.BufferNone {
		o.Data = in.Data
	}
	d.PacketOut(sw, o)
}

// macTable maps addresses (with the VLAN above them) to ports by open
// addressing. Nothing is removed; when it is full of addresses that are still
// remembered it grows up to tableMax, and beyond that starts over.
type macTable struct {
	slots []macSlot // a power of two of them
	used  int
}

type macSlot struct {
	key  uint64 // address + 1, so that 0 is a free slot
	port flow.Port
	seen int64
}

const tableMax = 1 << 20

func (t *macTable) find(key uint64) *macSlot {
	mask := uint64(len(t.slots) - 1)
	for i := key * 0x9e3779b97f4a7c15 >> 20; ; i++ {
		s := &t.slots[i&mask]
		if s.key == key || s.key == 0 {
			return s
		}
	}
}

func (t *macTable) put(address uint64, p flow.Port, now int64) {
	if 4*t.used >= 3*len(t.slots) {
		t.grow(now)
	}
	s := t.find(address + 1)
	if s.key == 0 {
		s.key = address + 1
		t.used++
	}
	s.port, s.seen = p, now
}

func (t *macTable) get(address uint64, since int64) (flow.Port, bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	s := t.find(address + 1)
	return s.port, s.key != 0 && s.seen >= since
}

// grow makes room: it drops what is too old and doubles the table if that is
// not enough.
func (t *macTable) grow(now int64) {
	old := t.slots
	live := 0
	for i := range old {
		if old[i].key != 0 && old[i].seen >= now-int64(learnedFor) {
			live++
		}
	}
	size := max(64, len(old))
	if 2*live >= size {
		size *= 2
	}
	if size > tableMax {
		old, size = nil, tableMax
	}
	t.slots, t.used = make([]macSlot, size), 0
	for i := range old {
		if old[i].key != 0 && old[i].seen >= now-int64(learnedFor) {
			*t.find(old[i].key) = old[i]
			t.used++
		}
	}
}

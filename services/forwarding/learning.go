package forwarding

import (
	"math/bits"
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

// learnedFor is how long an address that is not seen again is remembered, in
// seconds.
const learnedFor = 300

// packet decides about one packet: an entry towards a known address, which
// also releases the packet, or a flood.
func (l *learner) packet(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	k := &in.Key
	if k.EthType == flow.EthTypeLLDP {
		return flow.Done
	}
	vlan, now := uint64(k.VLAN)<<48, uint32(in.Time/int64(time.Second))
	l.table.put(k.EthSrc.Uint64()|vlan, k.InPort, now)
	out := flow.PortFlood
	if !k.EthDst.Multicast() {
		if p, ok := l.table.get(k.EthDst.Uint64()|vlan, now); ok {
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
// addressing. Nothing is removed; when it is half full of addresses that are
// still remembered it grows up to tableMax, and beyond that starts over.
type macTable struct {
	slots []macSlot // a power of two of them
	shift uint8     // 64 - log2(len(slots))
	used  int
}

// macSlot is small, so that one cache line holds four.
type macSlot struct {
	key  uint64 // address + 1, so that 0 is a free slot
	port flow.Port
	seen uint32 // seconds since 1970; good until 2106
}

const tableMax = 1 << 20

func (t *macTable) find(key uint64) *macSlot {
	mask := uint64(len(t.slots) - 1)
	for i := key * 0x9e3779b97f4a7c15 >> t.shift; ; i++ {
		s := &t.slots[i&mask]
		if s.key == key || s.key == 0 {
			return s
		}
	}
}

// put remembers that an address was seen behind p; now is in seconds.
func (t *macTable) put(address uint64, p flow.Port, now uint32) {
	if 2*t.used >= len(t.slots) {
		t.grow(now)
	}
	s := t.find(address + 1)
	if s.key == 0 {
		s.key = address + 1
		t.used++
	}
	if s.port != p || s.seen != now { // mostly not: leave the cache line clean
		s.port, s.seen = p, now
	}
}

// get returns where an address was last seen, if that is not too long ago.
func (t *macTable) get(address uint64, now uint32) (flow.Port, bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	s := t.find(address + 1)
	return s.port, s.key != 0 && s.fresh(now)
}

func (s *macSlot) fresh(now uint32) bool { return s.seen+learnedFor >= now }

// grow makes room: it drops what is too old and doubles the table if that is
// not enough.
func (t *macTable) grow(now uint32) {
	old := t.slots
	live := 0
	for i := range old {
		if old[i].key != 0 && old[i].fresh(now) {
			live++
		}
	}
	size := max(64, len(old))
	if 4*live >= size {
		size *= 2
	}
	if size > tableMax {
		old, size = nil, tableMax
	}
	t.slots, t.used = make([]macSlot, size), 0
	t.shift = uint8(64 - bits.TrailingZeros(uint(size)))
	for i := range old {
		if old[i].key != 0 && old[i].fresh(now) {
			*t.find(old[i].key) = old[i]
			t.used++
		}
	}
}

package forwarding

import (
	"math/bits"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// learner is the learning mode: one switch that remembers behind which of its
// ports it last saw an address, forgets it after a while, and floods packets to
// unknown addresses. It belongs to the goroutine of its switch. It knows
// nothing of other switches, so a loop of switches in this mode causes a storm.
type learner struct {
	sw       flow.DPID
	idle     uint16               // seconds
	untagged macTable             // the addresses of frames without a VLAN tag
	tagged   map[uint16]*macTable // by VLAN
	ahead    uint64               // what fetch returned; of no use, except that it was read
}

// table returns the addresses of a VLAN, as in flow.Key.
func (l *learner) table(vlan uint16) *macTable {
	if vlan == 0 {
		return &l.untagged
	}
	t := l.tagged[vlan]
	if t == nil {
		t = &macTable{}
		if l.tagged == nil {
			l.tagged = map[uint16]*macTable{}
		}
		l.tagged[vlan] = t
	}
	return t
}

// learnedFor is how long an address is remembered after it was last seen, in
// seconds.
const learnedFor = 300

// packet decides about one packet: it adds an entry towards a known address,
// which also releases the packet, or floods.
func (l *learner) packet(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
	k := &in.Key
	if k.EthType == flow.EthTypeLLDP {
		return flow.Done
	}
	if len(in.HeldBy) > 0 {
		return flow.Drop
	}
	table, now := l.table(k.VLAN), uint16(in.Time/int64(time.Second))
	if len(in.Following) > 0 && len(table.slots) >= fetchFrom {
		for _, f := range in.Following {
			if len(f) >= 12 {
				l.ahead += table.fetch(flow.MAC(f[6:12])) + table.fetch(flow.MAC(f[0:6]))
			}
		}
	}
	table.put(k.EthSrc.Uint64(), k.InPort, now)
	out := flow.PortFlood
	if !k.EthDst.Multicast() {
		if p, ok := table.get(k.EthDst.Uint64(), now); ok {
			if p == k.InPort {
				return flow.Drop
			}
			out = p
		}
	}
	if out == flow.PortFlood || in.Unapproved {
		releaseAt(l.sw, in, d, out)
		return flow.Done
	}
	m := d.AddFlow(l.sw)
	e := &m.Entry
	e.Priority, e.IdleTimeout, e.Cookie = flow.PriorityRoute, l.idle, flow.NewCookie(flow.OwnerRoutes, 0, 0)
	e.Match.Set = flow.FieldInPort.Bit() | flow.FieldEthDst.Bit() | flow.FieldEthSrc.Bit() | flow.FieldVLAN.Bit()
	e.Match.Key.InPort, e.Match.Key.EthDst, e.Match.Key.EthSrc, e.Match.Key.VLAN = k.InPort, k.EthDst, k.EthSrc, k.VLAN
	e.Apply = d.Output(out)
	if m.BufferID = in.BufferID; in.BufferID == flow.BufferNone {
		releaseAt(l.sw, in, d, out)
	}
	return flow.Done
}

// releaseAt releases the packet at the switch that it came from.
func releaseAt(sw flow.DPID, in *flow.PacketIn, d *flow.Decision, out flow.Port) {
	o := flow.PacketOut{BufferID: in.BufferID, InPort: in.Key.InPort, Actions: d.Output(out)}
	if in.BufferID == flow.BufferNone {
		o.Data = in.Data
	}
	d.PacketOut(sw, o)
}

// macTable maps the addresses of one VLAN to ports by open addressing. It
// removes nothing. When half of it is full of addresses still remembered it
// grows up to tableMax, and beyond that starts over. All of an address is in one
// cache line, because most of the cost of a lookup is fetching that.
type macTable struct {
	slots []macSlot // a power of two of them
	shift uint8     // 64 - log2(len(slots))
	used  int
}

// macSlot is where an address was seen, and when.
type macSlot struct {
	host uint64 // address << 16 | port; 0 is free
	seen uint16 // in seconds, modulo 18 hours
}

const (
	tableMax = 1 << 20
	// fetchFrom is from how many slots on they are worth fetching in advance:
	// smaller tables stay in the caches.
	fetchFrom = 1 << 13
	// portMax is the highest port behind which addresses are learnt; packets to
	// addresses behind higher ports are flooded.
	portMax = 1<<16 - 1
)

// find returns the slot that an address has, or would get.
func (t *macTable) find(address uint64) *macSlot {
	mask := uint64(len(t.slots) - 1)
	for i := flow.Spread(address) >> t.shift; ; i++ {
		if s := &t.slots[i&mask]; s.host>>16 == address || s.host == 0 {
			return s
		}
	}
}

// fetch begins to bring the slot of an address into the processor's caches.
func (t *macTable) fetch(address flow.MAC) uint64 {
	return t.slots[flow.Spread(address.Uint64())>>t.shift&uint64(len(t.slots)-1)].host
}

// put records that an address was seen behind p; now is in seconds.
func (t *macTable) put(address uint64, p flow.Port, now uint16) {
	if address == 0 || p == 0 || p > portMax {
		return
	}
	if 2*t.used >= len(t.slots) {
		t.grow(now)
	}
	s := t.find(address)
	if s.host == 0 {
		t.used++
	}
	if host := address<<16 | uint64(p); s.host != host || s.seen != now { // spare the cache line
		*s = macSlot{host, now}
	}
}

// get returns the port where an address was last seen, if that is not too long
// ago.
func (t *macTable) get(address uint64, now uint16) (flow.Port, bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	s := t.find(address)
	return flow.Port(s.host & portMax), s.host != 0 && s.isFresh(now)
}

func (s *macSlot) isFresh(now uint16) bool { return now-s.seen <= learnedFor }

// grow makes room: it drops entries that are too old and doubles the table if
// that is not enough.
func (t *macTable) grow(now uint16) {
	old := t.slots
	live := 0
	for i := range old {
		if s := &old[i]; s.host != 0 && s.isFresh(now) {
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
	*t = macTable{slots: make([]macSlot, size), shift: uint8(64 - bits.TrailingZeros(uint(size)))}
	for i := range old {
		if s := &old[i]; s.host != 0 && s.isFresh(now) {
			*t.find(s.host >> 16) = *s
			t.used++
		}
	}
}

package admission

import (
	"slices"
	"time"
	"unsafe"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/ratelimit"
)

// Class is the kind of a packet-in, for admission.
type Class uint8

// The classes. Each has its own allowance, so that none starves another.
const (
	ClassProbes     Class = iota // LLDP and BDDP: links depend on them
	ClassNeighbours              // ARP, neighbour discovery, DHCP
	classUnicast
	classMulticast
	ClassCount
)

// String returns the name of the class.
func (c Class) String() string {
	return [...]string{"probes", "neighbours", "unicast", "multicast"}[c]
}

// Reason says why a packet-in was shed.
type Reason uint8

// The reasons.
const (
	Admitted   Reason = iota
	OverPort          // its port has used up its allowance for the class
	OverSender        // the address that it comes from has
	ReasonCount
)

// String returns the reason as the metrics name it.
func (r Reason) String() string { return [...]string{"admitted", "port", "sender"}[r] }

// window is the time over which packet-ins are counted before their sources are
// examined.
const window = int64(100 * time.Millisecond)

// Numbers of windows.
const (
	windowsToFlood = 2  // above the threshold before a port is limited
	windowsAlone   = 30 // the same for a port that sends alone: other switches may just be starting
	windowsToCalm  = 20 // below the limit, or with nobody waiting, before the limit ends
)

// A port that exceeds its limit again within againWithin of the end of a limit
// is limited twice as long as the last time, up to 1<<againMost times.
const (
	againWithin = int64(30 * time.Second)
	againMost   = 4
)

// Filter decides which packet-ins of one switch are handled. As long as no
// port sends far more than the others, it only counts by port. Only the
// goroutine that reads the switch uses it. Callers pass the time, in
// nanoseconds. It allocates only when the limit of a port begins.
type Filter struct {
	Rule    FloodRule
	table   []portSlot // open addressing; the length is a power of two
	used    int
	touched []int32      // slots counted in this window
	epoch   uint32       // of the window
	from    int64        // when the window began
	Limited []*PortLimit // in the order in which the limits began
	memory  Buffer       // of table
	talkers int          // ports that have ever sent anything but probes
	talking int          // ports that have done so in this window
	Rate    float64      // packet-ins per second of the last window, without probes
	probing [2]probing
	senders *senders
	rates   []float64 // scratch space for those of a window
	Shed    [ReasonCount][ClassCount]uint64
	AnyShed bool
}

// FloodRule is the part of the configuration that defines a flood.
type FloodRule struct {
	Rate   float64 // packet-ins per second of a port, from which they may be a flood; 0 is never
	Factor float64 // and how many times the rate of busy ports, see reference
	Floor  float64 // packet-ins per second that every port may send
	Probes float64 // LLDP frames per second that every port may send
}

// portSlot is the state of one port.
type portSlot struct {
	port  flow.Port
	taken bool
	epoch uint32 // the window of seen
	seen  [ClassCount]uint32
	hot   uint8 // consecutive windows above the threshold
	talks bool  // it has ever sent anything but probes
	again uint8 // how often it was limited again soon after a limit had ended
	ended int64 // when its last limit ended
	probe ratelimit.Bucket
	limit *PortLimit // nil unless it is limited
}

// PortLimit is the limit of a port.
type PortLimit struct {
	Port    flow.Port
	Rate    float64 // packet-ins per second of each class
	Offered float64 // as last measured, all classes
	Class   Class   // of most of them
	Since   int64
	Calm    int // consecutive windows below the limit
	Shed    uint64
	gauges  [ClassCount]ratelimit.Bucket
	gap     int64 // nanoseconds per packet
	seen    [ClassCount]uint32
	leader  flow.MAC // the address most come from, if any: Boyer and Moore's majority vote
	votes   int
	MAC     flow.MAC // leader of the last window that had one; zero if none had
	Table   uint8    // flow table that the last one came from
	Limiter Limiter
}

// depth is how much of its allowance, as a time, a port may use at once.
const depth = int64(500 * time.Millisecond)

// Bounds on the table of ports, about half of which stays free. Ports that find
// no slot share one.
const (
	slotsFirst = 16
	slotsLast  = 1 << 17
)

func NewFilter(rule FloodRule, a *Account) Filter {
	return Filter{Rule: rule, memory: Buffer{Account: a}, table: make([]portSlot, slotsFirst), epoch: 1}
}

// Admit counts a packet-in and decides whether it is handled.
func (a *Filter) Admit(in *flow.PacketIn) Reason {
	p := a.slot(in.Key.InPort)
	if p.epoch != a.epoch {
		p.epoch, p.seen = a.epoch, [ClassCount]uint32{}
		a.touched = append(a.touched, int32(a.index(p.port)))
	}
	c := classify(in)
	p.seen[c]++
	if p.limit == nil && c != ClassProbes {
		return Admitted
	}
	return a.evaluate(p, c, in)
}

// classify classifies by type and destination. Neighbour discovery and DHCP
// need a closer look; they count as unicast or multicast, as they are sent.
func classify(in *flow.PacketIn) Class {
	switch {
	case in.Key.EthType == flow.EthTypeARP:
		return ClassNeighbours
	case in.Key.EthType == flow.EthTypeLLDP || in.Key.EthType == EthTypeBDDP:
		return ClassProbes
	case in.Key.EthDst[0]&1 != 0:
		return classMulticast
	}
	return classUnicast
}

// EthTypeBDDP is the Ethernet type of probes that other controllers send.
const EthTypeBDDP uint16 = 0x8942

// evaluate decides on a probe, or on a packet-in of a limited port.
func (a *Filter) evaluate(p *portSlot, c Class, in *flow.PacketIn) Reason {
	if c == ClassProbes {
		if a.Rule.Rate > 0 && !p.probe.Take(in.Time, int64(1e9/a.Rule.Probes), depth) {
			return a.refuse(p, c, OverPort)
		}
		return Admitted
	}
	l := p.limit
	if c != ClassNeighbours && isNeighbourDiscovery(in) {
		c = ClassNeighbours
	}
	l.seen[c]++
	l.Table = in.Table
	switch {
	case l.votes == 0:
		l.leader, l.votes = in.Key.EthSrc, 1
	case l.leader == in.Key.EthSrc:
		l.votes++
	default:
		l.votes--
	}
	// One address gets half of its port's allowance, so that others pass beside
	// it.
	if g := a.senders.gauge(in.Key.EthSrc, p.port, c, in.Time); g != nil && !g.Take(in.Time, 2*l.gap, depth) {
		return a.refuse(p, c, OverSender)
	}
	if !l.gauges[c].Take(in.Time, l.gap, depth) {
		return a.refuse(p, c, OverPort)
	}
	return Admitted
}

func (a *Filter) refuse(p *portSlot, c Class, why Reason) Reason {
	a.Shed[why][c]++
	a.AnyShed = true
	if p.limit != nil {
		p.limit.Shed++
	}
	return why
}

// index returns the index of a port's slot, used or free.
func (a *Filter) index(port flow.Port) int {
	mask := len(a.table) - 1
	for i := int(port^port>>8^port>>16) & mask; ; i = (i + 1) & mask { // most number their ports from 1
		if p := &a.table[i]; !p.taken || p.port == port {
			return i
		}
	}
}

// slot returns the slot of a port.
func (a *Filter) slot(port flow.Port) *portSlot {
	p := &a.table[a.index(port)]
	if p.taken {
		return p
	}
	if 2*(a.used+1) > len(a.table) {
		if !a.grow() && port != flow.PortAny {
			return a.slot(flow.PortAny)
		}
		p = &a.table[a.index(port)]
	}
	a.used++
	p.port, p.taken = port, true
	return p
}

// slotBytes is the size of a slot in memory.
const slotBytes = int(unsafe.Sizeof(portSlot{}))

// grow doubles the table. It begins small, because most ports never send a
// packet to the controller. grow returns false if no switch has so many ports,
// or if there is no memory.
func (a *Filter) grow() bool {
	old := a.table
	if len(old) >= slotsLast || a.memory.Resize(2*len(old)*slotBytes) != nil {
		return false
	}
	a.table = make([]portSlot, 2*len(old))
	a.touched = a.touched[:0]
	for i := range old {
		if p := &old[i]; p.taken {
			n := a.index(p.port)
			a.table[n] = *p
			if p.epoch == a.epoch {
				a.touched = append(a.touched, int32(n))
			}
		}
	}
	return true
}

// Change is the beginning or the end of a port's limit.
type Change struct {
	Limit *PortLimit
	Ended bool
}

// endLimits ends all limits, because floods are no longer limited.
func (a *Filter) endLimits(list []Change) []Change {
	for _, l := range a.Limited {
		list = append(list, Change{Limit: l, Ended: true})
		p := a.slot(l.Port)
		p.limit, p.hot = nil, 0
	}
	a.Limited, a.senders = nil, nil
	return list
}

// Due reports whether the window is over.
func (a *Filter) Due(now int64) bool { return now-a.from >= window }

// Roll ends a window and begins the next. It limits the ports that have sent
// far more than others and make them wait, and ends the limits of ports that
// have calmed down or make nobody wait any more. It appends the changes to
// list.
func (a *Filter) Roll(now int64, by Pressure, list []Change) []Change {
	elapsed := float64(now-a.from) / 1e9
	first := a.from == 0
	a.from = now
	if a.Rule.Rate == 0 {
		list = a.endLimits(list)
	}
	if first || elapsed <= 0 || a.Rule.Rate == 0 {
		return a.next(list)
	}
	threshold := a.Rule.Rate
	if by.Full {
		threshold = a.Rule.Floor
	}
	if most := a.measure(now, elapsed); most < threshold && len(a.Limited) == 0 {
		for _, i := range a.touched {
			a.table[i].hot = 0
		}
		return a.next(list)
	}
	fair := a.Rule.Factor * a.reference()
	if a.talking < 2 {
		fair = a.Rule.Factor * by.Elsewhere
	}
	for _, i := range a.touched {
		p := &a.table[i]
		rate := p.packetIns() / elapsed
		if l := p.limit; l != nil {
			l.Offered = rate
			continue
		}
		if rate < threshold || rate <= fair || !a.isContended(now, p, by) {
			p.hot = 0
			continue
		}
		if p.hot++; p.hot >= windowsAlone || p.hot >= windowsToFlood && a.talking > 1 {
			list = append(list, a.startLimit(now, p, rate))
		}
	}
	for _, l := range a.Limited {
		list = a.review(now, a.slot(l.Port), max(a.Rule.Floor, fair), by, elapsed, list)
	}
	a.Limited = slices.DeleteFunc(a.Limited, func(l *PortLimit) bool { return a.slot(l.Port).limit != l })
	if len(a.Limited) == 0 {
		a.senders = nil
	}
	return a.next(list)
}

// measure counts the ports that sent anything but probes in the window, and
// records which ports sent probes. It returns the highest rate of a port.
func (a *Filter) measure(now int64, elapsed float64) (most float64) {
	a.rates, a.talking, a.Rate = a.rates[:0], 0, 0
	for _, i := range a.touched {
		p := &a.table[i]
		r := p.packetIns() / elapsed
		if r > 0 {
			a.talking++
			if !p.talks {
				p.talks = true
				a.talkers++
			}
		}
		if p.seen[ClassProbes] > 0 {
			a.recordProbe(now, p.port)
		}
		most, a.Rate = max(most, r), a.Rate+r
		a.rates = append(a.rates, r)
	}
	return most
}

// startLimit limits a port that has sent at the given rate.
func (a *Filter) startLimit(now int64, p *portSlot, rate float64) Change {
	if p.again = min(p.again+1, againMost); p.ended == 0 || now-p.ended > againWithin {
		p.again = 0
	}
	p.hot = 0
	p.limit = &PortLimit{Port: p.port, Offered: rate, Since: now, Class: p.busiest()}
	a.Limited = append(a.Limited, p.limit)
	if a.senders == nil {
		a.senders = &senders{}
	}
	return Change{Limit: p.limit}
}

// review settles the window of a limited port. It ends the limit if the port
// has kept to it, or has made nobody wait, for long enough.
func (a *Filter) review(now int64, p *portSlot, limit float64, by Pressure, elapsed float64, list []Change) []Change {
	l := p.limit
	l.Rate, l.gap = limit, int64(1e9/limit)
	if p.epoch != a.epoch {
		l.Offered = 0
	}
	l.count()
	if l.Offered > limit && a.isContended(now, p, by) {
		l.Calm = 0
		return list
	}
	// A long time without a packet counts as many windows.
	if l.Calm += max(1, int(elapsed*1e9)/int(window)); l.Calm < windowsToCalm<<p.again {
		return list
	}
	p.limit, p.ended = nil, now
	return append(list, Change{Limit: l, Ended: true})
}

func (a *Filter) next(list []Change) []Change {
	a.touched = a.touched[:0]
	a.epoch++
	return list
}

// packetIns returns how many packet-ins count in the window; probes have their
// own allowance.
func (p *portSlot) packetIns() float64 {
	return float64(p.seen[ClassNeighbours]) + float64(p.seen[classUnicast]) + float64(p.seen[classMulticast])
}

func (p *portSlot) busiest() Class {
	best := ClassNeighbours
	for c := best; c < ClassCount; c++ {
		if p.seen[c] > p.seen[best] {
			best = c
		}
	}
	return best
}

// reference returns how much a busy port of the switch sends per second, to
// compare others with: a quarter of the ports that have ever sent anything send
// more. So a load that many ports share is no flood, however high it is, and
// even a quarter of the ports flooding together is detected.
func (a *Filter) reference() float64 {
	slices.Sort(a.rates)
	at := len(a.rates) - 1 - max(1, a.talkers/4)
	if at < 0 {
		return 0
	}
	return a.rates[at]
}

// count evaluates what a limited port sent in the window.
func (l *PortLimit) count() {
	total := uint32(0)
	for c, n := range l.seen {
		total += n
		if n > l.seen[l.Class] {
			l.Class = Class(c)
		}
	}
	// The vote's winner has a majority if there is one; it certainly does if
	// half of all votes are left over.
	l.MAC = flow.MAC{}
	if total > 0 && l.votes > int(total/2) {
		l.MAC = l.leader
	}
	l.seen, l.votes = [ClassCount]uint32{}, 0
}

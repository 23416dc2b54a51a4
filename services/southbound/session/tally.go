package session

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/weft-sdn/weft/openflow"
)

// tally counts the fate of packet-ins, in memory that outlives the process:
//
//	read = settled + killed + ended + those that are being dealt with
//
// So the next process knows what a killed one was working on.
type tally struct {
	layout  atomic.Uint64 // tallyLayout
	_       [56]byte
	read    atomic.Uint64 // read from the sockets of switches
	_       [56]byte
	settled atomic.Uint64 // decided, and the decision sent; or shed, which has counts by reason
	_       [56]byte
	killed  atomic.Uint64 // neither, when the process was killed
	ended   atomic.Uint64 // neither, when the session ended
	again   atomic.Uint64 // of a killed process, handled by the next
	_       [40]byte
}

// tallyLayout marks memory that holds a tally; another layout gets another
// number.
const tallyLayout = 0x5745465400000002

// estate is the content of the memory that outlives the process.
type estate struct {
	tally tally
	rings rings
}

// EstateSize is the size of the memory for the tally and the packet-ins that
// are away. Unused memory is zero.
const EstateSize = int(unsafe.Sizeof(estate{}))

// openEstate takes over memory that an earlier process may have left. What that
// process was working on is lost, unless it can be handled again.
func openEstate(memory []byte, now time.Time) (*tally, *recovery) {
	l := (*estate)(unsafe.Pointer(unsafe.SliceData(memory[:EstateSize:EstateSize])))
	t := &l.tally
	if t.layout.Load() != tallyLayout {
		clear(memory[:unsafe.Sizeof(tally{})])
		for i := range l.rings.heads {
			l.rings.heads[i].taken.Store(0)
		}
		t.layout.Store(tallyLayout)
	}
	left := max(0, int64(t.read.Load()-t.settled.Load()-t.killed.Load()-t.ended.Load()))
	k := openRecovery(t, &l.rings, now, left)
	for _, list := range k.left {
		left -= int64(len(list))
	}
	t.killed.Add(uint64(left))
	return t, k
}

// register registers the metrics.
func (t *tally) register(m Metrics) {
	m.CounterFunc("packet_ins_read_total", "Packet-ins taken off the sockets of switches, by this process and those of its name before it: those settled, those lost and those that are being handled.", func() float64 { return float64(t.read.Load()) })
	m.CounterFunc("packet_ins_again_total", "Packet-ins that a process was handling when it was killed, and that the next handled instead; in this process and those of its name before it.", func() float64 { return float64(t.again.Load()) })
	m.CounterFunc("packet_ins_settled_total", "Packet-ins whose decision was sent, or that were shed and counted by reason, in this process and those of its name before it.", func() float64 { return float64(t.settled.Load()) })
	const lost = "Packet-ins that were read and not settled, because the process was killed or the session ended, in this process and those of its name before it."
	m.CounterFunc("packet_ins_lost_total", lost, func() float64 { return float64(t.killed.Load()) }, "reason", "killed")
	m.CounterFunc("packet_ins_lost_total", lost, func() float64 { return float64(t.ended.Load()) }, "reason", "session_ended")
}

// progress is one session's part of the tally. It counts packet-ins.
type progress struct {
	tally   *tally
	pending atomic.Int64 // read but not settled, without those that are away

	mu       sync.Mutex // guards what follows
	away     int64      // with stages in other processes
	returned uint64     // from there, in this session
	ring     *ring      // holds them; nil: none
}

// read counts packet-ins that were read.
func (p *progress) read(n int64) {
	if n > 0 {
		p.pending.Add(n)
		p.tally.read.Add(uint64(n))
	}
}

// settle counts packet-ins that were handled.
func (p *progress) settle(n int64) {
	if n > 0 {
		p.pending.Add(-n)
		p.tally.settled.Add(uint64(n))
	}
}

// leave counts packet-ins that go away now.
func (p *progress) leave(n int64) {
	if n > 0 {
		p.pending.Add(-n)
		p.mu.Lock()
		p.away += n
		p.mu.Unlock()
	}
}

// lose counts packet-ins that an earlier process left and that nobody will
// handle.
func (p *progress) lose(n int64) {
	p.pending.Add(-n)
	p.tally.killed.Add(uint64(n))
}

// back counts packet-ins that were away as settled, given how many have come
// back to the session in all, and how many of those are probes.
func (p *progress) back(returned, probes uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ring != nil {
		p.ring.returned.Store(returned - probes)
	}
	if n := min(int64(returned-p.returned), p.away); n > 0 { // the rest once counted as away
		p.returned += uint64(n)
		p.away -= n
		p.tally.settled.Add(uint64(n))
	}
}

// end closes the account. What is away is counted where it comes back; what was
// still waiting is lost.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ring = nil // another session uses it from now on
	p.tally.settled.Add(uint64(p.away))
	p.away = 0
	p.tally.ended.Add(uint64(max(0, p.pending.Swap(0))))
}

// packetIns counts the packet-ins among whole messages.
func packetIns(b []byte) (n int64) {
	for len(b) >= openflow.HeaderLen {
		size := int(binary.BigEndian.Uint16(b[2:]))
		if size < openflow.HeaderLen || size > len(b) {
			break
		}
		if b[1] == byte(openflow.TypePacketIn) {
			n++
		}
		b = b[size:]
	}
	return n
}

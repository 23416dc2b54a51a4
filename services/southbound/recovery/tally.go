package recovery

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Tally counts the fate of packet-ins, in memory that outlives the process:
//
//	read = settled + killed + ended + those that are being dealt with
//
// So the next process knows what a killed one was working on.
type Tally struct {
	layout  atomic.Uint64 // tallyLayout
	_       [56]byte
	read    atomic.Uint64 // read from the sockets of switches
	_       [56]byte
	settled atomic.Uint64 // decided, and the decision sent; or shed, which has counts by reason
	_       [56]byte
	killed  atomic.Uint64 // neither, when the process was killed
	ended   atomic.Uint64 // neither, when the session ended
	Again   atomic.Uint64 // of a killed process, handled by the next
	_       [40]byte
	shed    [reasons]shed
	_       [48]byte
}

// tallyLayout marks memory that holds a tally; another layout gets another
// number.
const tallyLayout = 0x5745465400000003

// layout is the content of the memory that outlives the process.
type layout struct {
	tally Tally
	rings rings
}

// Size is the size of the memory for the tally and the packet-ins that
// are away. Unused memory is zero.
const Size = int(unsafe.Sizeof(layout{}))

// Open takes over memory that an earlier process may have left. What that
// process was working on is lost, unless it can be handled again.
func Open(memory []byte, now time.Time) (*Tally, *Recovery) {
	l := (*layout)(unsafe.Pointer(unsafe.SliceData(memory[:Size:Size])))
	t := &l.tally
	if t.layout.Load() != tallyLayout {
		clear(memory[:unsafe.Sizeof(Tally{})])
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

// Register registers the metrics.
func (t *Tally) Register(counter func(name, help string, read func() float64, labels ...string)) {
	t.registerShed(counter)
	counter("packet_ins_read_total", "Packet-ins taken off the sockets of switches, by this process and those of its name before it: those settled, those lost and those that are being handled.", func() float64 { return float64(t.read.Load()) })
	counter("packet_ins_again_total", "Packet-ins that a process was handling when it was killed, and that the next handled instead; in this process and those of its name before it.", func() float64 { return float64(t.Again.Load()) })
	counter("packet_ins_settled_total", "Packet-ins whose decision was sent, or that were shed and counted by reason, in this process and those of its name before it.", func() float64 { return float64(t.settled.Load()) })
	const lost = "Packet-ins that were read and not settled, because the process was killed or the session ended, in this process and those of its name before it."
	counter("packet_ins_lost_total", lost, func() float64 { return float64(t.killed.Load()) }, "reason", "killed")
	counter("packet_ins_lost_total", lost, func() float64 { return float64(t.ended.Load()) }, "reason", "session_ended")
}

// Progress is one session's part of the tally. It counts packet-ins.
type Progress struct {
	Tally   *Tally
	Pending atomic.Int64 // read but not settled, without those that are away

	mu       sync.Mutex // guards what follows
	away     int64      // with stages in other processes
	returned uint64     // from there, in this session
	Ring     *ring      // holds them; nil: none
}

// Read counts packet-ins that were read.
func (p *Progress) Read(n int64) {
	if n > 0 {
		p.Pending.Add(n)
		p.Tally.read.Add(uint64(n))
	}
}

// Settle counts packet-ins that were handled.
func (p *Progress) Settle(n int64) {
	if n > 0 {
		p.Pending.Add(-n)
		p.Tally.settled.Add(uint64(n))
	}
}

// Leave counts packet-ins that go away now.
func (p *Progress) Leave(n int64) {
	if n > 0 {
		p.Pending.Add(-n)
		p.mu.Lock()
		p.away += n
		p.mu.Unlock()
	}
}

// Lose counts packet-ins that an earlier process left and that nobody will
// handle.
func (p *Progress) Lose(n int64) {
	p.Pending.Add(-n)
	p.Tally.killed.Add(uint64(n))
}

// Back counts packet-ins that were away as settled, given how many have come
// back to the session in all, and how many of those are probes.
func (p *Progress) Back(returned, probes uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Ring != nil {
		p.Ring.returned.Store(returned - probes)
	}
	if n := min(int64(returned-p.returned), p.away); n > 0 { // the rest once counted as away
		p.returned += uint64(n)
		p.away -= n
		p.Tally.settled.Add(uint64(n))
	}
}

// End closes the account. What is away is counted where it comes back; what was
// still waiting is lost.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Ring = nil // another session uses it from now on
	p.Tally.settled.Add(uint64(p.away))
	p.away = 0
	p.Tally.ended.Add(uint64(max(0, p.Pending.Swap(0))))
}

package recovery

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// Recovery holds the packet-ins that are away, so that the next process has them if
// this one is killed, and those that the process before left: they are handled
// again when their switch is back. It is bounded: the first switches get a ring
// each, and a ring holds what was sent away last.
type Recovery struct {
	tally *Tally

	mu      sync.Mutex // guards what follows
	free    []*ring
	left    map[flow.DPID][]LeftOver // from an earlier process
	expires time.Time                // of left; zero: nothing is left
}

// LeftOver is a packet-in that an earlier process sent away.
type LeftOver struct {
	At  int64 // when it was read, ns
	Msg []byte
}

// A standby that takes over is another process: it handles none of these.
const (
	ringCount = 128
	ringBytes = 256 << 10
	// LeftOverFor is the age up to which a packet-in is handled again.
	LeftOverFor = 10 * time.Second
)

// rings is the part of the memory outliving the process that holds packet-ins.
type rings struct {
	heads [ringCount]ringHead
	data  [ringCount][ringBytes]byte
}

// ringHead describes the content of a ring. Positions count bytes from the
// start, modulo its size. One goroutine writes all of it except returned.
type ringHead struct {
	taken    atomic.Uint64 // 1: a session uses it
	sw       atomic.Uint64
	head     atomic.Uint64 // where the next record goes
	tail     atomic.Uint64 // where the oldest is
	returned atomic.Uint64 // packets that have returned; they return in order
	_        [24]byte
}

// ring is a ring of records: 8 bytes for the length of the message, 8 for its
// number among those that the session sent away, 8 for when it was read, the
// message, and padding to a multiple of 8. The length skip says that the next
// record is at the start.
type ring struct {
	*ringHead
	data *[ringBytes]byte
}

const (
	recordHead = 24
	skip       = 1<<64 - 1
	recordMost = ringBytes / 4
)

// Outgoing is a session's side of a ring. Only the reading goroutine uses it.
type Outgoing struct {
	Ring       *ring // nil: no packets are kept
	head, tail uint64
	count      uint64 // packets sent away
}

// openRecovery reads what an earlier process left, and frees the rings. It leaves
// out what is not among the last most packets.
func openRecovery(t *Tally, r *rings, now time.Time, most int64) *Recovery {
	k := &Recovery{tally: t, left: map[flow.DPID][]LeftOver{}}
	for i := range r.heads {
		one := &ring{&r.heads[i], &r.data[i]}
		if one.taken.Load() == 1 {
			sw := flow.DPID(one.sw.Load())
			for _, l := range one.outstanding() {
				if most > 0 && now.UnixNano()-l.At < int64(LeftOverFor) {
					k.left[sw] = append(k.left[sw], l)
					most--
					k.expires = now.Add(LeftOverFor)
				}
			}
			one.taken.Store(0)
		}
		k.free = append(k.free, one)
	}
	return k
}

// outstanding returns the packet-ins in a ring that have not returned, the last
// first. It ignores records that another version wrote or that are incomplete.
func (r *ring) outstanding() (list []LeftOver) {
	head, tail, returned := r.head.Load(), r.tail.Load(), r.returned.Load()
	for head%8 == 0 && tail%8 == 0 && tail < head && head-tail <= ringBytes {
		at := r.data[tail%ringBytes:]
		size := binary.LittleEndian.Uint64(at)
		if size == skip {
			tail += uint64(len(at))
			continue
		}
		if size < openflow.HeaderLen || size > recordMost || recordSize(int(size)) > uint64(len(at)) {
			break
		}
		if msg := at[recordHead : recordHead+size]; binary.LittleEndian.Uint64(at[8:]) >= returned && uint64(binary.BigEndian.Uint16(msg[2:])) == size {
			list = append(list, LeftOver{int64(binary.LittleEndian.Uint64(at[16:])), append([]byte(nil), msg...)})
		}
		tail += recordSize(int(size))
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list
}

func recordSize(msg int) uint64 { return uint64(recordHead+msg+7) &^ 7 }

// Begin gives a session a ring, if there is one, and what an earlier process
// left of its switch, the last first. The session handles those packets or
// counts them.
func (k *Recovery) Begin(sw flow.DPID) (o Outgoing, left []LeftOver) {
	k.mu.Lock()
	defer k.mu.Unlock()
	left = k.left[sw]
	delete(k.left, sw)
	if n := len(k.free); n > 0 {
		o.Ring = k.free[n-1]
		k.free = k.free[:n-1]
		o.Ring.sw.Store(uint64(sw))
		o.Ring.head.Store(0)
		o.Ring.tail.Store(0)
		o.Ring.returned.Store(0)
		o.Ring.taken.Store(1)
	}
	return o, left
}

// End takes back the ring of a session that has ended.
func (k *Recovery) End(r *ring) {
	if r == nil {
		return
	}
	r.taken.Store(0)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.free = append(k.free, r)
}

// Expire counts as lost what an earlier process left of switches that did not
// come back in time.
func (k *Recovery) Expire(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.expires.IsZero() || now.Before(k.expires) {
		return
	}
	for _, list := range k.left {
		k.tally.killed.Add(uint64(len(list)))
	}
	clear(k.left)
	k.expires = time.Time{}
}

// Away records a packet-in that was sent away. It only counts one that the next
// process could not use.
func (o *Outgoing) Away(msg []byte, in *flow.PacketIn) {
	if o.Ring == nil || in.Key.EthType == flow.EthTypeLLDP { // LLDP returns separately
		return
	}
	number := o.count
	o.count++
	need := recordSize(len(msg))
	if in.BufferID != flow.BufferNone || len(msg) > recordMost {
		return
	}
	room := ringBytes - o.head%ringBytes
	if room >= need {
		room = 0
	}
	for o.head+room+need-o.tail > ringBytes {
		at := o.Ring.data[o.tail%ringBytes:]
		if size := binary.LittleEndian.Uint64(at); size == skip {
			o.tail += uint64(len(at))
		} else {
			o.tail += recordSize(int(size))
		}
	}
	o.Ring.tail.Store(o.tail) // before new records overwrite the old ones
	if room > 0 {
		binary.LittleEndian.PutUint64(o.Ring.data[o.head%ringBytes:], skip)
		o.head += room
	}
	at := o.Ring.data[o.head%ringBytes:]
	binary.LittleEndian.PutUint64(at, uint64(len(msg)))
	binary.LittleEndian.PutUint64(at[8:], number)
	binary.LittleEndian.PutUint64(at[16:], uint64(in.Time))
	copy(at[recordHead:], msg)
	o.head += need
	o.Ring.head.Store(o.head)
}

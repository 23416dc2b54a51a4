package session

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// recovery holds the packet-ins that are away, so that the next process has them if
// this one is killed, and those that the process before left: they are handled
// again when their switch is back. It is bounded: the first switches get a ring
// each, and a ring holds what was sent away last.
type recovery struct {
	tally *tally

	mu      sync.Mutex // guards what follows
	free    []*ring
	left    map[dpid][]leftOver // from an earlier process
	expires time.Time           // of left; zero: nothing is left
}

// leftOver is a packet-in that an earlier process sent away.
type leftOver struct {
	at  int64 // when it was read, ns
	msg []byte
}

// A standby that takes over is another process: it handles none of these.
const (
	ringCount = 128
	ringBytes = 256 << 10
	// leftOverFor is the age up to which a packet-in is handled again.
	leftOverFor = 10 * time.Second
	// againAfter is how long a switch must be back before its packet-ins are
	// handled again: by then others know the roles of its ports.
	againAfter = time.Second
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

// outgoing is a session's side of a ring. Only the reading goroutine uses it.
type outgoing struct {
	ring       *ring // nil: no packets are kept
	head, tail uint64
	count      uint64 // packets sent away
}

// openRecovery reads what an earlier process left, and frees the rings. It leaves
// out what is not among the last most packets.
func openRecovery(t *tally, r *rings, now time.Time, most int64) *recovery {
	k := &recovery{tally: t, left: map[dpid][]leftOver{}}
	for i := range r.heads {
		one := &ring{&r.heads[i], &r.data[i]}
		if one.taken.Load() == 1 {
			sw := dpid(one.sw.Load())
			for _, l := range one.outstanding() {
				if most > 0 && now.UnixNano()-l.at < int64(leftOverFor) {
					k.left[sw] = append(k.left[sw], l)
					most--
					k.expires = now.Add(leftOverFor)
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
func (r *ring) outstanding() (list []leftOver) {
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
			list = append(list, leftOver{int64(binary.LittleEndian.Uint64(at[16:])), append([]byte(nil), msg...)})
		}
		tail += recordSize(int(size))
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list
}

func recordSize(msg int) uint64 { return uint64(recordHead+msg+7) &^ 7 }

// begin gives a session a ring, if there is one, and what an earlier process
// left of its switch, the last first. The session handles those packets or
// counts them.
func (k *recovery) begin(sw dpid) (o outgoing, left []leftOver) {
	k.mu.Lock()
	defer k.mu.Unlock()
	left = k.left[sw]
	delete(k.left, sw)
	if n := len(k.free); n > 0 {
		o.ring = k.free[n-1]
		k.free = k.free[:n-1]
		o.ring.sw.Store(uint64(sw))
		o.ring.head.Store(0)
		o.ring.tail.Store(0)
		o.ring.returned.Store(0)
		o.ring.taken.Store(1)
	}
	return o, left
}

// end takes back the ring of a session that has ended.
func (k *recovery) end(r *ring) {
	if r == nil {
		return
	}
	r.taken.Store(0)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.free = append(k.free, r)
}

// expire counts as lost what an earlier process left of switches that did not
// come back in time.
func (k *recovery) expire(now time.Time) {
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

// away records a packet-in that was sent away. It only counts one that the next
// process could not use.
func (o *outgoing) away(msg []byte, in *flow.PacketIn) {
	if o.ring == nil || in.Key.EthType == flow.EthTypeLLDP { // LLDP returns separately
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
		at := o.ring.data[o.tail%ringBytes:]
		if size := binary.LittleEndian.Uint64(at); size == skip {
			o.tail += uint64(len(at))
		} else {
			o.tail += recordSize(int(size))
		}
	}
	o.ring.tail.Store(o.tail) // before new records overwrite the old ones
	if room > 0 {
		binary.LittleEndian.PutUint64(o.ring.data[o.head%ringBytes:], skip)
		o.head += room
	}
	at := o.ring.data[o.head%ringBytes:]
	binary.LittleEndian.PutUint64(at, uint64(len(msg)))
	binary.LittleEndian.PutUint64(at[8:], number)
	binary.LittleEndian.PutUint64(at[16:], uint64(in.Time))
	copy(at[recordHead:], msg)
	o.head += need
	o.ring.head.Store(o.head)
}

// leftOvers is what an earlier process left of a session's switch and is not
// handled yet. Only the reading goroutine uses it.
type leftOvers struct {
	list []leftOver // the last first
	due  int64      // ns
}

// resume takes what was left: the session handles it, or loses it.
func (s *Session) resume(left []leftOver) {
	if len(left) == 0 {
		return
	}
	s.progress.pending.Add(int64(len(left)))
	s.leftOvers = leftOvers{left, time.Now().Add(againAfter).UnixNano()}
	// The answer wakes the goroutine in case the switch sends nothing else.
	time.AfterFunc(againAfter, func() { s.askEcho(time.Now()) })
}

// handleLeftOvers handles what was left as if it had arrived now.
func (s *Session) handleLeftOvers(now int64) error {
	if s.leftOvers.list == nil || now < s.leftOvers.due {
		return nil
	}
	list := s.leftOvers.list
	s.leftOvers.list = nil
	ws := s.in.ws
	for i := len(list) - 1; i >= 0; i-- {
		l := list[i]
		if now-l.at > int64(leftOverFor) || l.msg[0] != byte(s.Version) {
			s.progress.lose(1)
			continue
		}
		ws.packet.Switch, ws.packet.Time = s.DPID, now
		s.progress.tally.again.Add(1)
		if err := s.packetIn(l.msg); err != nil {
			return err
		}
		if len(ws.own) >= flushAt {
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	s.shared.Log.Info("packet-ins of an earlier process handled", "dpid", s.DPID, "packets", len(list))
	return s.flush()
}

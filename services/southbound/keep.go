package southbound

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// keep holds the packet-ins that are away, for the process that comes after this
// one if this one is killed, and has what the one before has left: that is dealt
// with again when the switch is back. It is bounded: of many switches the first
// have a ring each, and a ring holds what was sent away last.
type keep struct {
	tally *tally

	mu      sync.Mutex // guards what follows
	free    []*ring
	left    map[dpid][]leftOver // by an earlier process
	expires time.Time           // of left; zero: there is nothing
}

// leftOver is a packet-in that an earlier process has sent away.
type leftOver struct {
	at  int64 // when it was read, ns
	msg []byte
}

// What a standby takes over is not among it: that is another process.
const (
	ringCount = 128
	ringBytes = 256 << 10
	// leftOverFor is how old a packet-in may be that is dealt with again.
	leftOverFor = 10 * time.Second
	// againAfter is how long a switch is back before its packet-ins are dealt with
	// again: by then others know what its ports are.
	againAfter = time.Second
)

// rings is the part of the memory that outlives the process in which packet-ins
// are.
type rings struct {
	heads [ringCount]ringHead
	data  [ringCount][ringBytes]byte
}

// ringHead says what is in a ring. Positions count octets from the begin on, and
// are taken modulo its size. One goroutine writes it, but for returned.
type ringHead struct {
	taken    atomic.Uint64 // 1: it is a session's
	sw       atomic.Uint64
	head     atomic.Uint64 // where the next record goes
	tail     atomic.Uint64 // where the oldest is
	returned atomic.Uint64 // packets that are away no more; they return in their order
	_        [24]byte
}

// ring is a ring of records: 8 octets of length of a message, 8 of its number
// among those of the session that were away, 8 of when it was read, the message,
// and what makes that a multiple of 8. A length of skip says that the next record
// is at the begin.
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
	ring       *ring // nil: nothing is kept
	head, tail uint64
	count      uint64 // packets that were sent away
}

// openKeep takes up what an earlier process has left, all but what is not among
// the last most, and makes the rings free.
func openKeep(t *tally, r *rings, now time.Time, most int64) *keep {
	k := &keep{tally: t, left: map[dpid][]leftOver{}}
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
// first. What was written by another version, or not to the end, is not believed.
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

// begin gives a session a ring, if there is one, and what an earlier process has
// left of its switch, which the session deals with or counts; the last first.
func (k *keep) begin(sw dpid) (o outgoing, left []leftOver) {
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

// end takes back the ring of a session that is over.
func (k *keep) end(r *ring) {
	if r == nil {
		return
	}
	r.taken.Store(0)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.free = append(k.free, r)
}

// expire counts as lost what an earlier process has left of switches that have
// not come back in time.
func (k *keep) expire(now time.Time) {
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

// away takes a packet-in that was sent away. One that the next process could do
// nothing with is only counted.
func (o *outgoing) away(msg []byte, in *flow.PacketIn) {
	if o.ring == nil || in.Key.EthType == flow.EthTypeLLDP { // those return apart
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
	o.ring.tail.Store(o.tail) // before what is there is written over
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

// again is what an earlier process has left of a session's switch, until it is
// dealt with. Only the reading goroutine uses it.
type again struct {
	list []leftOver // the last first
	due  int64      // ns
}

// resume takes what was left: the session deals with it, or loses it.
func (s *session) resume(left []leftOver) {
	if len(left) == 0 {
		return
	}
	s.progress.pending.Add(int64(len(left)))
	s.again = again{left, time.Now().Add(againAfter).UnixNano()}
	// The answer wakes the goroutine, should the switch have nothing to say.
	time.AfterFunc(againAfter, func() { s.askEcho(time.Now()) })
}

// dealAgain deals with what was left, as if it had come now.
func (s *session) dealAgain(now int64) error {
	if s.again.list == nil || now < s.again.due {
		return nil
	}
	list := s.again.list
	s.again.list = nil
	ws := s.in.ws
	for i := len(list) - 1; i >= 0; i-- {
		l := list[i]
		if now-l.at > int64(leftOverFor) || l.msg[0] != byte(s.version) {
			s.progress.lose(1)
			continue
		}
		ws.packet.Switch, ws.packet.Time = s.dpid, now
		s.progress.tally.again.Add(1)
		if err := s.packetIn(l.msg); err != nil {
			return err
		}
		if len(ws.scratch) >= flushAt {
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	s.hub.log.Info("packet-ins of an earlier process dealt with", "dpid", s.dpid, "packets", len(list))
	return s.flush()
}

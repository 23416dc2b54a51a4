package sim

import "math/rand/v2"

// The identity of a packet, 31 bits so that it is never "no buffer" nor
// negative to those who read it as signed: the slot that it occupies, and how
// many packets have occupied the slot before, scrambled with the switch's key.
const (
	slotBits = 12
	turnBits = 31 - slotBits
	turnMask = 1<<turnBits - 1
	idMask   = 1<<31 - 1

	// MaxWindow is the most packet-ins that a switch can have outstanding.
	MaxWindow = 1 << slotBits
)

// slot is one packet that a switch keeps until it is answered.
type slot struct {
	id   uint32 // of the packet that is or was last here
	to   uint32 // where its destination is attached, see place; 0 is everywhere
	sent int64  // when it was sent, or was due; 0 is answered
}

// tracker knows the packets of one switch.
type tracker struct {
	slots  []slot
	window int      // slots in use: the first ones
	free   []uint32 // slots in use that hold no packet
	gone   []gone   // per slot: the packets given up
	turned []bool   // per slot: its turns have started over
	key    uint32
}

// gone remembers which packets of a slot were given up: bit i is the one i
// turns before turn.
type gone struct {
	turn uint32
	bits uint64
}

func (g *gone) add(turn uint32) {
	g.bits = g.bits<<((turn-g.turn)&turnMask) | 1
	g.turn = turn
}

func (g *gone) has(turn uint32) bool {
	return g.bits>>((g.turn-turn)&turnMask)&1 != 0
}

// resize makes room for window outstanding packets; none may be outstanding.
// What is known of earlier packets stays known.
func (t *tracker) resize(window int) {
	if len(t.slots) == 0 {
		t.key = rand.Uint32() & idMask
	}
	for s := len(t.slots); s < window; s++ {
		t.slots = append(t.slots, slot{id: uint32(s)})
		t.gone = append(t.gone, gone{})
		t.turned = append(t.turned, false)
	}
	t.window, t.free = window, t.free[:0]
	for s := window - 1; s >= 0; s-- {
		t.free = append(t.free, uint32(s))
	}
}

// outstanding returns how many packets are unanswered.
func (t *tracker) outstanding() int { return t.window - len(t.free) }

// issue puts a new packet into a slot that has been taken from free, and
// returns its identity on the wire.
func (t *tracker) issue(s uint32, to uint32, sent int64) uint32 {
	sl := &t.slots[s]
	id := (sl.id + 1<<slotBits) & idMask
	if id>>slotBits == 0 {
		t.turned[s] = true
	}
	sl.id, sl.to, sl.sent = id, to, sent
	return id ^ t.key
}

// verdict is what an answer's identity turns out to be.
type verdict uint8

const (
	verdictAnswer    verdict = iota // of an outstanding packet
	verdictDuplicate                // of a packet answered before
	verdictLate                     // of a packet given up
	verdictWrong                    // of no packet ever sent by this switch
)

// settle takes an answer to the packet called wire. On verdictAnswer the slot
// is returned, as it was, and is free from then on.
func (t *tracker) settle(wire uint32) (slot, verdict) {
	id := wire ^ t.key
	s := id & (MaxWindow - 1)
	if int(s) >= len(t.slots) {
		return slot{}, verdictWrong
	}
	sl := &t.slots[s]
	if sl.id == id && sl.sent != 0 {
		was := *sl
		sl.sent = 0
		t.free = append(t.free, s)
		return was, verdictAnswer
	}
	return slot{}, t.judge(id, s)
}

// judge returns the verdict on an identity that is not outstanding.
func (t *tracker) judge(id, s uint32) verdict {
	last := t.slots[s].id >> slotBits
	switch age := (last - id>>slotBits) & turnMask; {
	case id > idMask:
		return verdictWrong
	case !t.turned[s] && (id>>slotBits == 0 || age >= last):
		return verdictWrong
	case age > turnMask/2:
		return verdictWrong
	case t.gone[s].has(id >> slotBits):
		return verdictLate
	}
	return verdictDuplicate
}

// expire gives up the packets sent before a time and calls lost with when each
// was sent.
func (t *tracker) expire(before int64, lost func(sent int64)) {
	for s := range t.slots {
		sl := &t.slots[s]
		if sl.sent != 0 && sl.sent < before {
			lost(sl.sent)
			sl.sent = 0
			t.gone[s].add(sl.id >> slotBits)
			t.free = append(t.free, uint32(s))
		}
	}
}

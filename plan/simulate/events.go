package simulate

import (
	"math"
	"math/rand/v2"
)

// events simulates any system, event by event.
type events struct {
	system  System
	classes []traffic
	random  *rand.Rand

	now     float64
	arrival float64 // of the next packet
	coming  int     // its class
	gone    int     // class of the last packet that left or was lost
	// shared is the work on shared processors, by the attained time at which it
	// is done; attained is what each that works has had so far, and grows with
	// speed.
	shared   heap
	attained float64
	timers   heap // what ends at a time: idle, or work on an own processor
	queues   []queue
	first    []int // by stage: its first queue
	turn     []int // by stage: of RoundRobin
	packets  []packet
	unused   []int32
}

type packet struct {
	born float64
	idle float64 // what follows the work on a shared processor
	at   int32   // queue
	of   int32   // class
}

// traffic is the packets of one class.
type traffic struct {
	arrivals *arrivals
	next     float64     // arrival
	services []*sampler  // by stage
	enter    []float64   // probabilities of stages; nil: the first
	route    [][]float64 // nil: one stage after the other
}

// queue is the packets before copies: one copy's, or all of a stage.
type queue struct {
	stage   int
	copies  int
	busy    int
	waiting []int32
	head    int
}

func (q *queue) length() int { return q.busy + len(q.waiting) - q.head }

func newEvents(s System, seed uint64) *events {
	source := sources(seed)
	only := traffic{arrivals: newArrivals(s.Arrivals, s.Bursts, source()), route: s.Route}
	e := newStages(s, source())
	for _, st := range s.Stages {
		only.services = append(only.services, newSampler(st.Service, source()))
	}
	e.begun(only)
	return e
}

// newStages returns an engine without packets.
func newStages(s System, source rand.Source) *events {
	e := &events{system: s, random: rand.New(source), turn: make([]int, len(s.Stages))}
	for i, st := range s.Stages {
		e.first = append(e.first, len(e.queues))
		if st.Dispatch == Central {
			e.queues = append(e.queues, queue{stage: i, copies: st.Copies})
			continue
		}
		for range st.Copies {
			e.queues = append(e.queues, queue{stage: i, copies: 1})
		}
	}
	return e
}

// begun takes the classes of packets, and draws when the first of each come.
func (e *events) begun(classes ...traffic) {
	e.classes = classes
	for i := range e.classes {
		e.classes[i].next = e.classes[i].arrivals.draw()
	}
	e.soonest()
}

// soonest finds the next arrival.
func (e *events) soonest() {
	e.coming = 0
	for i := range e.classes {
		if e.classes[i].next < e.classes[e.coming].next {
			e.coming = i
		}
	}
	e.arrival = e.classes[e.coming].next
}

func (e *events) means() []float64    { return nil }
func (e *events) controls() []float64 { return nil }

// speed is what each that works gets of a processor.
func (e *events) speed() float64 {
	return min(1, float64(e.system.Processors)/float64(len(e.shared)))
}

func (e *events) next() (float64, bool) {
	for {
		work := math.Inf(1)
		if len(e.shared) > 0 {
			work = e.now + max(0, e.shared[0].at-e.attained)/e.speed()
		}
		timer := math.Inf(1)
		if len(e.timers) > 0 {
			timer = e.timers[0].at
		}
		at := min(work, timer, e.arrival)
		if len(e.shared) > 0 {
			e.attained += (at - e.now) * e.speed()
		} else {
			e.attained = 0
		}
		e.now = at
		switch at {
		case e.arrival:
			of := e.coming
			e.classes[of].next = at + e.classes[of].arrivals.draw()
			e.soonest()
			if e.enter(e.allot(of), e.entrance(of)) {
				return 0, true
			}
		case timer:
			if sojourn, left, lost := e.leave(e.timers.pop()); left || lost {
				return sojourn, lost
			}
		default:
			p := e.shared.pop()
			if idle := e.packets[p].idle; idle > 0 {
				e.timers.push(entry{e.now + idle, p})
				continue
			}
			if sojourn, left, lost := e.leave(p); left || lost {
				return sojourn, lost
			}
		}
	}
}

// entrance is the stage at which a packet of a class enters.
func (e *events) entrance(class int) int {
	enter := e.classes[class].enter
	if enter == nil {
		return 0
	}
	x, last := e.random.Float64(), 0
	for stage, p := range enter {
		if p > 0 {
			last = stage
		}
		if x -= p; x < 0 {
			return stage
		}
	}
	return last // but for rounding they add up to 1
}

// allot returns a new packet of a class.
func (e *events) allot(class int) int32 {
	if n := len(e.unused); n > 0 {
		p := e.unused[n-1]
		e.unused = e.unused[:n-1]
		e.packets[p].born, e.packets[p].of = e.now, int32(class)
		return p
	}
	e.packets = append(e.packets, packet{born: e.now, of: int32(class)})
	return int32(len(e.packets) - 1)
}

// enter gives a packet to a stage, or loses it.
func (e *events) enter(p int32, stage int) (lost bool) {
	st := &e.system.Stages[stage]
	at := e.first[stage]
	switch st.Dispatch {
	case Central:
	case RoundRobin:
		e.turn[stage] = (e.turn[stage] + 1) % st.Copies
		at += e.turn[stage]
	case Shortest:
		for i := at + 1; i < e.first[stage]+st.Copies; i++ {
			if e.queues[i].length() < e.queues[at].length() {
				at = i
			}
		}
	default:
		if st.Copies > 1 {
			at += e.random.IntN(st.Copies)
		}
	}
	q := &e.queues[at]
	if st.Room > 0 && q.length() >= st.Room {
		e.drop(p)
		return true
	}
	e.packets[p].at = int32(at)
	if q.busy < q.copies {
		e.begin(p, q)
		return false
	}
	q.waiting = append(q.waiting, p)
	return false
}

// begin has a copy serve a packet.
func (e *events) begin(p int32, q *queue) {
	q.busy++
	service := e.classes[e.packets[p].of].services[q.stage].draw()
	if e.system.Processors == 0 {
		e.timers.push(entry{e.now + service, p})
		return
	}
	idle := e.system.Stages[q.stage].Idle * service
	e.packets[p].idle = idle
	e.shared.push(entry{e.attained + service - idle, p})
}

// leave ends the service of a packet, which goes to the next stage or has left.
func (e *events) leave(p int32) (sojourn float64, left, lost bool) {
	q := &e.queues[e.packets[p].at]
	q.busy--
	if q.head < len(q.waiting) {
		following := q.waiting[q.head]
		if q.head++; q.head == len(q.waiting) {
			q.waiting, q.head = q.waiting[:0], 0
		} else if q.head > 1024 && 2*q.head > len(q.waiting) {
			q.waiting = q.waiting[:copy(q.waiting, q.waiting[q.head:])]
			q.head = 0
		}
		e.begin(following, q)
	}
	if to := e.after(p, q.stage); to >= 0 {
		return 0, false, e.enter(p, to)
	}
	e.drop(p)
	return e.now - e.packets[p].born, true, false
}

// drop ends a packet.
func (e *events) drop(p int32) {
	e.unused = append(e.unused, p)
	e.gone = int(e.packets[p].of)
}

// after returns the stage that follows one, -1 if the packet leaves.
func (e *events) after(p int32, stage int) int {
	route := e.classes[e.packets[p].of].route
	if route == nil {
		if stage++; stage < len(e.system.Stages) {
			return stage
		}
		return -1
	}
	x := e.random.Float64()
	for to, share := range route[stage] {
		if x -= share; x < 0 {
			return to
		}
	}
	return -1
}

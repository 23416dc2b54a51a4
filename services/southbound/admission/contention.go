package admission

import (
	"sync"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// Pressure is what the packet-ins of a switch compete with.
type Pressure struct {
	Full      bool    // packet-ins wait to be handled, or wait in the switch
	Elsewhere float64 // mean packet-ins per second of the other switches that send any
}

// probing is a port that sent probes.
type probing struct {
	port flow.Port
	at   int64 // the last, ns
}

// probingFor is how long a port counts as sending probes after it has sent one:
// a switch whose queue is full also drops probes.
const probingFor = int64(time.Minute)

// recordProbe records that a port sent a probe. It keeps the last two such ports:
// one of them is not the port in question.
func (a *Filter) recordProbe(now int64, port flow.Port) {
	p := &a.probing
	if p[0].port != port {
		p[0], p[1] = probing{port: port}, p[0]
	}
	p[0].at = now
}

// isContended reports whether a port that sends much makes others wait: either
// other ports of its switch send too, or the processor or the switch's queue is
// full and probes of other ports, or other switches, suffer.
func (a *Filter) isContended(now int64, p *portSlot, by Pressure) bool {
	others := a.talking
	if p.epoch == a.epoch && p.packetIns() > 0 {
		others--
	}
	if others > 0 {
		return true
	}
	if !by.Full {
		return false
	}
	for _, other := range a.probing {
		if other.port != p.port && other.at != 0 && now-other.at < probingFor {
			return true
		}
	}
	return by.Elsewhere > 0
}

// Rates adds up what all switches send, window by window.
type Rates struct {
	mu        sync.Mutex // guards what follows
	from      int64      // when the window began
	number    uint64     // of the window
	now, last sum        // of this window, and of the one before
}

// sum is a sum of rates: packet-ins per second of n switches.
type sum struct {
	rate float64
	n    int
}

// Rate is what one switch last added to sending.
type Rate struct {
	window uint64
	rate   float64
}

// Add adds the packet-ins per second that a switch sent in its own window, and
// returns the mean of the other switches that send any.
func (x *Rates) Add(now int64, own *Rate, rate float64) (elsewhere float64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if passed := now - x.from; passed >= window {
		x.last, x.now = x.now, sum{}
		if passed >= 3*window {
			x.last = sum{}
		}
		x.from = now
		x.number++
	}
	others := x.last
	if own.rate > 0 && own.window+1 == x.number {
		others.rate -= own.rate
		others.n--
	}
	if rate > 0 && (own.rate == 0 || own.window != x.number) {
		x.now.rate += rate
		x.now.n++
		*own = Rate{x.number, rate}
	}
	if others.n < 1 {
		return 0
	}
	return max(others.rate, 0) / float64(others.n)
}

package session

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/services/southbound/beats"
)

// doubt is how long a switch may take to answer an echo while another
// connection claims its identity.
const doubt = 2 * time.Second

// Timeouts are the times after which a session is asked for an echo, or ends.
type Timeouts struct{ EchoInterval, DeadAfter, WriteTimeout time.Duration }

// liveness is what shows whether the switch of a session lives: what was read last, the
// echoes that it owes and how long it took for others. Any goroutine may use it.
type liveness struct {
	*channel
	lastRead atomic.Int64 // ns
	partial  atomic.Int64 // since when a message is incomplete, in ns
	asked    atomic.Int64 // when the unanswered echo was sent, in ns
	doubted  atomic.Bool  // another connection claims the identity
	echo     atomic.Int64 // last round trip, in ns
	fastest  atomic.Int64 // shortest round trip, in ns; 0 before the first
	pulse    pulse
	echoes   echoes
	beat     atomic.Pointer[beats.Beat] // of the standing order; nil while this process is not master
}

// check sends an echo to a silent switch and ends the session of a switch that
// does not answer, does not read, or does not finish a message.
func (l *liveness) check(now time.Time, t *Timeouts) {
	silent := now.Sub(time.Unix(0, l.lastRead.Load()))
	partial, asked := l.partial.Load(), l.asked.Load()
	switch {
	case l.doubted.Load() && asked != 0 && now.Sub(time.Unix(0, asked)) > doubt:
		l.End("another connection claims this datapath id, and this one does not answer")
	case l.out.stuckFor(now) > t.WriteTimeout:
		l.End(fmt.Sprintf("the switch has not read for %v", t.WriteTimeout))
	case silent > t.DeadAfter:
		l.End(fmt.Sprintf("the switch has been silent for %v", t.DeadAfter))
	case partial != 0 && now.Sub(time.Unix(0, partial)) > t.DeadAfter:
		l.End(fmt.Sprintf("the switch has not finished a message within %v", t.DeadAfter))
	case silent > t.EchoInterval && asked == 0:
		l.askEcho(now)
	}
}

// doubt gives a switch whose identity another connection claims a short time
// to answer an echo.
func (l *liveness) doubt() {
	l.doubted.Store(true)
	if l.asked.Load() == 0 {
		l.askEcho(time.Now())
	}
}

// askEcho sends the switch an echo request.
func (l *liveness) askEcho(now time.Time) {
	l.asked.Store(now.UnixNano())
	if msg, err := l.Version.AppendEchoRequest(nil, l.xid.Add(1), nil); err == nil {
		_ = l.out.put(msg)
	}
}

// echoReply handles the answer, read at the time read (ns), to one of our echo
// requests.
func (l *liveness) echoReply(xid uint32, read int64) {
	age := time.Duration(max(0, time.Now().UnixNano()-read))
	if m := l.beat.Load(); m != nil {
		if trip, ok := m.Answered(xid, age); ok {
			l.roundTrip(int64(trip))
			return
		}
	}
	if took, ok := l.echoes.answered(xid, age); ok {
		l.roundTrip(int64(took))
		return
	}
	if at := l.asked.Swap(0); at != 0 {
		l.roundTrip(read - at)
		l.doubted.Store(false)
	}
}

// roundTrip records how long an answer took, in nanoseconds.
func (l *liveness) roundTrip(took int64) {
	l.echo.Store(took)
	if f := l.fastest.Load(); f == 0 || took < f {
		l.fastest.Store(max(took, 1))
	}
}

// notePartial records whether the beginning of a message waits for its end:
// since now, if messages before it were finished.
func (l *liveness) notePartial(is, finished bool, now int64) {
	switch {
	case !is:
		l.partial.Store(0)
	case finished:
		l.partial.Store(now)
	default:
		l.partial.CompareAndSwap(0, now)
	}
}

// slowEcho is the least time that an echo takes if the queue of a switch is
// full; slowFactor is how many times its fastest echo it takes then.
const (
	slowEcho   = 100 * time.Millisecond
	slowFactor = 4
)

// queueFull reports whether an answer of the switch takes so long that the
// queue before it must be full.
func (l *liveness) queueFull(now int64) bool {
	since := l.echoes.oldest()
	if at := l.asked.Load(); at != 0 && (since == 0 || at < since) {
		since = at
	}
	return since != 0 && now-since > max(int64(slowEcho), slowFactor*l.fastest.Load())
}

// pulse detects heartbeats on a session: a steady series of echoes, not only
// echoes on an idle connection.
type pulse struct{ last, until atomic.Int64 } // ns

// Echoes that follow each other within pulseWithin are heartbeats; they count
// as going on for pulseFor after the last.
const (
	pulseWithin = int64(2 * time.Second)
	pulseFor    = int64(4 * time.Second)
)

// beat records an echo.
func (p *pulse) beat(now int64) {
	if now-p.last.Swap(now) < pulseWithin {
		p.until.Store(now + pulseFor)
	}
}

// beats reports whether there are heartbeats.
func (p *pulse) beats() bool {
	until := p.until.Load()
	return until != 0 && time.Now().UnixNano() < until
}

// peer is a session as the standing order for beats sees it.
type peer struct{ *channel }

func (p peer) NextXid() uint32 { return p.xid.Add(1) }

// SendBeat sends an echo request, ahead of all queued messages if what is
// real-time is first.
func (p peer) SendBeat(msg []byte) error {
	if p.shared.Config.Load().RealtimeFirst {
		return p.out.putFirst(msg)
	}
	return p.out.put(msg)
}

// beginBeats puts the switch under the standing order.
func (l *liveness) beginBeats() {
	request, err := l.Version.AppendEchoRequest(nil, 0, nil)
	if err == nil { // the versions that a session may have all have one
		l.beat.Store(l.shared.Beats.Add(peer{l.channel}, l.DPID.String(), request))
	}
}

// endBeats undoes beginBeats.
func (l *liveness) endBeats(cause error) {
	m := l.beat.Swap(nil)
	if m == nil {
		return
	}
	reason := "closed"
	if cause != nil {
		reason = Printable(cause.Error())
	}
	l.shared.Beats.Drop(m, reason)
}

// joinBeat adds the switch's next beat to messages that are about to be
// written to it, if it is due soon; at is about now, by the clock of the beats.
func (l *liveness) joinBeat(b []byte, at int64) []byte {
	if m := l.beat.Load(); m != nil {
		return m.Join(b, at)
	}
	return b
}

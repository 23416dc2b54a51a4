package session

import (
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/southbound/admission"
)

// floods is the admission of a session's packet-ins, and what limits floods of them.
// Only the reading goroutine uses it, except for limits.
type floods struct {
	*channel
	alive     *liveness
	handshake *handshake
	send      func(*flow.Decision) // adds the messages of a flood limiter to those of the batch

	filter  admission.Filter
	backlog backlog
	sent    admission.Rate
	without bool                             // the switch refuses flood limiters
	xids    []uint32                         // of the last messages of a flood limiter
	limits  atomic.Pointer[[]*api.PortLimit] // as of the last window; nil if there are none
}

// roll ends a window of the session's admission. It publishes which ports are
// now limited and which no longer are, and writes or removes their meters.
func (f *floods) roll(now int64, behind bool) {
	f.filter.Rule = f.shared.Config.Load().Flood
	before := len(f.filter.Limited)
	by := admission.Pressure{Full: behind || f.alive.queueFull(now), Elsewhere: f.shared.sending.Add(now, &f.sent, f.filter.Rate)}
	changes := f.filter.Roll(now, by, nil)
	for _, c := range changes {
		if c.Ended {
			f.removeLimiter(c.Limit)
		}
		f.publish(c)
	}
	if len(f.filter.Limited) == 0 {
		if before > 0 {
			f.limits.Store(nil)
		}
		return
	}
	var list []*api.PortLimit
	for _, l := range f.filter.Limited {
		f.writeLimiter(l, now)
		list = append(list, f.describe(l))
	}
	f.limits.Store(&list)
}

// publish publishes that the limit of a port began or ended.
func (f *floods) publish(c admission.Change) {
	l := f.describe(c.Limit)
	if c.Ended {
		f.shared.Log.Info("flood over", "dpid", f.DPID, "port", l.Port, "shed", l.Shed, "since", l.Since)
	} else {
		f.shared.total.floods.Add(1)
		f.shared.Log.Warn("flood of packet-ins limited", "dpid", f.DPID, "port", l.Port, "class", l.Class, "per_second", int(l.Offered), "limit", int(l.Limit))
	}
	f.shared.FloodChanged(&api.FloodChanged{Limit: l, Ended: c.Ended})
}

// end publishes that the limits of a session that is over are over. Nobody reads the
// session any more.
func (f *floods) end() {
	f.limits.Store(nil)
	for _, l := range f.filter.Limited {
		f.publish(admission.Change{Limit: l, Ended: true})
	}
}

func (f *floods) describe(l *admission.PortLimit) *api.PortLimit {
	p := &api.PortLimit{
		Dpid: f.DPID.String(), Port: uint32(l.Port), Class: l.Class.String(), Offered: l.Offered, Limit: l.Rate, Where: "controller",
		Since: time.Unix(0, l.Since).UTC().Format(time.RFC3339), Shed: l.Shed,
	}
	if l.Limiter.Pushed != 0 {
		p.Where = "switch"
	}
	if l.MAC != (flow.MAC{}) {
		p.Mac = l.MAC.String()
	}
	return p
}

// backlog detects whether packet-ins of a session wait to be handled: either
// each read has for a while brought as much as it could, or for as long many
// packets have been on their way through stages in other processes.
type backlog struct {
	away  awayer // nil if the number is unknown
	since int64  // ns; 0: nothing waits
}

// awayer counts the packets on their way through stages in other processes.
type awayer interface{ Away() int64 }

const (
	behindAfter = int64(50 * time.Millisecond)
	awayMost    = 2048 // packets of one session; some milliseconds' worth
)

// evaluate evaluates a read, and reports whether the session is behind.
func (b *backlog) evaluate(r *reader, now int64) bool {
	if !r.wasFull() && (b.away == nil || b.away.Away() < awayMost) {
		b.since = 0
		return false
	}
	if b.since == 0 {
		b.since = now
	}
	return now-b.since >= behindAfter
}

package discovery

import (
	"cmp"
	"slices"
	"time"
)

// A cadence says how often links are probed, and how long they may be silent.
type cadence struct {
	*registry
	arranged int64    // when the order of the switches was made
	ordered  int      // how many links there were then
	stretch  int64    // intervals between two probes of a guarded link
	ownDelay ownDelay // of all probes
}

// orderSwitches orders the switches for sending probes, after links have come or
// gone: breadth first over the links, so that the neighbours of a switch send
// one after the other. Their probes then reach it in few batches rather than
// one by one, each at the cost of a wake-up, and the probes of the whole
// network are spread evenly over time.
func (c *cadence) orderSwitches(now int64, links int) {
	if !c.moved {
		return
	}
	if at := c.arranged + arrangeEvery; at > now && links < 2*c.ordered+1000 {
		c.schedule(at)
		return
	}
	c.moved, c.arranged, c.ordered = false, now, links
	c.setStretch(links)
	roots := slices.Clone(c.order)
	slices.SortFunc(roots, func(a, b *datapath) int { return cmp.Compare(a.id, b.id) })
	seen := make(map[*datapath]bool, len(roots))
	c.order = c.order[:0]
	done := 0
	visit := func(dp *datapath) {
		if !seen[dp] {
			seen[dp] = true
			c.order = append(c.order, dp)
		}
	}
	for _, root := range roots {
		for visit(root); done < len(c.order); done++ {
			for _, p := range c.order[done].ports {
				if p.out != nil {
					visit(p.out.dst.dp)
				}
			}
		}
	}
	for i, dp := range c.order {
		at := float64(i) / float64(len(c.order)) * float64(c.stretch)
		dp.turn = int64(at)
		dp.phase = at - float64(dp.turn)
	}
}

// arrangeEvery is the least time between two arrangements, unless the number of
// links has at least doubled.
const arrangeEvery = int64(5 * time.Second)

// probeInterval returns the time between two probes of a link.
func (c *cadence) probeInterval(now int64, l *link) int64 {
	if c.stretch > 1 && c.hasPortStatus(now, l) {
		return c.stretch * c.cfg.linkInterval()
	}
	return c.cfg.linkInterval()
}

// hasPortStatus reports whether port status is likely to report the failure of a
// link before probes do: the link is up, and has not recently gone down without
// port status.
func (c *cadence) hasPortStatus(now int64, l *link) bool {
	return l.state == up && (l.flaps.mute == 0 || now-l.flaps.mute > int64(c.cfg.Forget))
}

// silenceLimit returns how long a link stays up without a probe.
func (c *cadence) silenceLimit(now int64, l *link) int64 {
	return c.probeInterval(now, l) + c.cfg.linkTimeout() - c.cfg.linkInterval() + 2*int64(c.ownDelay)
}

// guardedSilence returns how long a link with port status stays up without a probe.
func (c *cadence) guardedSilence() int64 {
	return (c.stretch-1)*c.cfg.linkInterval() + c.cfg.linkTimeout() + 2*int64(c.ownDelay)
}

// doubtLimit returns how long after its last probe a link is in doubt.
func (c *cadence) doubtLimit(now int64, l *link) int64 {
	return c.probeInterval(now, l) + c.probeGrace() + int64(c.ownDelay)
}

// setStretch sets how rarely links with port status are probed, so that at most
// ProbesPerSecond probes are sent. If liveness is on, they are probed in every
// interval.
func (c *cadence) setStretch(links int) {
	c.stretch = 1
	if wanted := int64(c.cfg.ProbesPerSecond) * c.cfg.linkInterval() / int64(time.Second); c.cfg.Liveness.Interval == 0 {
		c.stretch = max((int64(links)+wanted-1)/max(wanted, 1), 1)
	}
}

// probeGrace returns how long a probe of a link may be late, and the time
// between the probes of one that is in doubt.
func (c *cadence) probeGrace() int64 { return (c.cfg.linkTimeout() - c.cfg.linkInterval()) / 3 }

// ownDelay is the delay that this process adds: the smoothed time that recent
// probes took, in nanoseconds. Links get that much more time.
type ownDelay int64

// ownDelayMost bounds it: no queue of ours is longer.
const ownDelayMost = int64(10 * time.Second)

// add records the time that a probe took.
func (s *ownDelay) add(age int64) {
	d := min(age, ownDelayMost) - int64(*s)
	if d > 0 {
		*s += ownDelay(d / 8)
	} else {
		*s += ownDelay(d / 64)
	}
}

// scheduleCheck schedules a check of a link at a time.
func (c *cadence) scheduleCheck(l *link, at int64) {
	l.src.dp.checkAt = min(l.src.dp.checkAt, at)
	c.schedule(at)
}

package router

import (
	"sync/atomic"
	"time"
)

// Counter is a figure that only grows.
type Counter interface{ Add(float64) }

// nothing is a counter that nobody looks at.
type nothing struct{}

func (nothing) Add(float64) {}

// counts is what the service counts of packets.
type counts struct {
	carried, asked                   Counter
	expired, unroutable, unreachable Counter
	spoofed, strange, shed, unsaid   Counter
}

// newCounts registers the figures; new may be nil.
func newCounts(new func(name, help string, labels ...string) Counter) *counts {
	if new == nil {
		new = func(string, string, ...string) Counter { return nothing{} }
	}
	const refused = "Packets that were not routed, by reason."
	of := func(reason string) Counter { return new("refused_total", refused, "reason", reason) }
	return &counts{
		carried: new("carried_total", "Packets that the controller has routed, because no switch had an entry yet."),
		asked:   new("questions_total", "Questions for the Ethernet addresses of neighbours."),
		expired: of("time_exceeded"), unroutable: of("no_route"), unreachable: of("no_answer"),
		spoofed: of("spoofed"), strange: of("strange"), shed: of("too_many_waiting"),
		unsaid: new("answers_shed_total", "Answers and ICMP errors that were not sent, for there were more than router.errors_per_second."),
	}
}

// allowance is how many answers may be sent in the second that begins now.
type allowance struct {
	until atomic.Int64
	left  atomic.Int64
}

// allowed reports whether an answer may be sent at a time.
func (b *book) allowed(now int64) bool {
	a := &b.errors
	if until := a.until.Load(); now >= until && a.until.CompareAndSwap(until, now+int64(time.Second)) {
		a.left.Store(int64(b.cfg.ErrorsPerSecond))
	}
	if a.left.Add(-1) < 0 {
		b.count.unsaid.Add(1)
		return false
	}
	return true
}

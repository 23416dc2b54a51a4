package router

import (
	"sync"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// Counter is a metric that only grows.
type Counter interface{ Add(float64) }

// nothing is a counter that discards its value.
type nothing struct{}

func (nothing) Add(float64) {}

// counts is the service's packet counters.
type counts struct {
	carried, asked                   Counter
	expired, unroutable, unreachable Counter
	spoofed, strange, shed, unsaid   Counter
}

// newCounts registers the metrics; new may be nil.
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
		unsaid: new("answers_shed_total", "Answers and ICMP errors that were not sent, for a port had more than router.errors_per_second."),
	}
}

// allowances is how many answers may be sent for packets from each port: a flood
// at one port takes nothing from others.
type allowances struct {
	mu sync.Mutex // guards of
	of map[flow.Location]*allowance
}

// allowance is the rest for the current second.
type allowance struct {
	until int64
	left  int
}

// allowancesMax bounds the recorded ports; beyond it, all begin anew.
const allowancesMax = 1 << 16

// allowed reports whether an answer to a packet may be sent.
func (b *store) allowed(in *flow.PacketIn) bool {
	a := &b.errors
	a.mu.Lock()
	defer a.mu.Unlock()
	at := flow.Location{Switch: in.Switch, Port: in.Key.InPort}
	x := a.of[at]
	if x == nil {
		if len(a.of) >= allowancesMax || a.of == nil {
			a.of = map[flow.Location]*allowance{}
		}
		x = &allowance{}
		a.of[at] = x
	}
	if in.Time >= x.until {
		x.until, x.left = in.Time+int64(time.Second), b.cfg.Load().ErrorsPerSecond
	}
	if x.left == 0 {
		b.count.unsaid.Add(1)
		b.reached.ReachAt(in.Time, "router.errors_per_second", b.cfg.Load().ErrorsPerSecond, at)
		return false
	}
	x.left--
	return true
}

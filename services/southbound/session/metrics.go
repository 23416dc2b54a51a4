package session

import (
	"slices"
	"sync/atomic"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/southbound/admission"
)

// Metrics is the registry of the service's metrics; weft.Metrics is one.
type Metrics interface {
	CounterFunc(name, help string, read func() float64, labels ...string)
	Gauge(name, help string, read func() float64, labels ...string)
}

// counts are the metrics of one session, and the sum of those of ended
// sessions.
type counts struct {
	packetIns, packetOuts, flowMods, errors, shed, portEventsHeld atomic.Uint64
}

func (c *counts) add(b *batchCounts) {
	if b.packetIns > 0 {
		c.packetIns.Add(b.packetIns)
	}
	if b.packetOuts > 0 {
		c.packetOuts.Add(b.packetOuts)
	}
	if b.flowMods > 0 {
		c.flowMods.Add(b.flowMods)
	}
	*b = batchCounts{}
}

// batchCounts are the counts of one batch, added to counts at its end.
type batchCounts struct{ packetIns, packetOuts, flowMods, away uint64 }

func (c *batchCounts) op(kind flow.OpKind) {
	switch kind {
	case flow.OpFlow:
		c.flowMods++
	case flow.OpPacketOut:
		c.packetOuts++
	}
}

// op counts a message to the switch that a packet of another switch, or a
// service, caused.
func (c *counts) op(kind flow.OpKind) {
	switch kind {
	case flow.OpFlow:
		c.flowMods.Add(1)
	case flow.OpPacketOut:
		c.packetOuts.Add(1)
	}
}

// Refusal is why a connection did not become a switch.
type Refusal int

const (
	RefusedDuplicate Refusal = iota // another connection has its identity
	RefusedElsewhere                // it is of another partition
	RefusedTooMany
	refusedHandshake
	refusalCount
)

// Refused counts a connection that did not become a switch.
func (h *Shared) Refused(why Refusal) { h.total.refused[why].Add(1) }

// totals are the metrics of the whole southbound.
type totals struct {
	over     counts // sum over ended sessions
	refused  [refusalCount]atomic.Uint64
	floods   atomic.Uint64 // limits of ports that began
	unheard  atomic.Uint64 // packet-ins during handshakes that were dropped
	excesses map[admission.Bound]*atomic.Uint64
	notIn    [admission.ReasonCount][admission.ClassCount]atomic.Uint64 // packet-ins not admitted
}

func (t *totals) addClosed(c *counts) {
	for to, from := range map[*atomic.Uint64]*atomic.Uint64{
		&t.over.packetIns: &c.packetIns, &t.over.packetOuts: &c.packetOuts, &t.over.flowMods: &c.flowMods,
		&t.over.errors: &c.errors, &t.over.shed: &c.shed, &t.over.portEventsHeld: &c.portEventsHeld,
	} {
		to.Add(from.Load())
	}
}

// Register registers the metrics.
func (h *Shared) Register(m Metrics) {
	t := &h.total
	h.tally.Register(m.CounterFunc)
	sum := func(name, help string, counter func(*counts) *atomic.Uint64) {
		m.CounterFunc(name, help, func() float64 {
			n := counter(&t.over).Load()
			for _, s := range h.Up.All() {
				n += counter(&s.count).Load()
			}
			return float64(n)
		})
	}
	sum("packet_ins_total", "Packet-ins received.", func(c *counts) *atomic.Uint64 { return &c.packetIns })
	sum("packet_outs_total", "Packet-outs sent.", func(c *counts) *atomic.Uint64 { return &c.packetOuts })
	sum("flow_mods_total", "Flow-mods sent.", func(c *counts) *atomic.Uint64 { return &c.flowMods })
	sum("errors_total", "Error messages received.", func(c *counts) *atomic.Uint64 { return &c.errors })
	sum("port_events_held_total", "Port-status messages held back because the port sent too many.", func(c *counts) *atomic.Uint64 { return &c.portEventsHeld })
	for why, reason := range [...]string{"duplicate", "elsewhere", "too_many", "handshake"} {
		n := &t.refused[why]
		m.CounterFunc("connections_refused_total", "Connections that did not become a switch.", func() float64 { return float64(n.Load()) }, "reason", reason)
	}
	for why := admission.OverPort; why < admission.ReasonCount; why++ {
		for c := range admission.ClassCount {
			if why == admission.OverSender && c == admission.ClassProbes {
				continue // probes have no allowance by address
			}
			n := &t.notIn[why][c]
			m.CounterFunc("shed_total", "Packet-ins shed on arrival, because their port or the address they come from sends too many.",
				func() float64 { return float64(n.Load()) }, "reason", why.String(), "class", c.String())
		}
	}
	for b, n := range t.excesses {
		m.CounterFunc("excesses_total", "Times that a switch exceeded a bound, and was disconnected or had its answer given up.", func() float64 { return float64(n.Load()) }, "bound", string(b))
	}
	m.Gauge("held_bytes", "Memory that is held for switches.", func() float64 { held, _ := h.memory.Size(); return float64(held) }, "of", "all")
	m.Gauge("held_bytes", "Memory that is held for switches.", func() float64 { _, begun := h.memory.Size(); return float64(begun) }, "of", "handshakes")
	m.CounterFunc("shed_total", "Packet-ins shed on arrival, because their port or the address they come from sends too many.",
		func() float64 { return float64(t.unheard.Load()) }, "reason", "handshake", "class", "all")
	m.CounterFunc("floods_total", "Times that a port's packet-ins have begun to be limited.", func() float64 { return float64(t.floods.Load()) })
	m.Gauge("limited_ports", "Ports whose packet-ins are limited now.", func() float64 { return float64(len(h.Limits(""))) })
	m.Gauge("switches", "Switches connected.", func() float64 { return float64(h.Up.count.Load()) })
}

// shedPacketIns adds what a session has shed since the last call.
func (t *totals) shedPacketIns(a *admission.Filter) {
	for why := range a.Shed {
		for c, n := range a.Shed[why] {
			if n > 0 {
				t.notIn[why][c].Add(n)
				a.Shed[why][c] = 0
			}
		}
	}
	a.AnyShed = false
}

// Shed returns how many packet-ins were not admitted, by reason and class.
func (h *Shared) Shed() map[string]uint64 {
	all := map[string]uint64{}
	for why := admission.OverPort; why < admission.ReasonCount; why++ {
		for c := range admission.ClassCount {
			if n := h.total.notIn[why][c].Load(); n > 0 {
				all[why.String()+" "+c.String()] = n
			}
		}
	}
	return all
}

// Limits returns the ports that are limited on a switch, or on all, in order.
func (h *Shared) Limits(dpid string) (list []*api.PortLimit) {
	for sw, s := range h.Up.All() {
		if l := s.floods.limits.Load(); l != nil && (dpid == "" || dpid == sw.String()) {
			list = append(list, *l...)
		}
	}
	slices.SortFunc(list, func(a, b *api.PortLimit) int {
		if a.Dpid != b.Dpid {
			if a.Dpid < b.Dpid {
				return -1
			}
			return 1
		}
		return int(int64(a.Port) - int64(b.Port))
	})
	return list
}

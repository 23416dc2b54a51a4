package southbound

import (
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/internal/keypair"
	"github.com/weft-sdn/weft/services/southbound/mastership"
)

// figures is the registry of the service's metrics; weft.Metrics is one.
type figures interface {
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

// totals are the metrics of the whole southbound.
type totals struct {
	over     counts // sum over ended sessions
	refused  struct{ duplicate, elsewhere, tooMany, handshake atomic.Uint64 }
	shed     struct{ queue, away, unsendable, fenced, claimed atomic.Uint64 }
	floods   atomic.Uint64 // limits of ports that began
	unheard  atomic.Uint64 // packet-ins during handshakes that were dropped
	excesses map[bound]*atomic.Uint64
	notIn    [reasonCount][classCount]atomic.Uint64 // packet-ins not admitted
}

func (t *totals) closed(c *counts) {
	for to, from := range map[*atomic.Uint64]*atomic.Uint64{
		&t.over.packetIns: &c.packetIns, &t.over.packetOuts: &c.packetOuts, &t.over.flowMods: &c.flowMods,
		&t.over.errors: &c.errors, &t.over.shed: &c.shed, &t.over.portEventsHeld: &c.portEventsHeld,
	} {
		to.Add(from.Load())
	}
}

// register registers the metrics.
func (t *totals) register(m figures, h *hub) {
	sum := func(name, help string, figure func(*counts) *atomic.Uint64) {
		m.CounterFunc(name, help, func() float64 {
			n := figure(&t.over).Load()
			for _, s := range h.up.all() {
				n += figure(&s.count).Load()
			}
			return float64(n)
		})
	}
	sum("packet_ins_total", "Packet-ins received.", func(c *counts) *atomic.Uint64 { return &c.packetIns })
	sum("packet_outs_total", "Packet-outs sent.", func(c *counts) *atomic.Uint64 { return &c.packetOuts })
	sum("flow_mods_total", "Flow-mods sent.", func(c *counts) *atomic.Uint64 { return &c.flowMods })
	sum("errors_total", "Error messages received.", func(c *counts) *atomic.Uint64 { return &c.errors })
	sum("port_events_held_total", "Port-status messages held back because the port sent too many.", func(c *counts) *atomic.Uint64 { return &c.portEventsHeld })
	for reason, n := range map[string]*atomic.Uint64{"duplicate": &t.refused.duplicate, "elsewhere": &t.refused.elsewhere, "too_many": &t.refused.tooMany, "handshake": &t.refused.handshake} {
		m.CounterFunc("connections_refused_total", "Connections that did not become a switch.", func() float64 { return float64(n.Load()) }, "reason", reason)
	}
	for reason, n := range map[string]*atomic.Uint64{"queue_full": &t.shed.queue, "away": &t.shed.away, "unsendable": &t.shed.unsendable, "not_master": &t.shed.fenced, "not_own": &t.shed.claimed} {
		m.CounterFunc("messages_shed_total", "Messages that could not be sent to a switch.", func() float64 { return float64(n.Load()) }, "reason", reason)
	}
	for why := overPort; why < reasonCount; why++ {
		for c := range classCount {
			if why == overSender && c == classProbes {
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
	m.Gauge("held_bytes", "Memory that is held for switches.", func() float64 { held, _ := h.memory.size(); return float64(held) }, "of", "all")
	m.Gauge("held_bytes", "Memory that is held for switches.", func() float64 { _, begun := h.memory.size(); return float64(begun) }, "of", "handshakes")
	m.CounterFunc("shed_total", "Packet-ins shed on arrival, because their port or the address they come from sends too many.",
		func() float64 { return float64(t.unheard.Load()) }, "reason", "handshake", "class", "all")
	m.CounterFunc("floods_total", "Times that a port's packet-ins have begun to be limited.", func() float64 { return float64(t.floods.Load()) })
	m.Gauge("limited_ports", "Ports whose packet-ins are limited now.", func() float64 { return float64(len(h.limits(""))) })
	m.Gauge("switches", "Switches connected.", func() float64 { return float64(h.up.count.Load()) })
	m.Gauge("switches_standing_by", "Switches whose sessions are held ready while another process is their master.", func() float64 { return float64(h.held()) })
}

// register registers the TLS refusals and when the certificate expires.
func (s *secrets) register(m figures, pair *keypair.Pair) {
	if s.plain() {
		return
	}
	for why, n := range s.refuse {
		m.CounterFunc("connections_refused_total", "Connections that did not become a switch.", func() float64 { return float64(n.Load()) }, "reason", string(why))
	}
	m.Gauge("certificate_expiry_seconds", "Time until the certificate that switches are shown expires.", func() float64 { return time.Until(pair.Expires()).Seconds() })
	m.Gauge("certificate_problem", "1 if the files of the certificate are not right, and the last good ones in use.", func() float64 {
		if pair.Err() != nil {
			return 1
		}
		return 0
	})
}

// registerMastership registers the metrics of the mastership.
func registerMastership(m *mastership.Mastership, f figures) {
	f.Gauge("lease_held", "1 if this process is master of its partition's switches and may program them.", func() float64 {
		if m.Fence.Open() {
			return 1
		}
		return 0
	})
	f.Gauge("lease_epoch", "The generation id of the last master that this process knows of.", func() float64 {
		_, epoch, _ := m.Holder()
		return float64(epoch)
	})
	f.Gauge("lease_seconds", "Time for which the mastership is held if it is not renewed; 0 if it is not held.", func() float64 { return m.Left().Seconds() })
	f.CounterFunc("lease_renewals_total", "Times that the mastership was taken or renewed.", func() float64 { return float64(m.Renewals.Load()) })
	f.CounterFunc("lease_promises_total", "Times that all standbys promised to leave the mastership here, since the store was late to renew it.", func() float64 { return float64(m.Pledges.Load()) })
	f.CounterFunc("lease_failures_total", "Attempts to read or renew the lease of the mastership that failed.", func() float64 { return float64(m.Failures.Load()) })
	f.CounterFunc("lease_suspensions_total", "Times that the lease ended before it was renewed, and switches were not programmed.", func() float64 { return float64(m.Suspensions.Load()) })
}

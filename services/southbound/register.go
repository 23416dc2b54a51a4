package southbound

import (
	"time"

	"github.com/weft-sdn/weft/internal/keypair"
	"github.com/weft-sdn/weft/services/southbound/mastership"
	"github.com/weft-sdn/weft/services/southbound/secure"
	"github.com/weft-sdn/weft/services/southbound/session"
)

// register registers the metrics.
func (h *hub) register(m session.Metrics) {
	h.Shared.Register(m)
	m.Gauge("switches_standing_by", "Switches whose sessions are held ready while another process is their master.", func() float64 { return float64(h.countStandby()) })
}

// register registers the TLS refusals and when the certificate expires.
func registerSecrets(m session.Metrics, s *secure.Secrets, pair *keypair.Pair) {
	if s.Plain() {
		return
	}
	for why, n := range s.Refuse {
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
func registerMastership(m *mastership.Mastership, f session.Metrics) {
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

package stats

// Counter is a metric that only grows.
type Counter interface{ Add(float64) }

// Observer takes the values of a distribution.
type Observer interface{ Observe(float64) }

// Meters makes the service's metrics.
type Meters struct {
	Counter   func(name, help string, labels ...string) Counter
	Gauge     func(name, help string, read func() float64, labels ...string)
	Histogram func(name, help string, bounds []float64, labels ...string) Observer
}

// metrics are the service's metrics. Ports come and go and may be very many, so
// the switches' counters are exported as sums over the ports of a switch, and of
// all switches; those of single ports are in ListPortStats.
type metrics struct {
	meters       Meters
	room         int // switches that may still get metrics of their own
	done, failed Counter
	took, waited Observer
}

func newMetrics(m Meters, p *Poller) *metrics {
	seconds := []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10}
	f := &metrics{
		meters: m, room: p.cfg.MetricSwitches,
		done:   m.Counter("polls", "Readings of a switch's counters.", "result", "done"),
		failed: m.Counter("polls", "Readings of a switch's counters.", "result", "failed"),
		took:   m.Histogram("poll_seconds", "How long a reading of one switch took.", seconds),
		waited: m.Histogram("poll_wait_seconds", "How long a reading that was due had to wait.", seconds),
	}
	f.switches(func(read func(*sums) uint64) func() float64 {
		return func() float64 {
			p.mu.Lock()
			defer p.mu.Unlock()
			var n float64
			for _, t := range p.switches {
				n += float64(read(&t.sample.sum))
			}
			return n
		}
	}, "all_")
	m.Gauge("switches", "Switches whose counters are read.", func() float64 {
		p.mu.Lock()
		defer p.mu.Unlock()
		return float64(p.up)
	})
	m.Gauge("interval_seconds", "Time between two readings of a switch that answers fast.", func() float64 {
		p.mu.Lock()
		defer p.mu.Unlock()
		return portInterval(p.cfg, p.load(), pace{}).Seconds()
	})
	return f
}

// admit reports whether one more switch gets metrics of its own. The caller holds
// Poller.mu.
func (f *metrics) admit() bool {
	if f.room == 0 {
		return false
	}
	f.room--
	return true
}

// register makes the metrics of one switch.
func (f *metrics) register(p *Poller, t *target) {
	f.switches(func(read func(*sums) uint64) func() float64 {
		return func() float64 {
			p.mu.Lock()
			defer p.mu.Unlock()
			return float64(read(&t.sample.sum))
		}
	}, "switch_", "dpid", t.sw.String())
}

// switches registers one gauge for each sum of counters; of makes its reader.
func (f *metrics) switches(of func(func(*sums) uint64) func() float64, prefix string, labels ...string) {
	for _, g := range []struct {
		name, help string
		read       func(*sums) uint64
	}{
		{"rx_bytes", "Bytes received, over all ports.", func(s *sums) uint64 { return s.rxBytes }},
		{"tx_bytes", "Bytes sent, over all ports.", func(s *sums) uint64 { return s.txBytes }},
		{"rx_packets", "Packets received, over all ports.", func(s *sums) uint64 { return s.rxPackets }},
		{"tx_packets", "Packets sent, over all ports.", func(s *sums) uint64 { return s.txPackets }},
		{"errors", "Errors when receiving or sending, over all ports.", func(s *sums) uint64 { return s.errors }},
		{"dropped", "Packets dropped when receiving or sending, over all ports.", func(s *sums) uint64 { return s.dropped }},
		{"ports", "Ports.", func(s *sums) uint64 { return uint64(s.ports) }},
		{"flow_entries", "Flow entries.", func(s *sums) uint64 { return uint64(s.entries) }},
	} {
		f.meters.Gauge(prefix+g.name, g.help, of(g.read), labels...)
	}
}

package deploy

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/plan"
)

// configMetrics exports metrics of the configuration in force in this process
// (prometheus.Collector).
type configMetrics struct {
	members       *membership
	applied, info *prometheus.Desc
	failures      weft.Counter

	mu         sync.Mutex // guards what follows
	generation uint64     // of the plan whose hash is known
	hash       string
	since      float64 // when it came into force, seconds since 1970
}

func newConfigMetrics(m *membership, w *local.Worker) *configMetrics {
	f := &configMetrics{
		members: m,
		applied: prometheus.NewDesc("weft_config_applied_timestamp_seconds", "When the configuration in force came into force in this process, seconds since 1970.", nil, nil),
		info:    prometheus.NewDesc("weft_config_info", "Always 1; its label hash is that of the configuration in force.", []string{"hash"}, nil),
	}
	own := w.Metrics("config")
	f.failures = own.Counter("failures_total", "Configurations that were refused, or put back because services did not come up with them.")
	w.Collect(f)
	return f
}

// Describe sends the descriptions of the metrics.
func (f *configMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- f.applied
	ch <- f.info
}

// Collect sends the metrics.
func (f *configMetrics) Collect(ch chan<- prometheus.Metric) {
	hash, since := f.read()
	if hash == "" {
		return
	}
	ch <- prometheus.MustNewConstMetric(f.applied, prometheus.GaugeValue, since)
	ch <- prometheus.MustNewConstMetric(f.info, prometheus.GaugeValue, 1, hash)
}

// read returns the hash of the configuration in force and when it came into
// force; the hash is empty if there is none yet.
func (f *configMetrics) read() (hash string, since float64) {
	f.members.mu.Lock()
	current, came := f.members.current, f.members.since
	f.members.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if current != nil && current.Generation != f.generation {
		f.generation = current.Generation
		if hash := plan.Hash(current.InForce().Config); hash != f.hash {
			f.hash, f.since = hash, float64(came.Add(f.members.ahead).UnixMilli())/1000
		}
	}
	return f.hash, f.since
}

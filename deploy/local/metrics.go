package local

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-sdn/weft"
)

// registry holds the metrics of one worker. It is a single collector of the
// worker's Registerer, so that all metrics go when the worker ends.
type registry struct {
	inner *prometheus.Registry
	desc  *prometheus.Desc

	mu      sync.Mutex          // guards metrics
	metrics map[string]any      // by name and labels
	askers  map[string]*Metrics // which service asked for a metric last
}

func newRegistry() *registry {
	return &registry{
		inner:   prometheus.NewRegistry(),
		desc:    prometheus.NewDesc("weft_deploy_worker", "The metrics of one worker.", nil, nil),
		metrics: map[string]any{}, askers: map[string]*Metrics{},
	}
}

// Describe sends one name for all metrics, under which a Registerer knows the
// worker, because metrics come and go.
func (r *registry) Describe(ch chan<- *prometheus.Desc) { ch <- r.desc }

// Collect reads all metrics.
func (r *registry) Collect(ch chan<- prometheus.Metric) { r.inner.Collect(ch) }

// Metrics are the metrics of one service: weft.Metrics. A wrong request for a
// metric is a programming error and panics.
type Metrics struct {
	registry *registry
	service  string
}

var metricName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func (m *Metrics) Counter(name, help string, labels ...string) weft.Counter {
	return metric(m, name, labels, func(full string, l prometheus.Labels) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: full, Help: help, ConstLabels: l})
	})
}

func (m *Metrics) CounterFunc(name, help string, read func() float64, labels ...string) {
	f := metric(m, name, labels, func(full string, l prometheus.Labels) *counterFunc {
		f := &counterFunc{}
		f.CounterFunc = prometheus.NewCounterFunc(prometheus.CounterOpts{Name: full, Help: help, ConstLabels: l}, f.value)
		f.set(read)
		return f
	})
	f.set(read)
}

func (m *Metrics) Gauge(name, help string, read func() float64, labels ...string) {
	f := metric(m, name, labels, func(full string, l prometheus.Labels) *gaugeFunc {
		f := &gaugeFunc{}
		f.GaugeFunc = prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: full, Help: help, ConstLabels: l}, f.value)
		f.set(read)
		return f
	})
	f.set(read)
}

func (m *Metrics) Histogram(name, help string, bounds []float64, labels ...string) weft.Observer {
	return metric(m, name, labels, func(full string, l prometheus.Labels) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: full, Help: help, ConstLabels: l, Buckets: bounds})
	})
}

// Remove removes a metric. A later request makes a new one.
func (m *Metrics) Remove(name string, labels ...string) {
	_, _, key := m.named(name, labels)
	m.registry.mu.Lock()
	defer m.registry.mu.Unlock()
	m.registry.remove(key)
}

// removeAll removes the metrics of a service that ended, except those that its
// next run has already asked for.
func (m *Metrics) removeAll() {
	m.registry.mu.Lock()
	defer m.registry.mu.Unlock()
	for key, asker := range m.registry.askers {
		if asker == m {
			m.registry.remove(key)
		}
	}
}

// remove is called with mu held.
func (r *registry) remove(key string) {
	if f, ok := r.metrics[key].(prometheus.Collector); ok {
		r.inner.Unregister(f)
	}
	delete(r.metrics, key)
	delete(r.askers, key)
}

// reading is the function that reads a metric; a later one replaces it.
type reading struct {
	read atomic.Pointer[func() float64]
}

func (r *reading) set(read func() float64) { r.read.Store(&read) }
func (r *reading) value() float64          { return (*r.read.Load())() }

type gaugeFunc struct {
	prometheus.GaugeFunc
	reading
}

type counterFunc struct {
	prometheus.CounterFunc
	reading
}

// named returns the full name of a metric, its labels, and its key.
func (m *Metrics) named(name string, labels []string) (full string, set prometheus.Labels, key string) {
	if !metricName.MatchString(name) {
		panic(fmt.Sprintf("%s: metric %q: a name is lower-case letters, digits and _", m.service, name))
	}
	full = "weft_" + m.service + "_" + name
	if len(labels)%2 != 0 {
		panic(fmt.Sprintf("metric %s: labels %q: give a value after each name", full, labels))
	}
	set = prometheus.Labels{}
	var pairs []string
	for i := 0; i < len(labels); i += 2 {
		set[labels[i]] = labels[i+1]
		pairs = append(pairs, fmt.Sprintf("%s=%q", labels[i], labels[i+1]))
	}
	slices.Sort(pairs)
	return full, set, full + "{" + strings.Join(pairs, ",") + "}"
}

// metric returns the metric with a name and labels; it makes and registers a
// new one.
func metric[F prometheus.Collector](m *Metrics, name string, labels []string, create func(string, prometheus.Labels) F) F {
	full, set, key := m.named(name, labels)
	m.registry.mu.Lock()
	defer m.registry.mu.Unlock()
	m.registry.askers[key] = m
	if old, ok := m.registry.metrics[key]; ok {
		f, ok := old.(F)
		if !ok {
			panic(fmt.Sprintf("metric %s is asked for as a %T, but is a %T", key, f, old))
		}
		return f
	}
	f := create(full, set)
	if err := m.registry.inner.Register(f); err != nil {
		panic(fmt.Sprintf("metric %s: %v", key, err))
	}
	m.registry.metrics[key] = f
	return f
}

package httpload

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what a load has measured, of the requests that were due in the
// measured time.
type Result struct {
	Conditions  Conditions     `json:"load"`
	Due         int            `json:"due"`            // requests
	Done        int            `json:"done"`           // answered with a status below 400
	RequestsPS  float64        `json:"requests_per_s"` // such answers that came in the measured time
	Octets      int64          `json:"octets"`         // of bodies
	Latency     Latency        `json:"latency"`        // from when a request was due
	Service     Latency        `json:"service"`        // from when it was sent: without the time that it waited for a connection
	Statuses    map[int]int    `json:"statuses"`
	Failures    map[string]int `json:"failures"` // by kind: status, timeout, refused, reset, closed, unsent and others
	Instances   map[string]int `json:"instances,omitempty"`
	Connections Connections    `json:"connections"`
	CPU         float64        `json:"generator_cpu_percent"` // of one processor
}

// Conditions are what was asked for.
type Conditions struct {
	Targets       []string `json:"targets"`
	Protocol      string   `json:"protocol"`
	Loop          string   `json:"loop"` // closed, or open, whose latency is corrected for coordinated omission
	Connections   int      `json:"connections"`
	Streams       int      `json:"streams"`
	Rate          float64  `json:"rate,omitempty"`
	Arrivals      string   `json:"arrivals,omitempty"`
	Seed          uint64   `json:"seed,omitempty"`
	PerConnection int      `json:"requests_per_connection,omitempty"`
	WarmupS       float64  `json:"warmup_s"`
	DurationS     float64  `json:"duration_s"`
	TimeoutS      float64  `json:"timeout_s"`
}

// Latency is a distribution of times, in microseconds.
type Latency struct {
	Mean float64 `json:"mean_us"`
	P50  float64 `json:"p50_us"`
	P90  float64 `json:"p90_us"`
	P95  float64 `json:"p95_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p999_us"`
	Max  float64 `json:"max_us"`
}

// Connections are those that were opened in the measured time.
type Connections struct {
	Opened int     `json:"opened"`
	PerS   float64 `json:"per_s"`
	P50    float64 `json:"p50_us"` // until a request could be sent
	P99    float64 `json:"p99_us"`
}

// result sums up what the connections have measured.
func (l *load) result(cpu time.Duration) (*Result, error) {
	r := &Result{Conditions: l.conditions(), Statuses: map[int]int{}, Failures: map[string]int{}, Instances: map[string]int{}}
	latency, service, connecting := newHistogram(), newHistogram(), newTally().connecting
	ever, inTime := false, 0
	var rejected error
	for _, c := range l.conns {
		c.mu.Lock()
		t := &c.seen
		ever = ever || c.ever
		if c.rejected != nil {
			rejected = c.rejected
		}
		r.Due += t.due
		r.Done += t.done
		r.Octets += t.octets
		r.Connections.Opened += t.connected
		inTime += t.inTime
		add(r.Statuses, t.statuses)
		add(r.Failures, t.failures)
		add(r.Instances, t.instances)
		latency.Merge(t.latency)
		service.Merge(t.service)
		connecting.Merge(t.connecting)
		c.mu.Unlock()
	}
	if !ever {
		return nil, fmt.Errorf("no connection within %v: %w", l.Warmup+l.Duration+l.Timeout, cmp.Or(rejected, context.DeadlineExceeded))
	}
	unsent := l.unsent
	for _, due := range l.queue[l.head:] {
		if !due.Before(l.from) {
			unsent++
		}
	}
	if unsent > 0 {
		r.Due += unsent
		r.Failures["unsent"] += unsent
	}
	r.RequestsPS = float64(inTime) / l.Duration.Seconds()
	r.Latency, r.Service = latencyOf(latency), latencyOf(service)
	r.Connections.PerS = float64(r.Connections.Opened) / l.Duration.Seconds()
	r.Connections.P50, r.Connections.P99 = float64(connecting.ValueAtPercentile(50)), float64(connecting.ValueAtPercentile(99))
	r.CPU = 100 * cpu.Seconds() / l.Duration.Seconds()
	return r, nil
}

func add[K comparable](to, from map[K]int) {
	for k, n := range from {
		to[k] += n
	}
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	us := func(p float64) float64 { return float64(h.ValueAtPercentile(p)) / 1e3 }
	return Latency{Mean: h.Mean() / 1e3, P50: us(50), P90: us(90), P95: us(95), P99: us(99), P999: us(99.9), Max: float64(h.Max()) / 1e3}
}

func (l *load) conditions() Conditions {
	c := Conditions{
		Protocol: "HTTP/2", Loop: "closed", Connections: l.Connections, Streams: l.Streams, PerConnection: l.PerConnection,
		WarmupS: l.Warmup.Seconds(), DurationS: l.Duration.Seconds(), TimeoutS: l.Timeout.Seconds(),
	}
	if l.HTTP1 {
		c.Protocol = "HTTP/1.1"
	}
	for _, u := range l.Targets {
		c.Targets = append(c.Targets, u.String())
	}
	if l.Targets[0].Scheme == "https" {
		c.Protocol += " with TLS"
	}
	if a := l.Arrivals; a != nil {
		c.Loop, c.Rate, c.Arrivals = "open", a.Rate, a.String()
		if a.Poisson {
			c.Seed = a.Seed
		}
	}
	return c
}

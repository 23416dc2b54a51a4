package traffic

import (
	"encoding/json"
	"math"
	"slices"
)

// Result is what came of Traffic. Times are in milliseconds, between when
// the kernel handed a packet to the source's interface and when it took it from
// the sink's.
type Result struct {
	From     string  `json:"from"`
	To       string  `json:"to"`
	Sent     int     `json:"sent"`
	Received int     `json:"received"`
	Twice    int     `json:"twice"` // came more than once
	Seconds  float64 `json:"seconds"`
	Rate     float64 `json:"rate"` // sent a second
	// ArrivalSCV is the squared coefficient of variation of the times between
	// packets as they were sent: 1 of exponential ones, 0 of constant ones.
	ArrivalSCV Figure  `json:"arrival_scv"`
	Loss       float64 `json:"loss"` // a share

	Mean   Figure `json:"mean_ms"`
	CI95   Figure `json:"ci95_ms"` // half of the interval of Mean, by batches
	StdDev Figure `json:"stddev_ms"`
	Min    Figure `json:"min_ms"`
	P50    Figure `json:"p50_ms"`
	P90    Figure `json:"p90_ms"`
	P95    Figure `json:"p95_ms"`
	P99    Figure `json:"p99_ms"`
	P999   Figure `json:"p99_9_ms"`
	Max    Figure `json:"max_ms"`

	// Processor time for each packet, in microseconds, with that of the kernel on
	// behalf of the source and the sink.
	SourceCPU Figure `json:"source_us"`
	SinkCPU   Figure `json:"sink_us"`

	// ClockError is by how much the times may be wrong where source and sink are on two machines: what
	// is not known of their clocks.
	ClockError Figure `json:"clock_error_ms"`

	Unstamped int `json:"unstamped"` // packets without both of the kernel's times, which do not count in delays
}

// Figure is a number that may be missing, in JSON null.
type Figure float64

// MarshalJSON writes the number, null if it is none.
func (f Figure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(math.Round(float64(f)*1e6) / 1e6)
}

// sum computes the figures from the times, 0 if there is none, at which each
// packet was sent and received, in nanoseconds.
func (r *Result) sum(sent, received []int64) {
	var delays, gaps []float64
	r.Unstamped = r.Received
	last := int64(0)
	for i, at := range sent {
		if at == 0 {
			last = 0
			continue
		}
		if last != 0 {
			gaps = append(gaps, float64(at-last))
		}
		last = at
		if received[i] != 0 {
			delays = append(delays, float64(received[i]-at)/1e6)
			r.Unstamped--
		}
	}
	if n := len(sent); n > 1 && sent[0] != 0 && sent[n-1] > sent[0] {
		r.Seconds = float64(sent[n-1]-sent[0]) / 1e9
		r.Rate = float64(n-1) / r.Seconds
	}
	if r.Sent > 0 {
		r.Loss = float64(r.Sent-r.Received) / float64(r.Sent)
	}
	mean, variance := moments(gaps)
	r.ArrivalSCV = Figure(variance / mean / mean)
	mean, variance = moments(delays)
	r.Mean, r.StdDev, r.CI95 = Figure(mean), Figure(math.Sqrt(variance)), Figure(batched(delays))
	slices.Sort(delays)
	at := func(share float64) Figure {
		if len(delays) == 0 {
			return Figure(math.NaN())
		}
		return Figure(delays[min(len(delays)-1, int(math.Ceil(share*float64(len(delays)))))])
	}
	r.Min, r.P50, r.P90, r.P95, r.P99, r.P999, r.Max = at(0), at(0.5), at(0.9), at(0.95), at(0.99), at(0.999), at(1)
}

// moments returns mean and variance, NaN of nothing.
func moments(values []float64) (mean, variance float64) {
	n, sum, squares := float64(len(values)), 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	mean = sum / n
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, squares / n
}

const (
	batchesOfTraffic = 20
	student19        = 2.093 // two-sided 95 %, 19 degrees of freedom
)

// batched returns half of the 95 % interval of the mean of values that follow each
// other, by the means of batches; NaN of too few.
func batched(values []float64) float64 {
	size := len(values) / batchesOfTraffic
	if size == 0 {
		return math.NaN()
	}
	means := make([]float64, batchesOfTraffic)
	for i := range means {
		means[i], _ = moments(values[i*size : (i+1)*size])
	}
	_, variance := moments(means)
	return student19 * math.Sqrt(variance/(batchesOfTraffic-1))
}

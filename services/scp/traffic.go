package scp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/sbi"
)

// Observer is a metric of many values.
type Observer interface{ Observe(float64) }

// traffic counts the requests that the front sees, by the types of who asks and who is
// asked. Types that nobody has registered count as one, so that labels are bounded.
type traffic struct {
	counter   func(name, help string, labels ...string) Counter
	histogram func(name, help string, bounds []float64, labels ...string) Observer

	mu sync.Mutex // guards of
	of map[typePair]*typeTraffic
}

// typePair is the types of a consumer and of a producer.
type typePair struct{ consumer, producer sbi.NFType }

// typeTraffic is the metrics of a pair of types.
type typeTraffic struct {
	labels      []string
	discoveries Counter
	results     map[string]Counter
	took        Observer
}

// mostTypePairs bounds the pairs of types; further ones count as others.
const mostTypePairs = 512

// otherType stands for types that nobody has registered.
const otherType = "other"

// tookBounds are the bounds of response times, in seconds.
var tookBounds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}

func newTraffic(counter func(name, help string, labels ...string) Counter, histogram func(name, help string, bounds []float64, labels ...string) Observer) *traffic {
	return &traffic{counter: counter, histogram: histogram, of: map[typePair]*typeTraffic{}}
}

// knownType returns a type, otherType if nobody has registered it.
func knownType(of sbi.NFType, registered map[sbi.NFType]bool) sbi.NFType {
	if !registered[of] {
		return otherType
	}
	return of
}

// pair returns the metrics of a pair of types. A type that nobody has registered counts as
// otherType. It is called with mu held.
func (t *traffic) pair(consumer, producer sbi.NFType, registered map[sbi.NFType]bool) *typeTraffic {
	k := typePair{knownType(consumer, registered), knownType(producer, registered)}
	if t.of[k] == nil && len(t.of) >= mostTypePairs {
		k = typePair{otherType, otherType}
	}
	x := t.of[k]
	if x == nil {
		labels := []string{"consumer", string(k.consumer), "producer", string(k.producer)}
		x = &typeTraffic{
			labels:      labels,
			discoveries: t.counter("type_discoveries_total", "Discoveries, by the types of who asks and who is looked for.", labels...),
			took:        t.histogram("type_request_seconds", "Time until producers have answered requests that the front passes on, by types.", tookBounds, labels...),
			results:     map[string]Counter{},
		}
		t.of[k] = x
	}
	return x
}

// discovered counts a discovery.
func (t *traffic) discovered(q *sbi.Query, registered map[sbi.NFType]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pair(q.Requester.NFType, q.TargetNFType, registered).discoveries.Add(1)
}

// requested counts a request that was passed on, with its result, and the time until it
// was answered if it was.
func (t *traffic) requested(consumer, producer sbi.NFType, registered map[sbi.NFType]bool, result string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.pair(consumer, producer, registered)
	if x.results[result] == nil {
		x.results[result] = t.counter("type_requests_total", "Requests that the front has passed on, by types and result.", append(slices.Clone(x.labels), "result", result)...)
	}
	x.results[result].Add(1)
	if took > 0 {
		x.took.Observe(took.Seconds())
	}
}

// resultOf names the result of a request by the status of its answer.
func resultOf(status int) string {
	switch {
	case sbi.Congested(status):
		return "congested"
	case status >= 500:
		return "server_error"
	case status >= 400:
		return "client_error"
	}
	return "ok"
}

// failureOf names the result of a request without an answer.
func failureOf(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "abandoned"
	case errors.Is(err, context.DeadlineExceeded):
		return "late"
	}
	return "unreachable"
}

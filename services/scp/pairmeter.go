package scp

import (
	"cmp"
	"context"
	"math"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/sbi"
)

// pairMeter is the metrics of single pairs of consumer and producer. The busiest have series
// of their own, all others have one together, so that there is a bounded number.
type pairMeter struct {
	metrics pairMetrics
	asked   atomic.Bool // somebody has read them since the last turn

	mu     sync.Mutex // guards the following; it is not held while metrics are added or removed
	of     map[pairKey]*pairSeries
	other  pairSeries
	last   map[pairKey]pairCount   // what the switches had counted in the last turn
	recent map[pairKey]*pairSeries // what the front has seen since
	passed *table[pairKey, passed] // what it passes on, as long as it does
}

// passed is what the front has passed on of a pair.
type passed struct {
	requests, errors uint64
	answered         uint64
	took             time.Duration // until answers, in all
	since, last      int64
}

// pairKey is a pair of a consumer and a producer.
type pairKey struct {
	consumer netip.Addr
	producer netip.AddrPort
}

// pairCount is what switches have counted of a pair, and what its samples have had.
type pairCount struct {
	packets, octets  uint64
	requests, errors uint64
	seconds          float64
}

// pairMetrics are where metrics are added and removed.
type pairMetrics interface {
	CounterFunc(name, help string, read func() float64, labels ...string)
	Remove(name string, labels ...string)
}

// pairSeries is what is counted of a pair.
type pairSeries struct {
	types                     typePair
	packets, octets           float64                                     // by switches
	requests, errors, seconds float64                                     // by the front
	sampled                   struct{ requests, errors, seconds float64 } // by samples
	busy                      float64                                     // packets and requests, of late
}

// Bounds of the metrics of pairs.
const (
	mostPairSeries = 64
	mostPairRecent = 4096
	mostPairPassed = 10_000
	pairPassedFor  = int64(5 * time.Minute) // for which a pair is listed after its last request
	mostPairsRead  = 10_000
	pairTurn       = 10 * time.Second
)

// pairCounters are the metrics of each pair.
var pairCounters = []struct {
	name, help string
	read       func(*pairSeries) float64
}{
	{"pair_packets_total", "Packets of a pair of consumer and producer in both directions, by the counters of switches.", func(s *pairSeries) float64 { return s.packets }},
	{"pair_bytes_total", "Octets of a pair in both directions, by the counters of switches.", func(s *pairSeries) float64 { return s.octets }},
	{"pair_requests_total", "Requests of a pair that the front has passed on.", func(s *pairSeries) float64 { return s.requests }},
	{"pair_request_errors_total", "Requests of a pair that the front has passed on and that were not answered, or with 4xx or 5xx.", func(s *pairSeries) float64 { return s.errors }},
	{"pair_request_seconds_total", "Time until the producer of a pair has answered requests that the front has passed on, in all.", func(s *pairSeries) float64 { return s.seconds }},
	{"pair_sampled_requests_total", "Requests of a pair that were seen in samples of its packets.", func(s *pairSeries) float64 { return s.sampled.requests }},
	{"pair_sampled_request_errors_total", "Requests of a pair that were seen in samples of its packets and that were answered with 4xx or 5xx, or reset.", func(s *pairSeries) float64 { return s.sampled.errors }},
	{"pair_sampled_request_seconds_total", "Time until the producer of a pair has answered requests that were seen in samples, in all.", func(s *pairSeries) float64 { return s.sampled.seconds }},
}

// unreadPairs are metrics that nobody reads.
type unreadPairs struct{}

func (unreadPairs) CounterFunc(string, string, func() float64, ...string) {}
func (unreadPairs) Remove(string, ...string)                              {}

func newPairMeter(metrics pairMetrics) *pairMeter {
	m := &pairMeter{metrics: metrics, of: map[pairKey]*pairSeries{}, last: map[pairKey]pairCount{}, recent: map[pairKey]*pairSeries{}, passed: newTable[pairKey, passed](mostPairPassed)}
	m.other.types = typePair{otherType, otherType}
	m.add(&m.other, pairLabels(otherType, otherType, m.other.types))
	return m
}

func pairLabels(consumer, producer string, types typePair) []string {
	return []string{"consumer", consumer, "consumer_type", string(types.consumer), "producer", producer, "producer_type", string(types.producer)}
}

// add adds the metrics of a pair.
func (m *pairMeter) add(s *pairSeries, labels []string) {
	for _, c := range pairCounters {
		m.metrics.CounterFunc(c.name, c.help, func() float64 {
			m.asked.Store(true)
			m.mu.Lock()
			defer m.mu.Unlock()
			return c.read(s)
		}, labels...)
	}
}

// outcome is what became of a request that the front has passed on.
type outcome struct {
	at     flow.Location // of its consumer
	types  typePair
	result string
	took   time.Duration // until it was answered; 0: it was not
}

// requested counts a request that was passed on.
func (m *pairMeter) requested(k pairKey, r outcome, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, fresh := m.passed.use(k, r.at)
	if fresh || now-p.last >= pairPassedFor {
		*p = passed{since: now}
	}
	if p.last, p.took = now, p.took+r.took; r.took > 0 {
		p.answered++
	}
	if p.requests++; r.result != "ok" {
		p.errors++
	}
	x := m.recent[k]
	switch {
	case x != nil:
	case len(m.recent) >= mostPairRecent:
		x = &m.other
	default:
		x = &pairSeries{types: r.types}
		m.recent[k] = x
	}
	if x.requests++; r.result != "ok" {
		x.errors++
	}
	x.seconds += r.took.Seconds()
}

// listed calls f with each pair whose requests the front has passed on of late.
func (m *pairMeter) listed(now int64, f func(pairKey, passed)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var over []pairKey
	m.passed.all(func(k pairKey, p *passed) {
		if now-p.last < pairPassedFor {
			f(k, *p)
		} else {
			over = append(over, k)
		}
	})
	for _, k := range over {
		m.passed.remove(k)
	}
}

// message returns what there is to say of a pair's requests.
func (p passed) message() *api.ScpPair {
	m := &api.ScpPair{Front: true, Requests: p.requests, Errors: p.errors, Since: time.Unix(0, p.since).UTC().Format(time.RFC3339)}
	if p.answered > 0 {
		m.MeanMs = math.Round(float64(p.took)/float64(p.answered)/1e5) / 10
	}
	return m
}

// run counts until ctx ends. It lists the pairs only while somebody reads the metrics.
func (m *pairMeter) run(ctx context.Context, list func(context.Context, *api.ListScpPairsRequest) (*api.ListScpPairsResponse, error)) {
	for backoff.Sleep(ctx, pairTurn) == nil {
		var resp *api.ListScpPairsResponse
		if m.asked.Swap(false) {
			resp, _ = list(ctx, &api.ListScpPairsRequest{Limit: mostPairsRead}) // what was not counted now is later
		}
		m.turn(resp.GetPairs())
	}
}

// turn takes what the switches have counted of pairs, none if they were not asked, and gives
// series to the busiest.
func (m *pairMeter) turn(list []*api.ScpPair) {
	m.mu.Lock()
	recent := m.recent
	m.recent = map[pairKey]*pairSeries{}
	if list != nil {
		m.counted(list, recent)
	}
	type ranked struct {
		k   pairKey
		has bool
		*pairSeries
	}
	var all []ranked
	for k, s := range m.of {
		s.busy /= 2
		if x := recent[k]; x != nil {
			s.sum(x)
			delete(recent, k)
		}
		all = append(all, ranked{k, true, s})
	}
	for k, x := range recent {
		x.busy = x.packets + x.requests
		all = append(all, ranked{k, false, x})
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.busy, a.busy), ones(b.has)-ones(a.has), a.k.consumer.Compare(b.k.consumer), cmp.Compare(a.k.producer.String(), b.k.producer.String()))
	})
	var added, removed []ranked
	for i, x := range all {
		switch {
		case i < mostPairSeries && !x.has:
			m.of[x.k] = x.pairSeries
			added = append(added, x)
		case i >= mostPairSeries && x.has:
			delete(m.of, x.k)
			removed = append(removed, x)
		case i >= mostPairSeries:
			m.other.sum(x.pairSeries)
		}
	}
	m.mu.Unlock()
	for _, x := range removed {
		for _, c := range pairCounters {
			m.metrics.Remove(c.name, pairLabels(x.k.consumer.String(), x.k.producer.String(), x.types)...)
		}
	}
	for _, x := range added {
		m.add(x.pairSeries, pairLabels(x.k.consumer.String(), x.k.producer.String(), x.types))
	}
}

// counted adds to recent what the switches have counted since the last turn. It is called
// with mu held.
func (m *pairMeter) counted(list []*api.ScpPair, recent map[pairKey]*pairSeries) {
	is := map[pairKey]pairCount{}
	for _, x := range list {
		consumer, err1 := netip.ParseAddr(x.GetConsumer())
		producer, err2 := netip.ParseAddrPort(x.GetProducer())
		if err1 != nil || err2 != nil {
			continue
		}
		k := pairKey{consumer, producer} // perhaps by an end point, and by its own address
		n := is[k]
		n.packets, n.octets = n.packets+x.GetPackets(), n.octets+x.GetBytes()
		if x.GetSampled() {
			n.requests, n.errors, n.seconds = n.requests+x.GetRequests(), n.errors+x.GetErrors(), n.seconds+x.GetMeanMs()*float64(x.GetRequests())/1e3
		}
		is[k] = n
		if recent[k] == nil {
			recent[k] = &pairSeries{}
		}
		recent[k].types = typePair{sbi.NFType(cmp.Or(x.GetConsumerType(), otherType)), sbi.NFType(cmp.Or(x.GetType(), otherType))}
	}
	for k, n := range is {
		was := m.last[k]
		if n.packets < was.packets || n.octets < was.octets { // the entries are others
			was.packets, was.octets = 0, 0
		}
		if n.requests < was.requests || n.errors < was.errors || n.seconds < was.seconds {
			was = pairCount{packets: was.packets, octets: was.octets}
		}
		x := recent[k]
		x.packets, x.octets = x.packets+float64(n.packets-was.packets), x.octets+float64(n.octets-was.octets)
		s := &x.sampled
		s.requests, s.errors, s.seconds = s.requests+float64(n.requests-was.requests), s.errors+float64(n.errors-was.errors), s.seconds+n.seconds-was.seconds
	}
	m.last = is
}

// sum adds what was counted of late.
func (s *pairSeries) sum(x *pairSeries) {
	s.packets, s.octets = s.packets+x.packets, s.octets+x.octets
	s.requests, s.errors, s.seconds = s.requests+x.requests, s.errors+x.errors, s.seconds+x.seconds
	s.sampled.requests, s.sampled.errors, s.sampled.seconds = s.sampled.requests+x.sampled.requests, s.sampled.errors+x.sampled.errors, s.sampled.seconds+x.sampled.seconds
	s.busy += x.packets + x.requests
}

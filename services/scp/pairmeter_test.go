package scp

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/sbi"
)

// scraped is metrics that are read by functions.
type scraped struct {
	mu sync.Mutex // guards of
	of map[string]func() float64
}

func (r *scraped) CounterFunc(name, _ string, f func() float64, labels ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of[name+" "+strings.Join(labels, " ")] = f
}

func (r *scraped) Remove(name string, labels ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, name+" "+strings.Join(labels, " "))
}

// value returns a metric, -1 if there is none.
func (r *scraped) value(key string) float64 {
	if f := r.of[key]; f != nil {
		return f()
	}
	return -1
}

// TestPairMeter: the busiest pairs have series of their own, in a bounded number, whose sum
// with that of all others is what was counted.
func TestPairMeter(t *testing.T) {
	r := &scraped{of: map[string]func() float64{}}
	m := newPairMeter(r)
	series := func(n int) string {
		if n == 0 {
			return " consumer other consumer_type other producer other producer_type other"
		}
		return fmt.Sprintf(" consumer 10.0.1.%d consumer_type AMF producer 10.0.4.1:7777 producer_type UDM", n)
	}
	is := func(when string, n int, packets, requests float64) {
		t.Helper()
		if got, req := r.value("pair_packets_total"+series(n)), r.value("pair_requests_total"+series(n)); got != packets || req != requests {
			t.Errorf("%s: pair %d: %v packets and %v requests, want %v and %v", when, n, got, req, packets, requests)
		}
	}
	counted := map[int]uint64{}
	turn := func() {
		var list []*api.ScpPair
		for n, packets := range counted {
			list = append(list, &api.ScpPair{Consumer: fmt.Sprintf("10.0.1.%d", n), ConsumerType: "AMF", Producer: "10.0.4.1:7777", Type: "UDM", Packets: packets, Bytes: 100 * packets})
		}
		m.turn(list)
	}
	most := mostPairSeries
	for n := 1; n <= most+10; n++ {
		counted[n] = uint64(1000 - n)
	}
	turn()
	is("at first", 1, 999, 0)
	is("at first", most, float64(1000-most), 0)
	is("at first", most+1, -1, -1)
	rest := 0.0
	for n := most + 1; n <= most+10; n++ {
		rest += float64(1000 - n)
	}
	is("at first", 0, rest, 0)
	if n := len(r.of); n != (most+1)*len(pairCounters) {
		t.Errorf("%d metrics", n)
	}
	counted[1] += 50
	counted[most+1] += 5000
	counted[2] = 7 // its entries are new
	key := pairKey{netip.MustParseAddr("10.0.1.1"), netip.MustParseAddrPort("10.0.4.1:7777")}
	m.requested(key, outcome{types: typePair{"AMF", "UDM"}, result: "ok", took: time.Second}, 1)
	m.requested(key, outcome{types: typePair{"AMF", "UDM"}, result: "late"}, 1)
	turn()
	is("then", 1, 1049, 2)
	is("then", 2, 1005, 0)
	is("then", most+1, 5000, 0)
	is("then", most, -1, -1)
	if errs, took := r.value("pair_request_errors_total"+series(1)), r.value("pair_request_seconds_total"+series(1)); errs != 1 || took != 1 {
		t.Errorf("%v errors in %v seconds", errs, took)
	}
	m.requested(key, outcome{types: typePair{"AMF", "UDM"}, result: "ok", took: time.Second}, 1)
	m.turn(nil)
	is("without the switches", 1, 1049, 3)
	for n := range 2 * mostPairRecent {
		m.requested(pairKey{netip.AddrFrom4([4]byte{11, 0, byte(n >> 8), byte(n)}), key.producer}, outcome{types: typePair{"AMF", "UDM"}, result: "ok"}, 1)
	}
	m.turn(nil)
	if n := len(r.of); n != (most+1)*len(pairCounters) {
		t.Errorf("%d metrics of many pairs", n)
	}
	sampled := func(requests uint64) {
		m.turn([]*api.ScpPair{{Consumer: "10.0.1.1", ConsumerType: "AMF", Producer: "10.0.4.1:7777", Type: "UDM", Packets: 2000, Bytes: 200_000, Sampled: true, Requests: requests, Errors: 1, MeanMs: 250}})
	}
	sampled(8)
	sampled(12)
	sampled(2) // its entries are new
	if n, errs, took := r.value("pair_sampled_requests_total"+series(1)), r.value("pair_sampled_request_errors_total"+series(1)), r.value("pair_sampled_request_seconds_total"+series(1)); n != 14 || errs != 2 || took != 3.5 {
		t.Errorf("of samples: %v requests, %v errors, %v seconds", n, errs, took)
	}
	if !m.asked.Load() {
		t.Error("that somebody reads them is not known")
	}
}

// TestPairRequests: requests that the front passes on count for the consumer's address and
// the producer's.
func TestPairRequests(t *testing.T) {
	g, r := newRig(t), &scraped{of: map[string]func() float64{}}
	g.proxy.single = newPairMeter(r)
	udm := g.function(5, sbi.UDM)
	g.function(1, sbi.AMF)
	for range 3 {
		g.do(1, "GET", "/nudm-main/v1/x", "", forUDM...)
	}
	g.do(1, "GET", "/nudm-main/v1/missing", "", forUDM...)
	g.proxy.single.turn(nil)
	resp, err := g.proxy.pairs(t.Context(), &api.ListScpPairsRequest{Type: "UDM"}, g.back)
	if err != nil || len(resp.Pairs) != 1 {
		t.Fatalf("%v, %v", resp, err)
	}
	if p := resp.Pairs[0]; !p.Front || p.Direct || !p.Authorised || p.Consumer != at(1) || p.ConsumerType != "AMF" || p.Producer != udm.at.String() || p.Requests != 4 || p.Errors != 1 || p.MeanMs < 0 || p.Packets != 0 {
		t.Errorf("%v", p)
	}
	g.proxy.single.listed(now()+2*pairPassedFor, func(k pairKey, _ passed) { t.Errorf("long after its last request: %v", k) })
	key := fmt.Sprintf("pair_requests_total consumer %s consumer_type AMF producer %v producer_type UDM", at(1), udm.at)
	if got := r.value(key); got != 4 {
		t.Errorf("%s: %v", key, got)
	}
}

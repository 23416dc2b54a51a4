package scp

import (
	"context"
	"math"
	"net/netip"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/backoff"
)

// rateInterval is how often the counters of pairs are read, if a policy asks for rates or
// samples.
const rateInterval = 5 * time.Second

// watchPairs reads the counters of pairs until ctx ends.
func (s *strain) watchPairs(ctx context.Context, p *proxy, b balancer) {
	var last map[pairOf]pairSeen
	var at int64
	for backoff.Sleep(ctx, rateInterval) == nil {
		rates, samples := watchedPairs(p)
		if !rates && last != nil {
			s.setRates(nil)
		}
		if !rates && !samples {
			last = nil
			continue
		}
		resp, err := b.pairs(ctx, "", listedMax)
		if err != nil {
			continue
		}
		is, t := seenOf(resp.GetPairs()), now()
		if last != nil && rates {
			s.setRates(ratesOf(last, is, time.Duration(t-at)))
		}
		if last != nil && samples {
			for at, x := range answersOf(last, is) {
				s.observeAll(at, x)
			}
		}
		last, at = is, t
	}
}

// watchedPairs reports whether a policy limits rates, and whether one asks for samples.
func watchedPairs(p *proxy) (rates, samples bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.policies.List() {
		rates, samples = rates || m.GetRate() > 0, samples || m.GetSample() > 0
	}
	return rates, samples
}

// pairOf is a pair of a client and an end point of a producer.
type pairOf struct {
	vip, client string
	member      netip.AddrPort
}

// pairSeen is what switches have counted of a pair, and what its samples have had.
type pairSeen struct {
	packets uint64
	seenAnswers
}

// seenOf returns what was seen of pairs.
func seenOf(list []*api.BalancedPair) map[pairOf]pairSeen {
	seen := map[pairOf]pairSeen{}
	for _, x := range list {
		if a, err := netip.ParseAddr(x.GetMember()); err == nil {
			is := x.GetSampled()
			seen[pairOf{x.GetVip(), x.GetClient(), netip.AddrPortFrom(a, uint16(x.GetMemberPort()))}] = pairSeen{x.GetPackets(),
				seenAnswers{int(is.GetRequests()), int(is.GetCongested()), time.Duration(is.GetSeconds() * float64(time.Second))}}
		}
	}
	return seen
}

// ratesOf returns the packets a second of end points, of the pairs that were read twice.
// Where a pair has fewer than before, its entries were new meanwhile, or connections of it
// have ended: then nothing is known of it.
func ratesOf(was, is map[pairOf]pairSeen, in time.Duration) map[netip.AddrPort]float64 {
	rates := map[netip.AddrPort]float64{}
	for of, x := range is {
		if before, twice := was[of]; twice && x.packets >= before.packets {
			rates[of.member] += float64(x.packets-before.packets) / max(in.Seconds(), 0.001)
		}
	}
	return rates
}

// answersOf returns the answers of end points in samples since pairs were read before. A pair
// that has had fewer is another one.
func answersOf(was, is map[pairOf]pairSeen) map[netip.AddrPort]seenAnswers {
	all := map[netip.AddrPort]seenAnswers{}
	for of, x := range is {
		before := was[of].seenAnswers
		if x.n < before.n || x.congested < before.congested || x.took < before.took {
			before = seenAnswers{}
		}
		if x.n > before.n {
			sum := all[of.member]
			all[of.member] = seenAnswers{sum.n + x.n - before.n, sum.congested + x.congested - before.congested, sum.took + x.took - before.took}
		}
	}
	return all
}

// sampledPair adds what the samples of a pair have had to what there is to say of it.
func sampledPair(x *api.BalancedPair, m *api.ScpPair) *api.ScpPair {
	if is := x.GetSampled(); is != nil {
		m.Sampled, m.Requests, m.Errors = true, is.GetRequests(), is.GetErrors()
		if m.Requests > 0 {
			m.MeanMs = math.Round(is.GetSeconds()/float64(m.Requests)*1e6) / 1e3
		}
	}
	return m
}

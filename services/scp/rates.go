package scp

import (
	"context"
	"net/netip"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/backoff"
)

// rateInterval is how often the counters of pairs are read, if a policy limits rates.
const rateInterval = 5 * time.Second

// watchRates reads the counters of pairs until ctx ends.
func (s *strain) watchRates(ctx context.Context, p *proxy, b balancer) {
	var last map[pairOf]uint64
	var at int64
	for backoff.Sleep(ctx, rateInterval) == nil {
		if !limitsRates(p) {
			if last != nil {
				s.setRates(nil)
			}
			last = nil
			continue
		}
		resp, err := b.pairs(ctx, "", listedMax)
		if err != nil {
			continue
		}
		is, t := packetsOf(resp.GetPairs()), now()
		if last != nil {
			s.setRates(ratesOf(last, is, time.Duration(t-at)))
		}
		last, at = is, t
	}
}

// limitsRates reports whether a policy limits rates.
func limitsRates(p *proxy) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.policies.List() {
		if m.GetRate() > 0 {
			return true
		}
	}
	return false
}

// pairOf is a pair of a client and an end point of a producer.
type pairOf struct {
	vip, client string
	member      netip.AddrPort
}

// packetsOf returns how many packets pairs have had.
func packetsOf(list []*api.BalancedPair) map[pairOf]uint64 {
	packets := map[pairOf]uint64{}
	for _, x := range list {
		if a, err := netip.ParseAddr(x.GetMember()); err == nil {
			packets[pairOf{x.GetVip(), x.GetClient(), netip.AddrPortFrom(a, uint16(x.GetMemberPort()))}] = x.GetPackets()
		}
	}
	return packets
}

// ratesOf returns the packets a second of end points, of the pairs that were read twice.
// Where a pair has fewer than before, its entries were new meanwhile, or connections of it
// have ended: then nothing is known of it.
func ratesOf(was, is map[pairOf]uint64, in time.Duration) map[netip.AddrPort]float64 {
	rates := map[netip.AddrPort]float64{}
	for of, n := range is {
		if before, twice := was[of]; twice && n >= before {
			rates[of.member] += float64(n-before) / max(in.Seconds(), 0.001)
		}
	}
	return rates
}

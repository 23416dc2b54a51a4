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
	var last map[netip.AddrPort]float64
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
		sums, t := packetsOf(resp.GetPairs()), now()
		if last != nil {
			s.setRates(ratesOf(last, sums, time.Duration(t-at)))
		}
		last, at = sums, t
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

// packetsOf returns how many packets pairs have had, by member.
func packetsOf(pairs []*api.BalancedPair) map[netip.AddrPort]float64 {
	sums := map[netip.AddrPort]float64{}
	for _, x := range pairs {
		if a, err := netip.ParseAddr(x.GetMember()); err == nil {
			sums[netip.AddrPortFrom(a, uint16(x.GetMemberPort()))] += float64(x.GetPackets())
		}
	}
	return sums
}

// ratesOf returns packets a second. Where there are fewer than before, entries have ended
// meanwhile: what is left is counted.
func ratesOf(was, is map[netip.AddrPort]float64, in time.Duration) map[netip.AddrPort]float64 {
	rates := map[netip.AddrPort]float64{}
	for at, n := range is {
		if more := n - was[at]; more >= 0 {
			n = more
		}
		rates[at] = n / max(in.Seconds(), 0.001)
	}
	return rates
}

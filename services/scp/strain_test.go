package scp

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestStrainJudged: an end point that reaches a limit gets less by steps, up to a share by
// which it is seen to recover, and more again only when it is clearly below.
func TestStrainJudged(t *testing.T) {
	at, s := netip.MustParseAddrPort("10.0.0.5:80"), newStrain()
	second, now := int64(time.Second), int64(1)
	l := limits{errors: 20, response: 100 * time.Millisecond, rate: 1000}
	sees := func(when string, answers, congested int, took time.Duration, want int, why string) {
		t.Helper()
		for i := range answers {
			s.observe(at, i < congested, took)
		}
		now += second
		s.judge(now, func(netip.AddrPort) limits { return l })
		if r := s.of("x", "", at, now); r.reduction != want || r.asked || !strings.Contains(r.why, why) {
			t.Errorf("%s: %+v, want %d, %q", when, r, want, why)
		}
	}
	s.judge(now, func(netip.AddrPort) limits { return l })
	s.observe(at, false, 0)
	s.judge(now, func(netip.AddrPort) limits { return l })
	sees("few answers", fewAnswers-2, fewAnswers-2, 0, 0, "")
	sees("a fifth is bad", 9, 2, 0, 30, "of its last 13 answers")
	sees("still", 10, 2, 0, 60, "2 of its last 10 answers were 429")
	sees("more", 10, 9, 0, 90, "")
	sees("at its most", 10, 10, 0, 90, "")
	sees("between", 10, 1, 0, 90, "")
	sees("well", 20, 1, 0, 80, "")
	sees("slow", 10, 0, 150*time.Millisecond, 90, "took 150ms on average")
	sees("hardly faster", 10, 0, 90*time.Millisecond, 90, "")
	s.setRates(map[netip.AddrPort]float64{at: 1500})
	sees("many packets", 0, 0, 0, 90, "1500 packets a second")
	s.setRates(nil)
	for want := 80; want >= 0; want -= 10 {
		sees("well again", 10, 0, time.Millisecond, want, "")
	}
	if len(s.seen) != 0 {
		t.Errorf("it is remembered: %+v", s.seen)
	}
	l = limits{}
	sees("without limits", 10, 10, time.Minute, 0, "")
}

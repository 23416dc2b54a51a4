package scp

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/sbi"
)

func nowhere(netip.Addr) flow.Location { return flow.Location{} }

// TestStrainShared: a port whose producers say much leaves room for what others say.
func TestStrainShared(t *testing.T) {
	s, now := newStrain(nowhere), time.Now().UnixNano()
	r := sbi.LoadReport{Overload: true, Percent: 50, At: time.Now(), Validity: time.Hour}
	for i := range 2 * mostStrain {
		s.take(saidKey{instance: strconv.Itoa(i)}, flow.Location{Switch: 1, Port: 1}, r, now)
	}
	if !s.take(saidKey{instance: "other"}, flow.Location{Switch: 1, Port: 2}, r, now) || s.of("other", "", netip.AddrPort{}, now).reduction != 50 {
		t.Error("no room for what another says")
	}
	if n := len(s.said.of); n > mostStrain/portPart+1 {
		t.Errorf("%d reports of one port", n)
	}
}

// TestStrainJudged: an end point that reaches a limit gets less by steps, up to a share by
// which it is seen to recover, and more again only when it is clearly below.
func TestStrainJudged(t *testing.T) {
	at, s := netip.MustParseAddrPort("10.0.0.5:80"), newStrain(nowhere)
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
	if len(s.seen.of) != 0 {
		t.Errorf("it is remembered: %+v", s.seen)
	}
	l = limits{}
	sees("without limits", 10, 10, time.Minute, 0, "")
}

// report is a header's value, some seconds after the test began.
func loadReport(of int, kind string, percent, after, validity int) string {
	at := time.Now().Add(time.Duration(after-100) * time.Second).UTC().Format(http.TimeFormat)
	if kind == sbi.LoadHeader {
		return fmt.Sprintf(`Timestamp: "%s"; Load-Metric: %d%%; NF-Instance: %s`, at, percent, id(of))
	}
	return fmt.Sprintf(`Timestamp: "%s"; Period-of-Validity: %ds; Overload-Reduction-Metric: %d%%; NF-Instance: %s`, at, validity, percent, id(of))
}

// TestStrainSaid: what producers say of themselves in answers is passed on as it is, and
// counts until it ends, or newer is said: for requests, for end points, and in what is shown.
func TestStrainSaid(t *testing.T) {
	g := newRig(t)
	say := func(x *function, header, value string) {
		x.mu.Lock()
		x.more = http.Header{header: {value}}
		x.mu.Unlock()
	}
	none := func(p *sbi.NFProfile) { p.HeartBeatTimer = 0 }
	one, two := g.function(5, sbi.UDM, none), g.function(6, sbi.UDM, none)
	policy := &api.ScpPolicy{Type: "UDM", Algorithm: "weighted", Per: "connection", Again: "bound"}
	if _, _, err := g.proxy.policies.Change(t.Context(), "UDM", func(*api.ScpPolicy) (*api.ScpPolicy, error) { return policy, nil }); err != nil {
		t.Fatal(err)
	}
	g.discover(1, sbi.AMF, sbi.UDM, "")
	vip := "scp-udm." + strconv.Itoa(int(one.at.Port()))
	count := func() map[string]int {
		got := map[string]int{}
		for range 20 {
			resp, body := g.do(1, "GET", "/nudm-main/v1/x", "", forUDM...)
			got[strconv.Itoa(resp.StatusCode)+" "+strings.Fields(body)[0]]++
		}
		return got
	}
	is := func(when string, got map[string]int, want5, want6 int) {
		t.Helper()
		if got["200 5"] != want5 || got["200 6"] != want6 {
			t.Errorf("%s: %v, want %d and %d", when, got, want5, want6)
		}
	}
	is("at first", count(), 10, 10)
	said := loadReport(5, sbi.OverloadHeader, 100, 0, 60)
	say(one, sbi.OverloadHeader, said)
	for {
		if resp, body := g.do(1, "GET", "/nudm-main/v1/x", "", forUDM...); strings.HasPrefix(body, "5 ") {
			if resp.Header.Get(sbi.OverloadHeader) != said {
				t.Errorf("it arrives as %q", resp.Header)
			}
			break
		}
	}
	is("all is to go elsewhere", count(), 0, 20)
	g.vip(vip, func(v *api.Vip) bool { return len(v.Pool) == 1 || v.Pool[0].State != v.Pool[1].State })
	for _, m := range g.proxy.get(&api.GetScpRequest{}, nil, g.now.Load()).Producers {
		if less := m.Instance == id(5); less != (m.Reduction == 100) || less != strings.Contains(m.Reason, "100 of 100 new requests go elsewhere: it asks for that, for 1m0s more") {
			t.Errorf("%v", m)
		}
	}
	say(two, sbi.OverloadHeader, loadReport(5, sbi.OverloadHeader, 0, 10, 60)+", "+loadReport(6, sbi.OverloadHeader, 100, 10, 60))
	g.do(1, "GET", "/nudm-main/v1/x", "", forUDM...)
	resp, body := g.do(1, "GET", "/nudm-main/v1/x", "", forUDM...)
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(body, string(sbi.NFServiceCongestion)) {
		t.Errorf("both have asked for less, and one cannot speak for the other: %s %s", resp.Status, body)
	}
	g.now.Add(int64(61 * time.Second))
	say(one, sbi.OverloadHeader, said)
	say(two, "X", "")
	is("after its time, an old report does not count", count(), 10, 10)
	say(one, sbi.LoadHeader, loadReport(5, sbi.LoadHeader, 50, 0, 0))
	say(two, sbi.LoadHeader, "nonsense")
	count()
	if got := count(); got["200 5"] >= got["200 6"] || got["200 5"] == 0 {
		t.Errorf("half loaded: %v", got)
	}
}

// TestStrainSpares: what is seen of a producer has others used before it, and refuses
// nothing where there is no other.
func TestStrainSpares(t *testing.T) {
	g := newRig(t)
	one := g.function(5, sbi.UDM, func(p *sbi.NFProfile) { p.HeartBeatTimer = 0 })
	strained := func() {
		for range 3 {
			for range fewAnswers {
				g.proxy.strain.observe(one.at, sbi.Congested(503), time.Millisecond)
			}
			g.now.Add(int64(time.Second))
			g.proxy.strain.judgeBy(g.proxy, g.now.Load())
			g.now.Add(int64(time.Second))
			g.proxy.strain.judgeBy(g.proxy, g.now.Load())
		}
	}
	strained()
	if r := g.proxy.strain.of(id(5), "", one.at, g.now.Load()); r.reduction == 0 {
		t.Fatalf("%+v", r)
	}
	for range 10 {
		if resp, body := g.do(1, "GET", "/nudm-main/v1/x", "", forUDM...); resp.StatusCode != 200 {
			t.Errorf("the only one: %s %s", resp.Status, body)
		}
	}
}

// TestPairRates: packets a second by member, of pairs that were read twice.
func TestPairRates(t *testing.T) {
	pair := func(client, member string, packets uint64) *api.BalancedPair {
		return &api.BalancedPair{Vip: "udm", Client: client, Member: member, MemberPort: 80, Packets: packets}
	}
	was := seenOf([]*api.BalancedPair{pair("a", "10.0.0.5", 100), pair("b", "10.0.0.5", 2000), pair("c", "10.0.0.6", 900), pair("a", "nobody", 1)})
	is := seenOf([]*api.BalancedPair{pair("a", "10.0.0.5", 1100), pair("c", "10.0.0.6", 50), pair("d", "10.0.0.6", 1_000_000)})
	rates := ratesOf(was, is, 5*time.Second) // of c, connections have ended
	if len(rates) != 1 || rates[netip.MustParseAddrPort("10.0.0.5:80")] != 200 {
		t.Errorf("%v", rates)
	}
}

// TestPairAnswers: the answers of members in samples since pairs were read before.
func TestPairAnswers(t *testing.T) {
	pair := func(client string, requests, congested uint64, seconds float64) *api.BalancedPair {
		return &api.BalancedPair{Vip: "udm", Client: client, Member: "10.0.0.5", MemberPort: 80, Sampled: &api.SampledRequests{Requests: requests, Congested: congested, Seconds: seconds}}
	}
	was := seenOf([]*api.BalancedPair{pair("a", 10, 2, 1), pair("b", 20, 0, 3), pair("c", 7, 0, 1)})
	is := seenOf([]*api.BalancedPair{pair("a", 15, 3, 2), pair("b", 4, 1, 1), pair("c", 7, 0, 1), pair("d", 1, 0, 0.5), {Vip: "udm", Client: "e", Member: "10.0.0.6", MemberPort: 80}})
	all := answersOf(was, is) // b is another pair
	if want := (seenAnswers{10, 2, 2500 * time.Millisecond}); len(all) != 1 || all[netip.MustParseAddrPort("10.0.0.5:80")] != want {
		t.Errorf("%v", all)
	}
}

// TestSampledStrain: what samples have had of end points counts as what the front has seen.
func TestSampledStrain(t *testing.T) {
	g := newRig(t)
	udm := g.function(5, sbi.UDM)
	g.policy(&api.ScpPolicy{Type: "UDM", Sample: 100, ResponseMs: 200})
	if rates, samples := watchedPairs(g.proxy); rates || !samples {
		t.Errorf("watched: rates %v, samples %v", rates, samples)
	}
	g.function(1, sbi.AMF)
	g.discover(1, sbi.AMF, sbi.UDM, "")
	n := 0
	for _, v := range g.proxy.want(g.now.Load()) {
		if v.Sample == 100 {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d VIPs have samples", n)
	}
	for range 3 {
		g.proxy.strain.observeAll(udm.at, seenAnswers{6, 0, 6 * time.Second})
		g.now.Add(int64(judgeRest))
		g.proxy.strain.judgeBy(g.proxy, g.now.Load())
	}
	if r := g.proxy.strain.of(id(5), "", udm.at, g.now.Load()); r.reduction == 0 {
		t.Errorf("%+v", r)
	}
	if _, err := readPolicy(&api.ScpPolicy{Type: "UDM", Sample: 1001}); err == nil {
		t.Error("a sample of 1001 packets")
	}
	m := sampledPair(&api.BalancedPair{Sampled: &api.SampledRequests{Requests: 4, Errors: 1, Seconds: 0.01}}, &api.ScpPair{})
	if !m.Sampled || m.Requests != 4 || m.Errors != 1 || m.MeanMs != 2.5 {
		t.Errorf("%v", m)
	}
}

// TestStrainOfSets: what a member says of a set that it is in counts for that member, its own
// load before that of the set, and nothing for others.
func TestStrainOfSets(t *testing.T) {
	g := newRig(t)
	g.register(5, sbi.UDM, func(p *sbi.NFProfile) { p.NFSetIDList = []string{"set1.udmset.5gc.mnc070.mcc999"} })
	g.register(6, sbi.UDM)
	s := g.proxy.strain
	const scope = "NF-Set: set1.udmset.5gc.mnc070.mcc999"
	if r := g.says(6, overloadOf(40, scope), wanted{}); r.reduction != 0 {
		t.Errorf("of a set that it is not in: %+v", r)
	}
	if r := g.says(5, loadOfScope(90, scope), wanted{}); r.load != 90 {
		t.Errorf("the load of its set: %+v", r)
	}
	if r := g.says(5, loadOfScope(20, "NF-Instance: "+id(5)), wanted{}); r.load != 20 {
		t.Errorf("its own: %+v", r)
	}
	if r := g.says(5, overloadOf(40, scope), wanted{}); r.reduction != 40 || !r.asked {
		t.Errorf("of its set: %+v", r)
	}
	if r := s.of(id(6), "", netip.AddrPort{}, g.now.Load()); r.reduction != 0 || r.load != -1 {
		t.Errorf("another: %+v", r)
	}
}

// TestStrainOfParts: what is said of slices and data networks counts for requests that are
// known to be about them only, and is passed by else.
func TestStrainOfParts(t *testing.T) {
	g := newRig(t)
	g.register(5, sbi.SMF)
	one := wanted{[]sbi.Snssai{{SST: 1, SD: "A08923"}}, "internet"}
	two, none := wanted{[]sbi.Snssai{{SST: 2}}, "internet"}, wanted{}
	self := "NF-Instance: " + id(5)
	if r := g.says(5, overloadOf(70, self+"; S-NSSAI: 1-A08923; DNN: internet"), one); r.reduction != 70 || !r.asked {
		t.Errorf("the slice: %+v", r)
	}
	if r := g.says(5, loadOfScope(60, self+"; S-NSSAI: 1-A08923; DNN: internet; Relative-Capacity: 20%"), one); r.load != 60 || r.capacity(500) != 100 {
		t.Errorf("its load: %+v", r)
	}
	for name, w := range map[string]wanted{"another slice": two, "no slice": none, "another network": {one.slices, "ims"}} {
		if r := g.proxy.strain.ofPart(id(5), "", netip.AddrPort{}, g.now.Load(), w); r.reduction != 0 || r.load != -1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := g.says(5, loadOfScope(10, self), two); r.load != 10 || r.capacity(500) != 500 {
		t.Errorf("the instance: %+v", r)
	}
	if r := g.proxy.strain.ofPart(id(5), "", netip.AddrPort{}, g.now.Load(), one); r.load != 60 {
		t.Errorf("the slice, behind what the instance says: %+v", r)
	}
	if r := g.says(5, overloadOf(30, self+`; S-NSSAI: {"sst": 1}; DNN: internet`), wanted{[]sbi.Snssai{{SST: 1}}, "internet"}); r.reduction != 0 {
		t.Errorf("a slice that cannot be read: %+v", r)
	}
	for i := range 2 * mostParts {
		g.says(5, overloadOf(50, fmt.Sprintf("%s; S-NSSAI: 3; DNN: net%d", self, i)), none)
	}
	if n := len(g.proxy.strain.said.get(saidKey{instance: id(5)}).parts); n != mostParts {
		t.Errorf("%d parts are kept", n)
	}
}

// says has a function say something of load in an answer. It returns what follows for a
// request.
func (g *rig) says(of int, h http.Header, w wanted) relief {
	from := candidate{id: id(of), at: sbi.EndPoint{Addr: netip.MustParseAddrPort("10.0.0.5:7777")}}
	g.proxy.strain.heed(&g.proxy.count, g.proxy.index.Load(), from, h, g.now.Load())
	return g.proxy.strain.ofPart(id(of), "", from.at.Addr, g.now.Load(), w)
}

func loadOfScope(percent int, scope string) http.Header {
	return http.Header{sbi.LoadHeader: {fmt.Sprintf(`Timestamp: "%s"; Load-Metric: %d%%; %s`, time.Now().UTC().Format(http.TimeFormat), percent, scope)}}
}

func overloadOf(percent int, scope string) http.Header {
	return http.Header{sbi.OverloadHeader: {fmt.Sprintf(`Timestamp: "%s"; Period-of-Validity: 60s; Overload-Reduction-Metric: %d%%; %s`, time.Now().UTC().Format(http.TimeFormat), percent, scope)}}
}

// TestStrainDrawsOnce: where all candidates ask for less by one share, that share of the
// requests finds all of them spared, and no other request finds one.
func TestStrainDrawsOnce(t *testing.T) {
	s, now := newStrain(nowhere), time.Now().UnixNano()
	list := []candidate{{id: "a"}, {id: "b"}, {id: "c"}}
	for _, x := range list {
		s.take(saidKey{instance: x.id}, flow.Location{}, sbi.LoadReport{Overload: true, Percent: 50, At: time.Now(), Validity: time.Hour}, now)
	}
	for range 1000 {
		if got := s.relieve(list, now, wanted{}); got[0].shed != got[1].shed || got[1].shed != got[2].shed {
			t.Fatalf("%+v", got)
		}
	}
}

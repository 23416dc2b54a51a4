package firewall

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strconv"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/classbench"
)

// must returns a rule with its conditions, taken by a builder.
func must(t testing.TB, b *builder, m *api.FirewallRule) *rule {
	t.Helper()
	r, err := parseRule(m)
	if err != nil {
		t.Fatalf("rule %v: %v", m, err)
	}
	r.msg = m
	for _, c := range r.parsed {
		r.conds = append(r.conds, b.cond(r, &c.match, c.src, c.dst))
	}
	return r
}

func conds(rules []*rule) (list []*cond) {
	for _, r := range rules {
		list = append(list, r.conds...)
	}
	return list
}

// classbenchRules returns a rule set of the generator as the firewall's.
func classbenchRules(seed classbench.Seed, n int) []*api.FirewallRule {
	list := make([]*api.FirewallRule, n)
	for i, r := range classbench.Generate(seed, n, 1) {
		list[i] = &api.FirewallRule{Id: fmt.Sprintf("%s-%05d", seed, i), Priority: uint32(65000 - i), Action: actionAllow, Match: r.Match()}
		if r.Deny {
			list[i].Action = actionDeny
		}
	}
	return list
}

func classbenchKey(p *classbench.Packet) flow.Key {
	return flow.Key{InPort: 1, EthType: flow.EthTypeIPv4, IPProto: p.Proto, IPv4Src: p.Src.As4(), IPv4Dst: p.Dst.As4(), TPSrc: p.SrcPort, TPDst: p.DstPort,
		EthSrc: flow.MAC{2, 0, 0, 0, 0, 1}, EthDst: flow.MAC{2, 0, 0, 0, 0, 2}}
}

// linear is what a classifier must do: ask one rule after the other.
type linear struct {
	rules []*rule
	list  [][]condition
}

func (l *linear) lookup(k *flow.Key) *rule {
	var best *rule
	for i, r := range l.rules {
		if best != nil && (r.priority < best.priority || r.priority == best.priority && r.id > best.id) {
			continue
		}
		for _, c := range l.list[i] {
			if c.match.Matches(k) && c.src.has(k.TPSrc) && c.dst.has(k.TPDst) {
				best = r
				break
			}
		}
	}
	return best
}

// first returns the condition that decides on a packet.
func (c *classifier) first(s *search, w, trace *words) *cond {
	s.begin(w, trace)
	c.lookup(s)
	return s.best
}

func ruleOf(c *cond) *rule {
	if c == nil {
		return nil
	}
	return c.rule
}

func name(r *rule) string {
	if r == nil {
		return "none"
	}
	return r.id
}

// randomRule returns a rule over few values, so that many overlap.
func randomRule(r *rand.Rand, id string) *api.FirewallRule {
	m := map[string]string{}
	maybe := func(n int, name string, value func() string) {
		if r.IntN(n) == 0 {
			m[name] = value()
		}
	}
	mac := func() string {
		s := fmt.Sprintf("02:00:00:00:0%d:0%d", r.IntN(2), r.IntN(3))
		if r.IntN(3) == 0 {
			s += []string{"/ff:ff:ff:ff:ff:00", "/01:00:00:00:00:00", "/00:00:00:00:00:0f"}[r.IntN(3)]
		}
		return s
	}
	v4 := func() string {
		s := fmt.Sprintf("10.%d.%d.%d", r.IntN(2), r.IntN(2)*128, r.IntN(4))
		switch r.IntN(4) {
		case 0:
			return s
		case 1:
			return s + "/255.255.0.255"
		}
		return s + "/" + strconv.Itoa(r.IntN(33))
	}
	v6 := func() string {
		return fmt.Sprintf("fd00:%d::%x:%d/%d", r.IntN(2), r.IntN(2)<<15, r.IntN(4), r.IntN(129))
	}
	port := func() string {
		switch r.IntN(3) {
		case 0:
			return strconv.Itoa(r.IntN(6))
		case 1:
			a := r.IntN(6)
			return fmt.Sprintf("%d-%d", a, a+r.IntN(6))
		}
		return "1024-65535"
	}
	maybe(5, "in_port", func() string { return strconv.Itoa(1 + r.IntN(3)) })
	maybe(6, "eth_src", mac)
	maybe(6, "eth_dst", mac)
	maybe(5, "vlan_vid", func() string { return []string{"none", "any", "5", "6"}[r.IntN(4)] })
	switch r.IntN(5) {
	case 0:
		maybe(2, "ipv4_src", v4)
		maybe(2, "ipv4_dst", v4)
		maybe(4, "ip_dscp", func() string { return strconv.Itoa(r.IntN(3)) })
	case 1:
		maybe(2, "ipv6_src", v6)
		maybe(2, "ipv6_dst", v6)
	case 2:
		proto := []string{"tcp", "udp", "sctp"}[r.IntN(3)]
		maybe(2, proto+"_src", port)
		maybe(2, proto+"_dst", port)
		maybe(3, "ipv4_src", v4)
	case 3:
		maybe(2, "arp_op", func() string { return strconv.Itoa(1 + r.IntN(2)) })
		maybe(2, "arp_spa", v4)
	case 4:
		maybe(2, []string{"icmpv4_type", "icmpv6_type"}[r.IntN(2)], func() string { return strconv.Itoa(r.IntN(3)) })
	}
	action := actionAllow
	if r.IntN(2) == 0 {
		action = actionDeny
	}
	return &api.FirewallRule{Id: id, Priority: uint32(r.IntN(8)), Action: action, Match: m}
}

// randomKey returns a packet over the values of randomRule.
func randomKey(r *rand.Rand) flow.Key {
	k := flow.Key{InPort: flow.Port(1 + r.IntN(4)), EthSrc: flow.MAC{2, 0, 0, 0, byte(r.IntN(2)), byte(r.IntN(3))},
		EthDst: flow.MAC{2, 0, 0, 0, byte(r.IntN(2)), byte(r.IntN(3))}}
	if r.IntN(2) == 0 {
		k.VLAN = flow.VLANPresent | uint16(4+r.IntN(3))
	}
	a4 := func() [4]byte { return [4]byte{10, byte(r.IntN(2)), byte(r.IntN(2) * 128), byte(r.IntN(4))} }
	a6 := func() [16]byte {
		return [16]byte{0xfd, 0, 0, byte(r.IntN(2)), 12: byte(r.IntN(2) * 128), 15: byte(r.IntN(4))}
	}
	switch r.IntN(4) {
	case 0:
		k.EthType, k.ARPOp, k.ARPSPA = flow.EthTypeARP, uint16(1+r.IntN(2)), a4()
		return k
	case 1:
		k.EthType = 0x1234
		return k
	case 2:
		k.EthType, k.IPv6Src, k.IPv6Dst = flow.EthTypeIPv6, a6(), a6()
	default:
		k.EthType, k.IPv4Src, k.IPv4Dst = flow.EthTypeIPv4, a4(), a4()
	}
	k.IPDSCP = uint8(r.IntN(3))
	switch k.IPProto = []uint8{6, 17, 132, 1, 58}[r.IntN(5)]; k.IPProto {
	case 1, 58:
		k.ICMPType = uint8(r.IntN(3))
	default:
		k.TPSrc, k.TPDst = uint16(r.IntN(12)), uint16(r.IntN(12))
		if r.IntN(3) == 0 {
			k.TPDst = uint16(1020 + r.IntN(10))
		}
	}
	return k
}

// TestLookupIsLinearSearch has random rules come and go and compares each
// answer with that of a linear search; and it changes, in each packet, a bit
// that the answer is said not to depend on.
func TestLookupIsLinearSearch(t *testing.T) {
	for seed := range uint64(40) {
		checkLookup(t, seed, 60, 300)
	}
}

func checkLookup(t testing.TB, seed uint64, steps, packets int) {
	r, look := rand.New(rand.NewPCG(seed, 1)), &search{}
	b := newBuilder()
	l := &linear{}
	for step := range steps {
		var add, remove []*rule
		for range 1 + r.IntN(6) {
			if len(l.rules) > 0 && r.IntN(3) == 0 {
				i := r.IntN(len(l.rules))
				remove = append(remove, l.rules[i])
				l.rules = append(l.rules[:i:i], l.rules[i+1:]...)
				l.list = append(l.list[:i:i], l.list[i+1:]...)
				continue
			}
			m := randomRule(r, fmt.Sprintf("r%d-%d", step, r.IntN(1000000)))
			x := must(t, b, m)
			list, _ := parseConditions(m)
			l.rules, l.list, add = append(l.rules, x), append(l.list, list), append(add, x)
		}
		gone := map[*rule]bool{}
		for _, x := range remove {
			gone[x] = true
		}
		kept := add[:0:0]
		for _, x := range add {
			if gone[x] {
				delete(gone, x)
			} else {
				kept = append(kept, x)
			}
		}
		remove = remove[:0]
		for x := range gone {
			remove = append(remove, x)
		}
		c := b.change(conds(kept), conds(remove))
		for range packets / steps {
			k := randomKey(r)
			var w, trace words
			w.pack(&k)
			got, want := ruleOf(c.first(look, &w, nil)), l.lookup(&k)
			if got != want {
				t.Fatalf("seed %d, step %d: packet %+v: %s decides, want %s", seed, step, k, name(got), name(want))
			}
			if again := ruleOf(c.first(look, &w, &trace)); again != want {
				t.Fatalf("seed %d: traced, %s decides, want %s", seed, name(again), name(want))
			}
			for range 8 {
				o := randomKey(r)
				var v words
				v.pack(&o)
				for i := range v {
					v[i] = w[i]&trace[i] | v[i]&^trace[i]
				}
				if got := ruleOf(c.first(look, &v, nil)); got != want {
					t.Fatalf("seed %d: %x agrees with %x in all of %x, but %s decides, not %s", seed, v, w, trace, name(got), name(want))
				}
			}
		}
	}
}

func FuzzLookup(f *testing.F) {
	f.Add(uint64(1), uint8(10))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint8) { checkLookup(t, seed, int(steps)%30+1, 100) })
}

// TestLookup50k compares a few thousand lookups among 50,000 rules of each
// seed with a linear search, and reports how long they and changes take. With
// -short they are 5,000 rules.
func TestLookup50k(t *testing.T) {
	size := 50_000
	if testing.Short() {
		size = 5000
	}
	for _, seed := range classbench.Seeds {
		b, look := newBuilder(), &search{}
		l := &linear{}
		for _, m := range classbenchRules(seed, size) {
			l.rules = append(l.rules, must(t, b, m))
			list, _ := parseConditions(m)
			l.list = append(l.list, list)
		}
		began := time.Now()
		c := b.change(conds(l.rules), nil)
		built := time.Since(began)
		trace := classbench.Trace(classbench.Generate(seed, size, 1), 20_000, 2)
		for i := range 300 {
			k := classbenchKey(&trace[i])
			var w words
			w.pack(&k)
			if got, want := ruleOf(c.first(look, &w, nil)), l.lookup(&k); got != want {
				t.Fatalf("%s: packet %v: %s decides, want %s", seed, trace[i], name(got), name(want))
			}
		}
		w := &words{}
		times := make([]time.Duration, len(trace))
		for i := range trace {
			k := classbenchKey(&trace[i])
			began := time.Now()
			w.packUsual(&k)
			c.first(look, w, nil)
			times[i] = time.Since(began)
		}
		sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
		var worst time.Duration
		for i := range 100 {
			began := time.Now()
			one := l.rules[i*size/101:][:1]
			b.change(nil, conds(one))
			b.change(conds(one), nil)
			worst = max(worst, time.Since(began)/2)
		}
		t.Logf("%s: %d pairs, built in %v; lookup median %v, 90%% %v, 99%% %v; a change at most %v", seed, b.now.v4.table.size, built,
			times[len(times)/2], times[len(times)*9/10], times[len(times)*99/100], worst)
	}
}

// BenchmarkLookup50k looks up packets of the generator's traces among 50,000
// rules, the header fields packed as in the stage.
func BenchmarkLookup50k(b *testing.B) {
	for _, seed := range classbench.Seeds {
		b.Run(string(seed), func(b *testing.B) {
			bd := newBuilder()
			var rules []*rule
			for _, m := range classbenchRules(seed, 50_000) {
				rules = append(rules, must(b, bd, m))
			}
			c := bd.change(conds(rules), nil)
			trace := classbench.Trace(classbench.Generate(seed, 50_000, 1), 1<<16, 2)
			keys := make([]flow.Key, len(trace))
			for i := range trace {
				keys[i] = classbenchKey(&trace[i])
			}
			look, w := &search{}, &words{}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				w.packUsual(&keys[i&(1<<16-1)])
				c.first(look, w, nil)
				i++
			}
		})
	}
}

// BenchmarkChange50k takes one rule of 50,000 away and adds it again; and one
// with addresses that no other has.
func BenchmarkChange50k(b *testing.B) {
	for _, seed := range classbench.Seeds {
		bd := newBuilder()
		var rules []*rule
		for _, m := range classbenchRules(seed, 50_000) {
			rules = append(rules, must(b, bd, m))
		}
		bd.change(conds(rules), nil)
		n := 0
		for name, next := range map[string]func() *rule{
			"known": func() *rule { return rules[n*7%50_000] },
			"fresh": func() *rule {
				return must(b, bd, &api.FirewallRule{Id: "x", Priority: 70, Action: actionDeny,
					Match: map[string]string{"ipv4_src": fmt.Sprintf("99.%d.%d.7", n>>8&255, n&255), "ipv4_dst": fmt.Sprintf("98.%d.%d.7", n>>8&255, n&255)}})
			},
		} {
			b.Run(string(seed)+"/"+name, func(b *testing.B) {
				for b.Loop() {
					one := next().conds
					if n++; name == "known" {
						bd.change(nil, one)
						bd.change(one, nil)
					} else {
						bd.change(one, nil)
						bd.change(nil, one)
					}
				}
			})
		}
	}
}

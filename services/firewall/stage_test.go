package firewall

import (
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/classbench"
)

// filled returns a book of rules that asks nobody.
func filled(t testing.TB, rules []*api.FirewallRule) *store {
	t.Helper()
	b := newStore(DefaultConfig(), nil, slog.New(slog.DiscardHandler))
	for i, m := range rules {
		r, err := parseRule(m)
		if err != nil {
			t.Fatal(err)
		}
		r.msg = r.kept(m, uint32(i+1))
		b.enter(r)
	}
	b.publish()
	return b
}

// TestStageIsLookup has the stage, with its memory, say what a lookup says, for
// packets of few flows among random rules, with and without odd masks.
func TestStageIsLookup(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 3))
		var rules []*api.FirewallRule
		for i := range 1 + r.IntN(20) {
			m := randomRule(r, string(rune('a'+i)))
			if r.IntN(4) == 0 {
				m.Dpid = "1"
			}
			rules = append(rules, m)
		}
		b := filled(t, rules)
		for sw := range flow.DPID(3) {
			stage := b.open(sw)
			v := b.now.Load().view(sw)
			for range 3000 {
				in := &flow.PacketIn{Switch: sw, Key: randomKey(r), Parsed: true, Role: flow.RoleEdge}
				var w words
				w.pack(&in.Key)
				_, deny := v.judge(&search{}, &w, nil)
				if got := stage(in, nil) == flow.Drop; got != deny {
					t.Fatalf("seed %d: packet %+v denied %v, want %v", seed, in.Key, got, deny)
				}
			}
		}
	}
}

// TestStageDoesNotAllocate holds the stage to its contract.
func TestStageDoesNotAllocate(t *testing.T) {
	b := filled(t, classbenchRules(classbench.FW, 1000))
	stage := b.open(1)
	trace := classbench.Trace(classbench.Generate(classbench.FW, 1000, 1), 500, 2)
	i := 0
	in := &flow.PacketIn{Switch: 1, Parsed: true, Role: flow.RoleEdge}
	if n := testing.AllocsPerRun(400, func() {
		in.Key = classbenchKey(&trace[i])
		stage(in, nil)
		i++
	}); n != 0 {
		t.Errorf("%v allocations for a packet", n)
	}
}

// BenchmarkStage is what a packet costs in the stage: without rules; of a flow
// that comes again, among 50,000 rules; and of flows between many hosts.
func BenchmarkStage(b *testing.B) {
	rules := classbenchRules(classbench.ACL, 50_000)
	key := classbenchKey(&classbench.Trace(classbench.Generate(classbench.ACL, 50_000, 1), 1, 2)[0])
	for name, list := range map[string][]*api.FirewallRule{"none": nil, "repeated": rules, "hosts": rules} {
		b.Run(name, func(b *testing.B) {
			stage := filled(b, list).open(1)
			in := &flow.PacketIn{Switch: 1, Key: key, Parsed: true, Role: flow.RoleEdge}
			b.ReportAllocs()
			n := uint32(0)
			for b.Loop() {
				if name == "hosts" {
					n += 7919
					in.Key.IPv4Src, in.Key.IPv4Dst = [4]byte{10, 0, byte(n >> 8 & 63), byte(n)}, [4]byte{10, 0, byte(n >> 16 & 63), byte(n >> 3)}
				}
				stage(in, nil)
			}
		})
	}
}

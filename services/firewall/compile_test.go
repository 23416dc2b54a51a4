package firewall

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// TestRangesAreMasks checks that the masked ports of a range are just its ports.
func TestRangesAreMasks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		a, b := uint16(r.IntN(65536)), uint16(r.IntN(65536))
		want := portRange{min(a, b), max(a, b)}
		list := want.masks()
		if len(list) > 30 {
			t.Errorf("%v takes %d masks", want, len(list))
		}
		for p := range 65536 {
			n := 0
			for _, m := range list {
				if uint16(p)&m.mask == m.value {
					n++
				}
			}
			if inside := want.has(uint16(p)); inside && n != 1 || !inside && n != 0 {
				t.Fatalf("%v: port %d is in %d of %v", want, p, n, list)
			}
		}
	}
}

// TestCompiledIsLookup has entries, as a switch applies them, say what a lookup
// says: those of several tables, and those of one.
func TestCompiledIsLookup(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 4))
		b := newBuilder()
		var rules []*rule
		for i := range 1 + r.IntN(15) {
			m := randomRule(r, string(rune('a'+i)))
			m.Number = uint32(i + 1)
			rules = append(rules, must(t, b, m))
		}
		set := &ruleset{all: b.change(conds(rules), nil), fallback: actionAllow}
		if r.IntN(2) == 0 {
			set.fallback = actionDeny
		}
		v := set.view(1)
		many := v.compile(&target{}, 20_000)
		one := v.compile(&target{single: true, old: true}, 20_000)
		if many.mode != modeCompiled {
			t.Fatalf("seed %d: mode %s: %s", seed, many.mode, many.reason)
		}
		for _, p := range []*program{many, one} {
			slices.SortStableFunc(p.entries, func(a, b flow.Entry) int { return int(b.Priority) - int(a.Priority) })
		}
		for range 300 {
			k := randomKey(r)
			var w words
			w.pack(&k)
			_, deny := v.judge(&search{}, &w, nil)
			if e := first(many.entries, &k); (e != nil && e.Goto == 0) != deny {
				t.Fatalf("seed %d: packet %+v denied %v, but the entry is %v", seed, k, deny, e)
			}
			switch e := first(one.entries, &k); {
			case e == nil && deny:
				t.Fatalf("seed %d: packet %+v is denied, but passes a switch with one table", seed, k)
			case e != nil && len(e.Apply) == 0 && !deny:
				t.Fatalf("seed %d: packet %+v is allowed, but dropped by %v", seed, k, e)
			}
		}
	}
}

// TestEveryPriority has rules of all priorities, the first and last ones above
// all, do what a lookup says, on switches with links, and with every default.
func TestEveryPriority(t *testing.T) {
	ends := []uint32{0, 1, 2, 3, 99, 100, 101, 64_999, 65_000, 65_001, 65_532, 65_533, 65_534, 65_535}
	const link = flow.Port(4)
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 6))
		b := newBuilder()
		var rules []*rule
		for i := range 1 + r.IntN(15) {
			m := randomRule(r, string(rune('a'+i)))
			m.Number, m.Priority = uint32(i+1), ends[r.IntN(len(ends))]
			rules = append(rules, must(t, b, m))
		}
		set := &ruleset{all: b.change(conds(rules), nil), fallback: []string{actionAllow, actionDeny}[r.IntN(2)]}
		v := set.view(1)
		p := v.compile(&target{links: []flow.Port{link}}, 20_000)
		if p.mode != modeCompiled {
			t.Fatalf("seed %d: mode %s: %s", seed, p.mode, p.reason)
		}
		slices.SortStableFunc(p.entries, func(a, b flow.Entry) int { return int(b.Priority) - int(a.Priority) })
		for i, e := range p.entries {
			if e.Priority == 0 || i > 0 && p.entries[i-1].Key() == e.Key() {
				t.Fatalf("seed %d: entry %v takes the place of another", seed, e)
			}
		}
		for range 100 {
			k := randomKey(r)
			var w words
			w.pack(&k)
			_, deny := v.judge(&search{}, &w, nil)
			if e := first(p.entries, &k); (e != nil && e.Goto == 0) != (deny && k.InPort != link) {
				t.Fatalf("seed %d: packet %+v denied %v, but the entry is %v", seed, k, deny, e)
			}
		}
	}
}

// TestPrioritiesStay has entries keep the priorities of their rules, and those of
// others when a rule comes, unless there is no room for that.
func TestPrioritiesStay(t *testing.T) {
	type one struct {
		priority uint16
		deny     bool
	}
	for _, c := range []struct {
		rules []one
		want  []uint16
	}{
		{[]one{{500, true}, {100, false}, {1, true}}, []uint16{500, 100, 2}},
		{[]one{{500, true}, {100, false}, {0, false}}, []uint16{500, 100, 2}},
		{[]one{{1, true}, {1, true}, {0, true}}, []uint16{2, 2, 2}},
		{[]one{{1, true}, {0, false}}, []uint16{65000, 64999}},
		{[]one{{65535, false}, {65534, true}, {65533, true}, {7, false}}, []uint16{65532, 65531, 65531, 7}},
		{[]one{{32768, true}, {32768, false}, {32768, true}, {9, true}}, []uint16{32768, 32767, 32766, 9}},
		{[]one{{9, true}, {9, false}, {8, false}, {8, true}}, []uint16{9, 8, 8, 7}},
	} {
		var rules []*rule
		for _, r := range c.rules {
			rules = append(rules, &rule{priority: r.priority, deny: r.deny})
		}
		if got := priorities(rules); !slices.Equal(got, c.want) {
			t.Errorf("%v have %v, want %v", c.rules, got, c.want)
		}
	}
}

// first returns the entry that a packet meets.
func first(entries []flow.Entry, k *flow.Key) *flow.Entry {
	for i := range entries {
		if entries[i].Match.Matches(k) {
			return &entries[i]
		}
	}
	return nil
}

// TestVerdictsAreRight has the match of each verdict cover just packets that get
// the same one.
func TestVerdictsAreRight(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 5))
		b := newBuilder()
		var rules []*rule
		for i := range 1 + r.IntN(15) {
			rules = append(rules, must(t, b, randomRule(r, string(rune('a'+i)))))
		}
		v := (&ruleset{all: b.change(conds(rules), nil), fallback: actionAllow}).view(1)
		for range 100 {
			k := randomKey(r)
			var w, trace words
			w.pack(&k)
			_, deny := v.judge(&search{}, &w, &trace)
			m, err := matchOf(&w, &trace)
			if err != nil || !m.Matches(&k) {
				t.Fatalf("seed %d: verdict on %+v is about %v (%v)", seed, k, m, err)
			}
			for range 30 {
				o := randomKey(r)
				var x words
				x.pack(&o)
				if _, other := v.judge(&search{}, &x, nil); m.Matches(&o) && other != deny {
					t.Fatalf("seed %d: verdict on %+v covers %+v by %v, which is denied %v", seed, k, o, m, other)
				}
			}
		}
	}
}

package tenants

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// TestGuestlist: whatever comes and goes, those are let in that were first seen
// first, and a change is reported if and only if it is one.
func TestGuestlist(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, most := range []int{1, 3, 10} {
		l, there := newGuestlist(most), map[hostKey]*seen{}
		letIn := func() (list []hostKey) {
			if !l.full() {
				return nil
			}
			for k := range there {
				if l.lets(k) {
					list = append(list, k)
				}
			}
			slices.SortFunc(list, func(a, b hostKey) int { return slices.Compare(a.mac[:], b.mac[:]) })
			return list
		}
		for range 5000 {
			before := letIn()
			k := hostKey{5, flow.MACFrom(uint64(rng.IntN(20)))}
			var changed bool
			if rng.IntN(3) == 0 {
				delete(there, k)
				changed = l.remove(k)
			} else {
				there[k] = &seen{hostKey: k, first: fmt.Sprint(rng.IntN(8))}
				changed = l.set(there[k])
			}
			var order []*guest
			for _, h := range there {
				order = append(order, &guest{seen: h})
			}
			slices.SortFunc(order, (*guest).compare)
			if l.full() != (len(order) >= most) {
				t.Fatalf("full: %v with %d hosts of %d", l.full(), len(order), most)
			}
			for i, g := range order {
				if l.lets(g.hostKey) != (i < most) {
					t.Fatalf("host %d of %d is let in: %v", i, most, l.lets(g.hostKey))
				}
			}
			if now := letIn(); !slices.Equal(before, now) && !changed {
				t.Fatalf("%v became %v, and no change was reported", before, now)
			}
		}
	}
}

// BenchmarkHostOfTenant is a host of a tenant with a limit that comes and goes,
// beside others.
func BenchmarkHostOfTenant(b *testing.B) {
	for _, others := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			l := newGuestlist(others / 2)
			for i := range others {
				l.set(&seen{hostKey: hostKey{5, flow.MACFrom(uint64(i))}, first: fmt.Sprintf("%08d", i*2)})
			}
			h := &seen{hostKey: hostKey{5, flow.MACFrom(1 << 40)}, first: "00000001"}
			b.ReportAllocs()
			for b.Loop() {
				l.set(h)
				l.remove(h.hostKey)
			}
		})
	}
}

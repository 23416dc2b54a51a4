package flow

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTaggingChanges: after any changes, answers are those of a tagging that was
// told of the networks as they are only, and a change names every port whose
// answers are others.
func TestTaggingChanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	vlans := []uint16{VLANPresent | 1, VLANPresent | 2, VLANPresent | 3}
	type answer struct {
		actions []Action
		ok      bool
	}
	var all []Location
	for p := range Port(6) {
		all = append(all, Location{Switch: 1, Port: p + 1})
	}
	ask := func(x *Tagging) (list []answer) {
		for _, at := range all {
			for _, v := range append(vlans, 0, VLANPresent|9) {
				actions, ok := x.Egress(at, v)
				list = append(list, answer{actions, ok})
			}
		}
		return list
	}
	same := func(a, b answer) bool { return a.ok == b.ok && slices.Equal(a.actions, b.actions) }
	var x Tagging
	networks := map[uint16][]TaggedPort{}
	for range 5000 {
		before := ask(&x)
		vlan := vlans[rng.IntN(len(vlans))]
		var c TaggingChange
		if rng.IntN(4) == 0 {
			delete(networks, vlan)
			c = x.Remove(vlan)
		} else {
			var ports []TaggedPort
			for _, at := range all {
				if rng.IntN(2) == 0 {
					ports = append(ports, TaggedPort{At: at, Tag: []uint16{0, vlan, VLANPresent | 7}[rng.IntN(3)], Shared: rng.IntN(2) == 0})
				}
			}
			networks[vlan] = ports
			c = x.Set(vlan, ports)
		}
		var fresh Tagging
		for v, ports := range networks {
			fresh.Set(v, ports)
		}
		now, want := ask(&x), ask(&fresh)
		for i := range now {
			at, v := all[i/(len(vlans)+2)], append(vlans, 0, VLANPresent|9)[i%(len(vlans)+2)]
			if !same(now[i], want[i]) {
				t.Fatalf("VLAN %x at %v: %v, want %v", v, at, now[i], want[i])
			}
			if !same(now[i], before[i]) && !slices.Contains(c.Ports, at) && !(c.Whole && v == vlan) {
				t.Fatalf("VLAN %x at %v was %v and is %v, which the change %v does not name", v, at, before[i], now[i], c)
			}
		}
	}
}

// TestTaggingCostsTheSame: a change of one network costs as much beside many others.
func TestTaggingCostsTheSame(t *testing.T) {
	cost := func(others int) float64 {
		var x Tagging
		for i := range others {
			x.Set(VLANPresent|uint16(i+2), []TaggedPort{{At: Location{Switch: 1, Port: Port(i + 1)}}})
		}
		on := false
		return testing.AllocsPerRun(100, func() {
			on = !on
			x.Set(VLANPresent|1, []TaggedPort{{At: Location{Switch: 2, Port: 1}, Shared: on}})
		})
	}
	if few, many := cost(1), cost(4000); many > few {
		t.Errorf("%v allocations beside 4,000 networks, %v beside one", many, few)
	}
}

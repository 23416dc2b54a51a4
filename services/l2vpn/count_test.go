package l2vpn

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// flows returns the entries of all switches, as they are read.
func (f *field) flows() (list []*api.FlowEntry) {
	for sw, d := range f.device {
		for _, x := range d.Flows() {
			e := api.NewFlowEntry(sw, &x.Entry)
			e.Packets, e.Bytes = x.Packets, x.Bytes
			list = append(list, e)
		}
	}
	return list
}

// TestLANCounts: what customers of a vpls send and get is counted at each end, whichever
// way it goes, and what is not carried as dropped; nothing is counted twice or lost where
// entries are read in part, end, or a switch begins anew.
func TestLANCounts(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d := newDrawn(t, seed)
			now := time.Unix(1e9, 0)
			b := newCounterTable()
			want := map[*fabric]map[end]tally{}
			for _, v := range d.all {
				v.active = d.grow(v)
				v.trees = [][]arc{v.active}
				want[v] = map[end]tally{}
				b.of[v.Id] = &circuitCounters{circuit: v.circuit, seen: map[counter]amount{}}
			}
			d.declareAll(func() {})
			add := func(v *fabric, e end, kind, n int) {
				sum := want[v][e]
				sum[kind].packets += uint64(n)
				want[v][e] = sum
			}
			mac := func(i int) flow.MAC { return flow.MAC{2, 0, byte(i), 0, 0, 1} }
			send := func(v *fabric, i int, src, dst flow.MAC) {
				d.n++
				d.host(v.ends[i].at).Send(frame(v.ends[i], src, dst, d.n))
				add(v, v.ends[i], received, 1)
				arrived := 0
				for o, ends := range d.arrived(d.all, src, dst, d.n) {
					for e, n := range ends {
						add(o, e, sent, n)
						arrived += n
					}
				}
				if _, shut := v.lan.blocked[v.ends[i]]; shut || src.Multicast() {
					if add(v, v.ends[i], dropped, 1); arrived > 0 {
						t.Fatalf("a frame that is to be dropped arrives %d times", arrived)
					}
				}
			}
			all := func() {
				for _, v := range d.all {
					for i := range v.ends {
						send(v, i, mac(i), everybody)
						send(v, i, flow.MAC{3}, everybody) // a group as the sender
						for j := range v.ends {
							send(v, i, mac(i), mac(j))
						}
					}
				}
			}
			check := func(when string) {
				t.Helper()
				for _, v := range d.all {
					var sum tally
					for i, e := range v.ends {
						got := b.of[v.Id].countedAt(i)
						for kind := range got {
							if got[kind].packets != want[v][e][kind].packets && b.of[v.Id].base == (tally{}) {
								t.Fatalf("%s: vpls %d, end %v of %v: counted %v, want %v", when, v.Id, e, v.ends, got, want[v][e])
							}
						}
						sum = sum.plus(want[v][e])
					}
					for kind, got := range b.of[v.Id].counted() {
						if got.packets != sum[kind].packets {
							t.Fatalf("%s: vpls %d: counted %v in sum, want %v", when, v.Id, b.of[v.Id].counted(), sum)
						}
					}
				}
			}
			all()
			b.count(d.flows())
			check("unknown")
			for _, v := range d.all {
				for i, e := range v.ends {
					v.lan.learn(mac(i), e, now)
				}
			}
			d.declareAll(func() {})
			all()
			list := d.flows()
			d.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			for part := range slices.Chunk(list, 5) {
				b.count(part)
			}
			check("known, read in parts")
			v := d.all[0]
			v.lan.block(v.ends[0], "a loop", now)
			had := d.flows()
			d.declareAll(func() {})
			left := d.flows()
			key := func(f *api.FlowEntry) string { return fmt.Sprint(f.Dpid, f.Table, f.Priority, f.Match) }
			for _, f := range had {
				if !slices.ContainsFunc(left, func(o *api.FlowEntry) bool { return key(o) == key(f) }) {
					b.flowRemoved(&api.FlowRemoved{Flow: f})
				}
			}
			all()
			b.count(d.flows())
			check("one end blocked")
			for _, f := range d.flows() { // a switch that begins anew
				f.Packets, f.Bytes = 0, 0
				b.count([]*api.FlowEntry{f})
			}
			check("begun anew")
		})
	}
}

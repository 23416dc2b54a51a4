package object

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Whoever said last that he has an address has it; and what is told to have
// moved is what another look finds elsewhere.
func TestHostsFollowEvents(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		hosts, plain := NewHosts(), map[HostKey]*Host{}
		said := map[Address][]HostKey{}
		for range 200 {
			key := HostKey{flow.MACFrom(uint64(rng.IntN(4) + 1)), VLAN(uint32(rng.IntN(2) * 7))}
			e := &api.HostChanged{Host: &api.Host{Mac: key.MAC.String(), Vlan: uint32(key.VLAN &^ flow.VLANPresent)}}
			before, version := hosts.Stations(), hosts.Version
			for a := range said {
				said[a] = slices.DeleteFunc(said[a], func(k HostKey) bool { return k == key })
			}
			if delete(plain, key); rng.IntN(4) == 0 {
				e.Change = "gone"
			} else {
				at := flow.Location{Switch: flow.DPID(rng.IntN(2) + 1), Port: 1}
				e.Host.At = api.NewLocation(at)
				plain[key] = &Host{HostKey: key, At: at}
				for i := range 3 {
					if rng.IntN(2) == 0 {
						a := Address{netip.MustParseAddr(fmt.Sprint("10.0.0.", i+1)), key.VLAN}
						e.Host.Ipv4 = append(e.Host.Ipv4, a.Addr.String())
						said[a] = append(said[a], key)
					}
				}
			}
			_, _, moved := hosts.Changed(e)
			want := map[Address]Station{}
			for a, list := range said {
				if len(list) > 0 {
					h := plain[list[len(list)-1]]
					want[a] = Station{h.MAC, h.At}
				}
			}
			if got := hosts.Stations(); !maps.Equal(got, want) || len(hosts.Addresses()) != len(want) {
				t.Fatalf("seed %d: %v, want %v", seed, got, want)
			}
			for a := range said {
				one, known := before[a]
				other, still := want[a]
				if differs := one != other || known != still; differs != slices.Contains(moved, a) {
					t.Fatalf("seed %d: %v was %v and is %v; told to have moved: %v", seed, a, one, other, moved)
				}
			}
			if (len(moved) > 0) != (hosts.Version != version) {
				t.Fatalf("seed %d: %d addresses moved, version %d after %d", seed, len(moved), hosts.Version, version)
			}
		}
	}
}

// What an earlier run knew counts until the host speaks, or is forgotten.
func TestHostsOfAnEarlierRun(t *testing.T) {
	hosts := NewHosts()
	one, two := Station{MAC: flow.MAC{2, 1}}, Station{MAC: flow.MAC{2, 2}}
	a := Address{Addr: netip.MustParseAddr("10.0.0.1")}
	b := Address{Addr: netip.MustParseAddr("10.0.0.2")}
	hosts.Restore(a, one)
	hosts.Restore(b, two)
	hosts.Changed(&api.HostChanged{Host: &api.Host{Mac: two.MAC.String(), Ipv4: []string{"10.0.0.2"}}})
	if !hosts.Forget() || hosts.Forget() {
		t.Error("want one host forgotten, once")
	}
	if s, known := hosts.Station(b); len(hosts.Addresses()) != 1 || !known || s != two {
		t.Errorf("%v", hosts.Stations())
	}
	hosts.Learn(a, two)
	if list := hosts.WithAddr(a.Addr); len(list) != 1 || len(list[0].Addrs) != 2 || list[0] != hosts.WithMAC(two.MAC)[0] {
		t.Errorf("%v", list)
	}
}

// A persister comes to hold what is wanted, whatever fails, is bounded, or is written
// by another instance.
func TestPersister(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		store := memory(t)
		f := &faults{Bucket: store, rng: rng.IntN, wrote: func(string, string) {}}
		f.before.Store(5)
		f.after.Store(5)
		s := NewPersister(f)
		want := map[string]string{}
		for range 10 {
			clear(want)
			for range rng.IntN(3 * persistTurn) {
				want[fmt.Sprint(rng.IntN(3*persistTurn))] = fmt.Sprint(rng.IntN(2))
			}
			if _, err := store.Put(t.Context(), "0", []byte("another")); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Keep(t.Context(), want, len(want)); err != nil && !errors.Is(err, errFault) {
				t.Fatal(err)
			}
		}
		f.before.Store(0)
		f.after.Store(0)
		for more, err := true, error(nil); more; {
			if more, err = s.Keep(t.Context(), want, len(want)); err != nil {
				t.Fatal(err)
			}
		}
		got := map[string]string{}
		if err := NewPersister(store).Load(t.Context(), func(key, value string) { got[key] = value }); err != nil {
			t.Fatal(err)
		}
		if want["0"] == "" {
			delete(got, "0") // another's, which nobody wants
		}
		if !maps.Equal(got, want) {
			t.Fatalf("seed %d: %d values, want %d", seed, len(got), len(want))
		}
	}
}

package router

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// place is the address of a neighbour, station is where it is.
type (
	place   = object.Address
	station = object.Station
)

// loadNeighbours loads the neighbours of an earlier run; it skips what it cannot
// read.
func (b *store) loadNeighbours(ctx context.Context, s *object.Persister) error {
	return s.Load(ctx, func(key, value string) {
		p, err := parsePlace(key)
		st, err2 := parseStation(value)
		if err == nil && err2 == nil {
			b.neighbours.Restore(p, st)
		}
	})
}

// keepNeighbours stores the neighbours in subnets, if they have changed.
func (b *store) keepNeighbours(ctx context.Context, s *object.Persister) error {
	return s.Follow(ctx, &b.mu, func() uint64 { return b.changes + b.neighbours.Version }, func() map[string]string {
		want := map[string]string{}
		for p, st := range b.neighbours.Stations() {
			if b.inSubnet(p) {
				want[keyOf(p)] = textOf(st)
			}
		}
		return want
	}, b.cfg.Load().Entries)
}

// keyOf returns the key in the bucket: the address in hex digits, and the VLAN.
func keyOf(p place) string {
	return fmt.Sprintf("%x.%d", p.Addr.AsSlice(), p.VLAN&^flow.VLANPresent)
}

// parsePlace reads what keyOf returns.
func parsePlace(s string) (place, error) {
	digits, vlan, _ := strings.Cut(s, ".")
	octets, err := hex.DecodeString(digits)
	a, ok := netip.AddrFromSlice(octets)
	n, err2 := strconv.ParseUint(vlan, 10, 12)
	if err != nil || err2 != nil || !ok || !usable(a) {
		return place{}, fmt.Errorf("key %q: want an address in hex digits, a dot and a VLAN", s)
	}
	return place{Addr: a, VLAN: object.VLAN(uint32(n))}, nil
}

// textOf returns the station as stored in the bucket.
func textOf(s station) string { return fmt.Sprintf("%v %v %d", s.MAC, s.At.Switch, uint32(s.At.Port)) }

// parseStation parses the result of textOf.
func parseStation(s string) (st station, err error) {
	f := strings.Fields(s)
	if len(f) != 3 {
		return st, fmt.Errorf("%q: want MAC DPID PORT", s)
	}
	if st.MAC, err = flow.ParseMAC(f[0]); err != nil {
		return st, err
	}
	if st.At.Switch, err = flow.ParseDPID(f[1]); err != nil {
		return st, err
	}
	st.At.Port, err = flow.ParsePort(f[2])
	return st, err
}

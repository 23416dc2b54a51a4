package router

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/flow"
)

// shelf keeps the neighbours in subnets for the next run. One goroutine uses it.
type shelf struct {
	store Store
	kept  map[place]keptStation
}

// keptStation is what the store has of a neighbour.
type keptStation struct {
	text     string
	revision uint64
}

// shelfTurn bounds the neighbours that are written in one turn.
const shelfTurn = 256

// load reads what an earlier run knew; what cannot be read is left out.
func (s *shelf) load(ctx context.Context, n *neighbours) error {
	s.kept = map[place]keptStation{}
	err := s.store.All(ctx, func(key string, value []byte, revision uint64) error {
		p, err := parsePlace(key)
		if err != nil {
			return nil
		}
		s.kept[p] = keptStation{string(value), revision}
		if st, err := parseStation(string(value)); err == nil {
			n.put(p, st)
			n.former[p] = true
		}
		return nil
	})
	clear(n.dirty)
	return err
}

// keep writes what has changed since the last time and is in a subnet of a
// router's, a part of it at a time.
func (s *shelf) keep(ctx context.Context, b *book) error {
	b.mu.Lock()
	due := map[place]station{}
	for p := range b.neighbours.dirty {
		st, known := b.neighbours.of[p]
		switch {
		case known && b.inSubnet(p) && (s.kept[p].revision != 0 || len(s.kept)+len(due) < b.cfg.Load().Entries):
			if s.kept[p].text != st.String() {
				due[p] = st
			}
		case s.kept[p].revision != 0:
			due[p] = station{}
		}
		delete(b.neighbours.dirty, p)
		if len(due) >= shelfTurn {
			break
		}
	}
	b.mu.Unlock()
	for p, st := range due {
		var err error
		if st == (station{}) {
			if err = s.store.Delete(ctx, p.String()); err == nil {
				delete(s.kept, p)
			}
		} else {
			k := keptStation{text: st.String()}
			if k.revision, err = s.store.Update(ctx, p.String(), []byte(k.text), s.kept[p].revision); err == nil {
				s.kept[p] = k
			}
		}
		if err != nil {
			b.mu.Lock()
			for p := range due {
				b.neighbours.dirty[p] = true
			}
			b.mu.Unlock()
			return err
		}
	}
	return nil
}

// String returns the key in the bucket: the address in hex digits, and the VLAN.
func (p place) String() string {
	return fmt.Sprintf("%x.%d", p.addr.AsSlice(), p.vlan&^flow.VLANPresent)
}

// parsePlace reads what String returns.
func parsePlace(s string) (place, error) {
	digits, vlan, _ := strings.Cut(s, ".")
	octets, err := hex.DecodeString(digits)
	a, ok := netip.AddrFromSlice(octets)
	n, err2 := strconv.ParseUint(vlan, 10, 12)
	if err != nil || err2 != nil || !ok || !usable(a) {
		return place{}, fmt.Errorf("key %q: want an address in hex digits, a dot and a VLAN", s)
	}
	return place{a, vlanKey(uint32(n))}, nil
}

// String returns the station as the bucket has it.
func (s station) String() string {
	return fmt.Sprintf("%v %v %d", s.mac, s.at.Switch, uint32(s.at.Port))
}

// parseStation reads what String returns.
func parseStation(s string) (st station, err error) {
	f := strings.Fields(s)
	if len(f) != 3 {
		return st, fmt.Errorf("%q: want MAC DPID PORT", s)
	}
	if st.mac, err = flow.ParseMAC(f[0]); err != nil {
		return st, err
	}
	if st.at.Switch, err = flow.ParseDPID(f[1]); err != nil {
		return st, err
	}
	st.at.Port, err = flow.ParsePort(f[2])
	return st, err
}

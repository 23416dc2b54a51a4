package nat

import (
	"context"
	"math"
	"net/netip"
	"strings"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// reaches reports whether a gateway translates for an address: one inside, and
// outside of VLANs. A link-local address is no way from one network into another.
func (g *gateway) reaches(a object.Address) bool {
	return a.VLAN == 0 && !a.Addr.IsLinkLocalUnicast() && g.within(a.Addr)
}

// shelf stores which hosts inside have which Ethernet addresses.
type shelf struct {
	*object.Shelf
	kept uint64 // the sum of versions that are stored
}

// load reads what an earlier run knew.
func (s *shelf) load(ctx context.Context, hosts *object.Hosts) error {
	return s.Load(ctx, func(key, value string) {
		a, err := addressOf(key)
		mac, err2 := flow.ParseMAC(value)
		if err == nil && err2 == nil {
			hosts.Restore(object.Address{Addr: a}, object.Station{MAC: mac})
		}
	})
}

// keepHosts stores what has changed since the last time and is inside of a
// gateway.
func (b *book) keepHosts(ctx context.Context, s *shelf) error {
	b.mu.Lock()
	version := b.changes + b.hosts.Version
	var want map[string]string
	if version != s.kept {
		want = map[string]string{}
		for _, a := range b.hosts.Addresses() {
			for _, g := range b.gateways.List() {
				if g.reaches(a) {
					st, _ := b.hosts.Station(a)
					want[keyOf(a.Addr)] = st.MAC.String()
					break
				}
			}
		}
	}
	b.mu.Unlock()
	if want == nil {
		return nil
	}
	more, err := s.Keep(ctx, want, math.MaxInt)
	if err == nil && !more {
		s.kept = version
	}
	return err
}

// keyOf returns the key under which an address is kept: a bucket takes no colons.
func keyOf(a netip.Addr) string { return strings.ReplaceAll(a.String(), ":", "_") }

// addressOf returns the address that is kept under a key.
func addressOf(key string) (netip.Addr, error) {
	return netip.ParseAddr(strings.ReplaceAll(key, "_", ":"))
}

package nat

import (
	"context"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// reaches reports whether a gateway translates for an address: one inside, and
// outside of VLANs. A link-local address leads to no other network.
func (g *gateway) reaches(a object.Address) bool {
	return a.VLAN == 0 && !a.Addr.IsLinkLocalUnicast() && g.within(a.Addr)
}

// loadHosts reads what an earlier run knew.
func (b *store) loadHosts(ctx context.Context, s *object.Persister) error {
	return s.Load(ctx, func(key, value string) {
		a, err := addressOf(key)
		mac, err2 := flow.ParseMAC(value)
		if err == nil && err2 == nil {
			b.hosts.Restore(object.Address{Addr: a}, object.Station{MAC: mac})
		}
	})
}

// keepHosts stores the Ethernet addresses of hosts inside, if they have changed.
func (b *store) keepHosts(ctx context.Context, s *object.Persister) error {
	return s.Follow(ctx, &b.mu, func() uint64 { return b.changes + b.hosts.Version }, func() map[string]string {
		want := map[string]string{}
		for _, a := range b.hosts.Addresses() {
			if slices.ContainsFunc(b.gateways.List(), func(g *gateway) bool { return g.reaches(a) }) {
				st, _ := b.hosts.Station(a)
				want[keyOf(a.Addr)] = st.MAC.String()
			}
		}
		return want
	}, math.MaxInt)
}

// keyOf returns the key of an address in the bucket, where colons are not
// allowed.
func keyOf(a netip.Addr) string { return strings.ReplaceAll(a.String(), ":", "_") }

// addressOf returns the address of a key.
func addressOf(key string) (netip.Addr, error) {
	return netip.ParseAddr(strings.ReplaceAll(key, "_", ":"))
}

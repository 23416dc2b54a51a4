package nat

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// residents is which Ethernet address has which addresses, of hosts outside
// of VLANs. What an earlier run knew counts until hosts has told otherwise, so
// that a restart takes nobody's way back.
type residents struct {
	of     map[netip.Addr]flow.MAC
	addrs  map[flow.MAC][]netip.Addr
	former map[netip.Addr]bool // of an earlier run, not told of yet
	dirty  map[netip.Addr]bool // changed since it was kept
	sorted []netip.Addr        // nil: to be made
}

func newResidents() *residents {
	return &residents{of: map[netip.Addr]flow.MAC{}, addrs: map[flow.MAC][]netip.Addr{}, former: map[netip.Addr]bool{}, dirty: map[netip.Addr]bool{}}
}

// load reads what an earlier run knew.
func (r *residents) load(ctx context.Context, s Store) (map[netip.Addr]uint64, error) {
	revisions := map[netip.Addr]uint64{}
	err := s.All(ctx, func(key string, value []byte, revision uint64) error {
		a, err := addressOf(key)
		mac, err2 := flow.ParseMAC(string(value))
		if err == nil && err2 == nil && !a.IsLinkLocalUnicast() {
			r.put(a, mac)
			r.former[a], revisions[a] = true, revision
		}
		return nil
	})
	clear(r.dirty)
	return revisions, err
}

func (r *residents) put(a netip.Addr, mac flow.MAC) {
	if r.of[a] == mac {
		return
	}
	r.drop(a)
	r.of[a] = mac
	r.addrs[mac] = append(r.addrs[mac], a)
	r.dirty[a], r.sorted = true, nil
}

func (r *residents) drop(a netip.Addr) {
	mac, ok := r.of[a]
	if !ok {
		return
	}
	delete(r.of, a)
	delete(r.former, a)
	r.addrs[mac] = slices.DeleteFunc(r.addrs[mac], func(o netip.Addr) bool { return o == a })
	if len(r.addrs[mac]) == 0 {
		delete(r.addrs, mac)
	}
	r.dirty[a], r.sorted = true, nil
}

// changed takes the event; it returns the addresses that are concerned.
func (r *residents) changed(ev *api.HostChanged) (concerned []netip.Addr) {
	mac, err := flow.ParseMAC(ev.GetHost().GetMac())
	if err != nil || ev.Host.Vlan != 0 {
		return nil
	}
	var now []netip.Addr
	if ev.Change != "gone" {
		for _, text := range slices.Concat(ev.Host.Ipv4, ev.Host.Ipv6) {
			// A link-local address is no way from one network into another.
			if a, err := netip.ParseAddr(text); err == nil && !a.IsLinkLocalUnicast() && a.Zone() == "" {
				now = append(now, a)
			}
		}
	}
	for _, a := range slices.Clone(r.addrs[mac]) {
		if !slices.Contains(now, a) {
			r.drop(a)
			concerned = append(concerned, a)
		}
	}
	for _, a := range now {
		delete(r.former, a)
		if r.of[a] != mac {
			r.put(a, mac)
			concerned = append(concerned, a)
		}
	}
	return concerned
}

// addresses returns all addresses in order.
func (r *residents) addresses() []netip.Addr {
	if r.sorted == nil {
		r.sorted = slices.SortedFunc(maps.Keys(r.of), netip.Addr.Compare)
	}
	return r.sorted
}

// forget drops what only an earlier run knew; it returns what that was.
func (r *residents) forget() []netip.Addr {
	list := slices.Collect(maps.Keys(r.former))
	for _, a := range list {
		r.drop(a)
	}
	return list
}

// shelf keeps the addresses inside of gateways.
type shelf struct {
	store     Store
	revisions map[netip.Addr]uint64
}

// keepHosts writes what has changed since the last time and is inside of a
// gateway. It is called by one goroutine only.
func (b *book) keepHosts(ctx context.Context, s *shelf) error {
	b.mu.Lock()
	due := map[netip.Addr]flow.MAC{}
	for a := range b.hosts.dirty {
		mac, known := b.hosts.of[a]
		inside := false
		for _, g := range b.gateways {
			inside = inside || g.within(a)
		}
		if inside && known {
			due[a] = mac
		} else if s.revisions[a] != 0 {
			due[a] = flow.MAC{}
		} else if !inside {
			continue // a gateway may come
		}
		delete(b.hosts.dirty, a)
	}
	b.mu.Unlock()
	for a, mac := range due {
		var err error
		if mac == (flow.MAC{}) {
			if err = s.store.Delete(ctx, keyOf(a)); err == nil {
				delete(s.revisions, a)
			}
		} else {
			s.revisions[a], err = update(ctx, s.store, keyOf(a), mac.String(), s.revisions[a])
		}
		if err != nil {
			b.mu.Lock()
			b.hosts.dirty[a] = true
			b.mu.Unlock()
			return err
		}
	}
	return nil
}

// keyOf returns the key under which an address is kept: a bucket takes no colons.
func keyOf(a netip.Addr) string { return strings.ReplaceAll(a.String(), ":", "_") }

// addressOf returns the address that is kept under a key.
func addressOf(key string) (netip.Addr, error) {
	return netip.ParseAddr(strings.ReplaceAll(key, "_", ":"))
}

// update is Update that returns the former revision if it fails.
func update(ctx context.Context, s Store, key, value string, revision uint64) (uint64, error) {
	n, err := s.Update(ctx, key, []byte(value), revision)
	if err != nil {
		return revision, err
	}
	return n, nil
}

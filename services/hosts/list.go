package hosts

import (
	"net/netip"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// list answers ListHosts: all hosts by VLAN and address.
func (t *table) list() *api.ListHostsResponse {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &api.ListHostsResponse{Refused: t.tally.list(), Limits: t.reached.List(now())}
	t.index.all(func(h *host) { r.Hosts = append(r.Hosts, t.describe(h)) })
	slices.SortFunc(r.Hosts, func(a, b *api.Host) int {
		if a.Vlan != b.Vlan {
			return int(a.Vlan) - int(b.Vlan)
		}
		return strings.Compare(a.Mac, b.Mac)
	})
	return r
}

// find answers FindHost. In any VLAN it returns the host seen last.
func (t *table) find(address string, vlan int32) (*api.Host, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found *host
	consider := func(h *host) {
		if (vlan < 0 || vlan == int32(h.id.vlan())) && (found == nil || h.seen.Load() > found.seen.Load()) {
			found = h
		}
	}
	if ip, err := netip.ParseAddr(address); err == nil {
		ip = ip.Unmap().WithZone("")
		s := t.index.ipShard(ip)
		for _, h := range s.m[ip] {
			consider(h)
		}
	} else if mac, err := flow.ParseMAC(strings.ToLower(address)); err == nil {
		if vlan >= 0 {
			if h := t.index.host(newID(mac, uint16(vlan))); h != nil {
				consider(h)
			}
		} else {
			t.index.all(func(h *host) {
				if h.id.mac() == mac {
					consider(h)
				}
			})
		}
	} else {
		return nil, api.Errorf(codes.InvalidArgument, "host %q: want an Ethernet, IPv4 or IPv6 address", address)
	}
	if found == nil {
		return nil, api.Errorf(codes.NotFound, "host %s: not known", address)
	}
	return t.describe(found), nil
}

// describe returns the API's form of a host, with its binding and claimant.
func (t *table) describe(h *host) *api.Host {
	m := h.message(&t.holds)
	if one := t.bindings.of[h.id]; one != nil {
		m.Bound = one.kind()
	}
	m.ClaimedAt = t.claims.claimant(h)
	return m
}

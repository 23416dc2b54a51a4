package scp

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/sbi"
)

// Names are resolved by a server, which may be away; scp.names counts before it, and
// an instance whose name leads to another's host is not found any more.
func TestNamesAreResolved(t *testing.T) {
	g := newRig(t, func(c *Config) {
		c.Names, c.Resolver = map[string][]netip.Addr{"udm6": {netip.MustParseAddr(at(6))}}, "127.0.0.53:53"
	})
	g.host(5, 5)
	g.host(6, 6)
	answers, asked := map[string]string{"udm5": at(5)}, []string{}
	ask := func(_ context.Context, name string) ([]netip.Addr, error) {
		asked = append(asked, name)
		if answers[name] == "" {
			return nil, errors.New("no such name")
		}
		return []netip.Addr{netip.MustParseAddr(answers[name])}, nil
	}
	for n, name := range map[int]string{5: "udm5", 6: "udm6"} {
		g.register(n, sbi.UDM, func(p *sbi.NFProfile) {
			p.IPv4Addresses, p.NFServices[0].IPEndPoints[0].IPv4Address = []string{name}, name
		})
	}
	found := func() (where []string) {
		_, found, _ := g.discover(1, sbi.AMF, sbi.UDM, "")
		for _, x := range found.NFInstances {
			where = append(where, x.IPv4Addresses[0])
		}
		return where
	}
	if w := found(); !slices.Equal(w, []string{"127.0.9.1", "udm5"}) {
		t.Errorf("before: %v", w)
	}
	(&resolver{g.proxy, ask}).once(t.Context())
	if w := found(); !slices.Equal(w, []string{"127.0.9.1"}) || strings.Join(asked, " ") != "udm5" {
		t.Errorf("resolved: %v, asked for %v", w, asked)
	}
	clear(answers)
	g.eventually("it is stored", func() bool {
		g.proxy.mu.Lock()
		defer g.proxy.mu.Unlock()
		return g.proxy.shelf.stored == g.proxy.version
	})
	g.stop()
	g.start()
	g.host(5, 5)
	g.host(6, 6)
	(&resolver{g.proxy, ask}).once(t.Context())
	if w := found(); !slices.Equal(w, []string{"127.0.9.1"}) {
		t.Errorf("the server is away: %v", w)
	}
	g.patch(5, `[{"op":"replace","path":"/nfStatus","value":"REGISTERED"}]`)
	answers["udm5"] = at(6)
	(&resolver{g.proxy, ask}).once(t.Context())
	g.proxy.mu.Lock()
	x := g.proxy.book[id(5)]
	g.proxy.mu.Unlock()
	for _, e := range x.points {
		if e.Addr.Addr().String() == at(6) {
			t.Errorf("it is at %v, which is another's", e.Addr)
		}
	}
}

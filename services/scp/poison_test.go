package scp

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/sbi"
)

// An update may not do what a registration may not: name an address of another
// host, or become another instance. Its own addresses are never in its way.
func TestPoisoningByUpdate(t *testing.T) {
	g := newRig(t)
	g.host(1, 1)
	g.host(5, 5)
	g.register(5, sbi.UDM)
	g.register(1, sbi.UDM)
	for what, items := range map[string]string{
		"an end point":        `[{"op":"replace","path":"/nfServices/0/ipEndPoints/0/ipv4Address","value":"` + at(5) + `"}]`,
		"the addresses":       `[{"op":"replace","path":"/ipv4Addresses","value":["` + at(5) + `"]}]`,
		"one more address":    `[{"op":"add","path":"/ipv4Addresses/-","value":"` + at(5) + `"}]`,
		"by way of a copy":    `[{"op":"add","path":"/x","value":"` + at(5) + `"},{"op":"copy","from":"/x","path":"/ipv4Addresses/0"}]`,
		"one of scp.vips":     `[{"op":"add","path":"/ipv4Addresses/-","value":"127.0.9.7"}]`,
		"the front's":         `[{"op":"add","path":"/ipv4Addresses/-","value":"127.0.0.2"}]`,
		"whole services":      `[{"op":"replace","path":"/nfServices/0","value":{"serviceInstanceId":"1","serviceName":"nudm-main","scheme":"http","nfServiceStatus":"REGISTERED","versions":[],"ipEndPoints":[{"ipv4Address":"` + at(5) + `"}]}}]`,
		"another's id":        `[{"op":"replace","path":"/nfInstanceId","value":"` + id(5) + `"}]`,
		"what is no patch":    `{"ipv4Addresses":["` + at(5) + `"]}`,
		"a profile of no use": `[{"op":"replace","path":"/nfServices","value":7}]`,
	} {
		if r := g.patch(1, items); r.StatusCode != 403 && r.StatusCode != 400 {
			t.Errorf("%s: %s", what, r.Status)
		}
	}
	if len(g.nrf.got) != 2 {
		t.Errorf("the NRF got %v", g.nrf.got)
	}
	g.host(9, 1) // it has moved
	if r := g.patch(1, `[{"op":"add","path":"/load","value":7}]`); r.StatusCode != 204 {
		t.Errorf("its own update: %s", r.Status)
	}
}

// What the NRF makes of an update that the front could not follow is not used if it
// has an address of another host, and the heartbeat counts all the same.
func TestPoisonIsNotLearnt(t *testing.T) {
	g := newRig(t)
	g.host(1, 1)
	g.host(5, 5)
	g.register(1, sbi.UDM)
	from := netip.MustParseAddr(at(1))
	bad := []byte(profile(1, sbi.UDM, func(p *sbi.NFProfile) { p.IPv4Addresses = []string{at(5)} }))
	later := g.now.Load() + int64(5*time.Second)
	g.proxy.apply(&change{method: http.MethodPatch, id: id(1), by: from, body: []byte(`[]`)}, bad, later)
	other := []byte(strings.ReplaceAll(profile(1, sbi.UDM), id(1), id(6)))
	g.proxy.apply(&change{method: http.MethodPatch, id: id(1), by: from, body: []byte(`[]`)}, other, later)
	g.proxy.apply(&change{method: http.MethodPatch, id: id(1), by: from, body: []byte(`[{"op":"replace","path":"/no/such","value":1}]`)}, nil, later)
	g.proxy.mu.Lock()
	defer g.proxy.mu.Unlock()
	if x := g.proxy.book[id(1)]; len(x.profile.IPv4Addresses) != 1 || x.profile.IPv4Addresses[0] != at(1) || x.heard != later {
		t.Errorf("addresses %v, heard %v later", x.profile.IPv4Addresses, time.Duration(later-x.heard))
	}
	if g.proxy.book[id(6)] != nil {
		t.Error("an update has entered another instance")
	}
}

// An instance that the NRF knows and the front does not is somebody's, too.
func TestUnknownInstanceHasAnOwner(t *testing.T) {
	g := newRig(t)
	g.host(1, 1)
	g.host(5, 5)
	g.eventually("the first survey", func() bool {
		g.proxy.mu.Lock()
		defer g.proxy.mu.Unlock()
		return g.proxy.nrf == "ok"
	})
	g.nrf.set(func(n *fakeNRF) { n.book[id(5)] = []byte(profile(5, sbi.UDM)) })
	for _, c := range [][2]string{
		{"PUT", strings.ReplaceAll(profile(1, sbi.UDM), id(1), id(5))}, {"PATCH", `[{"op":"replace","path":"/nfStatus","value":"SUSPENDED"}]`}, {"DELETE", ""},
	} {
		if r, _ := g.do(1, c[0], "/nnrf-nfm/v1/nf-instances/"+id(5), c[1]); r.StatusCode != 403 {
			t.Errorf("%s: %s", c[0], r.Status)
		}
		g.proxy.forget(id(5))
	}
	if len(g.nrf.got) != 0 {
		t.Errorf("the NRF got %v", g.nrf.got)
	}
}

// A producer at the address of the NRF, which has registered there without passing
// the front, is no member of a VIP, for the balancer refuses such a one; the others
// are. A change of the configuration counts at once.
func TestMemberAtReservedAddress(t *testing.T) {
	g := newRig(t)
	g.register(5, sbi.UDM)
	g.register(6, sbi.UDM)
	x, err := newProducer([]byte(profile(7, sbi.UDM, func(p *sbi.NFProfile) {
		p.IPv4Addresses, p.NFServices[0].IPEndPoints[0].IPv4Address = []string{"127.0.0.1"}, "127.0.0.1" // as g.cfg.NRF
	})), netip.Addr{})
	if err == nil {
		err = g.proxy.learn(x)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, found, _ := g.discover(1, sbi.AMF, sbi.UDM, ""); len(found.NFInstances) != 1 || !strings.HasPrefix(found.NFInstances[0].IPv4Addresses[0], "127.0.9.") {
		t.Errorf("found %v", found.NFInstances)
	}
	g.vip("scp-udm.7777", func(v *api.Vip) bool { return len(v.Pool) == 2 })
	cfg := *g.cfg
	cfg.Vips = []netip.Prefix{netip.MustParsePrefix("127.0.9.0/24"), netip.MustParsePrefix("::/64")}
	cfg.Listen = at(6) + ":1"
	g.proxy.configure(&cfg)
	g.vip("scp-udm.7777", func(v *api.Vip) bool { return len(v.Pool) == 1 })
}

// One host cannot take the room of all instances, by however many addresses; a
// registrar may.
func TestInstancesOfOneHost(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Instances, c.Registrars = 200, []netip.Prefix{netip.MustParsePrefix(at(2) + "/32")} })
	g.host(1, 1, 4)
	g.host(3, 3)
	put := func(by, n int) int {
		text := profile(by, sbi.UDM, func(p *sbi.NFProfile) { p.NFInstanceID = id(n) })
		resp, _ := g.do(by, "PUT", "/nnrf-nfm/v1/nf-instances/"+id(n), text)
		return resp.StatusCode
	}
	for n := range fewInstances + 1 {
		if a, b := put(1, 100+n), put(2, 300+n); a != 201 && n < fewInstances || b != 201 || a != 429 && n == fewInstances {
			t.Fatalf("%d: status %d, and %d of a registrar", n, a, b)
		}
	}
	if status := put(1, 100); status != 201 {
		t.Errorf("again: status %d", status)
	}
	if status := put(4, 400); status != 429 {
		t.Errorf("by another address: status %d", status)
	}
	if status := put(3, 500); status != 201 {
		t.Errorf("of another: status %d", status)
	}
}

// An SCP, and a registrar, registers and asks for others, who are then asked about by
// what it says of them; nobody else does. What a host has registered itself stays
// its own.
func TestRelayed(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Registrars = []netip.Prefix{netip.MustParsePrefix(at(8) + "/32")} })
	put := func(by, n int, of sbi.NFType, change ...func(*sbi.NFProfile)) int {
		resp, _ := g.do(by, "PUT", "/nnrf-nfm/v1/nf-instances/"+id(n), profile(n, of, change...))
		return resp.StatusCode
	}
	restricted := func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.AUSF} }
	g.register(6, sbi.UDM, restricted)
	if status := put(9, 5, sbi.UDM); status != 403 {
		t.Errorf("by a stranger: %d", status)
	}
	g.register(9, sbi.SCP)
	for _, by := range []int{8, 9} {
		if status := put(by, 5, sbi.UDM, restricted); status != 201 {
			t.Errorf("by %d: %d", by, status)
		}
		if status := put(by, 1, sbi.AUSF); status != 201 {
			t.Errorf("by %d: %d", by, status)
		}
		if status, found, _ := g.discover(by, sbi.AUSF, sbi.UDM, "&requester-nf-instance-id="+id(1)); status != 200 || len(found.NFInstances) != 1 {
			t.Errorf("by %d for the AUSF: %d", by, status)
		}
		if status, _, _ := g.discover(by, sbi.AMF, sbi.UDM, ""); status != 403 {
			t.Errorf("by %d for an AMF: %d", by, status)
		}
		if status, _, _ := g.discover(by, sbi.AMF, sbi.UDM, "&requester-nf-instance-id="+id(1)); status != 403 {
			t.Errorf("by %d for an AUSF that says to be an AMF: %d", by, status)
		}
	}
	if status := put(9, 6, sbi.UDM); status != 403 {
		t.Errorf("what its host has registered: %d", status)
	}
	if status := put(9, 7, sbi.UDM, func(p *sbi.NFProfile) { p.IPv4Addresses = []string{"127.0.9.1"} }); status != 403 {
		t.Errorf("at an address of scp.vips: %d", status)
	}
	if status, _, _ := g.discover(9, sbi.UDM, sbi.AUSF, ""); status != 200 {
		t.Errorf("who registers for others is none of them: %d", status)
	}
	g.stop()
	g.start() // what is known of who has registered whom stays
	for _, by := range []int{5, 9} {
		if resp, body := g.do(by, "PATCH", "/nnrf-nfm/v1/nf-instances/"+id(5), `[{"op":"add","path":"/load","value":3}]`); resp.StatusCode != 204 {
			t.Errorf("by %d after a restart: %s %s", by, resp.Status, body)
		}
	}
	if status := put(4, 5, sbi.UDM); status != 403 {
		t.Errorf("by another host: %d", status)
	}
	g.eventually("who may connect", func() bool {
		g.back.mu.Lock()
		defer g.back.mu.Unlock()
		for name, v := range g.back.vips {
			if strings.HasPrefix(name, "scp-udm-") {
				return g.lets(v, at(1), at(8)+"/32", at(9))
			}
		}
		return false
	})
	index := g.proxy.index.Load()
	doors := index.doors[netip.MustParseAddrPort(at(5)+":7777")]
	if !permitted(index.nfs[netip.MustParseAddr(at(9))], doors, true) || permitted(index.nfs[netip.MustParseAddr(at(6))], doors, true) {
		t.Errorf("connections: %v", doors)
	}
}

// The addresses at one port of the network cannot take the room of all profiles by long ones.
func TestOctetsOfOnePort(t *testing.T) {
	g := newRig(t)
	g.host(1, 1, 2)
	g.host(3, 3)
	put := func(n, size int) int {
		resp, _ := g.do(1+n%2, "PUT", "/nnrf-nfm/v1/nf-instances/"+id(n), profile(1, sbi.UDM, func(p *sbi.NFProfile) {
			p.NFInstanceID, p.Locality, p.NFServices = id(n), strings.Repeat("x", size), nil
		}))
		return resp.StatusCode
	}
	for n := range 34 {
		if s := put(100+n, 1_000_000); s != 201 && n < 33 || s != 429 && n == 33 {
			t.Fatalf("%d: status %d", n, s)
		}
	}
	if a, b := put(100, 1_000_000), put(200, 10); a != 201 || b != 201 {
		t.Errorf("again: status %d; a short one: %d", a, b)
	}
	patch := func(n int, text string) int {
		resp, _ := g.do(1, "PATCH", "/nnrf-nfm/v1/nf-instances/"+id(n), fmt.Sprintf(`[{"op":"replace","path":"/locality","value":%q}]`, text))
		return resp.StatusCode
	}
	if long, short := patch(200, strings.Repeat("x", 900_000)), patch(200, "y"); long != 429 || short != 204 {
		t.Errorf("a patch that makes it long: status %d; one that does not: %d", long, short)
	}
	if resp, _ := g.do(3, "PUT", "/nnrf-nfm/v1/nf-instances/"+id(300), profile(3, sbi.AMF, func(p *sbi.NFProfile) { p.NFInstanceID, p.Locality = id(300), strings.Repeat("x", 100_000) })); resp.StatusCode != 201 {
		t.Errorf("at another port: %s", resp.Status)
	}
}

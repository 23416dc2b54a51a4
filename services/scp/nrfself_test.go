package scp

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/sbi"
)

// An NRF that lists itself, with a further address, is reached by its own addresses: no
// end point stands for it, connections to it are neither judged nor counted, and it
// notifies from each of its addresses.
func TestNRFListsItself(t *testing.T) {
	g := newRig(t, func(cfg *Config) { cfg.Strict = true })
	nrf, _, _ := g.cfg.nrf()
	g.register(1, sbi.AMF)
	g.register(5, sbi.UDM, func(p *sbi.NFProfile) { p.AllowedNFTypes = []sbi.NFType{sbi.AMF} })
	self := profile(8, sbi.NRF, func(p *sbi.NFProfile) {
		p.IPv4Addresses = append(p.IPv4Addresses, nrf.Addr().String())
		port := int(nrf.Port())
		p.NFServices[0].IPEndPoints = append(p.NFServices[0].IPEndPoints, sbi.IPEndPoint{IPv4Address: nrf.Addr().String(), Port: &port})
	})
	g.nrf.set(func(n *fakeNRF) { n.book[id(8)] = []byte(self) })
	if status, found, _ := g.discover(1, sbi.AMF, sbi.NRF, ""); status != 200 || len(found.NFInstances) != 1 || found.NFInstances[0].NFInstanceID != id(8) {
		t.Errorf("found: %d, %+v", status, found.NFInstances)
	}
	list := g.proxy.get(&api.GetScpRequest{Type: "NRF"}, nil, g.now.Load())
	if f := list.Functions; len(list.Endpoints) != 0 || len(f) != 1 || !strings.Contains(f[0].WhyNot, "the front answers") {
		t.Errorf("shown: %v", list)
	}
	if verdict, d := g.syn(9, 8, 7777, packet.TCPSyn); verdict != flow.Next || !d.Empty() {
		t.Errorf("who is not registered yet, to the NRF: %v", verdict)
	}
	if pairs, err := g.proxy.pairs(t.Context(), &api.ListScpPairsRequest{Type: "NRF"}, g.back); err != nil || len(pairs.Pairs) != 0 {
		t.Errorf("pairs: %v, %v", pairs, err)
	}
	if verdict, _ := g.syn(8, 5, 7777, packet.TCPSyn); verdict != flow.Next {
		t.Errorf("the NRF notifies from its further address: %v", verdict)
	}

	// Another host that registers as if it were the NRF is judged as everybody is.
	g.host(1, 9) // the network has not seen the NRF yet
	g.register(9, sbi.NRF, func(p *sbi.NFProfile) { p.IPv4Addresses = append(p.IPv4Addresses, nrf.Addr().String()) })
	g.proxy.mu.Lock()
	defer g.proxy.mu.Unlock()
	if i := slices.IndexFunc(g.proxy.sorted("NRF"), func(x *producer) bool { return x.id() == id(9) }); i < 0 || g.proxy.sorted("NRF")[i].front {
		t.Error("another host is taken for the NRF")
	}
}

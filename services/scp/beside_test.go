package scp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/sbi"
)

// Functions at one port of the network, such as those of one machine, reach each other by
// their own addresses: what they send need not come to a switch. For others, end points
// stand for the same producers.
func TestBeside(t *testing.T) {
	g := newRig(t)
	g.host(1, 1, 5)
	g.host(2, 2)
	g.host(3, 6)
	amf := g.function(1, sbi.AMF)
	smf := g.function(2, sbi.SMF)
	g.register(5, sbi.UDM)
	g.register(6, sbi.UDM)
	end := (&endpoint{Group: group{Type: sbi.UDM}}).instance()
	for range 2 { // and from what is known
		if _, found, _ := g.discover(1, sbi.AMF, sbi.UDM, ""); len(found.NFInstances) != 2 || found.NFInstances[0].IPv4Addresses[0] != at(5) {
			t.Errorf("beside a producer: found %+v", found.NFInstances)
		}
		if _, found, _ := g.discover(2, sbi.SMF, sbi.UDM, ""); len(found.NFInstances) != 1 || found.NFInstances[0].NFInstanceID != end {
			t.Errorf("elsewhere: found %+v", found.NFInstances)
		}
	}
	for _, x := range []*function{amf, smf} {
		uri := g.subscribe(x.n, "http://"+x.at.String()+"/callback", "")
		for n, own := range map[int]bool{5: x == amf, 6: x == amf} {
			text, _ := json.Marshal(sbi.NotificationData{Event: sbi.NFRegistered, NFInstanceURI: "http://nrf/nnrf-nfm/v1/nf-instances/" + id(n)})
			g.notifyAs("127.0.0.1", uri, string(text))
			if got := notified(x); strings.HasSuffix(got.NFInstanceURI, id(n)) != own {
				t.Errorf("%d is told of %d as %s", x.n, n, got.NFInstanceURI)
			}
		}
		if _, list := g.do(x.n, "GET", "/nnrf-nfm/v1/nf-instances", ""); strings.Contains(list, id(5)) != (x == amf) {
			t.Errorf("%d lists %s", x.n, list)
		}
	}

	// The producer moves to a port of its own.
	g.host(4, 5)
	if _, found, _ := g.discover(1, sbi.AMF, sbi.UDM, ""); len(found.NFInstances) != 1 || found.NFInstances[0].NFInstanceID != end {
		t.Errorf("no longer beside it: found %+v", found.NFInstances)
	}
}

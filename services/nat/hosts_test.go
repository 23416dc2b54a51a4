package nat

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/wefttest"
)

// TestHostsOfAnEarlierRun: they are translated for until the service hosts has said all,
// which is when those are forgotten that it has not named.
func TestHostsOfAnEarlierRun(t *testing.T) {
	b, g := rig(t)
	macs := map[string]flow.MAC{"10.0.0.3": {2, 0, 0, 0, 0, 3}, "10.0.0.4": {2, 0, 0, 0, 0, 4}}
	for addr, mac := range macs {
		b.hosts.Restore(object.In(netip.MustParseAddr(addr), 0), object.Station{MAC: mac})
	}
	feed := wefttest.Network(b.kind().Reads, b.networkChanged)
	feed(&api.HostChanged{Change: "learnt", Host: &api.Host{Mac: macs["10.0.0.3"].String(), At: &api.Location{Dpid: sw1, Port: 4}, Ipv4: []string{"10.0.0.3"}}})
	if reach := b.reach(g); len(reach) != 2 {
		t.Errorf("before hosts has said all, %v is translated for", reach)
	}
	feed(&api.HostsSettled{})
	if reach := b.reach(g); len(reach) != 1 || reach[netip.MustParseAddr("10.0.0.3")] != macs["10.0.0.3"] {
		t.Errorf("after hosts has said all, %v is translated for", reach)
	}
}

// An address is found again under its key, and the key is one that buckets take.
func TestKeysOfAddresses(t *testing.T) {
	for _, text := range []string{"10.0.0.1", "fd00::1", "::", "2001:db8::ffff:1.2.3.4"} {
		a := netip.MustParseAddr(text)
		key := keyOf(a)
		if back, err := addressOf(key); err != nil || back != a {
			t.Errorf("%s is kept as %q and read as %s, %v", text, key, back, err)
		}
		if strings.Contains(key, ":") {
			t.Errorf("%s is kept as %q: a bucket takes no colons", text, key)
		}
	}
}

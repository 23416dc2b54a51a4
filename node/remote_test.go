package node

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
)

// TestRemotes: a tunnel leads to another node's loopback only, whoever asks; one whose other
// end is not known is left as it is.
func TestRemotes(t *testing.T) {
	n := pe1("/br.mgmt")
	n.Loopback, n.Loopbacks = netip.MustParseAddr("10.255.0.1"), []netip.Prefix{netip.MustParsePrefix("10.255.0.0/24")}
	k := &keeping{Node: &n, log: slog.New(slog.DiscardHandler), db: &database{ifaces: map[string]iface{}}}
	for remote, want := range map[string]string{
		"10.255.0.2": "not reached", // the database, as it is well
		"10.255.0.1": "another node", "10.0.0.66": "no node's loopback", "fd00::1": "another node", "x": "another node", "": "",
	} {
		err := k.obeyTunnel(t.Context(), "t1", &api.WantedTunnel{Port: 20001, Kind: "gre", Remote: remote, Key: 1})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v; want %q", remote, err, want)
		}
	}
}

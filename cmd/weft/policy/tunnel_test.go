package policy

import (
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// TestOptimisedTable: what moved, what did not and why, and what that comes to; the command fails where
// something has not moved.
func TestOptimisedTable(t *testing.T) {
	m := &api.OptimiseTunnelsResponse{
		Moves: []*api.TunnelMove{
			{Tunnel: "a", Which: "primary", From: []string{"1", "2", "4"}, To: []string{"1", "3", "4"}, Gain: 31.25, State: "moved"},
			{Tunnel: "b", Which: "standby", From: []string{"1", "4"}, To: []string{"1", "3", "4"}, Gain: 2, State: "failed", Reason: "it has changed meanwhile"},
		},
		Gain: 33.25, Bound: 12.5, MeanDelay: 30, MeanDelayAfter: 20.6, WorstLoad: 0.9, WorstLoadAfter: 0.5, WorstLink: &api.Location{Dpid: "1", Port: 2}, Tunnels: 5, Fixed: 1,
	}
	var b strings.Builder
	list := &cli.Table{Writer: tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)}
	writeOptimised(list, &api.OptimiseTunnelsRequest{}, m)
	if err := list.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 2 4", "31.2 %", "failed: it has changed meanwhile", "5, 1 of them stay", "20.6 µs, before 30.0 µs, bound 12.5 µs", "50.0 %, before 90.0 %, at switch 1 port 2"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if failed, err := failOptimised(nil, nil, m); failed == nil || err != nil {
		t.Error(failed, err)
	}
	if failed, err := failOptimised(nil, nil, &api.OptimiseTunnelsResponse{Moves: m.Moves[:1]}); failed != nil || err != nil {
		t.Error(failed, err)
	}
}

package l2vpn

import (
	"context"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/wefttest"
)

// TestChangeMakesFirst: where a client changes what a circuit wants of its tunnels, its frames go by
// the tunnels before until the new ones carry and all switches have them; these book nothing more
// meanwhile, so that one path with room for one is enough.
func TestChangeMakesFirst(t *testing.T) {
	now := time.Unix(1e9, 0)
	r := newRoutes(t, wefttest.NewStore(), func() time.Time { return now }, map[uint32]uint64{3: 1e6})
	r.circuits(&api.Circuit{Name: "c", Ends: []string{"1:1", "2:1"}, RateKbps: 800_000})
	if m := r.b.get("c"); m.State != "up" {
		t.Fatal(m)
	}
	for _, m := range []*api.Circuit{
		{Name: "c", Ends: []string{"1:1", "2:1"}, RateKbps: 800_000, MaxDelayUs: 5000},
		{Name: "c", Ends: []string{"1:1", "2:1"}, RateKbps: 800_000, NeverMove: true},
		{Name: "c", Ends: []string{"1:2", "2:1"}, RateKbps: 800_000},
	} {
		if err := r.b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{m}}); err != nil {
			t.Fatal(err)
		}
		for range 3 { // each step on the way
			if r.route("c", 0) != 3 || r.route("c", 1) != 3 {
				t.Errorf("%v: frames go by %d and back by %d, want 3", m, r.route("c", 0), r.route("c", 1))
			}
			r.keeper.keep(context.Background(), false)
		}
		r.settle()
		if m := r.b.get("c"); m.State != "up" || r.route("c", 0) != 3 || len(r.tunnels) != 2 {
			t.Errorf("%s: %s; by %d, %d tunnels", m.State, m.Reason, r.route("c", 0), len(r.tunnels))
		}
	}
}

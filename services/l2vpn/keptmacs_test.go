package l2vpn

import (
	"maps"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// TestKeptMACs: after a restart a switch gets the entries that it has, by what was learnt; what
// is stored of ends that are gone, of other circuits, or is malformed, changes nothing.
func TestKeptMACs(t *testing.T) {
	kept, cfg := wefttest.NewStore(), defaults()
	now := time.Unix(1e9, 0)
	clock := func() time.Time { return now }
	b := newTestStoreAt(t, kept, cfg, clock)
	ends := []string{"1:1.5", "1:2", "2:1"}
	if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Type: vpls, Ends: ends}, {Name: "d", Type: vpls, Ends: []string{"3:1", "3:2"}}}}); err != nil {
		t.Fatal(err)
	}
	s := b.status["c"]
	for i := range 300 {
		if !s.lan.learn(flow.MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}, s.circuit.ends[i%3], now) {
			t.Fatalf("address %d is not learnt", i)
		}
		b.learnt["c"] = true
	}
	before := b.macs
	b.spread(false)
	if b.macs == before {
		t.Error("what is learnt is not to be stored")
	}
	stored := b.keptMACs()
	if len(stored) != macParts {
		t.Errorf("%d keys, want %d", len(stored), macParts)
	}

	again := newTestStoreAt(t, kept, cfg, clock)
	for _, key := range slices.Sorted(maps.Keys(stored)) {
		again.recallMACs(key, stored[key])
	}
	again.recallMACs("x.1", "1:2 02:00:00:00:00:01")
	again.recallMACs("99.1", "1:2 02:00:00:00:00:01")
	again.recallMACs("1.1", "7:7 02:00:00:00:09:01\n1:2 nonsense 03:00:00:00:00:01\n")
	for _, dpid := range []string{"0000000000000001", "0000000000000002"} {
		sw := &api.Switch{Dpid: dpid, Openflow: "1.3"}
		if was, is := b.piece(sw, circuitPiece+"c"), again.piece(sw, circuitPiece+"c"); len(was.Flows) < 200 || !proto.Equal(was, is) {
			t.Errorf("switch %s: before the restart %v\nafter it %v", dpid, was, is)
		}
	}
	if !maps.Equal(stored, again.keptMACs()) {
		t.Error("what is stored is another thing after the restart")
	}
	moved, lan := flow.MAC{2, 0, 0, 0, 0, 1}, again.status["c"].lan
	if lan.learn(moved, s.circuit.ends[0], now); lan.known[moved].at != s.circuit.ends[0] {
		t.Error("an address that moved while the controller was away stays where it was")
	}

	if err := again.try(&api.SetCircuitsRequest{Delete: []string{"c"}}); err != nil {
		t.Fatal(err)
	}
	if left := again.keptMACs(); len(left) > 0 {
		t.Errorf("of a deleted circuit are left: %v", left)
	}
}

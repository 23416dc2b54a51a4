package l2vpn

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/wefttest"
)

// TestRequestIsWholeOrNotAtAll: a request that runs out of labels half-way leaves
// circuits, those that it changes and deletes too, and labels as they were, after a
// restart as well.
func TestRequestIsWholeOrNotAtAll(t *testing.T) {
	cfg, kept := defaults(), wefttest.NewStore()
	cfg.LastLabel = cfg.FirstLabel + 3
	b := newTestStore(t, kept, cfg)
	for _, m := range []*api.Circuit{
		{Name: "gone", Ends: []string{"1:1.1", "2:1.1"}},
		{Name: "moved", Ends: []string{"1:1.2", "2:1.2"}},
	} {
		if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{m}}); err != nil {
			t.Fatal(err)
		}
	}
	were := map[string]*api.Circuit{"gone": b.status["gone"].circuit.Circuit, "moved": b.status["moved"].circuit.Circuit}
	many := &api.SetCircuitsRequest{Delete: []string{"gone"}, Circuits: []*api.Circuit{{Name: "moved", Ends: []string{"1:2.2", "2:1.2"}}}}
	for i := range 8 {
		many.Circuits = append(many.Circuits, &api.Circuit{Name: fmt.Sprint("new", i), Ends: []string{fmt.Sprintf("1:3.%d", i+1), fmt.Sprintf("2:3.%d", i+1)}})
	}
	check := func(when string, b *store) {
		t.Helper()
		if len(b.status) != len(were) {
			t.Errorf("%s: %d circuits, want %d", when, len(b.status), len(were))
		}
		for name, was := range were {
			if s := b.status[name]; s == nil || !proto.Equal(s.circuit.Circuit, was) {
				t.Errorf("%s: circuit %s is %v, was %v", when, name, s, was)
			}
		}
		checkApart(t, b)
	}
	for try := range 2 {
		if err := b.try(many); api.KindOf(err) != codes.ResourceExhausted {
			t.Fatalf("%v; want ResourceExhausted", err)
		}
		check(fmt.Sprint("try ", try), b)
	}
	check("after a restart", newTestStore(t, kept, cfg))
	many.Circuits = many.Circuits[:4] // no label has been lost
	if err := b.try(many); err != nil {
		t.Error(err)
	}
}

package hydra

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/weft-sdn/weft/plan/place"
)

// TestPlacementInstances: every instance of the comparison has a placement, and
// every way to place it gives each shard a server.
func TestPlacementInstances(t *testing.T) {
	for _, i := range instances(true) {
		in, err := i.make(1)
		if err != nil {
			t.Fatalf("%s: %v", i.name, err)
		}
		if err := in.Validate(); err != nil {
			t.Errorf("%s: %v", i.name, err)
			continue
		}
		if !i.small {
			continue
		}
		s, err := place.Solve(context.Background(), in, place.Options{Runs: 4, Conflicts: -1})
		if err != nil {
			t.Errorf("%s: %v", i.name, err)
			continue
		}
		for name, server := range map[string][]int{byTopological: topological(in), byRandom: anywhere(in, rand.New(rand.NewPCG(1, 1)))} {
			cost, broken := place.Check(in, server)
			if len(broken) == 0 && cost < s.Cost*0.9 {
				t.Errorf("%s: %s costs %g, Weft's %g", i.name, name, cost, s.Cost)
			}
		}
	}
}

// TestMetis: what METIS places is read back; without it, that is said.
func TestMetis(t *testing.T) {
	in, err := place.Generate(place.GenerateConfig{Partitions: 4, Services: 4, Servers: 4, Seed: 1, Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	server, err := Metis(context.Background(), in, 2, 1)
	if errors.Is(err, ErrNoMetis) {
		return
	}
	if err != nil || len(server) != len(in.Shards) {
		t.Fatalf("%v, %v", server, err)
	}
	in.Edges[0].Weight = 0.5
	if _, err := Metis(context.Background(), in, 2, 1); err == nil {
		t.Error("weights that METIS does not have were taken")
	}
}

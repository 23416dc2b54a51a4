package hydra

import (
	"testing"

	"github.com/weft-sdn/weft/bench/sim"
)

// TestStagesHandPacketsToTheirHosts: what is measured without connections does
// what the controller does.
func TestStagesHandPacketsToTheirHosts(t *testing.T) {
	topo, err := sim.Ring(4)
	if err == nil {
		err = topo.AttachHosts(4, 2)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := startStages(t.Context(), topo, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.choose(t.Context(), 20, 1); err != nil {
		t.Fatal(err)
	}
	before := s.delivered
	if err := s.run(1000); err != nil {
		t.Fatal(err)
	}
	if n := s.delivered - before; n != 1000 {
		t.Errorf("%d packets of 1000 were handed to their host", n)
	}
}

// BenchmarkLookupAndFirewall is what a packet-in of one of 1000 pairs of hosts
// costs in a partition of 8, with 50,000 firewall rules: decoding, all stages of
// the pipeline as the services have them, and encoding; without sockets.
func BenchmarkLookupAndFirewall(b *testing.B) {
	topo, err := sim.HydraShare(8)
	if err != nil {
		b.Fatal(err)
	}
	if err := topo.AttachHostsToEdge(edgeHosts, edgePorts); err != nil {
		b.Fatal(err)
	}
	s, err := startStages(b.Context(), topo, 50_000)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := s.choose(b.Context(), flows, 1); err != nil {
		b.Fatal(err)
	}
	before := s.delivered
	b.ReportAllocs()
	b.ResetTimer()
	if err := s.run(b.N); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
	if n := s.delivered - before; n != uint64(b.N) {
		b.Errorf("%d of %d packets were handed to their host", n, b.N)
	}
}

package profiler

import (
	"bytes"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/plan"
)

// Each stage has the packets that it has seen, of all samples, and packet-ins are
// those of the stage that sees most, without probes.
func TestPacketsOfStages(t *testing.T) {
	var cpu bytes.Buffer
	if err := (&profile.Profile{SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}}).Write(&cpu); err != nil {
		t.Fatal(err)
	}
	packets := func(to string, n uint64) *api.ServiceTraffic {
		return &api.ServiceTraffic{To: to, Kind: "packet", Count: n}
	}
	s := newSamples()
	for range 2 {
		if err := s.add(&api.TakeProfileResponse{Processes: []*api.ProcessProfile{
			{Process: "all", Services: []string{"discovery", "hosts", "forwarding"}, Seconds: 2, Cpu: cpu.Bytes(),
				Traffic: []*api.ServiceTraffic{packets("discovery", 500), packets("hosts", 200), packets("forwarding", 100)}},
			{Process: "routing-2", Services: []string{"forwarding"}, Seconds: 2, Cpu: cpu.Bytes(),
				Traffic: []*api.ServiceTraffic{packets("forwarding", 60)}},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	p, err := s.profile(3)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"discovery": 250, "hosts": 100, "forwarding": 80} {
		if got := p.Of(name).Packets; got != plan.Measured(want) {
			t.Errorf("%s has seen %+v packets a second, want %v", name, got, want)
		}
	}
	if p.PacketIns != 100 || p.Seconds != 4 || p.Switches != 3 {
		t.Errorf("%v packet-ins a second in %v s, of %d switches", p.PacketIns, p.Seconds, p.Switches)
	}
}

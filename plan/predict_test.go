package plan_test

import (
	"context"
	"math"
	"testing"

	"github.com/weft-sdn/weft/plan"
)

// TestPredictSaysWhatMakeReckonsWith compares the demands of processes with those
// by which Make has filled the servers.
func TestPredictSaysWhatMakeReckonsWith(t *testing.T) {
	for _, parts := range []int{1, 2} {
		g, cut := fatTree(t, parts)
		made, err := plan.Make(context.Background(), network(), g, enough(), servers(t, 3), few(plan.MakeOptions{Cut: cut, Replicas: map[string]int{"forwarding": 2}}))
		if err != nil {
			t.Fatal(err)
		}
		load := plan.NetworkLoad{Parts: map[string]plan.PartLoad{}, Changes: plan.DefaultChanges}
		for _, s := range made.Shards {
			if s.Service == "southbound" {
				load.Parts[s.Partition] = plan.PartLoad{Switches: s.Switches, PacketIns: s.PacketIns}
			}
		}
		cpu, memory := map[string]float64{}, map[string]float64{}
		for _, d := range plan.Predict(made.Plan, network(), enough(), load).Processes {
			c, m := d.CPU(), d.Memory()
			if !c.Known || !m.Known {
				t.Errorf("%s: demand %v and %v, with missing figures", d.Name, c, m)
			}
			cpu[made.Where[d.Worker]] += c.Value
			memory[made.Where[d.Worker]] += m.Value
		}
		for _, l := range made.Loads() {
			if math.Abs(cpu[l.Server]-l.CPU) > 1e-9 || math.Abs(memory[l.Server]-float64(l.Memory)) > 16 {
				t.Errorf("%d partitions, %s: predicted %v and %v, Make reckons with %v and %v", parts, l.Server, cpu[l.Server], memory[l.Server], l.CPU, l.Memory)
			}
		}
	}
}

// apart is a plan whose packet-ins cross twice, to three replicas at last.
const apart = `
name: apart
transport: ws
workers:
  edge: {services: [southbound]}
  discovery: {services: [discovery]}
  routing: {services: [paths, forwarding], replicas: 3}
  rest: {services: [gateway]}
`

func TestPredictFollowsPacketIns(t *testing.T) {
	p, err := plan.Parse("apart.yaml", []byte(apart))
	if err != nil {
		t.Fatal(err)
	}
	profile := enough()
	profile.Delays = append(profile.Delays, plan.Delay{Transport: "ws", Local: plan.Measured(40e-6)})
	m := plan.Predict(p, network(), profile, plan.NetworkLoad{Parts: map[string]plan.PartLoad{"": {Switches: 40, PacketIns: 3000}}})
	near := func(what string, got plan.Figure, want float64) {
		t.Helper()
		if !got.Known || math.Abs(got.Value-want) > 1e-9 {
			t.Errorf("%s: %+v, want %v", what, got, want)
		}
	}
	crossings, delay := 0.0, 0.0
	for _, h := range m.Hops {
		crossings += h.Crossings
		delay += h.Delay.Value
		near("stage "+h.To, h.Stage, 5e-6)
	}
	if crossings != 2 || math.Abs(delay-80e-6) > 1e-12 {
		t.Errorf("%v crossings of %v s, want 2 of 40 us each: %+v", crossings, delay, m.Hops)
	}
	overhead := 1e-6 / (5e-6 * float64(len(profile.Services)))
	for _, d := range m.Processes {
		if d.Worker == "routing" { // two services at twice the switches; a third of the packet-ins
			near(d.Name, d.CPU(), 0.001+2*(0.002*2+5e-6*1000*(1+overhead)))
			near(d.Name, d.Memory(), 20<<20+2*2*4<<20)
		}
	}
	if len(m.Rates) != 1 || m.Rates[0].From != "discovery" || math.Abs(m.Rates[0].Calls-30) > 1e-9 { // forwarding and paths share a process
		t.Errorf("rates of calls that cross: %+v, want 30 a second from discovery", m.Rates)
	}
	found := map[plan.Connection]bool{}
	for _, c := range m.Connections {
		found[c] = true
	}
	for _, want := range []plan.Connection{
		{From: "edge", To: "discovery", Transport: "ws", Delay: plan.Measured(40e-6)}, {From: "discovery", To: "routing", Transport: "ws", Delay: plan.Measured(40e-6)},
		{From: "rest", To: "edge", Transport: "ws", Delay: plan.Measured(40e-6)},
	} {
		if !found[want] {
			t.Errorf("no connection %+v; there are %+v", want, m.Connections)
		}
	}
}

func TestPredictDoesNotGuess(t *testing.T) {
	p, err := plan.Parse("apart.yaml", []byte(apart))
	if err != nil {
		t.Fatal(err)
	}
	profile := enough()
	for i := range profile.Services {
		if profile.Services[i].Service == "discovery" {
			profile.Services[i].PerPacket = plan.Figure{}
		}
	}
	for packetIns, known := range map[float64]bool{0: true, 100: false} {
		for _, d := range plan.Predict(p, network(), profile, plan.NetworkLoad{Parts: map[string]plan.PartLoad{"": {Switches: 4, PacketIns: packetIns}}}).Processes {
			if d.CPU().Known != (known || d.Worker != "discovery") || !d.Memory().Known {
				t.Errorf("%s at %v packet-ins a second: %+v and %+v", d.Name, packetIns, d.CPU(), d.Memory())
			}
			if d.Worker == "discovery" && !known && (len(d.Parts[1].Missing) != 1 || d.Parts[1].Missing[0] != "services.discovery.per_packet") {
				t.Errorf("missing %v", d.Parts[1].Missing)
			}
		}
	}
}

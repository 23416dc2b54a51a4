package discovery

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// BenchmarkProbeMade signs one probe of a switch with twelve ports.
func BenchmarkProbeMade(b *testing.B) {
	s := newSigner(make([]byte, keySize))
	var jobs []job
	for p := range flow.Port(12) {
		l := at(1, p+1)
		jobs = append(jobs, job{at: l, frame: newProbe(l, 4), actions: []flow.Action{flow.Output(l.Port)}})
	}
	b.ReportAllocs()
	for i := 0; i < b.N; i += len(jobs) {
		decide(s, jobs, int64(i))
	}
}

// BenchmarkProbeVerified takes one probe from the frame to the topology.
func BenchmarkProbeVerified(b *testing.B) {
	r := newRig(b)
	r.config.Rate = 1e9
	r.switches(3, 1, 2)
	s := newSigner(r.key)
	template := newProbe(at(1, 1), 4)
	in := &flow.PacketIn{Switch: 2}
	in.Key.InPort, in.Key.EthType = 1, flow.EthTypeLLDP
	var d flow.Decision
	in.Data = s.appendProbe(nil, template, at(1, 1), r.clock)
	r.stages[2](in, &d)
	b.ReportAllocs()
	var frame []byte
	for b.Loop() {
		r.clock += ms
		frame = s.appendProbe(frame[:0], template, at(1, 1), r.clock) // its cost is BenchmarkSign's
		in.Data = frame
		if r.stages[2](in, &d) != flow.Done {
			b.Fatal("not done")
		}
	}
	if n := r.figures.received.(*number).n; n < float64(b.N) {
		b.Fatalf("%v of %d accepted", n, b.N)
	}
}

// BenchmarkSign is the part of BenchmarkProbeVerified that is the sender's.
func BenchmarkSign(b *testing.B) {
	s := newSigner(make([]byte, keySize))
	template := newProbe(at(1, 1), 4)
	var frame []byte
	b.ReportAllocs()
	for b.Loop() {
		frame = s.appendProbe(frame[:0], template, at(1, 1), 5)
	}
}

// BenchmarkOtherPacket is what discovery costs a packet that is not LLDP.
func BenchmarkOtherPacket(b *testing.B) {
	r := newRig(b)
	r.switches(12, 1)
	in := &flow.PacketIn{Switch: 1}
	in.Key.InPort, in.Key.EthType = 5, flow.EthTypeIPv4
	var d flow.Decision
	b.ReportAllocs()
	for b.Loop() {
		if r.stages[1](in, &d) != flow.Next {
			b.Fatal("not next")
		}
	}
}

// BenchmarkIdleSecond is one second of 1,000 switches with 6,000 links: all
// probes made, sent nowhere, and verified. ns/op over 1e9 is the share of a core.
func BenchmarkIdleSecond(b *testing.B) {
	const switches, ports = 1000, 12
	r := newRig(b)
	w := &world{t: b, topo: r.topo, now: r.clock, delay: ms / 10, wires: map[flow.Location][]flow.Location{}, refuse: map[refusal]int{}}
	for i := range flow.DPID(switches) {
		w.switches(ports, i+1)
		for p := range flow.Port(ports / 2) {
			w.cable(at(i+1, p+1), at((i+flow.DPID(p)+1)%switches+1, p+1+ports/2))
		}
	}
	w.run(3 * time.Second)
	if n := len(r.topo.links); n != switches*ports {
		b.Fatalf("%d links", n)
	}
	r.clock = w.now
	for i := range flow.DPID(switches) {
		r.stages[i+1] = r.open(i + 1)
	}
	s := newSigner(r.key)
	var jobs []job
	var d flow.Decision
	in := &flow.PacketIn{}
	in.Key.EthType = flow.EthTypeLLDP
	probes := 0
	b.ReportAllocs()
	for b.Loop() {
		for end := r.clock + int64(time.Second); r.clock < end; r.clock += r.slot() {
			r.topo.advance(r.clock)
			jobs, _ = r.topo.probes(r.clock, jobs[:0])
			for left := jobs; len(left) > 0; {
				n := 1
				for n < len(left) && left[n].at.Switch == left[0].at.Switch {
					n++
				}
				for i, o := range decide(s, left[:n], r.clock).Outs {
					far := w.wires[left[i].at][0]
					in.Switch, in.Key.InPort, in.Data = far.Switch, far.Port, o.Data
					r.stages[far.Switch](in, &d)
					probes++
				}
				left = left[n:]
			}
		}
	}
	if n := len(r.topo.links); n != switches*ports {
		b.Fatalf("%d links left", n)
	}
	b.ReportMetric(float64(probes)/float64(b.N), "probes/op")
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	r := newRig(t)
	r.switches(3, 1)
	in := &flow.PacketIn{Switch: 1}
	in.Key.InPort, in.Key.EthType = 1, flow.EthTypeIPv4
	var d flow.Decision
	if n := testing.AllocsPerRun(100, func() { r.stages[1](in, &d) }); n != 0 {
		t.Errorf("%v allocations per packet", n)
	}
}

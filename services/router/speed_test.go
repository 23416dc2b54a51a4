package router

import (
	"fmt"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// many is 64 routers in a row, each with a subnet of 32 hosts.
func many(t testing.TB) *rig {
	g := newRig(t)
	for i := range 64 {
		dpid := fmt.Sprintf("%x", i+1)
		g.address(dpid, 0, fmt.Sprintf("10.0.%d.1/24", i))
		g.address(dpid, 0, fmt.Sprintf("10.1.0.%d/24", i+1))
		for h := range 32 {
			mac := flow.MAC{2, 0, 0, 0, byte(i), byte(h)}
			g.feed(&api.HostChanged{Host: &api.Host{Mac: mac.String(), At: &api.Location{Dpid: dpid, Port: 1}, Ipv4: []string{fmt.Sprintf("10.0.%d.%d", i, h+2)}}})
		}
	}
	for i := range 64 {
		for k := range 64 {
			if i != k {
				g.route(fmt.Sprintf("%x", i+1), 0, fmt.Sprintf("10.0.%d.0/24", k), fmt.Sprintf("10.1.0.%d", k+1))
			}
		}
	}
	return g
}

// BenchmarkEntries makes the entries of 64 switches, each for 2,048 hosts of 64
// routers, anew.
func BenchmarkEntries(b *testing.B) {
	g := many(b)
	n := 0
	for b.Loop() {
		g.neighbours.Version++
		n = 0
		for i := range 64 {
			n += len(g.rules(&api.Switch{Dpid: fmt.Sprintf("%x", i+1), Openflow: "1.3", Tables: 254}).Flows)
		}
	}
	b.ReportMetric(float64(n), "entries")
}

// BenchmarkStage routes a packet that no switch has an entry for yet.
func BenchmarkStage(b *testing.B) {
	g := many(b)
	frame := ping(flow.MAC{2, 0, 0, 0, 0, 1}, g.mac(1), "10.0.0.3", "10.0.63.9", 64)
	in, d := wefttest.NewPacketIn(1, 1, nil), &flow.Decision{}
	key := wefttest.NewPacketIn(1, 1, frame).Key
	data := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		in.Data, in.Key = append(data[:0], frame...), key
		if g.packet(in, d) != flow.Next {
			b.Fatal("not routed")
		}
	}
}

// BenchmarkOthers lets a packet pass that is for no router.
func BenchmarkOthers(b *testing.B) {
	g := many(b)
	in, d := wefttest.NewPacketIn(1, 1, ping(flow.MAC{2, 0, 0, 0, 0, 1}, flow.MAC{2, 0, 0, 0, 0, 2}, "10.0.0.3", "10.0.63.9", 64)), &flow.Decision{}
	b.ReportAllocs()
	for b.Loop() {
		g.packet(in, d)
	}
}

package stats

import (
	"context"
	"fmt"
	"hash/maphash"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// steady is a network that answers at once with the same messages' worth of
// counters: 12 ports, 60 flow entries.
type steady struct{}

func (steady) ReadPorts(_ context.Context, sw flow.DPID) ([]*api.PortStats, error) {
	ports := make([]*api.PortStats, 12)
	for i := range ports {
		ports[i] = &api.PortStats{Dpid: sw.String(), Port: uint32(i + 1), RxBytes: 1, TxBytes: 2, RxPackets: 3, TxPackets: 4}
	}
	return ports, nil
}

func (steady) ReadTables(context.Context, flow.DPID) ([]*api.TableStats, error) {
	return []*api.TableStats{{Active: 60}}, nil
}

func (steady) ReadFlows(_ context.Context, sw flow.DPID) ([]*api.FlowEntry, error) {
	flows := make([]*api.FlowEntry, 60)
	for i := range flows {
		e := flow.Entry{
			Priority: 100, Cookie: flow.NewCookie(flow.OwnerRoutes, 1, uint32(i)), Apply: []flow.Action{flow.Output(1)},
			Match: flow.Match{}.WithInPort(1).WithEthDst(flow.MACFrom(uint64(i))),
		}
		flows[i] = api.NewFlowEntry(sw, &e)
	}
	return flows, nil
}

// BenchmarkPoll is one reading of one switch without the wire. 1,000 switches
// take 50 readings of ports and 17 of flow entries a second.
func BenchmarkPoll(b *testing.B) {
	for _, flows := range []bool{false, true} {
		b.Run(fmt.Sprintf("flows=%v", flows), func(b *testing.B) {
			p := NewPoller(defaults(), steady{}, noMeters())
			p.SwitchChanged(&api.SwitchChanged{Switch: &api.Switch{Dpid: "1", Connected: true}})
			t := p.switches[1]
			p.waiting.remove(t)
			b.ReportAllocs()
			for b.Loop() {
				p.busy++
				p.poll(b.Context(), job{t, t.session, flows})
				p.waiting.remove(t)
			}
		})
	}
}

func BenchmarkSetFlows(b *testing.B) {
	flows, _ := steady{}.ReadFlows(b.Context(), 1)
	var s sample
	seed, now := maphash.MakeSeed(), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		s.setFlows(flows, seed, now)
	}
}

package l2vpn

import (
	"context"
	"fmt"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// BenchmarkOneBeside measures one more circuit with a rate, made and deleted, beside
// others between four ports of each of 60 switches: what is stored, and the bookings of its
// tunnels. The time should not follow how many others there are.
func BenchmarkOneBeside(b *testing.B) {
	const switches, each = 60, 4
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			cfg := defaults()
			cfg.Circuits = n + 1
			s := newTestStore(b, wefttest.NewStore(), cfg)
			for sw := flow.DPID(1); sw <= switches; sw++ {
				e := &api.SwitchChanged{Switch: &api.Switch{Dpid: sw.String(), Connected: true, Openflow: "1.3"}}
				for p := uint32(1); p <= each; p++ {
					e.Ports = append(e.Ports, &api.Port{Dpid: sw.String(), Port: p, Up: true})
				}
				s.feed(e)
			}
			k := &keeper{b: s, turn: make(chan struct{}, 1), ask: made}
			circuit := func(i int) *api.Circuit {
				from, to := i%switches, (i%switches+1+i/switches%(switches-1))%switches
				port, vlan := i%each+1, i/each+1
				return &api.Circuit{Name: fmt.Sprint("c", i), RateKbps: 1, Ends: []string{
					fmt.Sprintf("%x:%d.%d", from+1, port, vlan), fmt.Sprintf("%x:%d.%d", to+1, port, vlan)}}
			}
			q := &api.SetCircuitsRequest{}
			for i := range n {
				q.Circuits = append(q.Circuits, circuit(i))
			}
			if err := s.try(q); err != nil {
				b.Fatal(err)
			}
			k.keep(b.Context(), true)
			one := circuit(n)
			for b.Loop() {
				for _, q := range []*api.SetCircuitsRequest{{Circuits: []*api.Circuit{one}}, {Delete: []string{one.Name}}} {
					if err := s.try(q); err != nil {
						b.Fatal(err)
					}
					k.keep(b.Context(), false)
				}
			}
		})
	}
}

// made answers SetTunnels: all tunnels are as they are wanted.
func made(_ context.Context, q *api.SetTunnelsRequest) (*api.SetTunnelsResponse, error) {
	r := &api.SetTunnelsResponse{}
	for _, m := range q.Tunnels {
		from, _ := flow.ParseDPID(m.From)
		to, _ := flow.ParseDPID(m.To)
		m.Group, m.State = flow.TunnelGroups+uint32(from<<8|to), "up"
		m.Primary = &api.LabelSwitchedPath{Hops: []*api.LabelHop{{Dpid: m.From, OutPort: 9}, {Dpid: m.To, InPort: 9}}}
		r.Outcomes = append(r.Outcomes, &api.TunnelOutcome{Name: m.Name, Tunnel: m})
	}
	for _, name := range q.Delete {
		r.Outcomes = append(r.Outcomes, &api.TunnelOutcome{Name: name})
	}
	return r, nil
}

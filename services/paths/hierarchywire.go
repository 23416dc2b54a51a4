package paths

import (
	"fmt"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Message returns a summary as it is sent.
func (s *Summary) Message() *api.PartitionSummary {
	m := &api.PartitionSummary{Partition: s.Partition, Version: s.Version, Islands: make([]*api.PartitionIsland, len(s.Islands))}
	for n, i := range s.Islands {
		out := &api.PartitionIsland{
			Switches: make([]uint64, len(i.Switches)), Gates: make([]uint64, len(i.Gates)), Costs: make([]uint32, len(i.Gates)),
		}
		for k, d := range i.Switches {
			out.Switches[k] = uint64(d)
		}
		for k, g := range i.Gates {
			out.Gates[k], out.Costs[k] = uint64(g.Switch), g.Cost
			for _, l := range g.Links {
				out.Links = append(out.Links, &api.PartitionLink{
					Gate: uint64(g.Switch), Port: uint32(l.Port), Peer: uint64(l.Peer.Switch), PeerPort: uint32(l.Peer.Port), Weight: l.Weight,
				})
			}
		}
		m.Islands[n] = out
	}
	return m
}

// SummaryOf returns the summary that was sent as m. What Check says of it is not
// looked at; an error is a message that is no summary at all.
func SummaryOf(m *api.PartitionSummary) (*Summary, error) {
	s := &Summary{Partition: m.GetPartition(), Version: m.GetVersion(), Islands: make([]Island, len(m.GetIslands()))}
	for n, in := range m.GetIslands() {
		if len(in.GetGates()) != len(in.GetCosts()) {
			return nil, fmt.Errorf("summary of %s: island %d has %d gates and %d costs; want one for each", s.Partition, n+1, len(in.GetGates()), len(in.GetCosts()))
		}
		out := Island{Switches: make([]flow.DPID, len(in.GetSwitches())), Gates: make([]Gate, len(in.GetGates()))}
		for k, d := range in.GetSwitches() {
			out.Switches[k] = flow.DPID(d)
		}
		links := in.GetLinks()
		for k, d := range in.GetGates() {
			g := Gate{Switch: flow.DPID(d), Cost: in.GetCosts()[k]}
			for len(links) > 0 && links[0].GetGate() == d {
				l := links[0]
				links = links[1:]
				g.Links = append(g.Links, BorderLink{
					Port: flow.Port(l.GetPort()), Peer: flow.Location{Switch: flow.DPID(l.GetPeer()), Port: flow.Port(l.GetPeerPort())}, Weight: l.GetWeight(),
				})
			}
			out.Gates[k] = g
		}
		if len(links) > 0 {
			return nil, fmt.Errorf("summary of %s: a link of %v, which is no gate of island %d, or out of order", s.Partition, flow.DPID(links[0].GetGate()), n+1)
		}
		s.Islands[n] = out
	}
	return s, nil
}

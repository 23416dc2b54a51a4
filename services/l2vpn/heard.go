package l2vpn

import (
	"fmt"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/services/l2vpn/cfm"
)

// meet follows the LLDP that came in at the ends of a port whose circuits read it. It is called
// with mu held.
func meet(b *store, in *flow.PacketIn) {
	unit, ok := packet.ParseLLDP(in.Data)
	if !ok {
		return
	}
	tags, _, _ := frameTags(in.Data)
	at := flow.Location{Switch: in.Switch, Port: in.Key.InPort}
	for e, names := range b.taken[at.Switch][at.Port] {
		for name := range names {
			if s := b.status[name]; peers(s.circuit) && e.carries(tags, b.taken.vlans(at)) {
				if s.neighbours == nil {
					s.neighbours = map[end]neighbour{}
				}
				s.neighbours[e] = neighbour{describe(unit), b.now().Add(time.Duration(unit.TTL()) * time.Second)}
			}
		}
	}
}

// neighbourAt returns what is known of the customer's device at an end.
func (s *status) neighbourAt(e end, now time.Time) string {
	if n := s.neighbours[e]; now.Before(n.until) {
		return n.text
	}
	return ""
}

// excess returns what becomes of frames above the rate and within the excess at a switch; empty: there are none.
func (s *status) excess(sw flow.DPID, net *network) string {
	switch c := s.circuit; {
	case c.ExcessKbps == 0:
		return ""
	case len(c.yellow) > 0:
		return "discardable frames have it to themselves"
	case net.marks[sw].can:
		return "marked by a higher drop precedence in DSCP"
	}
	return "passed unmarked: the switch's meters only drop"
}

// unheard returns what a maintenance end point of a circuit lacks; empty if none lacks anything.
func (s *status) unheard() string {
	for _, e := range s.circuit.ends {
		m := s.meps[e]
		if m == nil {
			continue
		}
		if m.Fault() != "" {
			return fmt.Sprintf("maintenance at end %v: %s", e, m.Fault())
		}
		for _, r := range m.Remotes() {
			switch r.State {
			case cfm.Lost:
				return fmt.Sprintf("maintenance at end %v: end point %d is not heard any more", e, r.ID)
			case cfm.RDI:
				return fmt.Sprintf("maintenance at end %v: end point %d does not hear all others", e, r.ID)
			}
		}
	}
	return ""
}

// continuityAt returns what the maintenance end point of an end hears; nil if it has none.
func (s *status) continuityAt(e end) *api.CircuitContinuity {
	m := s.meps[e]
	if m == nil {
		return nil
	}
	said := &api.CircuitContinuity{Mep: uint32(m.Config().ID), Level: uint32(m.Config().Level), Fault: m.Fault()}
	for _, r := range m.Remotes() {
		one := &api.CircuitRemoteMep{Mep: uint32(r.ID), Mac: r.MAC.String(), State: r.State, Since: r.Since.UTC().Format(time.RFC3339)}
		if x := r.Measure(); x.Sent > 0 {
			one.DelayUs = &api.CircuitDelay{P50: x.P50, P99: x.P99, Max: x.Max, Jitter: x.Jitter}
			one.LossRatio = float64(x.Lost) / float64(x.Sent)
		}
		said.Remotes = append(said.Remotes, one)
	}
	return said
}

package l2vpn

import (
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// overlaid reports whether the nodes' own routing carries the frames of a transport.
func overlaid(transport string) bool { return transport != "mpls" }

// chosen returns what a circuit wants that needs a way to be chosen; empty if nothing.
func chosen(c *circuit) string {
	for _, x := range []struct {
		key   string
		given bool
	}{
		{"max_delay_us", c.MaxDelayUs > 0}, {"pin", len(c.Pin) > 0}, {"diverse_from", c.DiverseFrom != ""},
		{"include_any", len(c.IncludeAny) > 0}, {"include_all", len(c.IncludeAll) > 0}, {"exclude_any", len(c.ExcludeAny) > 0},
	} {
		if x.given {
			return x.key
		}
	}
	return ""
}

// The octets that tunnel ports put around a frame: the frame's own Ethernet header, and
// IPv4, UDP and VXLAN, or IPv4 and GRE with a key.
var wrapping = map[string]int{"vxlan": 14 + 20 + 8 + 8, "gre": 14 + 20 + 8}

// wrapped returns the octets that a port adds to those of circuits and labels.
func wrapped(t *api.Tunnel, port uint32) int {
	if flow.IsTunnelPort(flow.Port(port)) {
		return wrapping[t.Transport]
	}
	return 0
}

// star returns the tree of a vpls whose way nobody chooses: all switches of ends by the
// first.
func star(edges []flow.DPID) (list []arc) {
	for _, sw := range edges[min(len(edges), 1):] {
		list = append(list, arc{from: edges[0], to: sw}, arc{from: sw, to: edges[0]})
	}
	slices.SortFunc(list, arc.compare)
	return list
}

// carries reports whether frames that enter a tunnel get to its end.
func carries(t *api.Tunnel) bool { return usable(t) != 0 && t.GetState() != "down" }

// leave returns the tunnels that a circuit has, before it changes, with those that it
// still has from before that, which are not wanted for it any more. It is
// called with mu held.
func (b *store) leave(s *status) (list []*api.Tunnel) {
	for _, w := range b.wishesOf(s.circuit) {
		list = append(list, w.Tunnel)
	}
	for _, t := range s.former {
		b.wishFor(t, s.circuit, false)
	}
	list = append(list, s.former...)
	s.former = nil
	return list
}

// stay has a circuit that moves to other tunnels of the same switches, or of another
// transport, keep those it has until the new ones carry. It is called with mu held.
func (b *store) stay(s *status, had []*api.Tunnel) {
	c, old := s.circuit, s.before
	if old == nil || c.Type == vpls || old.Type == vpls || old.Transport == c.Transport && old.Share == c.Share && slices.EqualFunc(old.Avoids, c.Avoids, sameLocation) {
		return
	}
	for _, t := range had {
		if !slices.Contains(b.holds[c.Name], t.Name) && carries(b.tunnels[t.Name]) {
			s.former = append(s.former, t)
			if b.wishFor(t, c, true); old.Share != c.Share {
				b.wants[t.Name].unbook(c) // there was no room for it
			}
		}
	}
}

func sameLocation(x, y *api.Location) bool { return x.Flow() == y.Flow() }

// moved gives back the tunnels that a circuit had before, once all switches lead frames
// into the new ones. It is called with mu held.
func (b *store) moved(s *status) {
	if len(s.former) == 0 {
		return
	}
	for _, w := range b.wishesOf(s.circuit) {
		if !carries(b.tunnels[w.Name]) {
			return
		}
	}
	for _, sw := range s.circuit.switches() {
		if s.has[sw] != s.version {
			return
		}
	}
	for _, t := range s.former {
		b.wishFor(t, s.circuit, false)
	}
	s.former = nil
	b.kick()
}

// standIn returns the tunnel that a circuit had before and uses for want of the new
// one; nil if there is none. It is called with mu held.
func (b *store) standIn(s *status, from, to string) *api.Tunnel {
	if s == nil {
		return nil
	}
	for _, t := range s.former {
		if now := b.tunnels[t.Name]; t.From == from && t.To == to && carries(now) {
			return now
		}
	}
	return nil
}

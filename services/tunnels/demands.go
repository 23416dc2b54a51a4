package tunnels

import (
	"maps"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/pce/assign"
)

// newProblem returns what may be optimised. Stays reports whether a tunnel stays though it might
// move.
func newProblem(b *store, stays func(name string) bool) *problem {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &problem{Problem: &assign.Problem{PacketBits: packetBits}, number: map[[2]flow.Location]int{}, avoids: map[string][]bool{}}
	nodes := map[flow.DPID]int{}
	p.enterLinks(b, nodes)
	of := map[string][]int{} // the demands of tunnels that may move
	for _, name := range slices.Sorted(maps.Keys(b.status)) {
		s := b.status[name]
		if s.tunnel.wanted.ReservedKbps == 0 || len(s.books) == 0 {
			continue
		}
		p.tunnels++
		both := s.tunnel.both()
		paths := both[:]
		moves := s.movable(b) && !stays(name) && !slices.ContainsFunc(s.tunnel.paths(onPrimary), func(path lsp) bool { return p.linksOf(path) == nil })
		if !moves {
			p.fixed++
			for _, path := range s.entered.paths(onPrimary) {
				if !slices.ContainsFunc(both[:], path.sameWay) {
					paths = append(paths, path)
				}
			}
		}
		for which, path := range paths {
			links := p.linksOf(path)
			if links == nil || !b.whole(path) {
				continue
			}
			d := assign.Demand{From: nodes[s.tunnel.from], To: nodes[s.tunnel.to], Rate: float64(s.kbps) * 1000, Path: links, Fixed: !moves}
			if moves {
				w := s.tunnel.wanted
				d.MaxDelay, d.MaxHops, d.Avoid = float64(w.MaxDelayUs)/1e6, int(w.MaxHops), p.avoid(b, s)
				of[name] = append(of[name], len(p.Demands))
			}
			p.Demands, p.demands = append(p.Demands, d), append(p.demands, booked{s.tunnel, which})
		}
	}
	p.separate(b, of)
	return p
}

// movable reports whether an optimisation may move a tunnel: it is up, nothing is to be seen to, it
// goes where nobody has pinned it, and it moves to better paths at all. It is called with the store's mu
// held.
func (s *status) movable(b *store) bool {
	_, reverts := s.tunnel.hold()
	return reverts && !s.tunnel.wanted.NeverMove && s.state == "up" && s.entered == s.tunnel && b.needs[s.tunnel.name] == nil && s.displaced == "" && !s.reroute && !s.tunnel.overlay() &&
		len(s.tunnel.wanted.Pin) == 0 && !b.links.drained(s.tunnel.primary) && !b.links.drained(s.tunnel.standby)
}

package tunnels

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/pce/assign"
)

// packetBits is the length of packets for which delays are computed: 1000 octets.
const packetBits = 8000

// A problem is the tunnels that book bandwidth and the links that they have, for package
// assign. It is a state of the past: who moves a tunnel by it judges again.
type problem struct {
	*assign.Problem
	links   [][2]flow.Location // by link: the port that it leaves by, and that it comes to
	demands []booked
	tunnels int // how many book bandwidth
	fixed   int // how many of them stay

	number map[[2]flow.Location]int
	avoids map[string][]bool // by what they avoid
}

// A booked is a path of a tunnel, as a demand.
type booked struct {
	t     *tunnel
	which int
}

// enterLinks enters the links that are up, in both directions, and numbers their switches. It is
// called with the store's mu held.
func (p *problem) enterLinks(b *store, nodes map[flow.DPID]int) {
	byPort := func(x, y flow.Location) int {
		return cmp.Or(cmp.Compare(x.Switch, y.Switch), cmp.Compare(x.Port, y.Port))
	}
	node := func(sw flow.DPID) int {
		if _, known := nodes[sw]; !known {
			nodes[sw] = len(nodes)
		}
		return nodes[sw]
	}
	labels := func(sw flow.DPID) bool {
		m := b.net.Connected(sw)
		return m != nil && m.Openflow != "1.0"
	}
	for _, src := range slices.SortedFunc(maps.Keys(b.links.by), byPort) {
		for _, dst := range slices.SortedFunc(maps.Keys(b.links.by[src]), byPort) {
			l := b.links.by[src][dst]
			if !l.up || src.Switch == dst.Switch {
				continue
			}
			n := len(p.links)
			cable := n
			if back, known := p.number[[2]flow.Location{dst, src}]; known {
				cable = p.Links[back].Cable
			}
			p.number[[2]flow.Location{src, dst}] = n
			p.links = append(p.links, [2]flow.Location{src, dst})
			p.Links = append(p.Links, assign.Link{
				From: node(src.Switch), To: node(dst.Switch), Cable: cable,
				Capacity: float64(l.capacity) * 1000, Delay: float64(l.declared) / 1e6, Latency: float64(l.delay) / 1e6,
				Closed: l.drained || l.capacity == 0 || len(b.links.by[src]) > 1 || b.dead[src] || b.dead[dst] || !labels(src.Switch) || !labels(dst.Switch),
			})
		}
	}
	p.Nodes = len(nodes)
}

// linksOf returns the links of a path; nil if one is not known.
func (p *problem) linksOf(path lsp) (links []int) {
	for i := range max(len(path)-1, 0) {
		n, known := p.number[[2]flow.Location{{Switch: path[i].sw, Port: path[i].out}, {Switch: path[i+1].sw, Port: path[i+1].in}}]
		if !known {
			return nil
		}
		links = append(links, n)
	}
	return links
}

// path returns the path over links, without labels.
func (p *problem) path(links []int) lsp {
	path := lsp{{sw: p.links[links[0]][0].Switch}}
	for _, l := range links {
		path[len(path)-1].out = p.links[l][0].Port
		path = append(path, lspHop{sw: p.links[l][1].Switch, in: p.links[l][1].Port})
	}
	return path
}

// avoid returns the links that a tunnel may not use by what is wanted of it; nil if it may use all. It
// is called with the store's mu held.
func (p *problem) avoid(b *store, s *status) []bool {
	w := s.tunnel.wanted
	if len(w.ExcludeNodes)+len(w.ExcludeLinks)+len(w.ExcludeRiskGroups)+len(w.IncludeAny)+len(w.IncludeAll)+len(w.ExcludeAny) == 0 {
		return nil
	}
	var text strings.Builder
	fmt.Fprint(&text, w.ExcludeNodes, w.ExcludeRiskGroups, w.IncludeAny, w.IncludeAll, w.ExcludeAny)
	ports := map[flow.Location]bool{}
	for _, at := range w.ExcludeLinks {
		ports[at.Flow()] = true
		fmt.Fprint(&text, at.Flow())
	}
	if list, known := p.avoids[text.String()]; known {
		return list
	}
	list := make([]bool, len(p.links))
	for n, ends := range p.links {
		l := b.links.by[ends[0]][ends[1]]
		has := func(list []string) func(string) bool {
			return func(name string) bool { return slices.Contains(list, name) }
		}
		missing := func(name string) bool { return !slices.Contains(l.colours, name) }
		list[n] = ports[ends[0]] || ports[ends[1]] ||
			slices.Contains(w.ExcludeNodes, ends[0].Switch.String()) || slices.Contains(w.ExcludeNodes, ends[1].Switch.String()) ||
			slices.ContainsFunc(l.risks, has(w.ExcludeRiskGroups)) || slices.ContainsFunc(l.colours, has(w.ExcludeAny)) ||
			len(w.IncludeAny) > 0 && !slices.ContainsFunc(l.colours, has(w.IncludeAny)) || slices.ContainsFunc(w.IncludeAll, missing)
	}
	p.avoids[text.String()] = list
	return list
}

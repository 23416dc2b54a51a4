package tunnels

import (
	"slices"

	"github.com/weft-sdn/weft/pce/assign"
)

// separate has demands stay apart that are to be: the two paths of a tunnel, by as much as they are
// now, and tunnels that are to be diverse. What shares a link now stays. Of gives the demands of
// tunnels that may move, by name. It is called with the store's mu held.
func (p *problem) separate(b *store, of map[string][]int) {
	risks := map[string]int{}
	for n, ends := range p.links {
		for _, name := range b.links.by[ends[0]][ends[1]].risks {
			if _, known := risks[name]; !known {
				risks[name] = len(risks)
			}
			p.Links[n].Risks = append(p.Links[n].Risks, risks[name])
		}
	}
	stay := func(names ...string) {
		for _, name := range names {
			if list := of[name]; len(list) > 0 && !p.Demands[list[0]].Fixed {
				p.fixed++
				for _, i := range list {
					p.Demands[i].Fixed = true
				}
			}
		}
	}
	for name, list := range of {
		if len(list) != 2 {
			continue
		}
		switch cables, nodes, risks := p.share(list[0], list[1]); {
		case cables:
			stay(name)
		default:
			d := &p.Demands[list[1]]
			d.Apart = append(d.Apart, assign.Apart{Demand: list[0], Nodes: !nodes, Risks: !risks})
		}
	}
	for name, s := range b.status {
		from := s.tunnel.wanted.DiverseFrom
		if from == "" || from == name {
			continue
		}
		if len(of[name]) == 0 || len(of[from]) == 0 { // one books nothing or stays: the other does, too
			stay(name, from)
			continue
		}
		for _, i := range of[name] {
			for _, k := range of[from] {
				if cables, _, risks := p.share(i, k); cables || risks {
					stay(name, from)
					continue
				}
				d := &p.Demands[i]
				d.Apart = append(d.Apart, assign.Apart{Demand: k, Risks: true})
			}
		}
	}
}

// share reports what the present paths of two demands share.
func (p *problem) share(i, k int) (cables, nodes, risks bool) {
	x, y := &p.Demands[i], &p.Demands[k]
	for _, l := range x.Path {
		for _, m := range y.Path {
			a, b := &p.Links[l], &p.Links[m]
			cables = cables || a.Cable == b.Cable
			nodes = nodes || a.To == b.To && a.To != x.To && b.To != y.To
			risks = risks || slices.ContainsFunc(a.Risks, func(r int) bool { return slices.Contains(b.Risks, r) })
		}
	}
	return cables, nodes, risks
}

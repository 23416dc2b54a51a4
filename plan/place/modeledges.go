package place

import "math"

// triangles says that if two of three nodes are on different servers, the third
// is not with both, which the search would find out again and again.
func (m *model) triangles() {
	p := m.p
	if p.s < 2 || p.leastDelay() <= 0 {
		return
	}
	index := map[[2]int]int{}
	beside := make([][]int, p.n) // edges of nodes
	for i, e := range m.edges {
		index[[2]int{e.a, e.b}] = i
		beside[e.a], beside[e.b] = append(beside[e.a], i), append(beside[e.b], i)
	}
	for k, list := range beside {
		for i, one := range list {
			for _, other := range list[:i] {
				a, b := m.edges[one].a+m.edges[one].b-k, m.edges[other].a+m.edges[other].b-k
				if p.clash(a, b) != "" {
					m.clause(m.edges[one].far[0], m.edges[other].far[0])
				} else if ab, there := index[[2]int{min(a, b), max(a, b)}]; there {
					m.clause(m.edges[one].far[0], m.edges[other].far[0], -m.edges[ab].far[0])
				}
			}
		}
	}
}

// routes has, of each packing, what is left of the edges: it costs no more than
// the objective less what was routed. Only where all costs are whole numbers, so
// that nothing was rounded.
func (m *model) routes() {
	p := m.p
	if p.s < 2 || p.leastDelay() <= 0 || m.unit != 1 {
		return
	}
	for _, step := range m.steps() {
		for _, e := range m.edges {
			if c := e.w * step; c != math.Trunc(c) {
				return
			}
		}
	}
	for _, r := range p.packings()[1:] {
		part := clusterCost{least: int(math.Ceil(r.routed*m.levels[0] - 1e-6))}
		for _, e := range m.edges {
			if w := int(r.between(e.a, e.b) * m.levels[0]); w > 0 {
				part.add(e.far[0], w)
			}
		}
		if part.least > 0 {
			m.routed = append(m.routed, part)
		}
	}
}

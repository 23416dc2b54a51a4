package place

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// spectralNodes is up to how many nodes spectral is asked: its time grows with
// their third power, its memory with their square.
const spectralNodes = 1500

// spectral is what edges cost at least, by the eigenvalues of a matrix (Donath
// and Hoffman 1973, with sizes of nodes), 0 if it says nothing. What the nodes
// need of both resources, in shares of what servers have, is their size. The
// columns of a placement, a server each, scaled by the roots of the sizes, are
// orthogonal, and the square of each column's length is no more than the server's
// room; so what stays inside servers is at most the sum of the largest
// eigenvalues of the scaled weights, each times a server's room. What is added to
// the matrix's diagonal counts once for each node wherever the node is, so any
// diagonal gives a bound; that of a good placement, less what each of its nodes
// has inside its server, gives a good one.
func (p *problem) spectral(at []int32) float64 {
	if p.s < 2 || p.n > spectralNodes || p.n < 3 {
		return 0
	}
	size, room := p.sizes()
	if size == nil {
		return 0
	}
	var all, diagonal float64
	m := mat.NewSymDense(p.n, nil)
	for a := range p.n {
		var inside float64
		for e := p.first[a]; e < p.first[a+1]; e++ {
			b := int(p.to[e])
			if all += p.w[e] / 2; at[a] == at[b] {
				inside += p.w[e]
			}
			if a < b {
				m.SetSym(a, b, p.w[e]/math.Sqrt(size[a]*size[b]))
			}
		}
		diagonal -= inside
		m.SetSym(a, a, -inside/size[a])
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(m, false) {
		return 0
	}
	values := eigen.Values(nil) // ascending
	var left, inside, error float64
	for _, x := range size {
		left += x
	}
	largest := max(math.Abs(values[0]), math.Abs(values[p.n-1]))
	for s := 0; s < min(len(room), p.n) && left > 0; s++ {
		x := min(room[s], left)
		inside += x * values[p.n-1-s]
		error += x * largest
		left -= x
	}
	if left > 1e-9 {
		return 0 // it does not fit anyway
	}
	const rounding = 1e-11 // of eigenvalues, to the largest: some thousand times that of a number
	return max(0, all-(inside+error*rounding-diagonal)/2) * p.leastDelay()
}

// sizes are what nodes need, and what servers have, the largest first, of both
// resources in shares of a server's mean; nil if a node needs nothing.
func (p *problem) sizes() (size, room []float64) {
	var cpu, memory float64
	for s := range p.s {
		cpu, memory = cpu+float64(p.capCPU[s]), memory+float64(p.capMemory[s])
	}
	of := func(c, m int64) float64 {
		return (float64(c)/max(cpu, 1) + float64(m)/max(memory, 1)) * float64(p.s) / 2
	}
	for k := range p.n {
		size = append(size, of(p.cpu[k], p.memory[k]))
	}
	for s := range p.s {
		room = append(room, of(p.capCPU[s], p.capMemory[s]))
	}
	slices.Sort(room)
	slices.Reverse(room)
	if slices.Min(size) < 1e-6*slices.Max(size) {
		return nil, nil
	}
	return size, room
}

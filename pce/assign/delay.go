package assign

// fullShare is the share of its capacity up to which a link's delay is that of an M/M/1 queue.
const fullShare = 0.99

// hopDelay is what each link of a path counts when paths are compared, s, so that of equal
// ones the shorter is taken. It is not in the mean delay.
const hopDelay = 1e-9

// packets returns the mean number of packets in the queue of a link by its load, and its first
// two derivatives by the load.
func packets(load, capacity float64) (n, slope, bend float64) {
	if capacity == 0 {
		return 0, 0, 0
	}
	at := min(load, fullShare*capacity)
	rest, over := capacity-at, load-at
	slope = capacity / (rest * rest)
	bend = 2 * slope / rest
	return at/rest + over*(slope+over*bend/2), slope + over*bend, bend
}

// cost returns the share of a link in γT at a load, bits, and length its derivative, eq. (2), s.
func (p *Problem) cost(link int, load float64) (cost, length float64) {
	l := &p.Links[link]
	n, slope, _ := packets(load, l.Capacity)
	return p.PacketBits*n + load*l.Delay, p.PacketBits*slope + l.Delay
}

// bend returns the second derivative of the share of a link in γT, s²/bit.
func (p *Problem) bend(link int, load float64) float64 {
	_, _, bend := packets(load, p.Links[link].Capacity)
	return p.PacketBits * bend
}

// more returns by how much γT grows where a demand of a rate is added to a link.
func (p *Problem) more(link int, load, rate float64) float64 {
	before, _ := p.cost(link, load)
	after, _ := p.cost(link, load+rate)
	return after - before
}

// total returns γT of eq. (1), bits.
func (p *Problem) total(load []float64) (sum float64) {
	for i, f := range load {
		c, _ := p.cost(i, f)
		sum += c
	}
	return sum
}

// perRate returns T of γT and γ.
func (p *Problem) perRate(total, rate float64) float64 {
	if rate == 0 {
		return 0
	}
	return total / rate
}

// fits reports whether a demand of a rate may be added to a link. Sums of rates are rounded:
// a billionth more than the capacity is no more.
func (p *Problem) fits(link int, load, rate float64) bool {
	c := p.Links[link].Capacity
	return c == 0 || load+rate <= c*(1+1e-9)
}

package partition

import (
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// Check returns everything that is wrong with a result: that it belongs to
// another network, breaks a demand, or contradicts itself. It shares only types
// with Partition.
func Check(g *Graph, o Options, r Result) error {
	if len(r.Of) != len(g.Switches) {
		return fmt.Errorf("%d switches have a partition, the network has %d", len(r.Of), len(g.Switches))
	}
	if len(r.Names) != o.Partitions || len(r.Parts) != o.Partitions {
		return fmt.Errorf("%d names and %d partitions: want %d", len(r.Names), len(r.Parts), o.Partitions)
	}
	for i, p := range r.Of {
		if p < 0 || p >= o.Partitions {
			return fmt.Errorf("switch %v is in partition number %d: there are 0 to %d", g.Switches[i], p, o.Partitions-1)
		}
	}
	c := &checker{g: g, o: o, r: r}
	c.demands()
	c.borders()
	c.numbers()
	return errors.Join(c.wrong...)
}

type checker struct {
	g     *Graph
	o     Options
	r     Result
	wrong []error
}

func (c *checker) fail(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Errorf(format, args...))
}

// of returns the partition of a switch; -1 if there is no such switch.
func (c *checker) of(d flow.DPID) int {
	for i, s := range c.g.Switches {
		if s.DPID == d {
			return c.r.Of[i]
		}
	}
	c.fail("the network has no switch %v", d)
	return -1
}

// demands checks together, apart, fixed, and the balance.
func (c *checker) demands() {
	for _, set := range c.o.Together {
		for _, d := range set {
			if c.of(d) != c.of(set[0]) {
				c.fail("switches %v and %v are to be together", set[0], d)
			}
		}
	}
	for _, set := range c.o.Apart {
		for i, d := range set {
			for _, e := range set[:i] {
				if d != e && c.of(d) == c.of(e) {
					c.fail("switches %v and %v are to be apart", e, d)
				}
			}
		}
	}
	for d, name := range c.o.Fixed {
		if p := c.of(d); p >= 0 && c.r.Names[p] != name {
			c.fail("switch %v is in partition %s, and is to be in %s", d, c.r.Names[p], name)
		}
	}
	loads, switches := c.loads()
	grain := new(big.Int)
	var total int64
	for _, s := range c.g.Switches {
		total += s.Load
		grain.GCD(nil, nil, grain, big.NewInt(s.Load))
	}
	if total == 0 { // without loads, balance the number of switches
		loads, total = switches, int64(len(c.g.Switches))
		grain.SetInt64(1)
	}
	// (1 + tolerance) · the mean rounded up to what loads can make
	unit := grain.Int64()
	mean := (total/unit + int64(c.o.Partitions) - 1) / int64(c.o.Partitions)
	for p, load := range loads {
		if float64(load/unit) > (1+c.o.Tolerance)*float64(mean)+1e-6 {
			c.fail("partition %s has a load of %d, more than %g times the mean", c.r.Names[p], load, 1+c.o.Tolerance)
		}
	}
}

// loads sums up loads and counts switches.
func (c *checker) loads() (loads, switches []int64) {
	loads, switches = make([]int64, c.o.Partitions), make([]int64, c.o.Partitions)
	for i, p := range c.r.Of {
		loads[p] += c.g.Switches[i].Load
		switches[p]++
	}
	for p, n := range switches {
		if n == 0 {
			c.fail("partition %s is empty", c.r.Names[p])
		}
	}
	return loads, switches
}

// borders checks who joins partitions.
func (c *checker) borders() {
	joins := map[int]bool{}
	for _, l := range c.g.Links {
		if c.r.Of[l.A] == c.r.Of[l.B] {
			continue
		}
		joins[l.A], joins[l.B] = true, true
		if !slices.Contains(c.r.Borders, l.A) && !slices.Contains(c.r.Borders, l.B) {
			c.fail("the link of %v and %v goes between partitions, and neither is a border switch", c.g.Switches[l.A], c.g.Switches[l.B])
		}
	}
	for _, b := range c.r.Borders {
		if !joins[b] {
			c.fail("switch %v is a border switch without a link to another partition", c.g.Switches[b])
		}
		if c.o.Borders != nil && !slices.Contains(c.o.Borders, c.g.Switches[b].DPID) {
			c.fail("switch %v is a border switch, and is not allowed to be", c.g.Switches[b])
		}
	}
}

// numbers recomputes the figures of the result.
func (c *checker) numbers() {
	var cut int64
	links := 0
	for _, l := range c.g.Links {
		if c.r.Of[l.A] != c.r.Of[l.B] {
			cut += l.Weight
			links++
		}
	}
	if cut != c.r.Cut || links != c.r.CutLinks {
		c.fail("the cut is %d over %d links, and said to be %d over %d", cut, links, c.r.Cut, c.r.CutLinks)
	}
	loads, switches := c.loads()
	for p, part := range c.r.Parts {
		if part.Switches != int(switches[p]) || part.Load != loads[p] {
			c.fail("partition %s has %d switches with a load of %d, and is said to have %d with %d", c.r.Names[p], switches[p], loads[p], part.Switches, part.Load)
		}
		if internal, borders := c.belong(p); part.Internal != internal || part.Borders != borders {
			c.fail("partition %s has %d internal and %d border switches, and is said to have %d and %d",
				c.r.Names[p], internal, borders, part.Internal, part.Borders)
		}
	}
}

// belong counts the internal switches of a partition and the border switches
// that belong to it.
func (c *checker) belong(p int) (internal, borders int) {
	mine := map[int]bool{}
	border := map[int]bool{}
	for _, b := range c.r.Borders {
		border[b] = true
		if c.r.Of[b] == p {
			mine[b] = true
		}
	}
	for i, q := range c.r.Of {
		if q == p && !border[i] {
			internal++
		}
	}
	for _, l := range c.g.Links {
		for _, e := range [2][2]int{{l.A, l.B}, {l.B, l.A}} {
			if border[e[0]] && !border[e[1]] && c.r.Of[e[1]] == p {
				mine[e[0]] = true
			}
		}
	}
	return internal, len(mine)
}

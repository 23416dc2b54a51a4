package l2vpn

import (
	"github.com/weft-sdn/weft/flow"
)

// index enters a circuit at its switches and ports, in the numbers that it has, and
// in the tunnels that it wants, or takes it out. It is called with mu held.
func (b *store) index(c *circuit, enter bool) {
	if enter {
		b.alloc.ofMembers(c, (*numbers).mark)
	} else {
		b.alloc.ofMembers(c, (*numbers).give)
	}
	for i, e := range c.ends {
		sw := e.at.Switch
		note(b.at, sw, c.Name, enter)
		if b.taken[sw] == nil {
			b.taken[sw] = map[flow.Port]map[end]map[string]bool{}
		}
		if b.taken[sw][e.at.Port] == nil {
			b.taken[sw][e.at.Port] = map[end]map[string]bool{}
		}
		if note(b.taken[sw][e.at.Port], e, c.Name, enter); len(b.taken[sw][e.at.Port]) == 0 {
			delete(b.taken[sw], e.at.Port)
		}
		m := c.Members[i]
		if c.ip() && enter {
			b.tails[tail{sw, m.Label}] = c.Name
		} else if c.ip() {
			delete(b.tails, tail{sw, m.Label})
		}
	}
	for _, at := range c.sinks() {
		if b.sinks[at.Switch] == nil {
			b.sinks[at.Switch] = map[flow.Port]map[string]bool{}
		}
		note(b.sinks[at.Switch], at.Port, c.Name, enter)
	}
	for _, e := range c.ends {
		surround(b, e.at, c.Name)
	}
	if c.Type != vpls {
		b.wish(c, b.tunnelsOf(c), enter)
	}
}

// surround has the circuit whose end is a port follow that another, named by, has come to the port,
// or has left it. It is called with mu held.
func surround(b *store, at flow.Location, by string) {
	whole := end{at: at}
	for name := range b.taken[at.Switch][at.Port][whole] {
		s := b.status[name]
		if s == nil {
			continue
		}
		had := s.besides[whole]
		if s.besides = b.taken.besides(s.circuit.ends); had != s.besides[whole] && name != by {
			b.again(s)
			b.assess(s)
		}
	}
}

// note enters a name under a key, or takes it out.
func note[K comparable](m map[K]map[string]bool, key K, name string, enter bool) {
	switch {
	case !enter:
		if delete(m[key], name); len(m[key]) == 0 {
			delete(m, key)
		}
	case m[key] == nil:
		m[key] = map[string]bool{name: true}
	default:
		m[key][name] = true
	}
}

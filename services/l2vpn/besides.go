package l2vpn

import "github.com/weft-sdn/weft/flow"

// besides are the VLANs that other ends have of the ports of ends, by the ends that are a whole port
// (the default port of a customer's port): these have the rest. Empty where there are none.
type besides map[end]vlanList

// sieves reports whether not all frames that a circuit brings may leave at an end.
func (s *set) sieves(e end) bool { return e.list != "" || s.besides[e] != "" }

// passing returns what matches those frames on their way out, as m knows them, that may leave at an
// end, and adds the entries that drop others of a port: they would come in again, if at all, at
// another end.
func (s *set) passing(e end, m flow.Match) (list []flow.Match) {
	for _, v := range s.besides[e].blocks() {
		s.enter(0, flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityCircuitOther, Match: m.WithVLANMasked(v.id, v.mask)})
	}
	for _, v := range e.list.blocks() {
		list = append(list, m.WithVLANMasked(v.id, v.mask))
	}
	if e.list == "" {
		list = append(list, m)
	}
	return list
}

// sieve adds the entries by which those frames of a vpws that may leave at an end, with its label as
// tunnel_id.
func (s *set) sieve(id uint32, e end, label uint32, acts []flow.Action) {
	for _, m := range s.passing(e, flow.Match{}.WithTunnelID(uint64(label))) {
		s.enter(id, flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityCircuitTags, Match: m, Apply: acts})
	}
}

// vlansAt returns the VLANs of a port that ends have for themselves. It is called with mu held.
func (b *store) vlansAt(at flow.Location) vlanList {
	var list []vlanRange
	for e := range b.taken[at.Switch][at.Port] {
		list = append(list, e.vlans().ranges()...)
	}
	return joined(list)
}

// besidesOf returns what is beside the ends of a circuit. It is called with mu held.
func (b *store) besidesOf(c *circuit) besides {
	var all besides
	for _, e := range c.ends {
		if list := b.vlansAt(e.at); e.whole() && list != "" {
			if all == nil {
				all = besides{}
			}
			all[e] = list
		}
	}
	return all
}

// surround has the circuit whose end is a port follow that another, named by, has come to the port,
// or has left it. It is called with mu held.
func (b *store) surround(at flow.Location, by string) {
	whole := end{at: at}
	for name := range b.taken[at.Switch][at.Port][whole] {
		s := b.status[name]
		if s == nil {
			continue
		}
		had := s.besides[whole]
		if s.besides = b.besidesOf(s.circuit); had != s.besides[whole] && name != by {
			b.again(s)
			b.assess(s)
		}
	}
}

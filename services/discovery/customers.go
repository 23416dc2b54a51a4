package discovery

import "github.com/weft-sdn/weft/flow"

// A customer is what circuits have of a port: the VLANs, 0 for all of it, and for each whether probes may
// be sent there.
type customer map[uint16]bool

// whole reports whether circuits have all of the port.
func (c customer) whole() bool {
	_, is := c[0]
	return is
}

// quiet reports whether no circuit at the port wants probes.
func (c customer) quiet() bool {
	for _, oam := range c {
		if oam {
			return false
		}
	}
	return len(c) > 0
}

// isCustomers reports whether all of a port is circuits'. A port that is, or was, a link stays
// one, whatever circuit has been put there while its switch was away.
func (p *port) isCustomers() bool {
	return p.dp.customers[p.at.Port].whole() && p.out == nil && p.in == nil && p.was == (flow.Location{})
}

// setCustomer follows that circuits have, or no longer have, a VLAN of a port, and whether probes may be
// sent there.
func (t *topology) setCustomer(now int64, at flow.Location, vlan uint16, gone, oam bool) {
	all := t.customers[at.Switch]
	if all == nil {
		all = map[flow.Port]customer{}
		t.customers[at.Switch] = all
	}
	if dp := t.switches[at.Switch]; dp != nil {
		dp.customers = all
	}
	c := all[at.Port]
	switch {
	case gone:
		if delete(c, vlan); len(c) == 0 {
			delete(all, at.Port)
		}
	case c == nil:
		all[at.Port] = customer{vlan: oam}
	default:
		c[vlan] = oam
	}
	p := t.at(at)
	if p == nil {
		return
	}
	if p.isCustomers() {
		t.endTrials(now, p, "circuit")
	}
	p.rival, p.quiet = flow.Location{}, 0
	t.dirty[at.Switch] = struct{}{}
	t.settleRole(now, p)
}

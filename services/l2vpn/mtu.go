package l2vpn

import (
	"fmt"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Octets that a circuit adds to an IP packet on a link: the customer's Ethernet header
// and, for each label and tag, an entry.
const (
	innerHeader = 14
	labelOctets = 4
	tagOctets   = 4
)

// mostMTU is the longest IP packet.
const mostMTU = 65535

// header returns how many octets a circuit carries of a customer's frame beside the
// IP packet.
func (c *circuit) header() int {
	if c.ip() {
		return 0
	}
	if c.Type == vpws {
		return innerHeader + tagOctets*max(c.carried(0, 1), c.carried(1, 0))
	}
	return innerHeader
}

// mtu returns the largest IP packet, without tags other than those of its ends, that
// fits into a circuit over some tunnels, whichever of their paths is in use; 0 if the MTU
// of a port on the way is not known.
func (n *network) mtu(c *circuit, tunnels []*api.Tunnel) uint32 {
	least := uint32(mostMTU)
	port := func(sw flow.DPID, p flow.Port, overhead int) {
		if m := n.mtus[sw][p]; m > uint32(overhead) {
			least = min(least, m-uint32(overhead))
		} else {
			least = 0
		}
	}
	for _, e := range c.ends {
		port(e.at.Switch, e.at.Port, tagOctets*max(e.tags()-1, 0)) // an MTU leaves room for one tag
	}
	for _, t := range tunnels {
		if t.GetPrimary() == nil && t.GetStandby() == nil {
			return 0
		}
		for _, p := range []*api.LabelSwitchedPath{t.Primary, t.Standby} {
			hops := p.GetHops()
			for i := 1; i < len(hops); i++ {
				overhead := c.header() + labelOctets + wrapped(t, hops[i].InPort)
				if hops[i].Label != 0 {
					overhead += labelOctets
				}
				for at, out := range map[*api.LabelHop]uint32{hops[i-1]: hops[i-1].OutPort, hops[i]: hops[i].InPort} {
					sw, err := flow.ParseDPID(at.Dpid)
					if err != nil {
						return 0
					}
					port(sw, flow.Port(out), overhead)
				}
			}
		}
	}
	return least
}

// tooSmall returns what is wrong if a circuit takes packets of so many octets only;
// empty if nothing is, or it is not known.
func tooSmall(c *circuit, mtu uint32) string {
	if mtu == 0 || mtu >= c.MinMtu {
		return ""
	}
	return fmt.Sprintf("min_mtu is %d, and packets of at most %d octets fit into it: raise the MTU of the ports on its way, or choose another way", c.MinMtu, mtu)
}

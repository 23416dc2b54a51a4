package l2vpn

import "github.com/weft-sdn/weft/flow"

// besides are the VLANs that other ends have of the ports of ends, by the ends that are a whole port
// (the default port of a customer's port): these have the rest. Empty where there are none.
type besides map[end]vlanList

// takenPorts are the ends that circuits have, by switch and port, and whose they are.
type takenPorts map[flow.DPID]map[flow.Port]map[end]map[string]bool

// vlans returns the VLANs of a port that ends have for themselves.
func (t takenPorts) vlans(at flow.Location) vlanList {
	var list []vlanRange
	for e := range t[at.Switch][at.Port] {
		list = append(list, e.vlans().ranges()...)
	}
	return joined(list)
}

// besides returns what is beside some ends.
func (t takenPorts) besides(ends []end) besides {
	var all besides
	for _, e := range ends {
		if list := t.vlans(e.at); e.whole() && list != "" {
			if all == nil {
				all = besides{}
			}
			all[e] = list
		}
	}
	return all
}

package topology

// Pair is two hosts by name.
type Pair struct{ From, To string }

// AllPairs is every ordered pair of hosts that have an address of the family, in the
// same VLAN.
func (t *Topology) AllPairs(ipv6 bool) []Pair {
	has := (*Host).HasIPv4
	if ipv6 {
		has = (*Host).HasIPv6
	}
	var pairs []Pair
	hosts := t.Hosts
	for i := range hosts {
		for j := range hosts {
			if i != j && has(&hosts[i]) && has(&hosts[j]) && hosts[i].VLAN == hosts[j].VLAN {
				pairs = append(pairs, Pair{hosts[i].Name, hosts[j].Name})
			}
		}
	}
	return pairs
}

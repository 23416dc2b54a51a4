package topology

import (
	"fmt"
	"net/netip"
)

// The addresses that are the same in every 5G core, and the port of all its
// network functions.
const (
	core5gNRF  = "10.0.0.1"
	core5gPort = 7777
)

// core5gTypes are the network functions of which a 5G core has several.
func core5gTypes() []string { return []string{"amf", "smf", "ausf", "udm", "pcf"} }

// Core5G is the control plane of a 5G core, simulated by weft nf: an NRF,
// n each of AMF, SMF, AUSF, UDM and PCF, and the managed host scp, in which an
// SCP may have its sockets. Up to four edge switches, each linked to two core
// switches, have them by turns, so that those who speak to each other are
// mostly at different switches.
//
// The lab's name is 5gc, whatever n is, and so are addresses: 10.0.0.1 is the
// NRF, 10.0.0.2 scp, 10.0.T.I the Ith of the type T, of AMF 1, SMF 2, AUSF 3,
// UDM 4, PCF 5; likewise fd00::T:I.
func Core5G(n int) (*Topology, error) {
	if n < 1 || n > 254 {
		return nil, fmt.Errorf("the number of producers of each type is %d; allowed: 1 to 254", n)
	}
	b := newBuilder("5gc")
	edges := make([]string, min(max(n, 2), 4))
	cores := []string{"core1", "core2"}
	for _, c := range cores {
		b.t.Switches = append(b.t.Switches, Switch{Name: c})
	}
	for i := range edges {
		edges[i] = fmt.Sprintf("edge%d", i+1)
		b.t.Switches = append(b.t.Switches, Switch{Name: edges[i]})
		for _, c := range cores {
			b.link(c, edges[i])
		}
	}
	add := func(name string, kind, i int) *Host {
		b.t.Hosts = append(b.t.Hosts, Host{
			Name: name, Switch: edges[(kind+i-1)%len(edges)], MAC: MAC{2, 0, 0, 0, byte(kind), byte(i)},
			IPv4: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(kind), byte(i)}), 16),
			IPv6: netip.PrefixFrom(netip.AddrFrom16([16]byte{0: 0xfd, 13: byte(kind), 15: byte(i)}), 64),
		})
		return &b.t.Hosts[len(b.t.Hosts)-1]
	}
	add("nrf", 0, 1).Run = []Program{{Name: "nrf", Command: "weft nf nrf"}}
	add("scp", 0, 2).Manage = true
	for i := 1; i <= n; i++ {
		for kind, name := range core5gTypes() {
			add(fmt.Sprint(name, i), kind+1, i).Run = []Program{{Name: name, Command: fmt.Sprintf("weft nf %s --nrf http://%s:%d", name, core5gNRF, core5gPort)}}
		}
	}
	return b.done(), nil
}

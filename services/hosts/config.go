package hosts

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// Config is the configuration of hosts.
type Config struct {
	// PortLimit is how many hosts may be behind one port. Packets of further
	// ones to hosts that are known are handed on one by one, others not at all.
	PortLimit int `yaml:"port_limit"`
	// AddressLimit is how many IPv4 and IPv6 addresses of a host are known. Questions
	// for further ones are flooded.
	AddressLimit int `yaml:"address_limit"`
	// Limit is how many hosts there may be in all.
	Limit int `yaml:"limit"`
	// Age is how long a host may be silent. It is asked, by ARP or neighbour
	// solicitation, before it is given up.
	Age time.Duration `yaml:"age"`
	// Verify is how long the present holder of a place or an address has, when
	// somebody else claims it, to answer that it is still there.
	Verify time.Duration `yaml:"verify"`
	// Penalty is for how long a claim that has failed is refused at once.
	Penalty time.Duration `yaml:"penalty"`
	// Hold is how long the claimant of a host that does not answer, and has
	// perhaps never answered, is in quarantine: its packets are refused, and the
	// host keeps its place unless nothing is heard of it in that time.
	Hold time.Duration `yaml:"hold"`
	// Probation is how long a host whose place or address was taken because it
	// was not heard has it back as soon as it is heard where it was.
	Probation time.Duration `yaml:"probation"`
	// PortGrace is how long hosts stay known when their port has gone down.
	PortGrace time.Duration `yaml:"port_grace"`
	// SwitchGrace is how long hosts stay known when their switch is gone.
	SwitchGrace time.Duration `yaml:"switch_grace"`
	// Moves is how often a host may move in MoveWindow. One that moves more
	// often stays where it is for Quarantine.
	Moves      int           `yaml:"moves"`
	MoveWindow time.Duration `yaml:"move_window"`
	Quarantine time.Duration `yaml:"quarantine"`
	// Gateways are Ethernet, IPv4 and IPv6 addresses that belong to the network
	// itself: no host may have them.
	Gateways []string `yaml:"gateways"`
	// ProbeMAC is the address that questions to hosts come from.
	ProbeMAC string `yaml:"probe_mac"`
	// Bindings are the ports at which Ethernet addresses may be, and the IP
	// addresses that nobody else may have. Others may be made while the
	// controller runs, by weft host bind.
	Bindings []Binding `yaml:"bindings"`
	// Ports are the ports that have a limit, or sticky bindings, of their own.
	Ports []PortSecurity `yaml:"ports"`
	// RouterPorts are the ports, as SWITCH/PORT, behind which routers are: their
	// packets may have IP addresses as source that are bound to others.
	RouterPorts []string `yaml:"router_ports"`
	// Guard has switches drop IP packets whose source is bound to another host or
	// another port, so that packets of established routes are checked, too.
	Guard bool `yaml:"guard"`
	// NeighbourEntries is how many entries of a switch may let its known hosts ask
	// others whether they are still there, by unicast ARP and neighbour discovery,
	// without the controller: one for an IPv4 address, three for an IPv6 address.
	// What other hosts ask comes to the controller; with 0, what all ask.
	NeighbourEntries int `yaml:"neighbour_entries"`
}

// Binding is one binding of a host.
type Binding struct {
	// MAC is the Ethernet address that is bound.
	MAC string `yaml:"mac"`
	// VLAN is its VLAN; 0 is untagged.
	VLAN uint16 `yaml:"vlan"`
	// Ports are those at which it may be, as SWITCH/PORT; none is any.
	Ports []string `yaml:"ports"`
	// IPs are the addresses that nobody else in the VLAN may have.
	IPs []string `yaml:"ips"`
}

// PortSecurity is what holds for the hosts of one port.
type PortSecurity struct {
	// Port is the port, as SWITCH/PORT.
	Port string `yaml:"port"`
	// MaxHosts is how many hosts it may have; 0 is port_limit.
	MaxHosts int `yaml:"max_hosts"`
	// Sticky has hosts bound to the port when they are learnt there.
	Sticky bool `yaml:"sticky"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() *Config {
	return &Config{
		PortLimit: 1024, AddressLimit: 128, Limit: 200_000,
		Age: 10 * time.Minute, Verify: 300 * time.Millisecond, Penalty: 5 * time.Second,
		Hold: 30 * time.Second, Probation: 2 * time.Minute,
		PortGrace: 10 * time.Second, SwitchGrace: time.Minute,
		Moves: 5, MoveWindow: 10 * time.Second, Quarantine: 30 * time.Second,
		ProbeMAC: "02:57:46:00:00:01", Guard: true, NeighbourEntries: 10_000,
	}
}

// Validate says which key is wrong, what it is and what is allowed.
func (c *Config) Validate() error {
	for _, n := range []struct {
		key string
		is  int
		max int
	}{
		{"port_limit", c.PortLimit, 1_000_000}, {"address_limit", c.AddressLimit, 10_000},
		{"limit", c.Limit, 10_000_000}, {"moves", c.Moves, 1000},
	} {
		if n.is < 1 || n.is > n.max {
			return fmt.Errorf("%s is %d: want 1 to %d", n.key, n.is, n.max)
		}
	}
	if n := c.NeighbourEntries; n < 0 || n > 1_000_000 {
		return fmt.Errorf("neighbour_entries is %d: want 0 to 1000000", n)
	}
	for _, d := range []struct {
		key      string
		is       time.Duration
		min, max time.Duration
	}{
		{"age", c.Age, time.Second, 30 * 24 * time.Hour},
		{"verify", c.Verify, 20 * time.Millisecond, 10 * time.Second},
		{"penalty", c.Penalty, c.Verify, time.Hour},
		{"hold", c.Hold, 0, 24 * time.Hour},
		{"probation", c.Probation, 0, 24 * time.Hour},
		{"port_grace", c.PortGrace, 0, 24 * time.Hour},
		{"switch_grace", c.SwitchGrace, 0, 24 * time.Hour},
		{"move_window", c.MoveWindow, 100 * time.Millisecond, time.Hour},
		{"quarantine", c.Quarantine, 100 * time.Millisecond, 24 * time.Hour},
	} {
		if d.is < d.min || d.is > d.max {
			return fmt.Errorf("%s is %v: want %v to %v", d.key, d.is, d.min, d.max)
		}
	}
	if m, err := flow.ParseMAC(c.ProbeMAC); err != nil || m.Multicast() || m == (flow.MAC{}) {
		return fmt.Errorf("probe_mac is %q: want the Ethernet address of no host, such as 02:57:46:00:00:01", c.ProbeMAC)
	}
	if _, err := c.gateways(); err != nil {
		return err
	}
	_, err := c.security()
	return err
}

// reservedAddresses lists the addresses that no host may have.
type reservedAddresses struct {
	macs map[flow.MAC]bool
	ips  map[netip.Addr]bool
}

// gateways reads Gateways and ProbeMAC.
func (c *Config) gateways() (reservedAddresses, error) {
	o := reservedAddresses{map[flow.MAC]bool{}, map[netip.Addr]bool{}}
	for i, s := range c.Gateways {
		if ip, err := netip.ParseAddr(s); err == nil {
			o.ips[ip.Unmap().WithZone("")] = true
		} else if mac, err := flow.ParseMAC(strings.ToLower(s)); err == nil {
			o.macs[mac] = true
		} else {
			return o, fmt.Errorf("gateways[%d] is %q: want an Ethernet, IPv4 or IPv6 address", i, s)
		}
	}
	mac, err := flow.ParseMAC(c.ProbeMAC)
	o.macs[mac] = true
	return o, err
}

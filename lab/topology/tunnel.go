package topology

import (
	"net/netip"
)

// Tunnel says that one end of a link is in a lab on another machine, which has a
// tunnel of that identifier to this one: VXLAN (RFC 7348) between the machines.
type Tunnel struct {
	Remote netip.Addr `json:"remote"`         // the other machine
	Local  netip.Addr `json:"local,omitzero"` // this one; zero: as its routes say
	VNI    uint32     `json:"vni"`            // network identifier, the same at both ends
	Port   uint16     `json:"port,omitempty"` // of UDP; 0: DefaultTunnelPort
}

const (
	// DefaultTunnelPort is the port of UDP that VXLAN has by RFC 7348.
	DefaultTunnelPort = 4789

	mostVNI = 1<<24 - 1
)

// Name is a name in the hosts' /etc/hosts of what is not in the lab.
type Name struct {
	Name      string       `json:"name"`
	Addresses []netip.Addr `json:"addresses"`
}

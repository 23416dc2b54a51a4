package topology

import (
	"fmt"
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

// Tunnels reports whether the topology has any.
func (t *Topology) Tunnels() bool {
	for i := range t.Links {
		if t.Links[i].Tunnel != nil {
			return true
		}
	}
	for i := range t.Hosts {
		if t.Hosts[i].Tunnel != nil {
			return true
		}
	}
	return false
}

// tunnel checks one that stands in a file, by what it belongs to.
func (c *checker) tunnel(line int, what string, t *Tunnel) {
	switch {
	case !t.Remote.IsValid() || !t.Remote.IsGlobalUnicast():
		c.add(line, "such as remote: 192.0.2.2", "%s: a tunnel leads to the address of a machine", what)
	case t.Local.IsValid() && (!t.Local.IsGlobalUnicast() || t.Local.Is4() != t.Remote.Is4()):
		c.add(line, "", "%s: the tunnel cannot go from %s to %s", what, t.Local, t.Remote)
	case t.VNI == 0 || t.VNI > mostVNI:
		c.add(line, fmt.Sprintf("1 to %d", mostVNI), "%s: vni %d", what, t.VNI)
	case c.vnis[t.VNI] != "":
		c.add(line, "", "%s: vni %d is already that of %s", what, t.VNI, c.vnis[t.VNI])
	default:
		c.vnis[t.VNI] = what
	}
}

// tunnelEnds checks a link with a tunnel: its end b is elsewhere.
func (c *checker) tunnelEnds(l *Link) {
	if c.nodes[l.A] != "switch" {
		c.unknownSwitch(l.line, "the link "+l.A+" to "+l.B+" begins at", l.A)
	} else if s := c.switchOf[l.A]; s.Routes() {
		c.add(l.line, "", "the link %s to %s has a tunnel, and %s is %s, which has its links on its machine", l.A, l.B, l.A, s.Kind)
	}
	switch {
	case !nodeName.MatchString(l.B):
		c.add(l.line, nameRule, "the link from %s: %q is not a name for a node", l.A, l.B)
	case c.nodes[l.B] != "":
		c.add(l.line, "", "the link %s to %s has a tunnel, and %s is in this lab: remove one of them", l.A, l.B, l.B)
	}
	c.tunnel(l.line, "the link "+l.A+" to "+l.B, l.Tunnel)
}

package topology

import (
	"bytes"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Topology is a network: what a lab file says, with every default filled in
// once Complete has run (Load, Resolve and the generators return it completed).
type Topology struct {
	Name        string   `json:"name"`
	Controllers []string `json:"controller"`
	Switches    []Switch `json:"switches"`
	Hosts       []Host   `json:"hosts"`
	Links       []Link   `json:"links"`
	// Of hybrid nodes and routers.
	Routing Routing `json:"routing,omitzero"`
	Control Control `json:"control,omitzero"`
	OVS     string  `json:"ovs,omitempty"` // OVSShared or OVSOwn
	// Names are further ones in the hosts' /etc/hosts.
	Names []Name `json:"names,omitempty"`

	selfLoops []string // switches that had a link to themselves, which was left out
	remarks   []string // of what it was read from

	file string // where it was read from, for messages
	line int
	text []byte // of a lab file that it was read from
}

// Switch is one switch, mostly an OpenFlow switch, which is an Open vSwitch bridge.
type Switch struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind,omitempty"` // empty: KindOpenFlow
	// Of those that connect to controllers.
	DPID      DPID     `json:"dpid,omitzero"`
	Protocols []string `json:"protocols,omitempty"` // as Open vSwitch names them: OpenFlow10, OpenFlow13
	FailMode  string   `json:"fail_mode,omitempty"` // "secure" or "standalone": what it does without a controller
	// Of those that route: OSPF makes the addresses known, and packets of the
	// node itself come from there.
	Loopback  netip.Addr `json:"loopback,omitzero"`
	Loopback6 netip.Addr `json:"loopback6,omitzero"`

	line int
}

// Host is one host, a network namespace with the interface eth0 attached to
// one switch port. Its Shape is that of the attaching link.
type Host struct {
	Name   string `json:"name"`
	Switch string `json:"switch"`
	Port   uint16 `json:"port"` // OpenFlow port number on Switch
	MAC    MAC    `json:"mac"`
	// IPv4 and IPv6 carry their prefix length; NoIPv4 and NoIPv6 say none.
	IPv4 netip.Prefix `json:"ipv4"`
	IPv6 netip.Prefix `json:"ipv6"`
	GW4  netip.Addr   `json:"gateway4,omitzero"` // default route, none if zero
	GW6  netip.Addr   `json:"gateway6,omitzero"`
	VLAN uint16       `json:"vlan,omitempty"` // 802.1Q tag on the wire; 0: untagged
	// Gateway says that its switch, a hybrid node or router, routes for it: GW4
	// and GW6 are addresses of that node. Without it a hybrid node drops what
	// comes by the port until a service uses it.
	Gateway bool `json:"gateway,omitempty"`
	// Manage gives it a second interface, which reaches the lab's machine; see Lab.Management.
	Manage bool `json:"manage,omitempty"`
	// Eth1 gives it a second interface, eth1, without addresses, for programs that
	// stand between two links.
	Eth1 *Attachment `json:"eth1,omitempty"`
	// CPUs are what its programs may use, and commands that are run in it; nil: all.
	CPUs []int     `json:"cpus,omitempty"`
	Run  []Program `json:"run,omitempty"` // what the lab starts in it and watches
	// Tunnel says that its switch is in a lab on another machine.
	Tunnel *Tunnel `json:"tunnel,omitempty"`
	Shape

	line int
}

// Attachment is a port of a switch.
type Attachment struct {
	Switch string `json:"switch"` // empty: that of the host's eth0
	Port   uint16 `json:"port"`
}

// Link joins two switches.
type Link struct {
	A     string `json:"a"`
	B     string `json:"b"`
	APort uint16 `json:"a_port"` // OpenFlow port number on A
	BPort uint16 `json:"b_port,omitempty"`
	// Tunnel says that B, a switch or host, is in a lab on another machine.
	Tunnel *Tunnel `json:"tunnel,omitempty"`
	Shape

	line int
}

// String names the link by its ends and ports: "s1:2-s2:3".
func (l Link) String() string {
	if l.BPort == 0 { // in another lab
		return fmt.Sprintf("%s:%d-%s", l.A, l.APort, l.B)
	}
	return fmt.Sprintf("%s:%d-%s:%d", l.A, l.APort, l.B, l.BPort)
}

// Shape is what a link does to the packets it carries, in each direction.
type Shape struct {
	Rate   Rate    `json:"rate,omitempty"`   // 0: unlimited
	Delay  Delay   `json:"delay,omitempty"`  // one way
	Jitter Delay   `json:"jitter,omitempty"` // added to Delay, uniform in [0, Jitter); order is kept
	Loss   Percent `json:"loss,omitempty"`   // of the packets, at random
	MTU    int     `json:"mtu,omitempty"`    // of both ends; 0: DefaultMTU for hosts, DefaultCoreMTU between switches
}

// NeedsCable reports whether a veth pair cannot carry the shape.
func (s Shape) NeedsCable() bool { return s.Delay > 0 || s.Jitter > 0 }

const (
	// DefaultController is where a lab's switches connect by default.
	DefaultController = "tcp:127.0.0.1:6653"
	// ControllerDirect says that the controller itself listens on Lab.ControllerSocket.
	ControllerDirect = "direct"
	// ControllerNone leaves the switches without a controller.
	ControllerNone = "none"

	// DefaultMTU is the MTU of a host's interface and of the port it is attached to.
	DefaultMTU = 1500
	// DefaultCoreMTU is the MTU between switches: room for tags, labels and
	// tunnel headers around a full-sized packet of a host.
	DefaultCoreMTU = 2000

	// FailSecure and FailStandalone are the two fail modes of a switch
	// (OpenFlow 1.3.5 section 6.3.2).
	FailSecure     = "secure"
	FailStandalone = "standalone"
)

// mostNodes is how many switches, and hosts, a topology may have: as many as
// there are addresses for hosts in 10.0.0.0/16.
const mostNodes = 65534

// MAC is an Ethernet address that reads and writes as text.
type MAC [6]byte

func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// MarshalText writes aa:bb:cc:dd:ee:ff.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads a 48-bit address in any form net.ParseMAC knows.
func (m *MAC) UnmarshalText(b []byte) error {
	hw, err := net.ParseMAC(string(b))
	if err != nil || len(hw) != 6 {
		return fmt.Errorf("%q is not an Ethernet address such as 02:00:00:00:00:01", b)
	}
	copy(m[:], hw)
	return nil
}

// NoIPv4 as Host.IPv4 leaves the host without an IPv4 address.
func NoIPv4() netip.Prefix { return netip.PrefixFrom(netip.IPv4Unspecified(), 0) }

// NoIPv6 as Host.IPv6 leaves the host without a global IPv6 address.
func NoIPv6() netip.Prefix { return netip.PrefixFrom(netip.IPv6Unspecified(), 0) }

// HasIPv4 reports whether the host has an IPv4 address.
func (h *Host) HasIPv4() bool { return h.IPv4.IsValid() && !h.IPv4.Addr().IsUnspecified() }

// HasIPv6 reports whether the host has a global IPv6 address.
func (h *Host) HasIPv6() bool { return h.IPv6.IsValid() && !h.IPv6.Addr().IsUnspecified() }

// SwitchByName finds a switch.
func (t *Topology) SwitchByName(name string) (*Switch, bool) {
	i := slices.IndexFunc(t.Switches, func(s Switch) bool { return s.Name == name })
	if i < 0 {
		return nil, false
	}
	return &t.Switches[i], true
}

// HostByName finds a host.
func (t *Topology) HostByName(name string) (*Host, bool) {
	i := slices.IndexFunc(t.Hosts, func(h Host) bool { return h.Name == name })
	if i < 0 {
		return nil, false
	}
	return &t.Hosts[i], true
}

// Loops is the number of links beyond a spanning forest: 0 if the switches
// form a tree.
func (t *Topology) Loops() int {
	parent := map[string]string{}
	var root func(string) string
	root = func(n string) string {
		if p, ok := parent[n]; ok && p != n {
			parent[n] = root(p)
			return parent[n]
		}
		return n
	}
	loops := 0
	for _, l := range t.Links {
		a, b := root(l.A), root(l.B)
		if a == b {
			loops++
			continue
		}
		parent[a] = b
	}
	return loops
}

// Clone copies the topology deeply enough that completing the copy leaves the original alone.
func (t *Topology) Clone() *Topology {
	c := *t
	c.Controllers = slices.Clone(t.Controllers)
	c.Switches = slices.Clone(t.Switches)
	c.Hosts = slices.Clone(t.Hosts)
	c.Links, c.Names = slices.Clone(t.Links), slices.Clone(t.Names)
	for i := range c.Hosts {
		h := &c.Hosts[i]
		h.Run, h.CPUs = slices.Clone(h.Run), slices.Clone(h.CPUs)
		if h.Eth1 != nil {
			eth1 := *h.Eth1
			h.Eth1 = &eth1
		}
	}
	return &c
}

// InBand reports whether hybrid nodes reach controllers by their own routing.
func (t *Topology) InBand() bool {
	return t.Control.Mode == ControlInBand && !slices.Contains(t.Controllers, ControllerNone)
}

// Secure reports whether switches speak TLS with a controller.
func (t *Topology) Secure() bool {
	return slices.ContainsFunc(t.Controllers, func(c string) bool { return strings.HasPrefix(c, "ssl:") })
}

// HasPrograms reports whether any host has a program.
func (t *Topology) HasPrograms() bool {
	return slices.ContainsFunc(t.Hosts, func(h Host) bool { return len(h.Run) > 0 })
}

// HostsFile is the text of /etc/hosts in the hosts: the names of hosts and nodes, and Names.
func (t *Topology) HostsFile() []byte {
	b := bytes.NewBufferString("127.0.0.1 localhost\n::1 localhost\n")
	for i := range t.Hosts {
		h := &t.Hosts[i]
		if h.HasIPv4() {
			fmt.Fprintln(b, h.IPv4.Addr(), h.Name)
		}
		if h.HasIPv6() {
			fmt.Fprintln(b, h.IPv6.Addr(), h.Name)
		}
	}
	for i := range t.Switches {
		for _, a := range t.Switches[i].loopbacks() {
			if a.IsValid() {
				fmt.Fprintln(b, a, t.Switches[i].Name)
			}
		}
	}
	for _, n := range t.Names {
		for _, a := range n.Addresses {
			fmt.Fprintln(b, a, n.Name)
		}
	}
	return b.Bytes()
}

// Routes reports whether a switch has IP routing.
func (s *Switch) Routes() bool { return s.Kind == KindHybrid || s.Kind == KindRouter }

// Controlled reports whether a switch connects to controllers.
func (s *Switch) Controlled() bool { return s.Kind == KindOpenFlow || s.Kind == KindHybrid }

// hasNodes reports whether a switch of the topology has IP routing.
func (t *Topology) hasNodes() bool {
	return slices.ContainsFunc(t.Switches, func(s Switch) bool { return s.Routes() })
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

// loopbacks returns the loopbacks by their keys.
func (s *Switch) loopbacks() iter.Seq2[string, netip.Addr] {
	return func(yield func(string, netip.Addr) bool) {
		_ = yield("loopback", s.Loopback) && yield("loopback6", s.Loopback6)
	}
}

var notInName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// LabName makes a lab's name of any text.
func LabName(s string) string {
	s = strings.Trim(notInName.ReplaceAllString(s, "-"), "-_")
	if len(s) > 32 {
		s = s[:32]
	}
	if s == "" {
		s = "lab"
	}
	return s
}

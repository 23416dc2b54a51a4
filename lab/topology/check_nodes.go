package topology

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// nodesAndBridges checks what is said of hybrid nodes, routers and bridges.
func (c *checker) nodesAndBridges() {
	kind := map[string]Kind{}
	hybrids := 0
	for i := range c.t.Switches {
		s := &c.t.Switches[i]
		kind[s.Name] = s.Kind
		if s.Kind == KindHybrid {
			hybrids++
		}
		c.node(s)
	}
	c.routing()
	c.control(kind)
	switch {
	case c.t.OVS != "" && c.t.OVS != OVSShared && c.t.OVS != OVSOwn:
		c.add(c.t.line, OVSShared+", "+OVSOwn, "ovs: %q", c.t.OVS)
	case c.t.OVS == OVSOwn && hybrids == 0:
		c.add(c.t.line, "", "ovs: own is for hybrid nodes, and there is none: remove it, or give a switch kind: hybrid")
	}
	for i := range c.t.Hosts {
		c.attached(&c.t.Hosts[i], kind)
	}
	between := 0
	for i := range c.t.Links {
		l := &c.t.Links[i]
		a, b := kind[l.A], kind[l.B]
		routes := func(k Kind) bool { return k == KindHybrid || k == KindRouter }
		if routes(a) && routes(b) {
			between++
		}
		if routes(a) && b == KindOpenFlow || routes(b) && a == KindOpenFlow {
			c.add(l.line, "links of nodes that route to hybrid, router and bridge switches", "the link %s to %s joins %s and %s: IP routing has no neighbour there", l.A, l.B, a, b)
		}
	}
	if between > mostNodeLinks {
		c.add(c.t.line, fmt.Sprintf("at most %d", mostNodeLinks), "there are %d links between nodes", between)
	}
	c.segments(kind)
	if len(c.problems) == 0 && c.t.hasNodes() {
		c.prefixes(c.t.networks())
	}
}

// node checks one switch by its kind.
func (c *checker) node(s *Switch) {
	if !slices.Contains(strings.Split(kindRule, ", "), string(s.Kind)) {
		c.add(s.line, kindRule, "switch %s: %q is not a kind of switch", s.Name, string(s.Kind))
		return
	}
	if !s.Controlled() {
		if s.DPID != 0 || len(s.Protocols) > 0 || s.FailMode != "" {
			c.add(s.line, "", "switch %s is %s, which connects to no controller: remove dpid, protocols and fail_mode", s.Name, s.Kind)
		}
	}
	if s.Kind == KindHybrid && s.FailMode == FailStandalone {
		c.add(s.line, FailSecure, "switch %s: without a controller a hybrid node routes, and would forward between customers in fail mode %s", s.Name, s.FailMode)
	}
	if s.Kind == KindHybrid && !slices.Contains(s.Protocols, "OpenFlow13") {
		c.add(s.line, "", "switch %s: a hybrid node needs protocol OpenFlow13, by which its own entries are written", s.Name)
	}
	for key, a := range s.loopbacks() {
		switch {
		case !a.IsValid():
		case !s.Routes():
			c.add(s.line, "", "switch %s is %s, which has no IP addresses: remove %s, or say kind: hybrid or kind: router", s.Name, s.Kind, key)
		case (key == "loopback") != a.Is4():
			c.add(s.line, "an IPv4 address as loopback, an IPv6 address as loopback6", "switch %s: %s %s", s.Name, key, a)
		case !a.IsGlobalUnicast() || a.Is4In6():
			c.add(s.line, "", "switch %s: %s cannot be a node's address: it is a multicast, loopback, link-local or unspecified address", s.Name, a)
		case key == "loopback6" && c.t.Routing.IPv4Only:
			c.add(s.line, "", "switch %s has a loopback6, and routing is ipv4_only: remove one of them", s.Name)
		}
	}
}

func (c *checker) routing() {
	r := &c.t.Routing
	if !c.t.hasNodes() {
		if *r != (Routing{}) {
			c.add(c.t.line, "", "routing is for hybrid nodes and routers, and there is none: remove it, or give a switch kind: hybrid or kind: router")
		}
		return
	}
	for _, d := range []Seconds{r.Hello, r.Dead} {
		if d < Seconds(time.Second) || d > mostSeconds || d%Seconds(time.Second) != 0 {
			c.add(c.t.line, "1s to 65535s, in whole seconds", "routing: hello %v, dead %v", r.Hello, r.Dead)
			break
		}
	}
	if r.Dead <= r.Hello {
		c.add(c.t.line, "", "routing: neighbours are given up after %v, and say hello every %v: give dead a longer time", r.Dead, r.Hello)
	}
	if r.BFD != 0 && (r.BFD < Delay(10*time.Millisecond) || r.BFD > Delay(time.Minute) || r.BFD%Delay(time.Millisecond) != 0) {
		c.add(c.t.line, "10ms to 1m, in whole milliseconds, or none", "routing: bfd %v", r.BFD)
	}
}

func (c *checker) control(kind map[string]Kind) {
	switch k := c.t.Control; {
	case k == Control{}:
	case k.Mode != "" && k.Mode != ControlInBand && k.Mode != ControlOutOfBand:
		c.add(c.t.line, ControlInBand+", "+ControlOutOfBand, "control: mode %q", k.Mode)
	case !c.t.hasNodes():
		c.add(c.t.line, "", "control is for hybrid nodes, and there is none: remove it, or give a switch kind: hybrid")
	case k.Mode != ControlInBand && k.At != "":
		c.add(c.t.line, "", "control: at %s has no meaning unless mode is in-band: say mode: in-band, or remove at", k.At)
	case k.Mode != ControlInBand:
	case k.At == "":
		c.add(c.t.line, "", "control: mode in-band needs at: the hybrid node or router that the controllers' machine is linked to")
	case kind[k.At] == "":
		c.unknownSwitch(c.t.line, "control: at names", k.At)
	case kind[k.At] != KindHybrid && kind[k.At] != KindRouter:
		c.add(c.t.line, "a hybrid node or router", "control: at %s, which is %s", k.At, kind[k.At])
	case slices.Contains(c.t.Controllers, ControllerDirect):
		c.add(c.t.line, "tcp:HOST:PORT, ssl:HOST:PORT, unix:PATH, none", "control: a controller that is direct cannot be reached in band")
	}
}

// attached checks a host by the kind of its switch.
func (c *checker) attached(h *Host, kind map[string]Kind) {
	k := kind[h.Switch]
	routes := k == KindHybrid || k == KindRouter
	switch {
	case k == "": // said already
	case h.Eth1 != nil && kind[h.Eth1.Switch] != "" && kind[h.Eth1.Switch] != KindOpenFlow:
		c.add(h.line, "an OpenFlow switch", "host %s has eth1 attached to %s, which is %s", h.Name, h.Eth1.Switch, kind[h.Eth1.Switch])
	case h.Gateway && !routes:
		c.add(h.line, "", "host %s has a gateway, and %s is %s, which does not route: attach it to a hybrid node or router", h.Name, h.Switch, k)
	case k == KindRouter && !h.Gateway:
		c.add(h.line, "", "host %s: a router passes on nothing but IP: say gateway: true", h.Name)
	case h.Gateway && h.VLAN != 0:
		c.add(h.line, "", "host %s has vlan %d and a gateway, which takes untagged packets: remove one of them", h.Name, h.VLAN)
	case h.Gateway && !h.HasIPv4() && !h.HasIPv6():
		c.add(h.line, "", "host %s has a gateway, and no address: give it ipv4 or ipv6", h.Name)
	case h.Gateway && (h.HasIPv4() && !h.GW4.IsValid() || h.HasIPv6() && !h.GW6.IsValid()):
		c.add(h.line, "a shorter prefix", "host %s: there is no address for its gateway in %s and %s", h.Name, h.IPv4, h.IPv6)
	case h.Gateway && (h.GW4 == h.IPv4.Addr() || h.GW6 == h.IPv6.Addr()):
		c.add(h.line, "", "host %s has the address of its gateway: give one of them another", h.Name)
	case h.Gateway && c.t.Routing.IPv4Only && h.HasIPv6():
		c.add(h.line, "", "host %s has an IPv6 address and a gateway, and routing is ipv4_only: remove one of them", h.Name)
	}
}

// segments checks the bridges: no loop, and one address for each node in a segment.
func (c *checker) segments(kind map[string]Kind) {
	all := c.t.Segments()
	if len(all) > mostSegments {
		c.add(c.t.line, fmt.Sprintf("at most %d", mostSegments), "there are %d networks of bridges", len(all))
		return
	}
	for i := range all {
		g := &all[i]
		first := c.switchOf[g.bridges[0]]
		if g.inner >= len(g.bridges) {
			c.add(first.line, "", "the bridges %s form a loop, in which frames would go round for ever: remove a link", some(g.bridges))
		}
		count := map[string]int{}
		var routed, openflow string
		for _, i := range g.Links {
			l := &c.t.Links[i]
			o := g.Other(l)
			count[o]++
			switch kind[o] {
			case KindHybrid, KindRouter:
				routed = o
				if count[o] == 2 {
					c.add(l.line, "", "%s has two links to the bridges %s: a node has one address in a network", o, some(g.bridges))
				}
			case KindOpenFlow:
				openflow = o
			}
		}
		if routed != "" && openflow != "" {
			c.add(first.line, "", "the bridges %s join %s, which routes, and the OpenFlow switch %s: remove one of the links", some(g.bridges), routed, openflow)
		}
		if len(count) > 250 {
			c.add(first.line, "at most 250", "the bridges %s join %d switches", some(g.bridges), len(count))
		}
	}
}

func some(names []string) string {
	if len(names) > 5 {
		names = append(names[:5:5], "…")
	}
	return strings.Join(names, ", ")
}

// prefixes checks that no two networks of the nodes, as they are numbered, have an
// address in common.
func (c *checker) prefixes(networks []Network) {
	type prefix struct {
		netip.Prefix
		line int
		of   string
	}
	var all []prefix
	add := func(line int, of string, list ...netip.Prefix) {
		for _, p := range list {
			if p.IsValid() && p.Bits() > 0 {
				all = append(all, prefix{p.Masked(), line, of})
			}
		}
	}
	gateways := 0
	for i := range c.t.Switches {
		s := &c.t.Switches[i]
		for _, a := range s.loopbacks() {
			if a.IsValid() {
				add(s.line, "the loopback of "+s.Name, netip.PrefixFrom(a, a.BitLen()))
			}
		}
	}
	for i := range c.t.Hosts {
		if h := &c.t.Hosts[i]; h.Gateway {
			gateways++
			add(h.line, "the network of host "+h.Name, h.IPv4, h.IPv6)
		}
	}
	if gateways > mostGateways {
		c.add(c.t.line, fmt.Sprintf("at most %d", mostGateways), "there are %d hosts with a gateway", gateways)
		return
	}
	for _, n := range networks {
		add(c.t.line, n.Of, n.IPv4, n.IPv6)
	}
	if c.t.Control.Mode == ControlInBand {
		add(c.t.line, "the controllers' machine", ControlPrefix())
	}
	slices.SortStableFunc(all, func(a, b prefix) int {
		if order := a.Addr().Compare(b.Addr()); order != 0 {
			return order
		}
		return a.Bits() - b.Bits()
	})
	widest := 0
	for i := 1; i < len(all); i++ {
		if all[widest].Overlaps(all[i].Prefix) {
			c.add(max(all[i].line, all[widest].line), "", "%s (%s) and %s (%s) have addresses in common: give one of them others",
				all[widest].of, all[widest].Prefix, all[i].of, all[i].Prefix)
			continue
		}
		widest = i
	}
}

// CheckNetworks returns what is wrong with the addresses of a topology whose networks are
// numbered so.
func CheckNetworks(t *Topology, networks []Network) error {
	c := checker{t: t}
	c.prefixes(networks)
	return c.problems.err()
}

package topology

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/internal/document"
)

const (
	maxPort = 0xfeff // OFPP_MAX of OpenFlow 1.0 is 0xff00, of 1.3 larger
	// mostControllers bounds the controllers of a lab: each switch connects to all.
	mostControllers = 64
	minMTU          = 1280 // IPv6 asks for it, RFC 8200 section 5
	MaxMTU          = 9216
	nameRule        = "letters, digits, '_', '.', '-', at most 63, beginning with a letter or digit"
	labRule         = "letters, digits, '_', '-', at most 32, beginning with a letter or digit"
	protoRule       = "OpenFlow10, OpenFlow11, OpenFlow12, OpenFlow13, OpenFlow14, OpenFlow15"
)

// ControllerForms says what CheckController takes, for messages.
const ControllerForms = "tcp:HOST:PORT, ssl:HOST:PORT, unix:PATH, direct, none"

var (
	nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)
	labName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)
)

// CheckName says why a lab cannot have a name.
func CheckName(name string) error {
	if !labName.MatchString(name) {
		return fmt.Errorf("%q is not a name for a lab; allowed: %s", name, labRule)
	}
	return nil
}

// Check reports everything that makes a completed topology impossible, as
// Problems; nil if it can be brought up.
func Check(t *Topology) error {
	c := checker{t: t, nodes: map[string]string{}, switchOf: map[string]*Switch{}, vnis: map[uint32]string{}}
	if n := len(t.Hosts); n > mostNodes {
		c.add(t.line, fmt.Sprintf("at most %d", mostNodes), "the topology has %d hosts", n)
		return c.problems.err()
	}
	if n := len(t.Switches); n > mostNodes {
		c.add(t.line, fmt.Sprintf("at most %d", mostNodes), "the topology has %d switches", n)
		return c.problems.err()
	}
	c.topology()
	c.switches()
	c.hosts()
	c.links()
	c.ports()
	c.nodesAndBridges()
	return c.problems.err()
}

type checker struct {
	t        *Topology
	problems Problems
	nodes    map[string]string  // name -> "switch" or "host"
	switchOf map[string]*Switch // by name
	vnis     map[uint32]string  // network identifier -> what has it
}

func (c *checker) add(line int, allowed, format string, args ...any) {
	if c.problems.enough() {
		return
	}
	c.problems = append(c.problems, Problem{
		File: c.t.file, Line: line, What: document.Wording(format, args...), Allowed: allowed,
	})
}

func (c *checker) topology() {
	if !labName.MatchString(c.t.Name) {
		c.add(c.t.line, labRule, "%q is not a name for a lab", c.t.Name)
	}
	if len(c.t.Switches) == 0 && !c.t.Tunnels() {
		c.add(c.t.line, "", "the topology has no switches: give it at least one")
	}
	if n := len(c.t.Controllers); n > mostControllers {
		c.add(c.t.line, fmt.Sprintf("at most %d", mostControllers), "the topology has %d controllers", n)
		return
	}
	for i, a := range c.t.Controllers {
		if err := CheckController(a); err != nil {
			c.add(c.t.line, ControllerForms, "%v", err)
		} else if slices.Contains(c.t.Controllers[:i], a) {
			c.add(c.t.line, "", "controller %s is named twice", a)
		} else if a == ControllerNone && len(c.t.Controllers) > 1 {
			c.add(c.t.line, "", "controller none stands beside others: remove it or them")
		}
	}
}

// CheckController says what is wrong with the address of a controller.
func CheckController(a string) error {
	if a == ControllerDirect || a == ControllerNone {
		return nil
	}
	if path, ok := strings.CutPrefix(a, "unix:"); ok && strings.HasPrefix(path, "/") {
		return nil
	}
	addr, ok := strings.CutPrefix(a, "tcp:")
	if !ok {
		addr, ok = strings.CutPrefix(a, "ssl:")
	}
	if ok {
		if _, _, err := splitHostPort(addr); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%q is not a controller's address", a)
}

func (c *checker) name(line int, kind, name string) {
	if !nodeName.MatchString(name) {
		c.add(line, nameRule, "%q is not a name for a %s", name, kind)
		return
	}
	if other, ok := c.nodes[name]; ok {
		c.add(line, "", "the name %s is already a %s's: names of switches and hosts are distinct", name, other)
		return
	}
	c.nodes[name] = kind
}

func (c *checker) switches() {
	dpids := map[DPID]string{}
	for i := range c.t.Switches {
		s := &c.t.Switches[i]
		c.name(s.line, "switch", s.Name)
		if c.switchOf[s.Name] == nil {
			c.switchOf[s.Name] = s
		}
		if !s.Controlled() {
			continue
		}
		if other, ok := dpids[s.DPID]; ok {
			c.add(s.line, "", "switch %s has dpid %s, which is already switch %s's", s.Name, s.DPID, other)
		} else {
			dpids[s.DPID] = s.Name
		}
		for _, p := range s.Protocols {
			if !slices.Contains(strings.Split(protoRule, ", "), p) {
				c.add(s.line, protoRule, "switch %s: %q is not an OpenFlow version", s.Name, p)
			}
		}
		if s.FailMode != FailSecure && s.FailMode != FailStandalone {
			c.add(s.line, FailSecure+", "+FailStandalone, "switch %s: %q is not a fail mode", s.Name, s.FailMode)
		}
	}
}

func (c *checker) hosts() {
	macs := map[MAC]string{}
	addrs := map[string]string{}
	for i := range c.t.Hosts {
		h := &c.t.Hosts[i]
		c.name(h.line, "host", h.Name)
		if h.Tunnel != nil {
			if c.nodes[h.Switch] != "" || !nodeName.MatchString(h.Switch) {
				c.add(h.line, "the name of a switch in the other lab", "host %s has a tunnel, and %q is in this lab, or no name", h.Name, h.Switch)
			}
			if h.Eth1 != nil || h.Gateway {
				c.add(h.line, "", "host %s has a tunnel: remove eth1 and gateway", h.Name)
			}
			c.tunnel(h.line, "host "+h.Name, h.Tunnel)
		} else if kind, ok := c.nodes[h.Switch]; !ok || kind != "switch" {
			c.unknownSwitch(h.line, "host "+h.Name+" is attached to", h.Switch)
		}
		switch other, ok := macs[h.MAC]; {
		case h.MAC == MAC{} || h.MAC[0]&1 != 0:
			c.add(h.line, "a unicast address such as 02:00:00:00:00:01", "host %s: %s cannot be a host's Ethernet address", h.Name, h.MAC)
		case ok:
			c.add(h.line, "", "host %s has Ethernet address %s, which is already host %s's", h.Name, h.MAC, other)
		default:
			macs[h.MAC] = h.Name
		}
		if h.VLAN > 4094 {
			c.add(h.line, "1 to 4094", "host %s: VLAN %d does not exist", h.Name, h.VLAN)
		}
		if h.HasIPv4() {
			c.addr(h, h.IPv4, addrs)
			if !h.IPv4.Addr().Is4() {
				c.add(h.line, "an IPv4 address such as 10.0.0.1/24, or none", "host %s: %s is not IPv4", h.Name, h.IPv4)
			}
		}
		if h.HasIPv6() {
			c.addr(h, h.IPv6, addrs)
			if !h.IPv6.Addr().Is6() || h.IPv6.Addr().Is4In6() {
				c.add(h.line, "an IPv6 address such as fd00::1/64, or none", "host %s: %s is not IPv6", h.Name, h.IPv6)
			}
		}
		c.gateway(h, "gateway4", h.GW4, h.IPv4, h.HasIPv4())
		c.gateway(h, "gateway6", h.GW6, h.IPv6, h.HasIPv6())
		c.programs(h)
		c.cpus(h)
		if h.Eth1 != nil && c.nodes[h.Eth1.Switch] != "switch" {
			c.unknownSwitch(h.line, "host "+h.Name+" has eth1 attached to", h.Eth1.Switch)
		}
		c.shape(h.line, "host "+h.Name, h.Shape)
	}
}

// addr checks one host address; the same address may stand in two VLANs.
func (c *checker) addr(h *Host, p netip.Prefix, seen map[string]string) {
	a := p.Addr()
	if a.IsMulticast() || a.IsLoopback() || (a.Is4() && p.Bits() < 31 && (a == p.Masked().Addr() || a == lastAddr(p))) {
		c.add(h.line, "", "host %s: %s cannot be a host's address: it is a network, broadcast, multicast or loopback address", h.Name, p)
		return
	}
	key := fmt.Sprintf("%d %s", h.VLAN, a)
	if other, ok := seen[key]; ok {
		c.add(h.line, "", "host %s has address %s, which is already host %s's", h.Name, a, other)
		return
	}
	seen[key] = h.Name
}

func (c *checker) gateway(h *Host, key string, gw netip.Addr, p netip.Prefix, has bool) {
	if gw.IsValid() && (!has || !p.Contains(gw)) {
		c.add(h.line, "an address inside "+p.Masked().String(), "host %s: %s %s cannot be reached from %s", h.Name, key, gw, p)
	}
}

// lastAddr is the IPv4 broadcast address of p.
func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	return netip.AddrFrom4(b)
}

func (c *checker) unknownSwitch(line int, what, name string) {
	if c.nodes[name] == "host" {
		c.add(line, "", "%s %s, which is a host: links join switches, a host names its switch with `switch:`", what, name)
		return
	}
	names := make([]string, 0, 12)
	for i, s := range c.t.Switches {
		if i == 10 {
			names = append(names, fmt.Sprintf("… (%d in all)", len(c.t.Switches)))
			break
		}
		names = append(names, s.Name)
	}
	c.add(line, strings.Join(names, ", "), "%s the unknown switch %q", what, name)
}

func (c *checker) links() {
	for i := range c.t.Links {
		l := &c.t.Links[i]
		c.shape(l.line, "the link "+l.A+" to "+l.B, l.Shape)
		if l.Tunnel != nil {
			c.tunnelEnds(l)
			continue
		}
		known := true
		for _, end := range []string{l.A, l.B} {
			if c.nodes[end] != "switch" {
				c.unknownSwitch(l.line, "the link "+l.A+" to "+l.B+" ends at", end)
				known = false
			}
		}
		if known && l.A == l.B {
			c.add(l.line, "", "the link joins switch %s to itself: name two different switches", l.A)
		}
	}
}

func (c *checker) shape(line int, what string, s Shape) {
	if s.Loss < 0 || s.Loss > 100 {
		c.add(line, "0% to 100%", "%s: loss %v", what, s.Loss)
	}
	if s.Delay < 0 || s.Delay > maxDelay || s.Jitter < 0 || s.Jitter > maxDelay {
		c.add(line, "0s to 10s", "%s: delay %v, jitter %v", what, s.Delay, s.Jitter)
	}
	if s.Rate != 0 && s.Rate < 8000 {
		c.add(line, "8kbit and more", "%s: rate %v", what, s.Rate)
	}
	if s.MTU != 0 && (s.MTU < minMTU || s.MTU > MaxMTU) {
		c.add(line, fmt.Sprintf("%d to %d", minMTU, MaxMTU), "%s: mtu %d", what, s.MTU)
	}
}

func (c *checker) ports() {
	type port struct {
		sw string
		no uint16
	}
	used := map[port]string{}
	hybrid := map[string]bool{}
	for _, s := range c.t.Switches {
		hybrid[s.Name] = s.Kind == KindHybrid
	}
	take := func(line int, sw string, no uint16, by string) {
		if no < 1 || no > maxPort {
			c.add(line, fmt.Sprintf("1 to %d", maxPort), "%s: switch %s cannot have port %d", by, sw, no)
			return
		}
		if hybrid[sw] && no >= InternalPorts {
			c.add(line, fmt.Sprintf("1 to %d", InternalPorts-1), "%s: port %d of hybrid node %s: those above are internal ports", by, no, sw)
		}
		if other, ok := used[port{sw, no}]; ok {
			c.add(line, "", "%s: port %d of switch %s is already used by %s", by, no, sw, other)
			return
		}
		used[port{sw, no}] = by
	}
	for _, h := range c.t.Hosts {
		if h.Tunnel == nil {
			take(h.line, h.Switch, h.Port, "host "+h.Name)
		}
		if h.Eth1 != nil {
			take(h.line, h.Eth1.Switch, h.Eth1.Port, "eth1 of host "+h.Name)
		}
	}
	for _, l := range c.t.Links {
		if l.A == l.B {
			continue
		}
		take(l.line, l.A, l.APort, "the link to "+l.B)
		if l.Tunnel == nil {
			take(l.line, l.B, l.BPort, "the link to "+l.A)
		}
	}
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

func (c *checker) programs(h *Host) {
	seen := map[string]bool{}
	for _, p := range h.Run {
		if _, err := SplitWords(p.Command); err != nil {
			c.add(p.line, "", "host %s: the command %q cannot be run: %v", h.Name, p.Command, err)
			continue
		}
		switch what := "host " + h.Name + ", program " + p.Name; {
		case !nodeName.MatchString(p.Name):
			c.add(p.line, nameRule, "host %s: %q is not a name for a program", h.Name, p.Name)
		case seen[p.Name]:
			c.add(p.line, "", "host %s has two programs %s: give one another name", h.Name, p.Name)
		case p.Restart != RestartAlways && p.Restart != RestartFailure && p.Restart != RestartNever:
			c.add(p.line, restartRule, "%s: restart %q", what, p.Restart)
		default:
			for _, name := range slices.Sorted(maps.Keys(p.Env)) {
				if !envName.MatchString(name) || strings.HasPrefix(name, "WEFT_LAB") {
					c.add(p.line, envRule, "%s: %q is not a name for a variable", what, name)
				} else if strings.IndexByte(p.Env[name], 0) >= 0 {
					c.add(p.line, "", "%s: the variable %s has a zero byte", what, name)
				}
			}
		}
		seen[p.Name] = true
	}
}

// MostCPU is the highest number of a CPU that can be named.
const MostCPU = 1023

func (c *checker) cpus(h *Host) {
	for i, n := range h.CPUs {
		switch {
		case n < 0 || n > MostCPU:
			c.add(h.line, fmt.Sprintf("0 to %d", MostCPU), "host %s: CPU %d", h.Name, n)
		case slices.Contains(h.CPUs[:i], n):
			c.add(h.line, "", "host %s: CPU %d is named twice", h.Name, n)
		}
	}
}

func splitHostPort(addr string) (string, uint16, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || host == "" {
		return "", 0, fmt.Errorf("%q is not HOST:PORT", addr)
	}
	return host, uint16(n), nil
}

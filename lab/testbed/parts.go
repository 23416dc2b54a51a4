package testbed

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/lab/topology"
)

// Part is what one machine gets of a lab: a lab of its own, with tunnels to the others.
type Part struct {
	Machine  string
	Topology *topology.Topology
}

// PartName is the name that a lab's part has on a machine.
func PartName(name, machine string) string { return name + "-" + machine }

// maxName is the most characters of a lab's name, and so of a part's.
const maxName = 32

// Parts cuts a completed topology into a part for each machine that gets nodes, in
// the order of the resource file: every node is in one part, every link within a machine, too, and
// a link between machines is in two, each with a tunnel to the other. Names, datapath
// ids, ports and addresses stay; a tunnelled link has its rate, delay and loss in the part
// of its host, or of its first end.
func Parts(t *topology.Topology, m *Machines, is *Mapping) ([]Part, error) {
	c := cutting{t: t, m: m, of: map[string]string{}, parts: map[string]*topology.Topology{}, address: map[string]netip.Addr{}}
	controllers := t.Controllers
	if m.Controller != "" {
		controllers = []string{m.Controller}
	}
	for _, controller := range controllers {
		if err := checkReached(controller); err != nil {
			return nil, err
		}
	}
	for _, k := range m.List {
		if n := PartName(t.Name, k.Name); len(n) > maxName {
			return nil, fmt.Errorf("the lab on machine %s would be named %s, which is longer than %d: give the lab or the machine a shorter name", k.Name, n, maxName)
		}
		c.address[k.Name] = k.Address
	}
	for _, p := range is.Nodes {
		c.of[p.Node] = p.Machine
		if c.parts[p.Machine] == nil {
			c.parts[p.Machine] = &topology.Topology{
				Name: PartName(t.Name, p.Machine), Controllers: slices.Clone(controllers),
				Routing: t.Routing, Control: t.Control, OVS: t.OVS, Names: slices.Clone(t.Names),
			}
		}
	}
	for _, s := range t.Switches {
		p := c.parts[c.of[s.Name]]
		p.Switches = append(p.Switches, s)
	}
	tunnels := map[[2]int]uint32{} // by link, or host
	for _, k := range is.Tunnels {
		tunnels[[2]int{k.link, k.host}] = k.VNI
	}
	for i := range t.Hosts {
		c.host(&t.Hosts[i], tunnels[[2]int{-1, i}])
	}
	for i := range t.Links {
		c.link(&t.Links[i], tunnels[[2]int{i, -1}])
	}
	var all []Part
	for _, k := range m.List {
		if p := c.parts[k.Name]; p != nil {
			all = append(all, Part{k.Name, p})
		}
	}
	return all, nil
}

type cutting struct {
	t       *topology.Topology
	m       *Machines
	of      map[string]string // node -> machine
	parts   map[string]*topology.Topology
	address map[string]netip.Addr
}

// tunnel is the end of one that is on a machine.
func (c *cutting) tunnel(here, there string, vni uint32) *topology.Tunnel {
	return &topology.Tunnel{Local: c.address[here], Remote: c.address[there], VNI: vni, Port: c.m.Port}
}

func (c *cutting) host(h *topology.Host, vni uint32) {
	here, there := c.of[h.Name], c.of[h.Switch]
	mine := *h
	if here != there {
		mine.Tunnel = c.tunnel(here, there, vni)
		far := c.parts[there]
		far.Links = append(far.Links, topology.Link{
			A: h.Switch, APort: h.Port, B: h.Name, Tunnel: c.tunnel(there, here, vni),
			Shape: topology.Shape{MTU: cmp.Or(h.MTU, topology.DefaultMTU)},
		})
	}
	c.parts[here].Hosts = append(c.parts[here].Hosts, mine)
	name := topology.Name{Name: h.Name}
	if h.HasIPv4() {
		name.Addresses = append(name.Addresses, h.IPv4.Addr())
	}
	if h.HasIPv6() {
		name.Addresses = append(name.Addresses, h.IPv6.Addr())
	}
	for machine, p := range c.parts {
		if machine != here && name.Addresses != nil {
			p.Names = append(p.Names, name)
		}
	}
}

func (c *cutting) link(l *topology.Link, vni uint32) {
	a, b := c.of[l.A], c.of[l.B]
	mine := *l
	if a != b {
		mine.Tunnel = c.tunnel(a, b, vni)
		c.parts[b].Links = append(c.parts[b].Links, topology.Link{
			A: l.B, APort: l.BPort, B: l.A, BPort: l.APort, Tunnel: c.tunnel(b, a, vni), Shape: topology.Shape{MTU: l.MTU},
		})
	}
	c.parts[a].Links = append(c.parts[a].Links, mine)
}

// checkReached says why machines cannot reach a controller.
func checkReached(controller string) error {
	const mend = "say where the machines reach the controller, by `controller: tcp:HOST:PORT` in the resource file or --controller; allowed: tcp:HOST:PORT, none"
	if controller == topology.ControllerNone {
		return nil
	}
	address, ok := strings.CutPrefix(controller, "tcp:")
	if !ok {
		return fmt.Errorf("a lab on several machines cannot have controller %s: %s", controller, mend)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	if a, err := netip.ParseAddr(host); host == "localhost" || err == nil && (a.IsLoopback() || a.IsUnspecified()) {
		return fmt.Errorf("controller %s is another one on each machine: %s", controller, mend)
	}
	return nil
}

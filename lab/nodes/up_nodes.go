package nodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"

	"github.com/weft-sdn/weft/internal/resend"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/links"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// PrepareNodeNetns sets up the namespace of a hybrid node or router, in this
// thread's: it forwards, and answers for an address only where it has it. IPv6
// is off except where dressNode sets it on: Open vSwitch may have ports there.
func PrepareNodeNetns(h *netlink.Handle) error {
	if err := links.PrepareHostNetns(h); err != nil {
		return err
	}
	for _, s := range [][2]string{
		{"ipv4/ip_forward", "1"},
		{"ipv4/conf/all/rp_filter", "0"},
		{"ipv4/conf/default/rp_filter", "0"},
		{"ipv4/conf/all/arp_ignore", "1"},
		{"ipv4/conf/all/arp_announce", "2"},
		{"ipv4/tcp_congestion_control", "reno"},
		{"ipv4/tcp_thin_linear_timeouts", "1"}, // as of package resend, for Open vSwitch
		{"ipv4/tcp_rto_min_us", fmt.Sprint(resend.Least.Microseconds())},
		{"ipv4/tcp_rto_max_ms", fmt.Sprint(resend.Most.Milliseconds())},
		{"ipv6/conf/all/forwarding", "1"},
		{"ipv6/conf/default/disable_ipv6", "1"},
	} {
		if err := machine.Sysctl("net/"+s[0], s[1]); err != nil && !(errors.Is(err, fs.ErrNotExist) && (strings.HasPrefix(s[0], "ipv6") || strings.HasPrefix(s[0], "ipv4/tcp"))) {
			return err
		}
	}
	return nil
}

// Routers are the hybrid nodes and routers of a lab.
type Routers struct{ *layout.Lab }

func RoutersOf(s *layout.Lab) Routers { return Routers{s} }

// BuildNodes makes the namespaces of the nodes, and that of the controllers'
// machine, which must be there before the links are.
func (s Routers) BuildNodes(ctx context.Context, home machine.Home) error {
	var g errgroup.Group
	g.SetLimit(4)
	for i := range s.Nodes {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			err := home.CreateNetns(machine.HostNetns(s.Name, s.Nodes[i].Name), func() error { return machine.WithHandle(PrepareNodeNetns) })
			if err == nil {
				s.NotifyNode(s.Nodes[i].Name, "its namespace is there")
			}
			return err
		})
	}
	if s.Topology.InBand() {
		g.Go(func() error {
			return home.CreateNetns(layout.ControlNetns(s.Name), func() error { return machine.WithHandle(links.PrepareHostNetns) })
		})
	}
	return errors.Join(g.Wait(), ctx.Err())
}

// DressNodes makes the internal ports and the link of the controllers' machine,
// and gives the nodes their addresses; the wires must be there.
func (s Routers) DressNodes(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(4)
	for i := range s.Nodes {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			if err := s.dressNode(&s.Nodes[i]); err != nil {
				return fmt.Errorf("node %s: %w", s.Nodes[i].Name, err)
			}
			return nil
		})
	}
	return errors.Join(g.Wait(), ctx.Err())
}

func (s Routers) dressNode(n *layout.Node) error {
	switches, err := os.Open(machine.NetnsPath(SwitchesOf(s.Lab).OVSOf(n.Name).Netns))
	if err != nil {
		return err
	}
	defer switches.Close()
	err = machine.WithLinks(machine.HostNetns(s.Name, n.Name), func(h *netlink.Handle) error {
		if err := machine.SetAddresses(h, "lo", netip.PrefixFrom(n.Loopback, 32), netip.PrefixFrom(n.Loopback6, 128)); err != nil {
			return err
		}
		for _, p := range n.Routed() {
			if _, err := h.LinkByName(p.Interface); p.InternalInterface != "" && err != nil {
				attrs := netlink.NewLinkAttrs()
				attrs.Name, attrs.MTU, attrs.HardwareAddr = p.Interface, p.MTU, net.HardwareAddr(p.MAC[:])
				v := &netlink.Veth{LinkAttrs: attrs, PeerName: p.InternalInterface, PeerNamespace: netlink.NsFd(int(switches.Fd()))}
				if err := h.LinkAdd(v); err != nil {
					return fmt.Errorf("make the internal port %s: %w", p.Interface, err)
				}
			}
			if p.InternalInterface == "" {
				continue // bringUp has
			}
			if err := machine.SetRouted(h, p.Interface, p.IPv4, p.IPv6); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return machine.WithLinks(SwitchesOf(s.Lab).OVSOf(n.Name).Netns, func(h *netlink.Handle) error {
		for _, p := range n.Routed() {
			if p.InternalInterface == "" {
				continue
			}
			l, err := h.LinkByName(p.InternalInterface)
			if err == nil {
				err = h.LinkSetUp(l)
			}
			if err == nil && l.Attrs().MTU != p.MTU { // it was another
				err = h.LinkSetMTU(l, p.MTU)
			}
			if err != nil {
				return fmt.Errorf("set %s up: %w", p.InternalInterface, err)
			}
		}
		return nil
	})
}

// BringUp sets a switch's end of a wire up, in this thread's namespace, with a
// router's addresses.
func (s Routers) BringUp(h *netlink.Handle, w *layout.Wire, e *layout.End) error {
	if err := links.BringUp(h, w, e); err != nil || !e.Routed {
		return err
	}
	for i := range s.Nodes {
		for _, p := range s.Nodes[i].Routed() {
			if s.Nodes[i].Name != e.Node || p.Interface != e.Iface {
				continue
			}
			l, err := h.LinkByName(e.Iface)
			if err == nil {
				err = h.LinkSetMTU(l, p.MTU)
			}
			if err != nil {
				return fmt.Errorf("set the MTU of %s: %w", e, err)
			}
			return machine.SetRouted(h, p.Interface, p.IPv4, p.IPv6)
		}
	}
	return nil
}

// SetNode has a node's ports, addresses and routing be as it is laid out,
// whatever they are.
func (s Routers) SetNode(ctx context.Context, name string, gone []string) error {
	n := s.Node(name)
	if n == nil {
		return nil
	}
	if err := s.undressNode(n); err != nil {
		return err
	}
	if err := s.dressNode(n); err != nil {
		return err
	}
	if n.Kind == topology.KindHybrid {
		args := []string{"--", "set", "bridge", n.Short, fmt.Sprintf("other_config:dp-desc=%q", s.Description(name))}
		for _, iface := range gone {
			args = append(args, "--", "--if-exists", "del-port", iface)
		}
		for _, p := range n.Routed() {
			args = append(args, "--", "--may-exist", "add-port", n.Short, p.InternalInterface,
				"--", "set", "interface", p.InternalInterface, fmt.Sprintf("ofport_request=%d", p.Internal))
		}
		if _, err := SwitchesOf(s.Lab).OVSOf(name).VSCtl(ctx, args...); err != nil {
			return err
		}
	}
	return RoutingOf(s.Lab).routeNode(ctx, n)
}

// undressNode removes the internal ports and the addresses that a node is not to have.
func (s Routers) undressNode(n *layout.Node) error {
	return machine.WithLinks(machine.HostNetns(s.Name, n.Name), func(h *netlink.Handle) error {
		links, err := machine.ListWhole(h.LinkList)
		if err != nil {
			return fmt.Errorf("list the interfaces: %w", err)
		}
		for _, l := range links {
			name := l.Attrs().Name
			i := slices.IndexFunc(n.Ports, func(p layout.Port) bool { return p.Interface == name && p.Role != layout.RoleAccess })
			var wanted []netip.Prefix
			switch {
			case name == "lo":
				wanted = []netip.Prefix{netip.PrefixFrom(n.Loopback, 32), netip.PrefixFrom(n.Loopback6, 128)}
			case i >= 0:
				p := &n.Ports[i]
				if wanted = []netip.Prefix{p.IPv4, p.IPv6}; l.Attrs().MTU != p.MTU {
					if err := h.LinkSetMTU(l, p.MTU); err != nil {
						return fmt.Errorf("set the MTU of %s: %w", name, err)
					}
				}
			case n.Kind == topology.KindHybrid && layout.NodeInterface.MatchString(name) && name != ControlIface:
				if err := h.LinkDel(l); err != nil {
					return fmt.Errorf("remove %s: %w", name, err)
				}
				continue
			default:
				continue
			}
			if err := machine.HaveAddresses(h, l, wanted); err != nil {
				return err
			}
		}
		return nil
	})
}

package nodes

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// In band, the machine with the controllers is a namespace of the lab, linked to
// one node. The keeper listens there for each controller, and passes on to it
// what comes, as it does for other switches; so a controller listens where it
// always does, and labs with the same addresses run side by side. From a hybrid
// node to there, the packets of its sessions take the links, the bridges and the
// routing of the nodes, and no other way.
//
// An Open vSwitch of the node's own connects by itself. One that all nodes share
// is in none of their namespaces: it connects to an address for each node in its
// own namespace, where the keeper goes on from that node's loopback.

// ControlIface is, in the node's namespace and in that of the controllers'
// machine, the link between them.
const ControlIface = "control"

// controllerAt is the address at which nodes reach a controller in band.
func controllerAt(controller int) string {
	return netip.AddrPortFrom(topology.ControlPrefix().Addr().Next(), controlPort(controller)).String()
}

func controlPort(controller int) uint16 { return uint16(6653 + controller) }

// SharedAt is where the Open vSwitch that nodes share connects to for a
// controller of the nth node.
func SharedAt(n, controller int) string {
	a := netip.AddrFrom4([4]byte{127, 1, byte(n >> 8), byte(n)})
	return netip.AddrPortFrom(a, controlPort(controller)).String()
}

// LinkControllers links the controllers' machine to a node, whose namespace is
// this thread's.
func (s Switches) LinkControllers(h *netlink.Handle) error {
	peer, err := netns.GetFromPath(machine.NetnsPath(layout.ControlNetns(s.Name)))
	if err != nil {
		return fmt.Errorf("open the namespace of the controllers' machine: %w", err)
	}
	defer peer.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = ControlIface
	if err := h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: ControlIface, PeerNamespace: netlink.NsFd(int(peer))}); err != nil {
		return fmt.Errorf("link the controllers' machine: %w", err)
	}
	p := topology.ControlPrefix()
	if err := machine.SetRouted(h, ControlIface, p); err != nil {
		return err
	}
	return machine.WithLinks(layout.ControlNetns(s.Name), func(h *netlink.Handle) error {
		if err := machine.SetAddresses(h, ControlIface, netip.PrefixFrom(p.Addr().Next(), p.Bits())); err != nil {
			return err
		}
		l, err := h.LinkByName(ControlIface)
		if err != nil {
			return err
		}
		return h.RouteReplace(&netlink.Route{LinkIndex: l.Attrs().Index, Gw: p.Addr().AsSlice()})
	})
}

// nodeTargets is where the bridge of a hybrid node connects to, for each controller.
func (s Switches) nodeTargets(name string) []string {
	var targets []string
	n := slices.IndexFunc(s.Nodes, func(n layout.Node) bool { return n.Name == name })
	for k, c := range s.Topology.Controllers {
		scheme := "tcp:"
		if strings.HasPrefix(c, sslPrefix) {
			scheme = sslPrefix
		}
		at := controllerAt(k)
		if s.Topology.OVS != topology.OVSOwn {
			at = SharedAt(s.Nodes[n].Number, k)
		}
		targets = append(targets, scheme+at)
	}
	return targets
}

// Post is where the keeper waits for switches, or for nodes in band, and where to
// it goes on.
type Post struct {
	Key    string // one with the same is the same
	Listen func() (net.Listener, error)
	To     func(context.Context) (net.Conn, error)
}

// Posts lists those of the lab.
func (s Switches) Posts() (all []Post) {
	for i, socket := range s.ControllerSockets() {
		if c := s.Topology.Controllers[i]; c != topology.ControllerDirect {
			all = append(all, Post{fmt.Sprint(socket, " ", c), func() (net.Listener, error) { return s.listenFor(i, socket) }, dialController(c)})
		}
	}
	if !s.Topology.InBand() {
		return all
	}
	in := func(ns, at, to string, dial func(context.Context) (net.Conn, error)) {
		is, _ := machine.InodeOf(machine.NetnsPath(ns))
		all = append(all, Post{fmt.Sprint(ns, is, " ", at, " ", to), func() (l net.Listener, err error) {
			err = machine.InNetns(ns, func() error {
				l, err = net.Listen("tcp", at)
				return err
			})
			return l, err
		}, dial})
	}
	for c, controller := range s.Topology.Controllers {
		in(layout.ControlNetns(s.Name), controllerAt(c), controller, dialController(controller))
		for i := range s.Nodes {
			if n := &s.Nodes[i]; n.Kind == topology.KindHybrid && s.Topology.OVS != topology.OVSOwn {
				in(machine.SwitchNetns(s.Name), SharedAt(n.Number, c), n.Name+" "+n.Loopback.String(), s.dialFrom(n, controllerAt(c)))
			}
		}
	}
	return all
}

// dialFrom returns what connects from a node's loopback.
func (s Switches) dialFrom(n *layout.Node, at string) func(context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(n.Loopback, 0))}
	return func(ctx context.Context) (c net.Conn, err error) {
		err = machine.InNetns(machine.HostNetns(s.Name, n.Name), func() error {
			c, err = d.DialContext(ctx, "tcp", at)
			return err
		})
		return c, err
	}
}

// dialTimeout is how long a switch waits for the controller to be reached.
const dialTimeout = 2 * time.Second

// dialController returns what connects to a controller.
func dialController(controller string) func(context.Context) (net.Conn, error) {
	network, address, _ := strings.Cut(controller, ":")
	if network+":" == sslPrefix {
		network = "tcp" // the relay passes on what it cannot read
	}
	d := net.Dialer{Timeout: dialTimeout}
	return func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, network, address) }
}

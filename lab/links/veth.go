package links

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// PrepareSwitchNetns sets up the namespace Open vSwitch runs in: its ports are
// no stations, so they speak no IPv6.
func PrepareSwitchNetns() error {
	for _, s := range []string{"all", "default"} {
		if err := machine.Sysctl("net/ipv6/conf/"+s+"/disable_ipv6", "1"); err != nil {
			return err
		}
	}
	return nil
}

// PrepareHostNetns sets up a host's namespace: IPv6 usable at once and silent
// unless spoken to, loopback up, ICMP sockets allowed.
func PrepareHostNetns(h *netlink.Handle) error {
	for _, s := range [][2]string{
		{"ipv6/conf/all/accept_dad", "0"},
		{"ipv6/conf/default/accept_dad", "0"},
		{"ipv6/conf/default/dad_transmits", "0"},
		{"ipv6/conf/default/accept_ra", "0"},
		{"ipv6/conf/default/autoconf", "0"},
		{"ipv6/conf/default/router_solicitations", "0"},
		{"ipv6/conf/default/keep_addr_on_down", "1"},
		{"ipv4/ping_group_range", "0 0"},
	} {
		if err := machine.Sysctl("net/"+s[0], s[1]); err != nil {
			return err
		}
	}
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	return h.LinkSetUp(lo)
}

// AddVeth makes a veth pair with end e in this thread's namespace and the
// other end in the namespace peerNS.
func AddVeth(h *netlink.Handle, e, peer *layout.End, peerNS *os.File, mtu int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = e.Iface, mtu, net.HardwareAddr(e.MAC[:])
	v := &netlink.Veth{LinkAttrs: attrs, PeerName: peer.Iface, PeerHardwareAddr: net.HardwareAddr(peer.MAC[:])}
	if peerNS != nil {
		v.PeerNamespace = netlink.NsFd(int(peerNS.Fd()))
	}
	if err := h.LinkAdd(v); err != nil {
		return fmt.Errorf("make link %s to %s: %w", e, peer, err)
	}
	return nil
}

// BringUp sets a switch's end of a wire up, in this thread's namespace. A TAP
// end also gets its address, MTU and a queue long enough for bursts.
func BringUp(h *netlink.Handle, w *layout.Wire, e *layout.End) error {
	l, err := h.LinkByName(e.Iface)
	if err != nil {
		return fmt.Errorf("find %s of %s: %w", e.Iface, e, err)
	}
	if w.Cable {
		if err := h.LinkSetHardwareAddr(l, net.HardwareAddr(e.MAC[:])); err != nil {
			return fmt.Errorf("set the address of %s: %w", e, err)
		}
		if err := h.LinkSetMTU(l, w.MTU()); err != nil {
			return fmt.Errorf("set the MTU of %s: %w", e, err)
		}
		if err := h.LinkSetTxQLen(l, 5000); err != nil {
			return fmt.Errorf("set the queue length of %s: %w", e, err)
		}
	}
	if err := h.LinkSetUp(l); err != nil {
		return fmt.Errorf("set %s up: %w", e, err)
	}
	return nil
}

// DressHost sets a host's interface up with its addresses and routes, in this
// thread's namespace; what is there already is kept.
func DressHost(h *netlink.Handle, w *layout.Wire, host *topology.Host) error {
	if !w.Cable {
		// What the host sends reaches Open vSwitch through a packet socket,
		// which wants checksums computed and segments cut.
		if err := machine.DisableTxOffload(w.B.Iface); err != nil {
			return fmt.Errorf("host %s: %w", host.Name, err)
		}
	}
	if err := BringUp(h, w, &w.B); err != nil {
		return err
	}
	for _, family := range []string{"ipv4", "ipv6"} {
		if err := machine.Sysctl("net/"+family+"/neigh/"+w.B.Iface+"/mcast_solicit", machine.NeighbourTries); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("host %s: %w", host.Name, err)
		}
	}
	l, err := h.LinkByName(w.B.Iface)
	if err != nil {
		return fmt.Errorf("host %s: find %s: %w", host.Name, w.B.Iface, err)
	}
	fail := func(what any, err error) error { return fmt.Errorf("host %s: set %v: %w", host.Name, what, err) }
	if host.HasIPv4() {
		if err := h.AddrReplace(l, &netlink.Addr{IPNet: machine.IPNet(host.IPv4.Addr().AsSlice(), host.IPv4.Bits())}); err != nil {
			return fail(host.IPv4, err)
		}
	}
	if host.HasIPv6() {
		a := &netlink.Addr{IPNet: machine.IPNet(host.IPv6.Addr().AsSlice(), host.IPv6.Bits()), Flags: unix.IFA_F_NODAD}
		if err := h.AddrReplace(l, a); err != nil {
			return fail(host.IPv6, err)
		}
	}
	for _, gw := range []net.IP{host.GW4.AsSlice(), host.GW6.AsSlice()} {
		if gw == nil {
			continue
		}
		if err := h.RouteReplace(&netlink.Route{LinkIndex: l.Attrs().Index, Gw: gw}); err != nil {
			return fail(gw, err)
		}
	}
	return nil
}

// SetVeth sets a veth pair up or down: between switches both ends, at the same
// moment as a cable does (the peer of an end that is set down loses carrier
// some time later, from a work queue of the kernel); a host's end alone, which
// the switch's follows. host is what the end of a host is to have.
func SetVeth(w *layout.Wire, host *topology.Host, up bool) error {
	if up && w.B.Host {
		return machine.WithLinks(w.B.Netns, func(h *netlink.Handle) error { return DressHost(h, w, host) })
	}
	return inEach(w, func(h *netlink.Handle, ends []*layout.End) error {
		var links []netlink.Link
		for _, e := range ends {
			if w.B.Host && !e.Host {
				continue
			}
			link, err := h.LinkByName(e.Iface)
			if err != nil {
				return fmt.Errorf("find %s of %s: %w", e.Iface, e, err)
			}
			links = append(links, link)
		}
		set := h.LinkSetDown
		if up {
			set = h.LinkSetUp
		}
		for _, link := range links {
			if err := set(link); err != nil {
				return err
			}
		}
		return nil
	})
}

// inEach runs fn in each namespace in which the wire ends, with its ends there.
func inEach(w *layout.Wire, fn func(*netlink.Handle, []*layout.End) error) error {
	if w.A.Netns == w.B.Netns {
		return machine.WithLinks(w.A.Netns, func(h *netlink.Handle) error { return fn(h, []*layout.End{&w.A, &w.B}) })
	}
	for _, e := range w.Ends() {
		if err := machine.WithLinks(e.Netns, func(h *netlink.Handle) error { return fn(h, []*layout.End{e}) }); err != nil {
			return err
		}
	}
	return nil
}

// AddWire makes the veth pair of a wire between switches, from A's namespace.
func AddWire(h *netlink.Handle, w *layout.Wire) error {
	if w.A.Netns == w.B.Netns {
		return AddVeth(h, &w.A, &w.B, nil, w.MTU())
	}
	ns, err := os.Open(machine.NetnsPath(w.B.Netns))
	if err != nil {
		return err
	}
	defer ns.Close()
	return AddVeth(h, &w.A, &w.B, ns, w.MTU())
}

package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func IPNet(ip net.IP, bits int) *net.IPNet {
	return &net.IPNet{IP: ip, Mask: net.CIDRMask(bits, 8*len(ip))}
}

// NeighbourTries is how many times, a second apart, a host asks for a neighbour
// before it drops what waits for it. The kernel's three are too few where the
// switches of a lab share few processors, and may all stand still for a while.
const NeighbourTries = "10"

// SetRouted makes an interface of a node one that its routing uses.
func SetRouted(h *netlink.Handle, iface string, addresses ...netip.Prefix) error {
	if err := DisableTxOffload(iface); err != nil {
		return err
	}
	if err := Sysctl("net/ipv6/conf/"+iface+"/disable_ipv6", "0"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, family := range []string{"ipv4", "ipv6"} {
		if err := Sysctl("net/"+family+"/neigh/"+iface+"/mcast_solicit", NeighbourTries); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return SetAddresses(h, iface, addresses...)
}

// SetAddresses sets an interface up with those addresses that are valid.
func SetAddresses(h *netlink.Handle, iface string, addresses ...netip.Prefix) error {
	l, err := h.LinkByName(iface)
	if err != nil {
		return fmt.Errorf("find %s: %w", iface, err)
	}
	if err := h.LinkSetUp(l); err != nil {
		return fmt.Errorf("set %s up: %w", iface, err)
	}
	for _, p := range addresses {
		if !p.IsValid() {
			continue
		}
		if err := h.AddrReplace(l, &netlink.Addr{IPNet: IPNet(p.Addr().AsSlice(), p.Bits())}); err != nil {
			return fmt.Errorf("set %s on %s: %w", p, iface, err)
		}
	}
	return nil
}

// HaveAddresses gives an interface those addresses that are valid, and no other
// of more than its link or machine.
func HaveAddresses(h *netlink.Handle, l netlink.Link, wanted []netip.Prefix) error {
	has, err := ListWhole(func() ([]netlink.Addr, error) { return h.AddrList(l, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("list the addresses of %s: %w", l.Attrs().Name, err)
	}
	for _, a := range has {
		if a.IP.IsLinkLocalUnicast() || a.IP.IsLoopback() || slices.ContainsFunc(wanted, func(p netip.Prefix) bool {
			return p.IsValid() && IPNet(p.Addr().AsSlice(), p.Bits()).String() == a.IPNet.String()
		}) {
			continue
		}
		if err := h.AddrDel(l, &a); err != nil {
			return fmt.Errorf("remove %v from %s: %w", a.IPNet, l.Attrs().Name, err)
		}
	}
	for _, p := range wanted {
		if !p.IsValid() {
			continue
		}
		if err := h.AddrReplace(l, &netlink.Addr{IPNet: IPNet(p.Addr().AsSlice(), p.Bits())}); err != nil {
			return fmt.Errorf("set %s on %s: %w", p, l.Attrs().Name, err)
		}
	}
	return nil
}

// EmptyNetns removes the interfaces of a namespace.
func EmptyNetns(ns string) error {
	return WithLinks(ns, func(h *netlink.Handle) error {
		links, err := ListWhole(h.LinkList)
		if err != nil {
			return fmt.Errorf("list the interfaces of %s: %w", ns, err)
		}
		for _, l := range links {
			if _, virtual := l.(*netlink.Veth); !virtual {
				continue
			}
			if err := h.LinkDel(l); err != nil && !errors.Is(err, unix.ENODEV) { // with its other end
				return fmt.Errorf("remove %s: %w", l.Attrs().Name, err)
			}
		}
		return nil
	})
}

// SetLoopbackUp lets the switches' namespace speak to itself.
func SetLoopbackUp(h *netlink.Handle) error {
	lo, err := h.LinkByName("lo")
	if err == nil {
		err = h.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("set lo of the switches up: %w", err)
	}
	return nil
}

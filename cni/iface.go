package cni

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/lab/machine"
)

// within calls f with the network namespace of a path.
func within(path string, f func(netns.NsHandle) error) error {
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return fmt.Errorf("the container's network namespace %s: %w", path, err)
	}
	defer ns.Close()
	return f(ns)
}

// addInterface makes the function's interface in its namespace, with the addresses and
// routes of a result, and the switch's end beside Open vSwitch. It returns the Ethernet
// address of the former. What is there already is as it was left by an attempt before.
func (c *Config) addInterface(path string, a attachment, r *types100.Result) (mac string, err error) {
	err = within(path, func(ns netns.NsHandle) error {
		h, err := netlink.NewHandleAt(ns)
		if err != nil {
			return err
		}
		defer h.Close()
		if _, err := h.LinkByName(a.iface); err == nil {
			if _, err := netlink.LinkByName(a.host); err != nil {
				return fmt.Errorf("the container has an interface %s already, of somebody else", a.iface)
			}
		} else {
			attrs := netlink.NewLinkAttrs()
			attrs.Name, attrs.MTU = a.host, c.MTU
			veth := &netlink.Veth{LinkAttrs: attrs, PeerName: a.iface, PeerNamespace: netlink.NsFd(ns)}
			if err := netlink.LinkAdd(veth); err != nil {
				return fmt.Errorf("make the interface %s: %w", a.iface, err)
			}
		}
		end, err := netlink.LinkByName(a.host)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(end); err != nil {
			return err
		}
		link, err := h.LinkByName(a.iface)
		if err != nil {
			return err
		}
		if c.Datapath == "netdev" { // which takes the checksums as they are
			if err := inside(ns, func() error { return machine.DisableTxOffload(a.iface) }); err != nil {
				return err
			}
		}
		mac = link.Attrs().HardwareAddr.String()
		if err := h.LinkSetUp(link); err != nil {
			return err
		}
		return configure(h, link, r)
	})
	return mac, err
}

// configure gives an interface the addresses and routes of a result.
func configure(h *netlink.Handle, link netlink.Link, r *types100.Result) error {
	for _, ip := range r.IPs {
		addr := &netlink.Addr{IPNet: &ip.Address}
		if ip.Address.IP.To4() == nil {
			addr.Flags = unix.IFA_F_NODAD // the controller is no judge of it yet
		}
		if err := h.AddrReplace(link, addr); err != nil {
			return fmt.Errorf("address %v: %w", &ip.Address, err)
		}
	}
	for _, t := range r.Routes {
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: &t.Dst, Gw: gatewayOf(t.Dst, t.GW, r)}
		if err := h.RouteReplace(route); err != nil {
			return fmt.Errorf("route to %v: %w", &t.Dst, err)
		}
	}
	return nil
}

// gatewayOf returns the gateway of a route: its own, or that of the addresses.
func gatewayOf(dst net.IPNet, own net.IP, r *types100.Result) net.IP {
	if own != nil {
		return own
	}
	for _, ip := range r.IPs {
		if (ip.Address.IP.To4() == nil) == (dst.IP.To4() == nil) && ip.Gateway != nil {
			return ip.Gateway
		}
	}
	return nil
}

// inside calls f on a thread in a namespace.
func inside(ns netns.NsHandle, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := netns.Set(ns)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// deleteInterface removes the function's interface. That it, or its namespace, is gone is
// no error.
func deleteInterface(a attachment) error {
	link, err := netlink.LinkByName(a.host)
	var gone netlink.LinkNotFoundError
	if errors.As(err, &gone) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return netlink.LinkDel(link)
}

// checkInterface returns an error if the function's interface lacks what a result says.
func checkInterface(path string, a attachment, r *types100.Result) error {
	return within(path, func(ns netns.NsHandle) error {
		h, err := netlink.NewHandleAt(ns)
		if err != nil {
			return err
		}
		defer h.Close()
		link, err := h.LinkByName(a.iface)
		if err != nil {
			return fmt.Errorf("interface %s: %w", a.iface, err)
		}
		if link.Attrs().Flags&net.FlagUp == 0 {
			return fmt.Errorf("interface %s is down", a.iface)
		}
		addrs, err := h.AddrList(link, netlink.FAMILY_ALL)
		if err != nil {
			return err
		}
		for _, ip := range r.IPs {
			there := false
			for _, x := range addrs {
				there = there || x.IP.Equal(ip.Address.IP)
			}
			if !there {
				return fmt.Errorf("interface %s has no address %v", a.iface, ip.Address.IP)
			}
		}
		return nil
	})
}

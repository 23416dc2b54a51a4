package links

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// MakeTunnel makes the VXLAN device of a wire that has a tunnel, in the namespace of the
// switches, and joins them. What it carries goes by the network of this thread's
// namespace, that of Up's caller.
func MakeTunnel(w *layout.Wire) error {
	e := w.FarEnd()
	if e == nil {
		return nil
	}
	ns, err := os.Open(machine.NetnsPath(e.Netns))
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := machine.WithHandle(func(h *netlink.Handle) error { return addVXLAN(h, e, ns, w.MTU()) }); err != nil {
		return err
	}
	return JoinTunnel(w)
}

// RemoveTunnel removes the VXLAN device of a wire that has a tunnel, if it is there.
func RemoveTunnel(w *layout.Wire) error {
	e := w.FarEnd()
	if e == nil {
		return nil
	}
	return machine.WithLinks(e.Netns, func(h *netlink.Handle) error {
		table := tunnelTable(w)
		if err := RunNft(fmt.Sprintf("add table netdev %s\ndelete table netdev %s\n", table, table)); err != nil {
			return err
		}
		l, err := h.LinkByName(e.VXLAN())
		if gone := (netlink.LinkNotFoundError{}); errors.As(err, &gone) {
			return nil
		} else if err == nil {
			err = h.LinkDel(l)
		}
		if err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("remove %s of the tunnel to %s: %w", e.VXLAN(), e, err)
		}
		return nil
	})
}

func tunnelTable(w *layout.Wire) string { return fmt.Sprintf("weft_tunnel_%d", w.ID) }

func addVXLAN(h *netlink.Handle, e *layout.End, ns *os.File, mtu int) error {
	t := e.Tunnel
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.Namespace = e.VXLAN(), mtu, netlink.NsFd(int(ns.Fd()))
	port := cmp.Or(t.Port, topology.DefaultTunnelPort)
	err := h.LinkAdd(&netlink.Vxlan{LinkAttrs: attrs, VxlanId: int(t.VNI), Group: net.IP(t.Remote.AsSlice()), SrcAddr: net.IP(t.Local.AsSlice()), Port: int(port)})
	switch {
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("make the tunnel to %s (%s): network identifier %d is in use on this machine: give the tunnel another vni", e, t.Remote, t.VNI)
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("make the tunnel to %s (%s): port %d of UDP is in use on this machine: give the tunnel another port", e, t.Remote, port)
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("make the tunnel to %s (%s): this kernel has no VXLAN: load its module vxlan", e, t.Remote)
	case err != nil:
		return fmt.Errorf("make the tunnel to %s (%s): %w", e, t.Remote, err)
	}
	return nil
}

// JoinTunnel has frames pass between a far end and its VXLAN device, which must be there.
// What leaves by the far end is cut into packets and has its checksums: Open vSwitch, or
// the host, is to see what a wire would carry.
func JoinTunnel(w *layout.Wire) error {
	e := w.FarEnd()
	if e == nil {
		return nil
	}
	return machine.WithLinks(e.Netns, func(h *netlink.Handle) error {
		if !w.Cable {
			if err := machine.DisableTxOffload(e.Iface); err != nil {
				return fmt.Errorf("the tunnel to %s: %w", e, err)
			}
		}
		l, err := h.LinkByName(e.VXLAN())
		if err != nil {
			return fmt.Errorf("find %s of the tunnel to %s: %w", e.VXLAN(), e, err)
		}
		if err := h.LinkSetUp(l); err != nil {
			return fmt.Errorf("set %s up: %w", e.VXLAN(), err)
		}
		var b strings.Builder
		table := tunnelTable(w)
		fmt.Fprintf(&b, "add table netdev %s\ndelete table netdev %s\ntable netdev %s {\n", table, table, table)
		for i, pair := range [][2]string{{e.Iface, e.VXLAN()}, {e.VXLAN(), e.Iface}} {
			fmt.Fprintf(&b, "chain c%d {\ntype filter hook ingress device \"%s\" priority 0; policy accept;\nfwd to \"%s\"\n}\n", i, pair[0], pair[1])
		}
		b.WriteString("}\n")
		return RunNft(b.String())
	})
}

// Untunnel removes the VXLAN devices from a namespace, if there are any: their network
// identifiers are free when it returns, and not when the kernel is done with the namespace.
// A list that other changes interrupt is asked for again; what it still lacks then, goes
// with the namespace.
func Untunnel(h *netlink.Handle) error {
	for range 20 {
		links, err := h.LinkList()
		again := errors.Is(err, netlink.ErrDumpInterrupted)
		if err != nil && !again {
			return fmt.Errorf("list the tunnels: %w", err)
		}
		for _, l := range links {
			if l.Type() != "vxlan" {
				continue
			}
			if err := h.LinkDel(l); err != nil && !errors.Is(err, unix.ENODEV) {
				return fmt.Errorf("remove the tunnel %s: %w", l.Attrs().Name, err)
			}
		}
		if !again {
			return nil
		}
	}
	return nil
}

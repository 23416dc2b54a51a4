package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/links"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// DeleteHost ends what runs in a host and removes what there is of it; its
// wires are gone.
func (s Hosts) DeleteHost(ctx context.Context, home machine.Home, name string) error {
	ns := machine.HostNetns(s.Name, name)
	if err := machine.EndIn(ctx, ns); err != nil {
		return err
	}
	if err := errors.Join(Detach(ns), home.DeleteNetns(ns)); err != nil {
		return err
	}
	delete(s.Manage, name)
	return os.RemoveAll(filepath.Join(s.Dir(), "logs", name))
}

// AddHost makes a host without its wires.
func (s Hosts) AddHost(ctx context.Context, home machine.Home, name string) error {
	if err := s.DeleteHost(ctx, home, name); err != nil {
		return err
	}
	err := home.CreateNetns(machine.HostNetns(s.Name, name), func() error { return machine.WithHandle(links.PrepareHostNetns) })
	if err != nil {
		return err
	}
	return s.SetManagement(ctx, name)
}

// SetManagement gives a host its second interface to this machine, or takes it.
func (s Hosts) SetManagement(ctx context.Context, name string) error {
	if err := Detach(machine.HostNetns(s.Name, name)); err != nil {
		return err
	}
	delete(s.Manage, name)
	h, _ := s.Topology.HostByName(name)
	if !h.Manage {
		return nil
	}
	return s.ManageHosts(ctx, []*topology.Host{h})
}

// SetAddresses gives a host the addresses and routes that it is to have, and no others.
func (s Hosts) SetAddresses(name string) error {
	for i := range s.Topology.Hosts {
		host, w := &s.Topology.Hosts[i], &s.Wires[i]
		if host.Name != name {
			continue
		}
		return machine.WithLinks(w.B.Netns, func(h *netlink.Handle) error {
			l, err := h.LinkByName(w.B.Iface)
			if err != nil {
				return err
			}
			routes, err := machine.ListWhole(func() ([]netlink.Route, error) { return h.RouteList(l, netlink.FAMILY_ALL) })
			if err != nil {
				return fmt.Errorf("list the routes: %w", err)
			}
			for _, r := range routes {
				if r.Gw == nil {
					continue
				}
				if err := h.RouteDel(&r); err != nil {
					return fmt.Errorf("remove the route by %v: %w", r.Gw, err)
				}
			}
			addresses, err := machine.ListWhole(func() ([]netlink.Addr, error) { return h.AddrList(l, netlink.FAMILY_ALL) })
			if err != nil {
				return fmt.Errorf("list the addresses: %w", err)
			}
			for _, a := range addresses {
				if a.IP.IsLinkLocalUnicast() {
					continue
				}
				if err := h.AddrDel(l, &a); err != nil {
					return fmt.Errorf("remove %v: %w", a.IPNet, err)
				}
			}
			if w.State == layout.LinkIsDown && !w.Cable {
				return nil // it gets them when it is plugged in
			}
			return links.DressHost(h, w, host)
		})
	}
	return nil
}

// BuildHosts makes every host's namespace and, unless it hangs on a cable,
// its link and addresses.
func (s Hosts) BuildHosts(ctx context.Context, home machine.Home) error {
	var g errgroup.Group
	g.SetLimit(4)
	for i := range s.Topology.Hosts {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			err := home.CreateNetns(machine.HostNetns(s.Name, s.Topology.Hosts[i].Name), func() error {
				return machine.WithHandle(func(h *netlink.Handle) error {
					if err := links.PrepareHostNetns(h); err != nil {
						return err
					}
					for _, w := range s.WiresOf(i) {
						if err := s.attach(h, w); err != nil {
							return err
						}
					}
					return nil
				})
			})
			if err == nil {
				s.NotifyNode(s.Topology.Hosts[i].Name, "its namespace is there")
			}
			return err
		})
	}
	return errors.Join(g.Wait(), ctx.Err())
}

// attach makes a host's link, unless it is a cable, from the host's namespace.
func (s Hosts) attach(h *netlink.Handle, w *layout.Wire) error {
	if w.Cable {
		return nil
	}
	ns, err := os.Open(machine.NetnsPath(w.A.Netns))
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := links.AddVeth(h, &w.B, &w.A, ns, w.MTU()); err != nil {
		return err
	}
	return links.DressHost(h, w, s.Dressed(w))
}

package nodes

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/links"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// A managed host has a second interface, which reaches the machine that the
// lab runs on, and so its controller, and nothing else: a veth pair for each
// host, with two addresses of its own. The host has no route over it but to
// the other end, takes no packet from it but from there, and forwards none.
// The machine's own settings stay as they are.

// ManageIface is the second interface of a managed host.
const ManageIface = "manage"

// manageRanges is where the addresses are taken from: those for benchmarks (RFC
// 2544) and link-local ones (RFC 3927), except those that are reserved.
func manageRanges() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("169.254.64.0/18")}
}

// BuildManagement makes the second interfaces of the managed hosts.
func (s Hosts) BuildManagement(ctx context.Context) error {
	var hosts []*topology.Host
	for i := range s.Topology.Hosts {
		if h := &s.Topology.Hosts[i]; h.Manage {
			hosts = append(hosts, h)
		}
	}
	if len(hosts) == 0 {
		return nil
	}
	return s.ManageHosts(ctx, hosts)
}

// ManageHosts makes the second interfaces of hosts. Labs take their addresses one
// after the other.
func (s Hosts) ManageHosts(ctx context.Context, hosts []*topology.Host) error {
	lock, err := os.Open(machine.RunDir)
	if err == nil {
		defer lock.Close()
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", machine.RunDir, err)
	}
	outside, err := netns.Get()
	if err != nil {
		return fmt.Errorf("open this machine's network namespace: %w", err)
	}
	defer outside.Close()
	return machine.WithHandle(func(h *netlink.Handle) error {
		used, err := s.usedPrefixes(h)
		if err != nil {
			return err
		}
		free := FreePairs(used)
		if s.Manage == nil {
			s.Manage = map[string]layout.Management{}
		}
		for _, host := range hosts {
			m, ok := free()
			if !ok {
				return fmt.Errorf("host %s: no two addresses of %v are free for manage", host.Name, manageRanges())
			}
			s.Manage[host.Name] = m
		}
		if err := s.Save(); err != nil {
			return err
		}
		for _, host := range hosts {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := s.manage(h, outside, host.Name); err != nil {
				return fmt.Errorf("host %s: make its interface to this machine: %w", host.Name, err)
			}
		}
		return nil
	})
}

// usedPrefixes is where this machine or the lab's hosts have addresses or routes.
func (s Hosts) usedPrefixes(h *netlink.Handle) ([]netip.Prefix, error) {
	var used []netip.Prefix
	add := func(dst interface{ String() string }) {
		if p, err := netip.ParsePrefix(dst.String()); err == nil && p.Bits() >= 8 { // shorter ones are everywhere
			used = append(used, p.Masked())
		}
	}
	addresses, err := machine.ListWhole(func() ([]netlink.Addr, error) { return h.AddrList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return nil, fmt.Errorf("list this machine's addresses: %w", err)
	}
	for _, a := range addresses {
		add(a.IPNet)
	}
	routes, err := machine.ListWhole(func() ([]netlink.Route, error) {
		return h.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, fmt.Errorf("list this machine's routes: %w", err)
	}
	for _, r := range routes {
		if r.Dst != nil {
			add(r.Dst)
		}
	}
	// Of a lab that goes down, an interface may still be there without its address.
	links, err := machine.ListWhole(h.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list this machine's interfaces: %w", err)
	}
	for _, l := range links {
		if a, ok := strings.CutPrefix(l.Attrs().Name, "weft"); ok {
			if n, err := strconv.ParseUint(a, 16, 32); err == nil {
				used = append(used, netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), 31))
			}
		}
	}
	for i := range s.Topology.Hosts {
		if host := &s.Topology.Hosts[i]; host.HasIPv4() {
			add(host.IPv4)
		}
	}
	return used, nil
}

// FreePairs returns what gives two free neighbouring addresses at a time.
func FreePairs(used []netip.Prefix) func() (layout.Management, bool) {
	ranges := manageRanges()
	first := func() netip.Addr { return ranges[0].Addr().Next().Next() } // without the range's own address
	next := first()
	return func() (layout.Management, bool) {
		for {
			for !ranges[0].Contains(next) {
				if ranges = ranges[1:]; len(ranges) == 0 {
					return layout.Management{}, false
				}
				next = first()
			}
			pair := netip.PrefixFrom(next, 31)
			m := layout.Management{Controller: next, Address: next.Next()}
			next = m.Address.Next()
			clear := true
			for _, p := range used {
				clear = clear && !p.Overlaps(pair)
			}
			if clear {
				b := pair.Addr().As4()
				m.Interface = "weft" + strconv.FormatUint(uint64(b[0])<<24|uint64(b[1])<<16|uint64(b[2])<<8|uint64(b[3]), 16)
				return m, true
			}
		}
	}
}

// manage makes the second interface of a host; here is a handle on this machine.
func (s Hosts) manage(here *netlink.Handle, outside netns.NsHandle, host string) error {
	m := s.Manage[host]
	err := machine.WithLinks(machine.HostNetns(s.Name, host), func(h *netlink.Handle) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = ManageIface
		if err := h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: m.Interface, PeerNamespace: netlink.NsFd(int(outside))}); err != nil {
			return err
		}
		for _, v := range [][2]string{
			{"ip_forward", "0"},
			{"conf/all/arp_ignore", "1"}, // its address is this interface's alone
			{"conf/all/arp_announce", "2"},
			{"conf/" + ManageIface + "/rp_filter", "1"}, // nothing comes from elsewhere
		} {
			if err := machine.Sysctl("net/ipv4/"+v[0], v[1]); err != nil {
				return err
			}
		}
		return address(h, ManageIface, m.Address)
	})
	if err != nil {
		return err
	}
	l, err := here.LinkByName(m.Interface)
	if err != nil {
		return err
	}
	if err := here.LinkSetAlias(l, fmt.Sprintf("host %s of weft lab %s", host, s.Name)); err != nil {
		return err
	}
	_ = here.LinkSetIP6AddrGenMode(l, noAddrGen) // fails where there is no IPv6
	return address(here, m.Interface, m.Controller)
}

// address gives an interface one of two addresses, and sets it up.
func address(h *netlink.Handle, iface string, a netip.Addr) error {
	l, err := h.LinkByName(iface)
	if err != nil {
		return err
	}
	if err := h.AddrReplace(l, &netlink.Addr{IPNet: machine.IPNet(a.AsSlice(), 31)}); err != nil {
		return err
	}
	return h.LinkSetUp(l)
}

// noAddrGen is IN6_ADDR_GEN_MODE_NONE of linux/if_link.h.
const noAddrGen = 1

// Detach removes what leads from a namespace of a lab to the machine: the tunnels of
// switches, and the second interface of a host. A socket may keep the namespace for longer.
func Detach(ns string) error {
	err := machine.WithLinks(ns, func(h *netlink.Handle) error {
		if !strings.Contains(ns, ".") { // that of the switches: only there are tunnels
			if err := links.Untunnel(h); err != nil {
				return err
			}
		}
		l, err := h.LinkByName(ManageIface)
		if gone := (netlink.LinkNotFoundError{}); errors.As(err, &gone) {
			return nil
		} else if err != nil {
			return err
		}
		return h.LinkDel(l)
	})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) { // the name of a namespace that was not made, or is gone
		return nil
	}
	return err
}

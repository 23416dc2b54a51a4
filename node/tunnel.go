package node

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/ownthread"
)

// Tunnels end in the bridge, and their outer packets are routed by the node: out
// of the bridge they come by its local port, which has the node's loopback address,
// and an entry hands them to the routing by a pair of interfaces of their own, the
// way in. What comes for a tunnel's end is handed to the local port, where Open
// vSwitch takes the outer headers off.

const (
	wayInPort  = 20000 // in the bridge
	wayInMTU   = 9000
	wayInside  = "weft-tun"  // in the namespace of the routing
	markTunnel = "weft-node" // key in external_ids: its value is the bridge
)

// tunnel is a tunnel port that there is.
type tunnel struct {
	name, kind string
	port       uint16
	remote     netip.Addr
}

// roads is what is known of the way of a node's tunnels.
type roads struct {
	mu            sync.Mutex // guards the following
	local, inside flow.MAC   // of the local port, and of the routing's end of the way in
	said          string
}

// hashed returns a name of an interface that is of this port of this bridge.
func (k *keeping) hashed(prefix string, port uint16) string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s/%d", k.Bridge, port)
	return fmt.Sprintf("%s%08x", prefix, h.Sum32())
}

// mark is the mark by which Open vSwitch finds the routes of this node's tunnels,
// not those of others' in the same process.
func (k *keeping) mark() string {
	h := fnv.New32a()
	h.Write([]byte(k.Bridge))
	return strconv.FormatUint(uint64(h.Sum32()|1), 10)
}

// tunnels returns the tunnel ports that there are.
func (k *keeping) tunnels() (list []tunnel) {
	for _, i := range k.db.marked(markTunnel, k.Bridge) {
		remote, err := netip.ParseAddr(i.options["remote_ip"])
		number, err2 := strconv.ParseUint(i.ids["weft-port"], 10, 16)
		if err == nil && err2 == nil {
			list = append(list, tunnel{name: i.name, kind: i.kind, port: uint16(number), remote: remote})
		}
	}
	return list
}

// entries returns the entries of the node and of its tunnels, and whether they are
// all that it has.
func (k *keeping) entries() (list []flow.Entry, whole bool) {
	list = k.Entries()
	if k.db == nil {
		return list, true
	}
	if !k.db.reached() {
		return list, false
	}
	tunnels := k.tunnels()
	if len(tunnels) == 0 {
		return list, true
	}
	k.roads.mu.Lock()
	local, inside := k.roads.local, k.roads.inside
	k.roads.mu.Unlock()
	if local == (flow.MAC{}) || inside == (flow.MAC{}) {
		return list, false
	}
	add := func(priority uint16, m flow.Match, actions ...flow.Action) {
		list = append(list, flow.Entry{Table: flow.TableIngress, Priority: priority, Cookie: flow.NodeCookie, Match: m, Apply: actions})
	}
	add(flow.PriorityCoexist, flow.Match{}.WithInPort(flow.PortLocal), flow.SetEthDst(inside), flow.Output(wayInPort))
	seen := map[string]bool{}
	for _, t := range tunnels {
		if key := t.kind + t.remote.String(); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		for _, p := range k.Ports {
			if p.Customer {
				continue
			}
			m := flow.Match{}.WithInPort(flow.Port(p.Port)).WithEthType(etherIPv4).
				WithIPSrc(netip.PrefixFrom(t.remote, 32)).WithIPDst(netip.PrefixFrom(k.Loopback, 32))
			if t.kind == "vxlan" {
				m = m.WithUDPDst(portVXLAN)
			} else {
				m = m.WithIPProto(protoGRE)
			}
			add(flow.PriorityCoexistGuard, m, flow.SetEthDst(local), flow.Output(flow.PortLocal))
		}
	}
	return list, true
}

// obeyTunnels makes the tunnel ports that are wanted, and removes others.
func (k *keeping) obeyTunnels(ctx context.Context, wanted []*api.WantedTunnel, problems map[uint32]string) {
	want := map[string]bool{}
	for _, w := range wanted {
		name := k.hashed("t", uint16(w.Port))
		want[name] = true
		if err := k.obeyTunnel(ctx, name, w); err != nil {
			problems[w.Port] = printable(err.Error())
		}
	}
	for _, t := range k.tunnels() {
		if want[t.name] {
			continue
		}
		_ = switchd(ctx, k.Switchd, "ovs/route/del", t.remote.String()+"/32", "pkt_mark="+k.mark())
		if err := k.removePort(ctx, t.name); err != nil {
			problems[uint32(t.port)] = printable(err.Error())
		}
	}
}

// obeyTunnel makes a tunnel port, or makes it as it is wanted. One whose other end is
// not known yet stays as it is.
func (k *keeping) obeyTunnel(ctx context.Context, name string, w *api.WantedTunnel) error {
	if w.Remote == "" {
		return nil
	}
	remote, err := netip.ParseAddr(w.Remote)
	switch {
	case !k.Loopback.IsValid():
		return errors.New("the node has no loopback address: set loopback in the file of nodes")
	case w.Kind != "vxlan" && w.Kind != "gre":
		return fmt.Errorf("kind %.20q: want vxlan or gre", w.Kind)
	case !flow.IsTunnelPort(flow.Port(w.Port)):
		return fmt.Errorf("port %d: want %d to %d", w.Port, flow.TunnelPorts, flow.TunnelPortsLast)
	case err != nil || !remote.Is4() || remote == k.Loopback:
		return fmt.Errorf("remote %.60q: want the IPv4 address of another node", w.Remote)
	case !slices.ContainsFunc(k.Loopbacks, func(p netip.Prefix) bool { return p.Contains(remote) }):
		return fmt.Errorf("remote %v is no node's loopback, by loopbacks in the file of nodes", remote)
	case w.Key < 1 || w.Key > 1<<24-1:
		return fmt.Errorf("key %d: want 1 to 16777215", w.Key)
	}
	options := map[string]string{"remote_ip": remote.String(), "key": strconv.FormatUint(uint64(w.Key), 10), "egress_pkt_mark": k.mark()}
	ids := map[string]string{markTunnel: k.Bridge, "weft-port": strconv.FormatUint(uint64(w.Port), 10)}
	bfd := session(w.BfdIntervalMs)
	i, there := k.db.iface(name)
	if !there {
		row := map[string]any{"type": w.Kind, "options": mapping(options), "external_ids": mapping(ids), "bfd": mapping(bfd), "ofport_request": w.Port}
		return k.addPort(ctx, name, row)
	}
	if i.kind == w.Kind && equalTexts(i.options, options) && equalTexts(i.bfd, bfd) {
		return nil
	}
	return k.db.transact(ctx, map[string]any{"op": "update", "table": "Interface", "where": named(name), "row": map[string]any{
		"type": w.Kind, "options": mapping(options), "external_ids": mapping(ids), "bfd": mapping(bfd)}})
}

// addPort gives the bridge a port.
func (k *keeping) addPort(ctx context.Context, name string, row map[string]any) error {
	if k.db.port(name) != "" {
		return nil
	}
	row["name"] = name
	return k.db.transact(ctx,
		map[string]any{"op": "insert", "table": "Interface", "row": row, "uuid-name": "iface"},
		map[string]any{"op": "insert", "table": "Port", "uuid-name": "port", "row": map[string]any{"name": name, "interfaces": []any{"named-uuid", "iface"}}},
		map[string]any{"op": "mutate", "table": "Bridge", "where": named(k.Bridge), "mutations": []any{[]any{"ports", "insert", []any{"set", []any{[]any{"named-uuid", "port"}}}}}},
		map[string]any{"op": "mutate", "table": "Open_vSwitch", "where": []any{}, "mutations": []any{[]any{"next_cfg", "+=", 1}}})
}

func (k *keeping) removePort(ctx context.Context, name string) error {
	id := k.db.port(name)
	if id == "" {
		return nil
	}
	return k.db.transact(ctx,
		map[string]any{"op": "mutate", "table": "Bridge", "where": named(k.Bridge), "mutations": []any{[]any{"ports", "delete", []any{"set", []any{[]any{"uuid", id}}}}}},
		map[string]any{"op": "mutate", "table": "Open_vSwitch", "where": []any{}, "mutations": []any{[]any{"next_cfg", "+=", 1}}})
}

// keepTunnels keeps the ways of tunnels, which Open vSwitch forgets when it
// starts, until ctx ends.
func (a *agent) keepTunnels(ctx context.Context) {
	for {
		for _, k := range a.nodes {
			tunnels := k.tunnels()
			if len(tunnels) == 0 {
				continue
			}
			err := k.pave(ctx, tunnels)
			k.roads.mu.Lock()
			said := ""
			if err != nil {
				said = err.Error()
			}
			if said != "" && said != k.roads.said && ctx.Err() == nil {
				k.log.Warn("the tunnels of the node have no way yet", "error", err)
			}
			k.roads.said = said
			k.roads.mu.Unlock()
		}
		if backoff.Sleep(ctx, reportEvery/4) != nil {
			return
		}
	}
}

// pave makes the way of a node's tunnels.
func (k *keeping) pave(ctx context.Context, tunnels []tunnel) error {
	outside := k.hashed("w", wayInPort)
	inside, err := k.makeWayIn(outside)
	if err != nil {
		return err
	}
	if err := k.addPort(ctx, outside, map[string]any{"ofport_request": wayInPort}); err != nil {
		return err
	}
	local, err := k.addressLocal()
	if err != nil {
		return err
	}
	k.roads.mu.Lock()
	k.roads.local, k.roads.inside = local, inside
	k.roads.mu.Unlock()
	// The routing is the next hop, under the node's own address: so Open vSwitch
	// takes that as the source.
	if err := switchd(ctx, k.Switchd, "tnl/neigh/set", k.Bridge, k.Loopback.String(), inside.String()); err != nil {
		return err
	}
	for _, t := range tunnels {
		if err := switchd(ctx, k.Switchd, "ovs/route/add", t.remote.String()+"/32", k.Bridge, k.Loopback.String(), "pkt_mark="+k.mark()); err != nil {
			return err
		}
	}
	return nil
}

// inNamespace does something with a handle of a namespace, and in it.
func inNamespace(name string, do func(*netlink.Handle, netns.NsHandle) error) error {
	return ownthread.Do(func() error { return within(name, do) })
}

// within is inNamespace on a thread that may end.
func within(name string, do func(*netlink.Handle, netns.NsHandle) error) error {
	own, err := netns.Get()
	if err != nil {
		return err
	}
	defer own.Close()
	ns := own
	if name != "" {
		if ns, err = netns.GetFromName(name); err != nil {
			return fmt.Errorf("open network namespace %s: %w", name, err)
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", name, err)
		}
	}
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err == nil {
		err = do(h, ns)
		h.Close()
	}
	if name == "" || netns.Set(own) == nil {
		runtime.UnlockOSThread()
	}
	return err
}

// makeWayIn makes the pair of interfaces, and returns the address of the routing's end.
func (k *keeping) makeWayIn(outside string) (mac flow.MAC, err error) {
	switches, err := namespace(k.Namespace)
	if err != nil {
		return mac, err
	}
	defer switches.Close()
	err = inNamespace(k.RoutingNamespace, func(h *netlink.Handle, _ netns.NsHandle) error {
		l, err := h.LinkByName(wayInside)
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			attrs := netlink.NewLinkAttrs()
			attrs.Name, attrs.MTU = wayInside, wayInMTU
			err = h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: outside, PeerMTU: wayInMTU, PeerNamespace: netlink.NsFd(int(switches))})
			if err == nil {
				l, err = h.LinkByName(wayInside)
			}
		}
		if err != nil {
			return fmt.Errorf("make the interface %s: %w", wayInside, err)
		}
		mac = flow.MAC(l.Attrs().HardwareAddr)
		if l.Attrs().Flags&net.FlagUp != 0 {
			return nil
		}
		// Its packets come from the node's own address.
		for _, s := range [][2]string{{"accept_local", "1"}, {"rp_filter", "0"}, {"forwarding", "1"}} {
			if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+wayInside+"/"+s[0], []byte(s[1]), 0o644); err != nil {
				return err
			}
		}
		return h.LinkSetUp(l)
	})
	if err != nil {
		return mac, err
	}
	return mac, inNamespace(k.Namespace, func(h *netlink.Handle, _ netns.NsHandle) error {
		l, err := h.LinkByName(outside)
		if err != nil {
			return fmt.Errorf("find the interface %s: %w", outside, err)
		}
		return h.LinkSetUp(l)
	})
}

func namespace(name string) (netns.NsHandle, error) {
	if name == "" {
		return netns.Get()
	}
	return netns.GetFromName(name)
}

// addressLocal gives the bridge's local port the node's loopback address, and
// returns its Ethernet address.
func (k *keeping) addressLocal() (mac flow.MAC, err error) {
	err = inNamespace(k.Namespace, func(h *netlink.Handle, _ netns.NsHandle) error {
		l, err := h.LinkByName(k.Bridge)
		if err != nil {
			return fmt.Errorf("find the local port of bridge %s: %w", k.Bridge, err)
		}
		mac = flow.MAC(l.Attrs().HardwareAddr)
		if err := h.LinkSetUp(l); err != nil {
			return err
		}
		return h.AddrReplace(l, &netlink.Addr{IPNet: &net.IPNet{IP: k.Loopback.AsSlice(), Mask: net.CIDRMask(32, 32)}})
	})
	return mac, err
}

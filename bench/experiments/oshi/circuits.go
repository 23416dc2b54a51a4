package oshi

import (
	"context"
	"fmt"
	"strings"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/lab/topology"
)

// The ways from one customer to another.
const (
	wayRouter = "router" // kernel and FRR, no Open vSwitch
	wayIP     = "OSHI IP"
	wayVLL    = "IP VLL"
	wayEoMPLS = "EoMPLS"            // as Weft's circuits: two labels, by a group
	waySingle = "EoMPLS, one label" // the format alone
	wayGRE    = "GRE"
	wayVXLAN  = "VXLAN"
)

// customers are the two hosts of a way.
func customers(way string) (string, string) {
	name := map[string]string{wayRouter: "router", wayIP: "ip", wayVLL: "vll", wayEoMPLS: "eompls", waySingle: "single", wayGRE: "gre", wayVXLAN: "vxlan"}[way]
	return name + "1", name + "2"
}

// The switches of a way: edges and the core between them.
func switches(way string) [3]string {
	if way == wayRouter {
		return [3]string{"rt1", "rc1", "rt2"}
	}
	return [3]string{"pe1", "cr1", "pe2"}
}

// waysTopology is two edges with a core between, hybrid nodes or routers or both,
// and two customers of each way. Each hybrid node has an Open vSwitch of its own,
// so that its processor time is known.
func waysTopology(ways []string) *topology.Topology {
	t := &topology.Topology{OVS: topology.OVSOwn, Routing: topology.Routing{IPv4Only: true}}
	there := map[string]bool{}
	for _, way := range ways {
		kind, of := topology.KindHybrid, switches(way)
		if way == wayRouter {
			kind = topology.KindRouter
		}
		if !there[of[0]] {
			there[of[0]] = true
			for _, name := range of {
				t.Switches = append(t.Switches, topology.Switch{Name: name, Kind: kind})
			}
			t.Links = append(t.Links, topology.Link{A: of[0], B: of[1]}, topology.Link{A: of[1], B: of[2]})
		}
		a, b := customers(way)
		gateway := way == wayRouter || way == wayIP
		t.Hosts = append(t.Hosts, topology.Host{Name: a, Switch: of[0], Gateway: gateway}, topology.Host{Name: b, Switch: of[2], Gateway: gateway})
	}
	return t
}

// The labels of the circuits, and of the tunnel in each direction.
const (
	labelVLL    = 100
	labelSingle = 200
	labelTunnel = 300
	labelEoMPLS = 200000
)

// circuit makes what a way needs, in both directions.
func (b *bed) circuit(ctx context.Context, way string) error {
	of := switches(way)
	a, z := customers(way)
	if way == wayRouter || way == wayIP {
		return nil
	}
	for direction, end := range [2][5]string{{a, of[0], of[1], of[2], z}, {z, of[2], of[1], of[0], a}} {
		e := ends{b, direction, end[1], end[2], end[3], b.port(end[1], end[0]), b.port(end[3], end[4])}
		var err error
		switch way {
		case wayVLL:
			err = e.vll(ctx)
		case waySingle:
			err = e.single(ctx)
		case wayEoMPLS:
			err = e.eompls(ctx)
		default:
			err = e.overIP(ctx, way)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", way, err)
		}
	}
	return nil
}

// ends is one direction of a circuit.
type ends struct {
	*bed
	direction        int // 0 or 1, in labels
	head, core, tail string
	in, out          int // customers' ports, at head and tail
}

// entry is one flow entry.
type entry struct {
	sw             string
	table          uint8
	match, actions string
}

func (e ends) write(ctx context.Context, list ...entry) error {
	for _, f := range list {
		if err := e.add(ctx, f.sw, f.table, f.match, f.actions); err != nil {
			return err
		}
	}
	return nil
}

// labelled are the entries that lead frames with labels to their table, as on
// Weft's switches.
func (e ends) labelled(eth string) []entry {
	actions := fmt.Sprintf("goto_table:%d", flow.TableLabels)
	return []entry{
		{e.core, flow.TableIngress, fmt.Sprintf("in_port=%d,dl_type=%s", e.port(e.core, e.head), eth), actions},
		{e.tail, flow.TableIngress, fmt.Sprintf("in_port=%d,dl_type=%s", e.port(e.tail, e.core), eth), actions},
	}
}

// vll is the paper's: the customer's Ethernet header stays, IPv4 has one Ethertype
// of MPLS and ARP the other.
func (e ends) vll(ctx context.Context) error {
	for _, p := range []struct{ eth, inner string }{{"0x8847", "0x0800"}, {"0x8848", "0x0806"}} {
		label := labelVLL + 2*e.direction
		list := append(e.labelled(p.eth),
			entry{e.head, flow.TableIngress, fmt.Sprintf("in_port=%d,dl_type=%s", e.in, p.inner),
				fmt.Sprintf("push_mpls:%s,set_field:%d->mpls_label,output:%d", p.eth, label, e.port(e.head, e.core))},
			entry{e.core, flow.TableLabels, fmt.Sprintf("dl_type=%s,mpls_label=%d,mpls_bos=1", p.eth, label),
				fmt.Sprintf("dec_mpls_ttl,set_field:%d->mpls_label,output:%d", label+1, e.port(e.core, e.tail))},
			entry{e.tail, flow.TableLabels, fmt.Sprintf("dl_type=%s,mpls_label=%d,mpls_bos=1", p.eth, label+1),
				fmt.Sprintf("pop_mpls:%s,output:%d", p.inner, e.out)})
		if err := e.write(ctx, list...); err != nil {
			return err
		}
	}
	return nil
}

// macs are the addresses of a hop.
const macs = "set_field:02:00:00:00:ff:01->eth_src,set_field:02:00:00:00:ff:02->eth_dst"

// decapsulate are the actions that have the customer's frame out.
const decapsulate = "decap(),decap(packet_type(ns=0,type=0))"

func (e ends) single(ctx context.Context) error {
	label := labelSingle + 2*e.direction
	return e.write(ctx, append(e.labelled("0x8847"),
		entry{e.head, flow.TableIngress, fmt.Sprintf("in_port=%d", e.in),
			fmt.Sprintf("encap(mpls),set_field:%d->mpls_label,encap(ethernet),%s,output:%d", label, macs, e.port(e.head, e.core))},
		entry{e.core, flow.TableLabels, fmt.Sprintf("dl_type=0x8847,mpls_label=%d,mpls_bos=1", label),
			fmt.Sprintf("dec_mpls_ttl,set_field:%d->mpls_label,%s,output:%d", label+1, macs, e.port(e.core, e.tail))},
		entry{e.tail, flow.TableLabels, fmt.Sprintf("dl_type=0x8847,mpls_label=%d,mpls_bos=1", label+1), fmt.Sprintf("%s,output:%d", decapsulate, e.out)})...)
}

func (e ends) eompls(ctx context.Context) error {
	tunnel, label := labelTunnel+e.direction, labelEoMPLS+e.direction
	group := fmt.Sprintf("group_id=%d,type=indirect,bucket=actions=push_mpls:0x8847,set_field:%d->mpls_label,%s,output:%d",
		tunnel, tunnel, macs, e.port(e.head, e.core))
	if _, err := e.OfCtl(ctx, e.head, "del-groups", fmt.Sprintf("group_id=%d", tunnel)); err != nil { // of an earlier attempt
		return fmt.Errorf("switch %s: %w", e.head, err)
	}
	if _, err := e.OfCtl(ctx, e.head, "add-group", group); err != nil {
		return fmt.Errorf("switch %s: %s: %w", e.head, group, err)
	}
	return e.write(ctx, append(e.labelled("0x8847"),
		entry{e.head, flow.TableIngress, fmt.Sprintf("in_port=%d", e.in),
			fmt.Sprintf("encap(mpls),set_field:%d->mpls_label,encap(ethernet),group:%d", label, tunnel)},
		entry{e.core, flow.TableLabels, fmt.Sprintf("dl_type=0x8847,mpls_label=%d,mpls_bos=0", tunnel),
			fmt.Sprintf("pop_mpls:0x8847,%s,output:%d", macs, e.port(e.core, e.tail))},
		entry{e.tail, flow.TableLabels, fmt.Sprintf("dl_type=0x8847,mpls_label=%d,mpls_bos=1", label), fmt.Sprintf("%s,output:%d", decapsulate, e.out)})...)
}

// Of tunnels over IP: the ends' addresses, which the bridges' own ports have, and
// their key.
const (
	tunnelNetwork = "10.252.0."
	tunnelKey     = 400
)

// overIP is a tunnel port of Open vSwitch at both ends. The core routes.
func (e ends) overIP(ctx context.Context, way string) error {
	kind := strings.ToLower(way)
	bridge, err := e.Bridge(e.head)
	if err != nil {
		return err
	}
	number := map[string]int{wayGRE: 900, wayVXLAN: 901}[way]
	here, there := fmt.Sprint(tunnelNetwork, 1+e.direction), fmt.Sprint(tunnelNetwork, 2-e.direction)
	const other = "02:00:00:00:ff:03" // of the other end: the entry below writes the next hop's
	next, err := e.macOf(ctx, e.core, e.port(e.core, e.head))
	if err != nil {
		return err
	}
	gateway, err := e.addressOf(ctx, e.head, e.port(e.head, e.core))
	if err != nil {
		return err
	}
	headNS, coreNS := e.HostNetns(e.head), e.HostNetns(e.core)
	for _, args := range [][]string{
		{"-n", headNS, "addr", "replace", here + "/24", "dev", bridge},
		{"-n", headNS, "link", "set", bridge, "up"},
		{"-n", coreNS, "route", "replace", here + "/32", "via", gateway},
	} {
		if _, err := tool(ctx, "ip", args...); err != nil {
			return err
		}
	}
	_, err = e.vsctl(ctx, e.head, "--may-exist", "add-port", bridge, kind, "--", "set", "interface", kind, "type="+kind, "options:local_ip="+here,
		"options:remote_ip="+there, fmt.Sprintf("options:key=%d", tunnelKey), fmt.Sprintf("ofport_request=%d", number))
	if err != nil {
		return err
	}
	if _, err := e.appctl(ctx, e.head, "tnl/arp/set", bridge, there, other); err != nil {
		return err
	}
	own, err := linkMAC(ctx, headNS, bridge)
	if err != nil {
		return err
	}
	protocol := map[string]string{wayGRE: "nw_proto=47", wayVXLAN: "nw_proto=17,tp_dst=4789"}[way]
	link := e.port(e.head, e.core)
	return e.write(ctx,
		entry{e.head, flow.TableIngress, fmt.Sprintf("in_port=%d", e.in), fmt.Sprintf("output:%d", number)},
		entry{e.head, flow.TableIngress, fmt.Sprintf("in_port=%d", number), fmt.Sprintf("output:%d", e.in)},
		entry{e.head, flow.TableIngress, "in_port=LOCAL,ip,nw_dst=" + there, fmt.Sprintf("set_field:%s->eth_dst,output:%d", next, link)},
		entry{e.head, flow.TableIngress, fmt.Sprintf("in_port=%d,ip,nw_dst=%s,%s", link, here, protocol), fmt.Sprintf("set_field:%s->eth_dst,LOCAL", own)})
}

// macOf is the MAC address of a hybrid node's internal port, by the number of the port outside.
func (b *bed) macOf(ctx context.Context, node string, port int) (string, error) {
	return linkMAC(ctx, b.HostNetns(node), fmt.Sprintf("vi%d", port))
}

func linkMAC(ctx context.Context, netns, link string) (string, error) {
	out, err := tool(ctx, "ip", "-n", netns, "-br", "link", "show", "dev", link)
	f := strings.Fields(out)
	if err == nil && len(f) < 3 {
		err = fmt.Errorf("ip says %q of %s", out, link)
	}
	if err != nil {
		return "", err
	}
	return f[2], nil
}

// addressOf is the IPv4 address of such a port.
func (b *bed) addressOf(ctx context.Context, node string, port int) (string, error) {
	out, err := tool(ctx, "ip", "-n", b.HostNetns(node), "-br", "-4", "addr", "show", "dev", fmt.Sprintf("vi%d", port))
	f := strings.Fields(out)
	if err == nil && len(f) < 3 {
		err = fmt.Errorf("ip says %q of port %d of %s", out, port, node)
	}
	if err != nil {
		return "", err
	}
	address, _, _ := strings.Cut(f[2], "/")
	return address, nil
}

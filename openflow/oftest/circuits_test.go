package oftest

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/packet"
)

// hopRules are the rules of one switch on a circuit's way: entries as
// "TABLE PRIORITY MATCH ACTIONS", groups as "group ID KIND BUCKET | BUCKET", each
// bucket "WATCH_PORT ACTIONS".
type hopRules []string

// circuit is a way through switches on which a customer's frames travel from port 4 of the
// first to port 4 of the last; each switch sends by port 2, or 3, and receives by
// port 1.
type circuit struct {
	hops   []hopRules
	fails  int       // the hop, from 1, whose port 2 fails; 0 is none
	detour flow.Port // the port by which that one sends then
	frames func(c chance) map[string][]byte
}

// circuits are the ways to carry a customer's frames that services build, with what each
// carries. The entry that drops labelled frames at the edge is needed: encap makes Open
// vSwitch 3.1 abort on them, or send labels of no use.
func circuits() map[string]circuit {
	const (
		noLabels = "0 900 eth_type=0x8847 drop"
		noMC     = "0 901 eth_type=0x8848 drop"
		macs     = "set_field:02:00:00:00:01:01->eth_src,set_field:02:00:00:00:01:02->eth_dst"
	)
	end := hopRules{
		"0 500 in_port=1,eth_type=0x8847,mpls_label=2001,mpls_bos=0 pop_mpls:0x8847,resubmit(,2)",
		"0 500 in_port=1,eth_type=0x8847,mpls_label=500,mpls_bos=1 resubmit(,2)",
		"2 500 eth_type=0x8847,mpls_label=500,mpls_bos=1 decap(),decap(packet_type(ns=0,type=0)),output:4",
	}
	cover := func(tunnel string) hopRules {
		return hopRules{tunnel, noLabels, noMC, "0 500 in_port=4 encap(mpls),set_field:500->mpls_label,set_mpls_ttl:64,encap(ethernet),group:1"}
	}
	oneWay := "group 1 indirect 0 push_mpls:0x8847,set_field:1001->mpls_label," + macs + ",output:2"
	protected := "group 1 fast_failover 2 push_mpls:0x8847,set_field:1001->mpls_label," + macs + ",output:2 | 3 push_mpls:0x8847,set_field:2001->mpls_label," + macs + ",output:3"
	swap := "0 500 in_port=1,eth_type=0x8847,mpls_label=1001,mpls_bos=0 dec_mpls_ttl,set_field:2001->mpls_label," + macs + ",output:2"
	bypass := hopRules{
		"group 2 fast_failover 2 pop_mpls:0x8847," + macs + ",output:2 | 3 set_field:2001->mpls_label," + macs + ",output:3",
		"0 500 in_port=1,eth_type=0x8847,mpls_label=1001,mpls_bos=0 dec_mpls_ttl,group:2",
	}
	vlan := hopRules{
		"group 9 indirect 0 push_vlan:0x8100,set_field:200->vlan_vid,set_field:0->vlan_pcp,output:4",
		end[0], end[1],
		"2 500 eth_type=0x8847,mpls_label=500,mpls_bos=1 decap(),decap(packet_type(ns=0,type=0)),group:9",
	}
	vll := func(in, label string) string {
		return "0 500 in_port=4,eth_type=" + in + " push_mpls:0x8847,set_field:" + label + "->mpls_label,set_field:0->mpls_tc,set_mpls_ttl:64,output:2"
	}
	return map[string]circuit{
		"EoMPLS, two labels":                           {hops: []hopRules{cover(oneWay), {swap}, end}, frames: chance.customers},
		"EoMPLS, the tunnel's label taken off before":  {hops: []hopRules{cover(oneWay), bypass, end}, frames: chance.customers},
		"EoMPLS, the edge's link fails":                {hops: []hopRules{cover(protected), end}, fails: 1, detour: 3, frames: chance.customers},
		"EoMPLS, a link in the core fails":             {hops: []hopRules{cover(oneWay), bypass, end}, fails: 2, detour: 3, frames: chance.customers},
		"EoMPLS between VLANs: 100 is 200 at the end":  {hops: []hopRules{{oneWay, noLabels, noMC, "0 500 in_port=4,vlan_vid=100 pop_vlan,encap(mpls),set_field:500->mpls_label,encap(ethernet),group:1"}, {swap}, vlan}, frames: chance.tagged},
		"VPLS: a copy at the point where ways part":    {hops: []hopRules{cover(oneWay), {"group 3 all 0 set_field:2001->mpls_label," + macs + ",output:2 | 0 set_field:3001->mpls_label," + macs + ",output:3", strings.Replace(swap, "set_field:2001->mpls_label,"+macs+",output:2", "group:3", 1)}, end}, frames: chance.customers},
		"leased line of IP: a label for each protocol": {hops: []hopRules{{vll("0x0800", "16"), vll("0x0806", "18"), vll("0x86dd", "20")}, {swapVLL("16", "17"), swapVLL("18", "19"), swapVLL("20", "21")}, {popVLL("17", "0x0800"), popVLL("19", "0x0806"), popVLL("21", "0x86dd")}}, frames: chance.ipOnly},
	}
}

func swapVLL(from, to string) string {
	return "0 500 in_port=1,eth_type=0x8847,mpls_label=" + from + ",mpls_bos=1,mpls_tc=0 dec_mpls_ttl,set_field:" + to + "->mpls_label,output:2"
}

func popVLL(label, ethertype string) string {
	return "0 500 in_port=1,eth_type=0x8847,mpls_label=" + label + ",mpls_bos=1 pop_mpls:" + ethertype + ",output:4"
}

// customers are frames of all kinds that a customer may send.
func (c chance) customers() map[string][]byte {
	m := c.ipOnly()
	e := packet.Ether{Dst: c.mac(), Src: c.mac(), VLAN: flow.VLANPresent | 7, PCP: 3}
	v4 := packet.IP{Src: c.ip4(), Dst: c.ip4(), TTL: 1}
	m["802.1Q"] = packet.AppendUDP(nil, e, v4, 1, 2, []byte("tagged"))
	m["802.1ad"], _ = packet.Apply(packet.AppendUDP(nil, e, v4, 1, 2, []byte("tagged twice")), flow.PushVLAN(flow.EthTypeQinQ))
	m["unknown Ethertype"] = append(packet.AppendEthernet(nil, packet.Ether{Dst: c.mac(), Src: c.mac()}, 0x9999), 1, 2, 3)
	m["LACP"] = append(packet.AppendEthernet(nil, packet.Ether{Dst: flow.MAC{1, 0x80, 0xc2, 0, 0, 2}, Src: c.mac()}, 0x8809), 1, 1)
	m["LLDP"] = append(packet.AppendEthernet(nil, packet.Ether{Dst: flow.MAC{1, 0x80, 0xc2, 0, 0, 0xe}, Src: c.mac()}, flow.EthTypeLLDP), 2, 7, 4)
	return m
}

// ipOnly are frames of IPv4, ARP and IPv6.
func (c chance) ipOnly() map[string][]byte {
	e := packet.Ether{Dst: c.mac(), Src: c.mac()}
	v4, v6 := packet.IP{Src: c.ip4(), Dst: c.ip4(), TTL: 1, DSCP: 46}, packet.IP{Src: c.ip6(), Dst: c.ip6(), TTL: 1}
	return map[string][]byte{
		"IPv4": packet.AppendUDP(nil, e, v4, 1, 2, []byte("four")),
		"IPv6": packet.AppendUDP(nil, e, v6, 1, 2, []byte("six")),
		"ARP":  packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: e.Src, SenderIP: c.ip4(), TargetIP: c.ip4()}),
	}
}

// tagged are frames of VLAN 100.
func (c chance) tagged() map[string][]byte {
	e := packet.Ether{Dst: c.mac(), Src: c.mac(), VLAN: flow.VLANPresent | 100}
	return map[string][]byte{
		"IPv4": packet.AppendUDP(nil, e, packet.IP{Src: c.ip4(), Dst: c.ip4(), TTL: 1}, 1, 2, nil),
		"ARP":  packet.AppendARPRequest(nil, e.VLAN, packet.ARPFields{SenderMAC: e.Src, SenderIP: c.ip4(), TargetIP: c.ip4()}),
	}
}

// TestSwap exchanges the addresses of frames, by the fake and by Open vSwitch, and sends them
// back through a group by the port that they came in by.
func TestSwap(t *testing.T) {
	o := startOVS(t, openflow.V13)
	c := newChance(7)
	d := &duel{t: t, o: o, s: New(Config{DPID: 0xaa, Local: true, Now: time.Now(), Nicira: true})}
	d.c = connect(t, d.s, openflow.V13)
	d.clean()
	swap := strings.Join(flow.ActionStrings(flow.SwapMACs()), ",")
	hopRules{"group 1 indirect 0 output:1",
		"0 600 in_port=1,eth_dst=01:00:00:00:00:00/01:00:00:00:00:00 drop",
		"0 500 in_port=1 " + flow.FormatActions([]flow.Action{flow.ForgetInPort()}) + "," + swap + ",group:1",
		"0 500 in_port=4 " + swap + ",output:2"}.load(d)
	for kind, f := range c.customers() {
		f = packet.Pad(f)
		d.packet(1, f)
		d.packet(4, f)
		if f[0]&1 != 0 {
			continue
		}
		for in, out := range map[flow.Port]flow.Port{1: 1, 4: 2} {
			back := d.through(in, out, f)
			if len(back) < 12 || !bytes.Equal(back[:6], f[6:12]) || !bytes.Equal(back[6:12], f[:6]) {
				t.Errorf("%s from port %v: %x becomes %x", kind, in, f, back)
			}
		}
	}
}

// TestCircuits carries customers' frames over each kind of circuit, hop by hop,
// by the fake and by Open vSwitch: both send the same at every hop, and what
// arrives is what was sent. What Weft checks of rules (flow.CheckActions) takes them all.
func TestCircuits(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(circuits())) {
		t.Run(name, func(t *testing.T) {
			o := startOVS(t, openflow.V13)
			c := newChance(7)
			way := circuits()[name]
			frames := way.frames(c)
			labelled := append(packet.AppendEthernet(nil, packet.Ether{Dst: c.mac(), Src: c.mac()}, flow.EthTypeMPLS), 0, 0x1f, 0x41, 0x40, 1, 2)
			for i, rules := range way.hops {
				d := &duel{t: t, o: o, s: New(Config{DPID: 0xaa, Local: true, Now: time.Now(), Nicira: true})}
				d.c = connect(t, d.s, openflow.V13)
				d.clean()
				rules.load(d)
				in, out := flow.Port(1), flow.Port(2)
				if i == 0 {
					in = 4
					if frames := d.s.Receive(in, labelled).Frames; len(frames) > 0 {
						t.Errorf("a customer's labelled frame is sent: %x", frames)
					}
				}
				if i == len(way.hops)-1 {
					out = 4
				}
				if way.fails == i+1 {
					out = way.detour
					d.fail(2, in, packet.Pad(frames["IPv4"]))
				}
				for kind, f := range frames {
					d.packet(in, packet.Pad(f))
					if frames[kind] = d.through(in, out, packet.Pad(f)); frames[kind] == nil {
						t.Fatalf("%s does not leave hop %d by port %v", kind, i+1, out)
					}
				}
			}
			for kind, want := range way.frames(newChance(7)) {
				want = packet.Pad(want)
				if strings.Contains(name, "VLAN") {
					want, _ = packet.Apply(want, flow.SetVLAN(200))
				}
				if !bytes.HasPrefix(frames[kind], want) {
					t.Errorf("%s arrives as %x, was sent as %x", kind, frames[kind], want)
				}
			}
		})
	}
}

// fail takes a port's link down, and waits until Open vSwitch's groups know.
func (d *duel) fail(p, in flow.Port, frame []byte) {
	d.t.Helper()
	d.s.SetLink(p, false)
	d.o.command("netdev-dummy/set-admin-state", fmt.Sprintf("p%d", p), "down")
	for range 500 {
		way := d.o.command("ofproto/trace", "br0", fmt.Sprintf("in_port=%d", in), hex.EncodeToString(frame))
		d.o.exchange(d.c.v, nil)
		told := slices.ContainsFunc(d.o.async, func(m []byte) bool {
			h, _ := openflow.ParseHeader(m)
			return h.Type == openflow.TypePortStatus
		})
		if told && strings.Contains(way, fmt.Sprintf("not live due to port %d", p)) {
			d.o.async = nil
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	d.t.Fatalf("Open vSwitch does not see that port %v is down", p)
}

// through returns the frame that the fake sends by a port.
func (d *duel) through(in, out flow.Port, frame []byte) []byte {
	for _, f := range d.s.Receive(in, frame).Frames {
		if f.Port == out {
			return f.Data
		}
	}
	return nil
}

// load gives rules to both switches.
func (r hopRules) load(d *duel) {
	d.t.Helper()
	for _, line := range r {
		if d.both(parseRule(d.t, line, d.c.next())) {
			d.t.Fatalf("refused by both: %s", line)
		}
	}
}

// parseRule reads a line of hopRules as a message.
func parseRule(t *testing.T, line string, xid uint32) []byte {
	t.Helper()
	if rest, ok := strings.CutPrefix(line, "group "); ok {
		g := flow.Group{}
		var kind string
		fmt.Sscan(rest, &g.ID, &kind)
		g.Kind = map[string]flow.GroupKind{"all": flow.GroupKindAll, "indirect": flow.GroupKindIndirect, "fast_failover": flow.GroupKindFastFailover}[kind]
		_, buckets, _ := strings.Cut(rest, kind+" ")
		for _, text := range strings.Split(buckets, " | ") {
			b := flow.Bucket{WatchPort: flow.PortAny, WatchGroup: flow.GroupAny}
			var watch flow.Port
			var actions string
			fmt.Sscan(text, &watch, &actions)
			if watch != 0 {
				b.WatchPort = watch
			}
			list, err := flow.ParseActions(actions)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			b.Actions = list
			g.Buckets = append(g.Buckets, b)
		}
		if err := g.Check(); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return must(v13.AppendGroupMod(nil, xid, &flow.GroupMod{Group: g}))
	}
	var e flow.Entry
	var match, actions string
	fmt.Sscan(line, &e.Table, &e.Priority, &match, &actions)
	var err, err2 error
	e.Match, err = flow.ParseMatchString(match)
	e.Apply, err2 = flow.ParseActions(actions)
	if err != nil || err2 != nil {
		t.Fatalf("%s: %v %v", line, err, err2)
	}
	if err := e.Match.CheckActions(e.Apply); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return mustMod(v13, xid, flow.Mod{Entry: e, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny})
}

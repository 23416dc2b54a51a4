package oftest

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// traffics are of both protocols and families.
func traffics() (list []Traffic) {
	for _, proto := range []uint8{flow.IPProtoUDP, flow.IPProtoTCP} {
		for _, net := range []string{"10.0.0.", "fd00::"} {
			list = append(list, Traffic{SrcMAC: mac(1), DstMAC: mac(2), Proto: proto,
				Src: netip.AddrPortFrom(netip.MustParseAddr(net+"1"), 40000), Dst: netip.AddrPortFrom(netip.MustParseAddr(net+"2"), 7000)})
		}
	}
	return list
}

// TestEncodings: a socket gets one datagram by every encoding of it, and none of another's.
func TestEncodings(t *testing.T) {
	for _, tr := range traffics() {
		for _, e := range tr.Encodings() {
			s, other := &Socket{MAC: tr.DstMAC, At: tr.Dst, Proto: tr.Proto}, &Socket{MAC: tr.DstMAC, At: tr.Src, Proto: tr.Proto}
			for _, f := range e.Frames {
				s.Take(f)
				other.Take(f)
			}
			if s.Got != 1 || other.Got != 0 {
				t.Errorf("%v, protocol %d: %s: the socket gets %d, another %d", tr.Dst, tr.Proto, e.Name, s.Got, other.Got)
			}
		}
	}
}

// TestOpenVSwitchEncodings: of every encoding, the fake's tables see what those of Open
// vSwitch see, however many tags it looks behind and whatever it does with fragments. What
// Open vSwitch has cached is purged before each frame: where it pops the only tag that a packet
// has, it takes what it caches for packets with another tag behind that, too (flow_pop_vlan in
// lib/flow.c of version 3.1), so that these go the way of those with one.
func TestOpenVSwitchEncodings(t *testing.T) {
	o := startOVS(t, openflow.V13)
	anyV4, anyV6 := flow.Match{}.WithEthType(flow.EthTypeIPv4), flow.Match{}.WithEthType(flow.EthTypeIPv6)
	for _, limit := range []int{2, 1} {
		o.run("ovs-vsctl", "--db=unix:"+o.path("db.sock"), "--timeout=10", "set", "Open_vSwitch", ".", fmt.Sprintf("other_config:vlan-limit=%d", limit))
		for _, flags := range []uint16{openflow.FragNormal, openflow.FragNXMatch, openflow.FragDrop} {
			d := &duel{t: t, o: o, s: New(Config{DPID: 0xaa, Local: true, Now: time.Now(), Nicira: true, Tags: limit})}
			d.c = connect(t, d.s, openflow.V13)
			d.clean()
			d.both(openflow.V13.AppendSetConfig(nil, d.c.next(), flags, 0xffff))
			priority := uint16(1000)
			add := func(table uint8, m flow.Match, next uint8, apply ...flow.Action) {
				priority--
				e := flow.Entry{Table: table, Priority: priority, Match: m, Cookie: flow.Cookie(priority), Goto: next, Apply: apply}
				if d.both(mustMod(openflow.V13, d.c.next(), flow.Mod{Entry: e, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny})) {
					t.Fatalf("refused: %v", m)
				}
			}
			add(0, flow.Match{}.WithVLAN(0), 1, flow.PopVLAN())
			add(0, flow.Match{}, 1)
			to := flow.Output(flow.PortController) // whose packet-in names the entry
			add(1, flow.Match{}.WithVLAN(0), 0, to)
			for _, kind := range []uint16{flow.EthTypeVLAN, flow.EthTypeQinQ} {
				add(1, flow.Match{}.WithEthType(kind), 0, to)
			}
			for _, m := range []flow.Match{anyV4, anyV6} {
				for _, proto := range []uint8{flow.IPProtoTCP, flow.IPProtoUDP} {
					p := m.WithIPProto(proto)
					dst, none := p.WithTCPDst(7000), p.WithTCPSrc(0).WithTCPDst(0)
					if proto == flow.IPProtoUDP {
						dst, none = p.WithUDPDst(7000), p.WithUDPSrc(0).WithUDPDst(0)
					}
					add(1, dst.WithFirstFragment(), 0, to)
					add(1, dst, 0, to)
					add(1, none.WithFirstFragment(), 0, to)
					add(1, none.WithLaterFragment(), 0, to)
					add(1, none, 0, to)
					add(1, p, 0, to)
				}
				add(1, m.WithLaterFragment(), 0, to)
				add(1, m.WithIPProto(0), 0, to)
				add(1, m, 0, to)
			}
			add(1, flow.Match{}, 0, to)
			for _, tr := range traffics() {
				for _, e := range tr.Encodings() {
					for _, f := range e.Frames {
						o.command("revalidator/purge")
						d.packet(1, f)
					}
				}
			}
			if t.Failed() {
				t.Fatalf("vlan-limit %d, fragments %d", limit, flags)
			}
		}
	}
}

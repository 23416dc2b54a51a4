package packet

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// everything calls every function of the package that takes a frame, and every
// method of the views.
func everything(b []byte) {
	var k flow.Key
	Parse(b, &k)
	ParseEthernet(b, &k)
	Payload(b)
	Tags(nil, b)
	ICMPv6Good(b)
	if a, ok := ParseARP(b); ok {
		a.Op()
		a.SenderIP()
		a.TargetIP()
		a.TargetMAC()
	}
	if p, ok := ParseIPv4(b); ok {
		p.ChecksumGood()
		p.Payload()
		p.FragmentOffset()
		p.MoreFragments()
		p.ID()
		p.Proto()
		p.Dst()
	}
	if p, ok := ParseIPv6(b); ok {
		p.Payload()
		p.NextHeader()
	}
	if s, ok := ParseTCP(b); ok {
		s.Payload()
		s.Flags()
		s.SrcPort()
	}
	if u, ok := ParseUDP(b); ok {
		u.Payload()
	}
	if m, ok := ParseICMP(b); ok {
		m.Payload()
	}
	if m, ok := ParseICMPv6(b); ok {
		m.Payload()
		m.Code()
	}
	if m, ok := ParseND(b); ok {
		m.SourceMAC()
		m.TargetMAC()
		m.Target()
		m.Prefixes(nil)
		m.RouterLifetime()
		m.Router()
	}
	if d, ok := ParseDHCPv4(b); ok {
		d.RequestedIP()
		d.ServerID()
		d.LeaseTime()
		d.ClientIP()
		d.YourIP()
		d.ClientMAC()
	}
	if d, ok := ParseDHCPv6(b); ok {
		d.Addresses(nil)
		d.XID()
		d.LinkAddress()
		if m, _, ok := d.Message(); ok {
			m.Addresses(nil)
			m.Option(DHCPv6OptServerID)
		}
	}
	if u, ok := ParseLLDP(b); ok {
		u.ChassisID()
		u.PortID()
		u.TTL()
		u.Organization([3]byte{}, 0)
		u.Find(TLVSystemDesc)
		for range u.All {
		}
	}
	for _, a := range rewrites() {
		Apply(bytes.Clone(b), a)
	}
}

// TestCVE_2018_1000617_OddLayers: packets whose ethertype and IP protocol say
// one thing and whose contents are another, each cut at every length, are
// parsed for what is there. (Floodlight cast the payload without looking.)
func TestCVE_2018_1000617_OddLayers(t *testing.T) {
	for _, f := range frames() {
		for n := range f.frame {
			everything(f.frame[:n])
		}
	}
	for _, f := range frames() {
		for _, ethType := range []uint16{flow.EthTypeIPv4, flow.EthTypeIPv6, flow.EthTypeARP, flow.EthTypeMPLS, flow.EthTypePBB, flow.EthTypeLLDP, flow.EthTypeVLAN, 0, 100} {
			b := bytes.Clone(f.frame)
			binary.BigEndian.PutUint16(b[12:], ethType)
			everything(b)
		}
	}
	for proto := range 256 {
		for _, f := range []struct {
			name string
			at   int
		}{{"tcp v4 syn", ethernetLen + 9}, {"echo request v4", ethernetLen + 9}, {"nd solicit", ethernetLen + 6}, {"udp v6", ethernetLen + 6}} {
			b := bytes.Clone(frame(t, f.name))
			b[f.at] = byte(proto)
			everything(b)
			for _, n := range []int{0, 1, 8, 19} {
				everything(b[:min(len(b), ethernetLen+ipv4Len+n)])
			}
		}
	}
}

// TestCVE_2015_7516_EtherTypeSweep: frames of every ethertype, jumbo ones and
// empty ones, tagged or not, are parsed. (ONOS lost the switch over two jumbo
// frames of type 0x8870.)
func TestCVE_2015_7516_EtherTypeSweep(t *testing.T) {
	jumbo := make([]byte, 9018)
	binary.BigEndian.PutUint16(jumbo[12:], 0x8870)
	everything(jumbo)
	everything(jumbo)
	short := make([]byte, 64)
	var k flow.Key
	for ethType := range 0x10000 {
		for _, tag := range []uint16{0, flow.EthTypeVLAN, flow.EthTypeQinQ} {
			at := 12
			if tag != 0 {
				binary.BigEndian.PutUint16(short[12:], tag)
				at = 16
			}
			binary.BigEndian.PutUint16(short[at:], uint16(ethType))
			for _, b := range [][]byte{short, short[:at+2]} {
				Parse(b, &k)
				ParseARP(b)
				ParseLLDP(b)
				ParseND(b)
				want := uint16(ethType)
				if want < 0x600 {
					want = ethTypeNone
				}
				if k.EthType != want && want != flow.EthTypeVLAN && want != flow.EthTypeQinQ {
					t.Fatalf("type %#x behind %#x: Parse says %#x", ethType, tag, k.EthType)
				}
			}
		}
	}
}

// FuzzFrame: no frame makes any function of the package fail, and Parse is a
// function of the frame alone.
func FuzzFrame(f *testing.F) {
	for _, s := range frames() {
		f.Add(s.frame)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		everything(b)
		if !bytes.Equal(b, before) {
			t.Fatal("a reader wrote")
		}
		var one, two flow.Key
		two.TPDst, two.NDTarget, two.EthType = 1, [16]byte{1}, 5
		if Parse(b, &one) != Parse(b, &two) || one != two {
			t.Fatalf("%+v\n%+v", one, two)
		}
		if len(b) >= ethernetLen {
			var eth flow.Key
			ParseEthernet(b, &eth)
			if eth.EthDst != one.EthDst || eth.EthSrc != one.EthSrc || eth.EthType != one.EthType || eth.VLAN != one.VLAN || eth.VLANPCP != one.VLANPCP {
				t.Fatalf("ParseEthernet %+v\nParse %+v", eth, one)
			}
		}
	})
}

// TestCVE_2016_10377_IPLengths: where the lengths of IP's header contradict each
// other or the frame, nothing is read past what is there, and no port is made
// out. (Open vSwitch subtracted one from the other, and read on.)
func TestCVE_2016_10377_IPLengths(t *testing.T) {
	v4, v6 := frame(t, "tcp v4 syn"), frame(t, "udp v6")
	lengths := []uint16{0, 1, 4, 19, 20, 21, 39, 40, 41, 60, 0x7fff, 0xfffe, 0xffff}
	for ihl := range byte(16) {
		for _, total := range lengths {
			b := bytes.Clone(v4)
			b[ethernetLen] = 4<<4 | ihl
			binary.BigEndian.PutUint16(b[ethernetLen+2:], total)
			exact := append(make([]byte, 0, len(b)), b...) // nothing lies behind it
			everything(exact)
			var k flow.Key
			Parse(exact, &k)
			header, all := int(ihl)*4, int(total)
			// A packet that is longer than its frame is one that the switch has cut.
			if sound := header >= ipv4Len && all >= header+8 && header+8 <= len(b)-ethernetLen; !sound && k.TPDst != 0 {
				t.Errorf("header of %d octets, packet of %d, frame of %d: port %d", header, all, len(b), k.TPDst)
			}
			if p, ok := ParseIPv4(exact); ok && len(p.Payload()) > len(b)-ethernetLen-ipv4Len {
				t.Errorf("header of %d octets, packet of %d: payload of %d", header, all, len(p.Payload()))
			}
		}
	}
	for _, length := range lengths {
		b := bytes.Clone(v6)
		binary.BigEndian.PutUint16(b[ethernetLen+4:], length)
		for n := ethernetLen; n <= len(b); n++ {
			everything(append(make([]byte, 0, n), b[:n]...))
		}
	}
}

package flow

import (
	"net/netip"
	"testing"
)

// plain is Matches as its definition says, field by field.
func plain(m *Match, k *Key) bool {
	for f := Field(0); f < NumFields; f++ {
		value, mask, ok := m.Get(f)
		got := k.Get(f)
		for i := range got {
			if ok && got[i]&mask[i] != value[i]&mask[i] {
				return false
			}
		}
	}
	return true
}

func TestFieldTable(t *testing.T) {
	for f := Field(0); f < NumFields; f++ {
		if f.Len()*8 < f.Bits() || f.Bits() == 0 {
			t.Errorf("%v: %d bits in %d octets", f, f.Bits(), f.Len())
		}
		if got, err := ParseField(f.String()); got != f || err != nil {
			t.Errorf("ParseField(%v) = %v, %v", f, got, err)
		}
	}
	if NumFields.Len() != 0 || NumFields.Bits() != 0 || NumFields.Maskable() {
		t.Error("a field that is not there has a length")
	}
}

// TestGetPut: a value put is got back, and only the fields that share its place
// in the key (TCP, UDP and SCTP ports, both ICMPs) change.
func TestGetPut(t *testing.T) {
	r := newRand(1)
	for f := Field(0); f < NumFields; f++ {
		var k Key
		oh, ol := f.ones()
		v := align(f, r.Uint64()&oh|1, (r.Uint64()|1)&ol)
		k.Put(f, v)
		if got := k.Get(f); got != v {
			t.Errorf("%v: put %x, got %x", f, v, got)
		}
		shared := 0
		for o := Field(0); o < NumFields; o++ {
			if k.Get(o) != [16]byte{} {
				shared++
			}
		}
		if shared > 3 || shared > 1 && f.Len() > 2 {
			t.Errorf("%v: putting it changed %d fields", f, shared)
		}
		for i := f.Len(); i < 16; i++ {
			if v[i] != 0 {
				t.Errorf("%v: octet %d is not zero", f, i)
			}
		}
	}
}

func TestMatchesIsPlain(t *testing.T) {
	r := newRand(2)
	matched := 0
	for range 20000 {
		m, o := randomMatch(r, true), randomMatch(r, true)
		k := meets(r, &o)
		if !o.Matches(&k) {
			t.Fatalf("%v does not match a key made for it: %+v", o, k)
		}
		got := m.Matches(&k)
		if got != plain(&m, &k) {
			t.Fatalf("%v: Matches is %v for %+v", m, got, k)
		}
		if got {
			matched++
		}
	}
	if matched < 100 {
		t.Fatalf("only %d matched: the test says little", matched)
	}
}

func TestCoversAndOverlaps(t *testing.T) {
	r := newRand(3)
	var covers, overlaps int
	for range 60000 {
		m, o := randomMatch(r, true), randomMatch(r, true)
		k := meets(r, &o)
		if m.Covers(&o) {
			covers++
			if !m.Matches(&k) {
				t.Fatalf("%v covers %v but does not match %+v", m, o, k)
			}
			if !m.Overlaps(&o) {
				t.Fatalf("%v covers %v but does not overlap it", m, o)
			}
		}
		both := k
		for f := Field(0); f < NumFields; f++ {
			if m.Set.Has(f) {
				vh, vl, mh, ml := m.condition(f)
				kh, kl := both.load(f)
				both.store(f, kh&^mh|vh, kl&^ml|vl)
			}
		}
		witness := m.Matches(&both) && o.Matches(&both)
		if m.Overlaps(&o) != witness {
			t.Fatalf("%v overlaps %v is %v, but a packet that both match: %v", m, o, !witness, witness)
		}
		if witness {
			overlaps++
		}
		if m.Overlaps(&o) != o.Overlaps(&m) || !m.Covers(&m) || m.Covers(&o) && o.Covers(&m) && m != o {
			t.Fatalf("%v, %v: Overlaps is not symmetric or Covers no order", m, o)
		}
	}
	if covers < 100 || overlaps < 100 {
		t.Fatalf("%d covers, %d overlaps: the test says little", covers, overlaps)
	}
}

func TestNormalize(t *testing.T) {
	r := newRand(4)
	for range 5000 {
		m := randomMatch(r, false)
		n := m
		if n.Normalize(); n != m {
			t.Fatalf("%v was not normal", m)
		}
		// the same condition, written badly
		bad := m
		for f := Field(0); f < NumFields; f++ {
			oh, ol := f.ones()
			switch {
			case m.Masked.Has(f):
				kh, kl := bad.Key.load(f)
				mh, ml := bad.Mask.load(f)
				bad.Key.store(f, kh|^mh&oh, kl|^ml&ol)
			case m.Set.Has(f) && f.Maskable():
				bad.Masked |= f.Bit()
				bad.Mask.store(f, oh, ol)
			case f >= FieldTCPSrc && f <= FieldSCTPDst: // they share their values
			case f.Maskable():
				bad.Set |= f.Bit()
				bad.Masked |= f.Bit()
				bad.Key.store(f, oh, ol)
			}
		}
		if bad.Normalize(); bad != m {
			t.Fatalf("normalized %+v, want %+v", bad, m)
		}
	}
}

func TestCheckPrerequisites(t *testing.T) {
	r := newRand(5)
	for range 2000 {
		if m := randomMatch(r, false); m.Check() != nil {
			t.Fatalf("%v: %v", m, m.Check())
		}
	}
	for _, c := range []struct {
		m    Match
		want string
	}{
		{Match{}.with(FieldIPv4Dst, 1), "match ipv4_dst: needs a prerequisite: add eth_type=0x0800"},
		{Match{}.WithEthType(0x86dd).with(FieldIPv4Dst, 1), "match ipv4_dst: needs eth_type=0x0800, but eth_type is 0x86dd"},
		{Match{}.WithEthType(0x800).with(FieldTCPDst, 80), "match tcp_dst: needs a prerequisite: add ip_proto=6"},
		{Match{}.WithIPProto(6), "match ip_proto: needs a prerequisite: add eth_type=0x0800 or eth_type=0x86dd"},
		{Match{}.WithVLANPCP(1), "match vlan_pcp: needs a tagged frame: add vlan_vid=N, or vlan_vid=any for every VLAN"},
		{Match{}.WithoutVLAN().WithVLANPCP(1), "match vlan_pcp: needs a tagged frame: add vlan_vid=N, or vlan_vid=any for every VLAN"},
		{Match{}.WithAnyVLAN().WithVLANPCP(9), "match vlan_pcp=0x9: want at most 0x7 (3 bits)"},
		{Match{}.with(FieldVLAN, 5), "match vlan_vid=0x5: a VLAN identifier needs the bit 0x1000 (OFPVID_PRESENT)"},
		{Match{}.with(FieldInPhyPort, 5), "match in_phy_port: needs in_port as well"},
		{Match{Set: FieldInPort.Bit(), Masked: FieldInPort.Bit(), Mask: Key{InPort: 1}}, "match in_port: takes no mask; give the exact value"},
		{Match{Set: 1 << 50}, "match: there is no field number 50"},
	} {
		if err := c.m.Check(); err == nil || err.Error() != c.want {
			t.Errorf("got %q\nwant %q", err, c.want)
		}
	}
}

func TestBuilders(t *testing.T) {
	mac := MAC{2, 0, 0, 0, 0, 1}
	p4, p6 := netip.MustParsePrefix("10.1.2.3/8"), netip.MustParsePrefix("fd00:1::/65")
	for _, c := range []struct {
		m    Match
		want string
	}{
		{Match{}, "any"},
		{Match{}.WithInPort(3).WithEthDst(mac).WithVLAN(5), "in_port=3,eth_dst=02:00:00:00:00:01,vlan_vid=5"},
		{Match{}.WithEthDstMasked(MAC{1}, MAC{1}), "eth_dst=01:00:00:00:00:00/01:00:00:00:00:00"},
		{Match{}.WithIPv4Dst(p4).WithTCPDst(80), "eth_type=0x0800,ip_proto=6,ipv4_dst=10.0.0.0/8,tcp_dst=80"},
		{Match{}.WithIPSrc(p6).WithUDPSrc(53), "eth_type=0x86dd,ip_proto=17,udp_src=53,ipv6_src=fd00:1::/65"},
		{Match{}.WithIPDst(p4), "eth_type=0x0800,ipv4_dst=10.0.0.0/8"},
		{Match{}.WithIPDst(netip.MustParsePrefix("0.0.0.0/0")), "eth_type=0x0800"},
		{Match{}.WithIPDst(netip.MustParsePrefix("::1/128")), "eth_type=0x86dd,ipv6_dst=::1"},
		{Match{}.WithARPOp(1).WithARPTPA(netip.MustParsePrefix("10.0.0.1/32")), "eth_type=0x0806,arp_op=1,arp_tpa=10.0.0.1"},
		{Match{}.WithICMPv6Type(135).WithNDTarget(netip.MustParseAddr("fe80::1")), "eth_type=0x86dd,ip_proto=58,icmpv6_type=135,ipv6_nd_target=fe80::1"},
		{Match{}.WithoutVLAN(), "vlan_vid=none"},
		{Match{}.WithAnyVLAN().WithVLANPCP(3), "vlan_vid=any,vlan_pcp=3"},
		{Match{}.WithMetadata(0x10, 0xf0).WithTunnelID(1), "metadata=0x10/0xf0,tunnel_id=0x1"},
		{Match{}.WithInPort(PortLocal), "in_port=local"},
	} {
		n := c.m
		if n.Normalize(); n != c.m {
			t.Errorf("%s is not normal", c.want)
		}
		if got := c.m.String(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
		if err := c.m.Check(); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkMatches(b *testing.B) {
	r := newRand(6)
	for name, m := range map[string]Match{
		"L2":     Match{}.WithInPort(1).WithEthSrc(MAC{1}).WithEthDst(MAC{2}),
		"5tuple": Match{}.WithIPv4Src(netip.MustParsePrefix("10.0.0.1/32")).WithIPv4Dst(netip.MustParsePrefix("10.0.0.2/32")).WithTCPSrc(1).WithTCPDst(2),
		"prefix": Match{}.WithIPv4Dst(netip.MustParsePrefix("10.0.0.0/8")),
	} {
		k := meets(r, &m)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !m.Matches(&k) {
					b.Fatal("does not match")
				}
			}
		})
	}
}

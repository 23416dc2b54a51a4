package packet

import (
	"bytes"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// sumsGood reports whether the checksums of a frame, as far as it has some and
// is whole, are right.
func sumsGood(frame []byte) bool {
	var l layers
	if !locate(frame, &l) || l.l3 == 0 || !l.whole {
		return true
	}
	v4 := l.ethType == flow.EthTypeIPv4
	if v4 && !IPv4(frame[l.l3:l.end]).ChecksumGood() {
		return false
	}
	if l.l4 == 0 || l.fragment || l.routed || l.checksum(frame) == nil {
		return true
	}
	b := frame[l.l4:l.end]
	if l.proto == flow.IPProtoICMP {
		return Checksum(b) == 0
	}
	var s uint64
	if v4 {
		p := IPv4(frame[l.l3:l.end])
		s = pseudo(p.Src(), p.Dst(), l.proto, len(b))
	} else {
		p := IPv6(frame[l.l3:l.end])
		s = pseudo(p.Src(), p.Dst(), l.proto, len(b))
	}
	return fold(sum(b, s)) == 0xffff
}

// TestApplySetField: after a set-field Parse finds the new value, all other
// fields as they were, and right checksums; where it cannot be applied the
// frame is untouched.
func TestApplySetField(t *testing.T) {
	applied := 0
	for _, f := range frames() {
		if !sumsGood(f.frame) {
			t.Fatalf("%s: wrong checksum", f.name)
		}
		var before flow.Key
		Parse(f.frame, &before)
		for _, a := range rewrites() {
			if a.Kind != flow.ActionSetField {
				continue
			}
			got, ok := Apply(bytes.Clone(f.frame), a)
			if !ok {
				if !bytes.Equal(got, f.frame) {
					t.Errorf("%s, %v: refused but done", f.name, a)
				}
				continue
			}
			applied++
			var after flow.Key
			Parse(got, &after)
			want := before
			want.Put(a.Field, a.Value)
			if a.Field == flow.FieldMPLSBOS || a.Field == flow.FieldICMPv6Type && before.NDTarget != [16]byte{} || a.Field == flow.FieldICMPv6Code {
				continue // the rest is then something else
			}
			if after != want {
				t.Errorf("%s, %v:\ngot  %+v\nwant %+v", f.name, a, after, want)
			}
			if !sumsGood(got) {
				t.Errorf("%s, %v: wrong checksum\n%x", f.name, a, got)
			}
		}
	}
	if applied < 150 {
		t.Errorf("only %d set-fields were applied", applied)
	}
}

// TestApplyPushPop: a pop undoes a push.
func TestApplyPushPop(t *testing.T) {
	act := func(k flow.ActionKind, arg uint16) flow.Action { return flow.Action{Kind: k, Arg: uint32(arg)} }
	for _, f := range frames() {
		var l layers
		locate(f.frame, &l)
		pushes := [][2]flow.Action{
			{flow.PushVLAN(flow.EthTypeVLAN), flow.PopVLAN()},
			{flow.PushVLAN(flow.EthTypeQinQ), flow.PopVLAN()},
			{act(flow.ActionPushPBB, flow.EthTypePBB), act(flow.ActionPopPBB, 0)},
		}
		if !l.snap {
			pushes = append(pushes, [2]flow.Action{act(flow.ActionPushMPLS, flow.EthTypeMPLS), act(flow.ActionPopMPLS, l.ethType)})
		}
		for _, p := range pushes {
			pushed, ok := Apply(bytes.Clone(f.frame), p[0])
			if !ok {
				t.Errorf("%s: %v is refused", f.name, p[0])
				continue
			}
			popped, ok := Apply(pushed, p[1])
			if !ok || !bytes.Equal(popped, f.frame) {
				t.Errorf("%s: %v and %v make\n%x of\n%x", f.name, p[0], p[1], popped, f.frame)
			}
		}
	}
}

// TestApplyTTL: OpenFlow 1.3.5 table 6: what is used up is refused, copies go
// between the outer label and what is next to it.
func TestApplyTTL(t *testing.T) {
	do := func(b []byte, list ...string) ([]byte, bool) {
		b, ok := bytes.Clone(b), true
		for _, s := range list {
			a, err := flow.ParseAction(s)
			if err != nil {
				t.Fatal(err)
			}
			if b, ok = Apply(b, a); !ok {
				return b, false
			}
		}
		return b, ok
	}
	for _, b := range [][]byte{tcp4(), frame(t, "udp v6")} {
		if _, ok := do(b, "set_ttl:1", "dec_ttl"); ok {
			t.Error("a TTL of 1 is decremented")
		}
		if _, ok := do(b, "set_ttl:0", "dec_ttl"); ok {
			t.Error("a TTL of 0 is decremented")
		}
		etherType := "pop_mpls:0x0800"
		if b[12] == 0x86 {
			etherType = "pop_mpls:0x86dd"
		}
		got, ok := do(b, "set_ttl:9", "push_mpls:0x8847", "dec_mpls_ttl", "copy_ttl_in", etherType)
		var l layers
		if locate(got, &l); !ok {
			t.Fatal("refused")
		}
		if ttl, _ := l.ttl(got); ttl != 8 || !sumsGood(got) {
			t.Errorf("TTL %d copied in, want 8", ttl)
		}
		got, ok = do(b, "set_ttl:9", "push_mpls:0x8847", "set_mpls_ttl:100", "copy_ttl_out")
		if locate(got, &l); !ok || got[l.l3+3] != 9 {
			t.Errorf("TTL %d copied out, want 9", got[l.l3+3])
		}
		got, ok = do(b, "push_mpls:0x8847", "set_mpls_ttl:50", "push_mpls:0x8847", "set_mpls_ttl:60", "copy_ttl_in")
		if locate(got, &l); !ok || got[l.l3+7] != 60 || got[l.l3+2]&1 != 0 || got[l.l3+6]&1 != 1 {
			t.Errorf("labels %x", got[l.l3:l.l3+8])
		}
	}
	if _, ok := do(frame(t, "arp reply"), "dec_ttl"); ok {
		t.Error("ARP has a TTL")
	}
	if _, ok := do(tcp4(), "dec_mpls_ttl"); ok {
		t.Error("IP has a label")
	}
}

// TestApplyNothing: what does not concern the packet's contents is reported false.
func TestApplyNothing(t *testing.T) {
	b := tcp4()
	for _, a := range []flow.Action{flow.Output(1), flow.ToGroup(1), {Kind: flow.ActionSetQueue}, {Kind: flow.ActionExperimenter},
		{Kind: flow.ActionSetField, Field: flow.FieldMetadata}, {Kind: flow.ActionSetField, Field: flow.FieldTunnelID},
		{Kind: flow.ActionSetField, Field: flow.NumFields}, flow.PushVLAN(0x1234), {Kind: 99}} {
		if got, ok := Apply(bytes.Clone(b), a); ok || !bytes.Equal(got, b) {
			t.Errorf("%v is applied", a)
		}
	}
	if _, ok := Apply(b[:10], flow.SetEthDst(macA)); ok {
		t.Error("half an Ethernet header is rewritten")
	}
}

// TestApplyTypes: what names the payload can be rewritten as anything else.
func TestApplyTypes(t *testing.T) {
	for s, want := range map[string]flow.Key{
		"set_field:0x88b5->eth_type": {EthDst: macB, EthSrc: macA, EthType: 0x88b5},
		"set_field:47->ip_proto": {EthDst: macB, EthSrc: macA, EthType: flow.EthTypeIPv4, IPDSCP: 46, IPProto: 47,
			IPv4Src: [4]byte{10, 0, 0, 1}, IPv4Dst: [4]byte{10, 0, 0, 2}},
	} {
		a, err := flow.ParseAction(s)
		if err != nil {
			t.Fatal(err)
		}
		b, ok := Apply(tcp4(), a)
		var k flow.Key
		if Parse(b, &k); !ok || k != want || !sumsGood(b) {
			t.Errorf("%s: %v, %+v", s, ok, k)
		}
	}
	llc := append(append(append([]byte{}, macB[:]...), macA[:]...), 0, 3, 0x42, 0x42, 3) // spanning tree
	a, _ := flow.ParseAction("set_field:0x88b5->eth_type")
	if _, ok := Apply(llc, a); ok {
		t.Error("a frame without ethertype is given one")
	}
}

// TestUDPWithoutChecksum: a datagram over IPv4 sent without a checksum stays so.
func TestUDPWithoutChecksum(t *testing.T) {
	b := frame(t, "udp v4 tagged")
	at := ethernetLen + vlanLen + ipv4Len + 6
	b[at], b[at+1] = 0, 0
	a, _ := flow.ParseAction("set_field:1.2.3.4->ipv4_dst")
	b, _ = Apply(b, a)
	a, _ = flow.ParseAction("set_field:9->udp_dst")
	if b, ok := Apply(b, a); !ok || b[at]|b[at+1] != 0 {
		t.Errorf("checksum %x, want none", b[at:at+2])
	}
}

// TestFragments: later fragments keep what they carry when addresses change,
// and have no ports.
func TestFragments(t *testing.T) {
	b := tcp4()
	h := b[ethernetLen:]
	patch(h, 6, []byte{0, 2}, h[10:12]) // offset 16
	var k flow.Key
	if !Parse(b, &k) || k.TPSrc != 0 || k.TPDst != 0 || k.IPProto != 6 {
		t.Errorf("%+v", k)
	}
	a, _ := flow.ParseAction("set_field:1.2.3.4->ipv4_dst")
	got, ok := Apply(bytes.Clone(b), a)
	if !ok || !bytes.Equal(got[ethernetLen+ipv4Len:], b[ethernetLen+ipv4Len:]) || !sumsGood(got) {
		t.Error("the contents of a fragment change with its address")
	}
	a, _ = flow.ParseAction("set_field:1->tcp_dst")
	if _, ok := Apply(b, a); ok {
		t.Error("a later fragment has a port")
	}
	b = tcp4()
	h = b[ethernetLen:]
	patch(h, 6, []byte{0x20, 0}, h[10:12]) // the first of several
	if !Parse(b, &k) || k.TPDst != 40008 {
		t.Errorf("first fragment: %+v", k)
	}
}

// TestIPv6ExtensionHeaders: the bits of ipv6_exthdr by header chain.
func TestIPv6ExtensionHeaders(t *testing.T) {
	esp := []byte{extESP, 0, 0, 0, 0, 0, 0, 0}
	for _, c := range []struct {
		name    string
		want    uint16
		proto   uint8
		headers [][]byte
	}{
		{"none", 0, 17, nil},
		{"hop", ExtHop, 17, [][]byte{hdrHop}},
		{"hop, dest, route, frag, dest", ExtHop | ExtDest | ExtRouter | ExtFrag, 17, [][]byte{hdrHop, hdrDest, hdrRoute, hdrFrag, hdrDest}},
		{"hop twice", ExtHop | ExtUnrep | ExtUnseq, 17, [][]byte{hdrHop, hdrHop}},
		{"dest three times", ExtDest | ExtUnrep, 17, [][]byte{hdrDest, hdrDest, hdrDest}},
		{"hop late", ExtHop | ExtFrag | ExtUnseq, 17, [][]byte{hdrFrag, hdrHop}},
		{"route after frag", ExtRouter | ExtFrag | ExtUnseq, 17, [][]byte{hdrFrag, hdrRoute}},
		{"esp", ExtESP, 50, [][]byte{esp}},
		{"no next", ExtNoNext, 59, [][]byte{{extNone, 0, 0, 0, 0, 0, 0, 0}}},
	} {
		var k flow.Key
		Parse(ext6(nil, c.headers...), &k)
		if k.IPv6Ext != c.want || k.IPProto != c.proto || c.proto == 17 && k.TPDst != 40005 {
			t.Errorf("%s: ext %#x, want %#x; proto %d; port %d", c.name, k.IPv6Ext, c.want, k.IPProto, k.TPDst)
		}
	}
}

// TestChecksum compares with the sum taken octet pair by octet pair.
func TestChecksum(t *testing.T) {
	b := make([]byte, 300)
	for i := range b {
		b[i] = byte(i*i*7 + i/3)
	}
	for n := range b {
		var s uint32
		for i := 0; i < n; i += 2 {
			s += uint32(b[i]) << 8
			if i+1 < n {
				s += uint32(b[i+1])
			}
		}
		for s > 0xffff {
			s = s>>16 + s&0xffff
		}
		if got := Checksum(b[:n]); got != ^uint16(s) {
			t.Fatalf("%d octets: %#x, want %#x", n, got, ^uint16(s))
		}
	}
	ones := bytes.Repeat([]byte{0xff}, 64)
	if Checksum(ones) != 0 {
		t.Error("the sum of all ones is not all ones")
	}
}

// FuzzApply: whatever the frame, right checksums stay right under any sequence
// of actions, and a refused action changes nothing.
func FuzzApply(f *testing.F) {
	for i, s := range frames() {
		f.Add(s.frame, []byte{byte(i), byte(i + 7), byte(i + 20)})
	}
	list := rewrites()
	f.Fuzz(func(t *testing.T, b, choice []byte) {
		b = bytes.Clone(b)
		for _, c := range choice[:min(len(choice), 8)] {
			a := list[int(c)%len(list)]
			before, good := bytes.Clone(b), sumsGood(b)
			var l layers
			locate(b, &l)
			var ok bool
			if b, ok = Apply(b, a); !ok && !bytes.Equal(b, before) {
				t.Fatalf("%v is refused, but the frame changed", a)
			}
			switch a.Kind {
			case flow.ActionPopMPLS, flow.ActionPopPBB: // uncovers another packet
				return
			}
			if a.Field == flow.FieldIPProto || a.Field == flow.FieldEthType {
				return
			}
			if good && l.whole && !sumsGood(b) {
				t.Fatalf("%v spoils a checksum:\n%x\n%x", a, before, b)
			}
		}
	})
}

func BenchmarkApply(b *testing.B) {
	for _, s := range []string{"set_field:02:00:00:00:00:99->eth_src", "set_field:192.168.7.9->ipv4_src", "set_field:4444->tcp_dst", "dec_ttl"} {
		a, err := flow.ParseAction(s)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(s, func(b *testing.B) {
			frame := tcp4()
			b.ReportAllocs()
			for b.Loop() {
				frame[ethernetLen+8] = 64
				Apply(frame, a)
			}
		})
	}
	b.Run("push_pop_vlan", func(b *testing.B) {
		buf := make([]byte, 0, 256)
		frame := tcp4()
		b.ReportAllocs()
		for b.Loop() {
			got, _ := Apply(append(buf, frame...), flow.PushVLAN(flow.EthTypeVLAN))
			Apply(got, flow.PopVLAN())
		}
	})
}

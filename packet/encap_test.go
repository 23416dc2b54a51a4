package packet

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// TestEncap covers and uncovers frames; each text is a frame, its type behind a
// slash if it is not Ethernet.
func TestEncap(t *testing.T) {
	const (
		eth   = "020000000002 020000000001 "
		bare  = "000000000000 000000000000 "
		arp   = eth + "0806 0001"
		ip6   = eth + "86dd 60"
		inner = eth + "88b5 0102"
	)
	for _, c := range []struct{ in, actions, want string }{
		{inner, "encap(mpls)", bare + "8847 00000140 " + inner + "/mpls"},
		{ip6, "encap(mpls_mc)", bare + "8848 00002140 " + ip6 + "/mc"},
		{arp, "encap(mpls),set_field:500->mpls_label,set_mpls_ttl:9,encap(ethernet),set_field:02:00:00:00:00:05->eth_dst", "020000000005 000000000000 8847 001f4109 " + arp},
		{arp, "encap(mpls),set_field:32->mpls_label,set_field:3->mpls_tc,encap(mpls),set_field:16->mpls_label,encap(ethernet)", bare + "8847 00010640 00020740 " + arp},
		{eth + "8100 0005 0806 01", "encap(mpls),encap(ethernet)", bare + "8847 00000140 " + eth + "8100 0005 0806 01"},
		{eth + "8847 001f4109 " + inner, "decap(),decap(packet_type(ns=0,type=0))", inner},
		{eth + "8847 00010409 001f4109 " + inner, "decap(),decap(packet_type(ns=1,type=0x8847))", bare + "8847 001f4109 " + inner + "/mpls"},
		{eth + "8847 001f4109 45", "decap(),decap(packet_type(ns=1,type=0x800))", bare + "0800 45/ip"},
		{eth + "8847 001f4109 45", "decap()", bare + "8847 001f4109 45/mpls"},
		{arp, "decap(),encap(ethernet)", bare + "0806 0001"},
		// what is refused leaves the packet as it was
		{arp, "encap(ethernet)", ""},
		{eth + "8100 0005 0806 01", "decap()", ""},
		{eth + "8847 001f4109 " + inner, "encap(mpls)", ""},
		{eth + "8100 0005 8847 001f4109 " + inner, "encap(mpls)", ""},
		{eth + "8847 001f4109 0102", "decap(),decap(packet_type(ns=0,type=0))", ""},
		{eth + "8847 00010409 001f4109 " + inner, "decap(),decap(packet_type(ns=0,type=0))", ""},
		{eth + "8847 001f4109 " + inner, "decap(),decap(packet_type(ns=1,type=0x8847))", ""},
		{eth + "8847 001f4109 " + inner, "decap(),decap()", ""},
		{arp, "decap(),decap(packet_type(ns=0,type=0))", ""},
		{eth + "8847 0001", "decap(),decap(packet_type(ns=0,type=0))", ""},
		{"0102", "encap(mpls)", ""},
		{arp, "dec_ttl", ""},
	} {
		frame, _ := read(t, c.in)
		list, err := flow.ParseActions(c.actions)
		if err != nil {
			t.Fatal(err)
		}
		var typ flow.PacketType
		refused := false
		for _, a := range list {
			before, was, ok := bytes.Clone(frame), typ, false
			if a.Kind != flow.ActionExperimenter && len(list) > 1 {
				frame, ok = Apply(frame, a)
			} else if frame, typ, ok = Encap(frame, typ, a); !ok && (!bytes.Equal(frame, before) || typ != was) {
				t.Errorf("%s, %s: %v is refused but done", c.in, c.actions, a)
			}
			refused = refused || !ok
		}
		if c.want == "" {
			if !refused {
				t.Errorf("%s, %s: done, as %x", c.in, c.actions, frame)
			}
			continue
		}
		if want, wantType := read(t, c.want); refused || !bytes.Equal(frame, want) || typ != wantType {
			t.Errorf("%s, %s:\n got %x of %v (refused: %v)\nwant %x of %v", c.in, c.actions, frame, typ, refused, want, wantType)
		}
	}
}

// read reads a frame and its type.
func read(t *testing.T, s string) ([]byte, flow.PacketType) {
	t.Helper()
	text, typ, _ := strings.Cut(s, "/")
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b, map[string]flow.PacketType{"": 0, "mpls": flow.PacketMPLS, "mc": flow.PacketMPLSMC, "ip": 0x10800}[typ]
}

// FuzzEncap covers and uncovers any octets: it never panics, and a label that is
// put on comes off again.
func FuzzEncap(f *testing.F) {
	for _, x := range frames() {
		f.Add(x.frame)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		Labels(b)
		for _, a := range []flow.Action{flow.Encap(flow.PacketEthernet), flow.Decap(flow.PacketEthernet), flow.Decap(flow.PacketNext)} {
			for _, typ := range []flow.PacketType{flow.PacketEthernet, flow.PacketMPLS, 0x10800} {
				Encap(bytes.Clone(b), typ, a)
			}
		}
		out, typ, ok := Encap(bytes.Clone(b), flow.PacketEthernet, flow.Encap(flow.PacketMPLS))
		if !ok {
			return
		}
		if out, typ, ok = Encap(out, typ, flow.Decap(flow.PacketEthernet)); !ok || typ != flow.PacketEthernet || !bytes.Equal(out, b) {
			t.Fatalf("%x comes back as %x", b, out)
		}
	})
}

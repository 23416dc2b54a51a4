package api_test

import (
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// arp is a packet-in whose header fields are all known.
func arp() *flow.PacketIn {
	return &flow.PacketIn{
		Switch: 0xa1, Time: 1700000000123456789, BufferID: flow.BufferNone, TotalLen: 60, Reason: flow.ReasonAction, Table: 1,
		Cookie: flow.NewCookie(flow.OwnerForwarding, 1, 2), Parsed: true, Data: []byte("frame"),
		Key: flow.Key{
			InPort: 4, EthDst: flow.Broadcast, EthSrc: flow.MAC{2, 0, 0, 0, 0, 1}, EthType: flow.EthTypeARP, VLAN: 5 | flow.VLANPresent, VLANPCP: 3,
			ARPOp: 1, ARPSPA: [4]byte{10, 0, 0, 1}, ARPTPA: [4]byte{10, 0, 0, 2}, ARPSHA: flow.MAC{2, 0, 0, 0, 0, 1},
		},
		Role: flow.RoleEdge, Src: flow.Location{Switch: 0xa1, Port: 4}, Dst: flow.Location{Switch: 0xa2, Port: 1}, DstMAC: flow.MAC{2, 0, 0, 0, 0, 2},
	}
}

// TestPacketIn: a packet-in is the same after it has been a message, also as JSON.
func TestPacketIn(t *testing.T) {
	want := arp()
	m := api.NewPacketIn(want)
	text, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	back := &api.PacketIn{}
	if err := protojson.Unmarshal(text, back); err != nil || !proto.Equal(m, back) {
		t.Fatalf("%s: %v", text, err)
	}
	got, err := back.Flow()
	if err != nil {
		t.Fatal(err)
	}
	got.Parsed = true
	if !reflect.DeepEqual(&got, want) {
		t.Errorf("got  %+v\nwant %+v", got, *want)
	}
	if _, err := flow.ParseMatch(m.GetFields()); err != nil {
		t.Errorf("its fields are no match: %v", err)
	}
}

// TestPacketInFields: every header that a packet has, and no other, is told,
// and makes a match that the packet meets.
func TestPacketInFields(t *testing.T) {
	for _, x := range []struct {
		key  flow.Key
		want string
	}{
		{flow.Key{InPort: 1, EthType: 0x88cc}, "in_port=1,eth_dst=00:00:00:00:00:00,eth_src=00:00:00:00:00:00,eth_type=0x88cc"},
		{flow.Key{EthType: flow.EthTypeIPv4, IPProto: flow.IPProtoUDP, TPSrc: 68, TPDst: 67, IPDSCP: 46}, "ip_dscp=46,ip_ecn=0,ip_proto=17,ipv4_src=0.0.0.0,ipv4_dst=0.0.0.0,udp_src=68,udp_dst=67"},
		{flow.Key{EthType: flow.EthTypeIPv4, IPProto: flow.IPProtoTCP}, "ip_proto=6,ipv4_src=0.0.0.0,ipv4_dst=0.0.0.0"},
		{flow.Key{EthType: flow.EthTypeIPv4, IPProto: flow.IPProtoICMP, ICMPType: 8}, "icmpv4_type=8,icmpv4_code=0"},
		{flow.Key{EthType: flow.EthTypeIPv6, IPProto: flow.IPProtoICMPv6, ICMPType: 135, NDSLL: flow.MAC{2}}, "icmpv6_type=135,icmpv6_code=0,ipv6_nd_target=::,ipv6_nd_sll=02:00:00:00:00:00"},
		{flow.Key{EthType: flow.EthTypeMPLS, MPLSLabel: 7}, "mpls_label=7,mpls_tc=0,mpls_bos=0"},
		{flow.Key{EthType: 0x05ff, TunnelID: 9}, "eth_type=0x05ff,tunnel_id=0x9"},
	} {
		m, err := flow.ParseMatch(api.NewPacketIn(&flow.PacketIn{Parsed: true, Key: x.key}).GetFields())
		if err == nil {
			err = m.Check()
		}
		if err != nil || !m.Matches(&x.key) {
			t.Errorf("%v: %v, meets it: %v", m, err, m.Matches(&x.key))
		}
		if got := m.String(); !strings.HasSuffix(got, x.want) {
			t.Errorf("got %s, want …%s", got, x.want)
		}
	}
}

// TestDecision: a decision is the same after it has been a message.
func TestDecision(t *testing.T) {
	want := &flow.Decision{}
	entry := flow.Entry{Table: 2, Priority: 9, IdleTimeout: 5, Cookie: 77, Match: flow.Match{}.WithInPort(3).WithEthType(0x800), Apply: []flow.Action{flow.Output(2), flow.PopVLAN()}}
	want.Flow(1, flow.Mod{Entry: entry, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny})
	want.Fence()
	want.Flow(2, flow.Mod{Command: flow.DeleteStrict, Entry: flow.Entry{Cookie: 77}, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny, CookieMask: ^flow.Cookie(0)})
	for _, c := range []flow.Command{flow.Add, flow.Modify, flow.Delete} {
		want.Group(3, flow.GroupMod{Command: c, Group: flow.Group{Kind: flow.GroupKindFastFailover, ID: 8, Buckets: []flow.Bucket{{WatchPort: 4, WatchGroup: flow.GroupAny, Actions: []flow.Action{flow.Output(4)}}}}})
	}
	want.PacketOut(4, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: []flow.Action{flow.Output(flow.PortFlood)}, Data: []byte("x")})
	m, err := api.NewDecision(flow.Done, want)
	if err != nil {
		t.Fatal(err)
	}
	got := &flow.Decision{}
	if v, err := m.Append(arp(), got); err != nil || v != flow.Done {
		t.Fatalf("verdict %d, %v", v, err)
	}
	again, err := api.NewDecision(flow.Done, got)
	if err != nil || !proto.Equal(m, again) || !reflect.DeepEqual(got.Flows, want.Flows) || !reflect.DeepEqual(got.Groups, want.Groups) || !reflect.DeepEqual(got.Outs, want.Outs) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
	want.Meter(1, flow.MeterMod{})
	if _, err := api.NewDecision(flow.Next, want); err == nil {
		t.Error("a meter has been said")
	}
}

// TestPacketOutOfThePacket: without data, the packet itself goes out: by its
// buffer where the switch keeps it.
func TestPacketOutOfThePacket(t *testing.T) {
	in := arp()
	in.BufferID = 12
	send := func(dpid string) (*flow.Decision, error) {
		d := &flow.Decision{}
		_, err := (&api.Decision{Operations: []*api.Operation{{Operation: &api.Operation_PacketOut{&api.PacketOut{Dpid: dpid}}}}}).Append(in, d)
		return d, err
	}
	if d, err := send(""); err != nil || d.Outs[0].BufferID != 12 || d.Outs[0].Data != nil || d.Outs[0].InPort != 4 || d.Ops[0].Switch != 0xa1 {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := send("a2"); err == nil || !strings.Contains(err.Error(), "give data") {
		t.Errorf("by another switch: %v", err)
	}
	in.TotalLen = uint16(len(in.Data)) // the switch has sent all of it
	if d, err := send("a2"); err != nil || d.Outs[0].BufferID != flow.BufferNone || string(d.Outs[0].Data) != "frame" || d.Outs[0].InPort != flow.PortController {
		t.Errorf("by another switch, whole: %+v, %v", d, err)
	}
}

// TestPacketInErrors: what is wrong with a packet-in is said.
func TestPacketInErrors(t *testing.T) {
	for want, change := range map[string]func(*api.PacketIn){
		"datapath id": func(p *api.PacketIn) { p.Dpid = "one" },
		"reason":      func(p *api.PacketIn) { p.Reason = "because" },
		"role":        func(p *api.PacketIn) { p.Role = "king" },
		"cookie":      func(p *api.PacketIn) { p.Cookie = "biscuit" },
		"RFC 3339":    func(p *api.PacketIn) { p.Time = "now" },
		"at most 255": func(p *api.PacketIn) { p.Table = 256 },
		"fields":      func(p *api.PacketIn) { p.Fields["eth_dst"] = "x" },
		"dst_mac":     func(p *api.PacketIn) { p.DstMac = "x" },
		"and 65535":   func(p *api.PacketIn) { p.TotalLen = 65536 },
	} {
		p := api.NewPacketIn(arp())
		change(p)
		if _, err := p.Flow(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

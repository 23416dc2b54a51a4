package l2vpn

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// controlFrame returns a frame to an address of control protocols, of a type; 0: with LLC, as BPDU.
func controlFrame(last byte, kind uint16, tags ...uint16) []byte {
	b := packet.AppendEthernet(nil, packet.Ether{Dst: controlled(last), Src: flow.MAC{2, 0, 0, 0, 0, 1}}, kind)
	if kind == 0 {
		b = append(b[:12], 0, 38, 0x42, 0x42, 3)
	}
	b = packet.Pad(b)
	for _, v := range slices.Backward(tags) {
		b = slices.Concat(b[:12], []byte{0x81, 0, byte(v >> 8), byte(v)}, b[12:])
	}
	return b
}

// TestControlProtocols: each protocol of MEF 45's table comes through, or is dropped and counted, as a circuit
// says; what names less gives way to what names more; frames of no such protocol pass.
func TestControlProtocols(t *testing.T) {
	const tunnel, discard = true, false
	for _, c := range []struct {
		l2cp string
		want map[string]bool // by last octet and type
	}{
		{"", map[string]bool{"00": tunnel, "02 8809": tunnel, "0e 88cc": tunnel, "21 88f5": tunnel}},
		{"all=discard", map[string]bool{"00": discard, "02 8809": discard, "0e 88cc": discard, "0f 1234": discard, "21 88f5": discard, "2f 1234": discard}},
		{"all=discard stp=tunnel 0e=tunnel ptp=discard", map[string]bool{"00": tunnel, "08": tunnel, "00 88cc": discard, "0e 88cc": tunnel, "0e 88f7": discard, "03 888e": discard}},
		{"pause=discard slow=discard", map[string]bool{"01 8808": discard, "01 1234": tunnel, "02 8809": discard, "03 888e": tunnel, "00": tunnel}},
		{"lldp=peer", map[string]bool{"0e 88cc": discard, "00": tunnel, "0e 88f7": tunnel}},
	} {
		for _, typ := range []string{vpws, vpls} {
			for _, ends := range []string{"1:1 2:1", "1:1.10 2:1.20", "1:1.10.11 2:1", "1:1/10-12 2:1", "1:1 1:2"} {
				m := &api.Circuit{Name: "c", Type: typ, Ends: strings.Fields(ends), L2Cp: strings.Fields(c.l2cp)}
				f := newPortsField(t, m)
				from := f.b.status["c"].circuit.ends[0]
				tags := []uint16{from.vlan, from.inner}[:from.tags()]
				if from.list != "" {
					tags = []uint16{11}
				}
				far := f.b.status["c"].circuit.ends[1].at
				lost := uint64(0)
				for what, passes := range c.want {
					var last byte
					var kind uint16
					_, _ = fmt.Sscanf(what, "%x %x", &last, &kind)
					f.host(far).Received()
					f.host(from.at).Send(controlFrame(last, kind, tags...))
					if got := len(f.host(far).Received()) == 1; got != passes {
						t.Errorf("%s %s, l2cp %s: a frame to %s comes through: %v, want %v", typ, ends, c.l2cp, what, got, passes)
					}
					if !passes && !strings.Contains(c.l2cp, "peer") {
						lost++
					}
				}
				f.b.counters.count(f.flows())
				if n := f.b.get("c").Members[0].DroppedPackets; n != lost {
					t.Errorf("%s %s, l2cp %s: %d frames are counted as dropped, want %d", typ, ends, c.l2cp, n, lost)
				}
				if got := f.sent(from.at.Switch, from.at.Port, tags...); got == "" {
					t.Errorf("%s %s, l2cp %s: other frames do not come through", typ, ends, c.l2cp)
				}
			}
		}
	}
}

// TestControlRefused: what cannot be said of control protocols is refused, with how to mend it.
func TestControlRefused(t *testing.T) {
	b := newTestStore(t, wefttest.NewStore(), defaults())
	for text, want := range map[string]string{
		"lacp=tunnel":           "want slow",
		"stp=peer":              "lldp alone can be peered",
		"stp=drop":              "want an action of tunnel, discard",
		"stp":                   "want an action of tunnel, discard",
		"bgp=discard":           "want PROTOCOL=ACTION with a protocol of stp, pause",
		"10=discard":            "00 to 0f, 20 to 2f",
		"stp=tunnel STP=TUNNEL": "stp is named twice",
	} {
		err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Ends: []string{"1:1", "2:1"}, L2Cp: strings.Fields(text)}}})
		if api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
	err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Ends: []string{"1:1", "2:1"}, Payload: ip, L2Cp: []string{"stp=discard"}}}})
	if api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "payload ip carries no control protocol") {
		t.Error(err)
	}
}

// TestPeeredLLDP: what a customer's device says of itself by LLDP stands at its end, and at no other, for as
// long as it says.
func TestPeeredLLDP(t *testing.T) {
	b := newTestStore(t, wefttest.NewStore(), defaults())
	if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{
		{Name: "c", Ends: []string{"1:1.10", "2:1"}, L2Cp: []string{"lldp=peer"}},
		{Name: "d", Ends: []string{"1:1.11", "2:2"}}}}); err != nil {
		t.Fatal(err)
	}
	unit := packet.AppendLLDP(nil, packet.Ether{Dst: packet.LLDPNearestBridge, Src: flow.MAC{2, 0, 0, 0, 0, 9}}, packet.LLDPFields{
		ChassisSubtype: packet.ChassisMAC, ChassisID: []byte{2, 0, 0, 0, 0, 9}, PortSubtype: packet.PortLocal, PortID: []byte("eth7"), TTL: 120})
	send := func(vlan byte) {
		in := wefttest.NewPacketIn(1, 1, slices.Concat(unit[:12], []byte{0x81, 0, 0, vlan}, unit[12:]))
		in.Cookie = flow.NewCookie(flow.OwnerCircuits, 0, 0)
		if v := b.packet(in); v != flow.Done {
			t.Errorf("the stage says %v", v)
		}
	}
	send(11)
	if n := b.get("c").Members[0].Neighbour + b.get("d").Members[0].Neighbour; n != "" {
		t.Errorf("a VLAN whose circuit reads no LLDP: %s", n)
	}
	send(10)
	if n := b.get("c").Members[0].Neighbour; n != "chassis 02:00:00:00:00:09, port eth7" {
		t.Errorf("neighbour %q", n)
	}
	if n := b.get("c").Members[1].Neighbour; n != "" {
		t.Errorf("the far end has %q", n)
	}
	b.feed(&api.PortChanged{Port: &api.Port{Dpid: "0000000000000001", Port: 1}})
	if n := b.get("c").Members[0].Neighbour; n != "" {
		t.Errorf("with the port down: %q", n)
	}
}

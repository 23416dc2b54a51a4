package l2vpn

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/wefttest"
)

// TestExcess: a meter drops what is above rate and excess together; where the switch's meters can, it marks what
// is above the rate; discardable frames have a meter of their own. What a meter marks does not count as dropped.
func TestExcess(t *testing.T) {
	b := newTestStore(t, wefttest.NewStore(), defaults())
	for _, m := range []*api.Circuit{
		{Name: "a", Ends: []string{"1:1", "2:1"}, RateKbps: 1000, ExcessKbps: 500},
		{Name: "y", Ends: []string{"1:2.7", "2:2"}, RateKbps: 1000, ExcessKbps: 500, Yellow: []string{"dscp:12", "pcp:1"}},
		{Name: "l", Type: vpls, Ends: []string{"1:3", "2:3"}, RateKbps: 1000, ExcessKbps: 500},
	} {
		if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{m}}); err != nil {
			t.Fatal(err)
		}
	}
	b.give()
	learnMarks(context.Background(), b, func(_ context.Context, sw flow.DPID) (*api.MeterFeatures, error) {
		return &api.MeterFeatures{BandTypes: map[flow.DPID]uint32{1: 1<<flow.MeterDrop | 1<<flow.MeterDSCPRemark, 2: 1 << flow.MeterDrop}[sw]}, nil
	})
	bands := func(sw flow.DPID, meter uint32) (text []string) {
		for _, m := range wholeOf(b, sw).Meters {
			if m.Id == meter {
				for _, x := range m.Bands {
					text = append(text, x.String())
				}
			}
		}
		return text
	}
	for name, excess := range map[string][2]string{"a": {"marked", "unmarked"}, "l": {"marked", "unmarked"}, "y": {"to themselves", "to themselves"}} {
		c := b.get(name)
		for i, sw := range []flow.DPID{1, 2} {
			m := c.Members[i]
			got := bands(sw, m.Meter)
			want := 1
			if excess[i] == "marked" {
				want = 2
			}
			if len(got) != want || !strings.Contains(m.Excess, excess[i]) {
				t.Errorf("%s at switch %v: %q, bands %v", name, sw, m.Excess, got)
			}
			if rate := map[bool]string{true: "1000", false: "1500"}[name == "y"]; len(got) > 0 && !strings.Contains(got[len(got)-1], rate) {
				t.Errorf("%s at switch %v: bands %v, want the last to drop above %s", name, sw, got, rate)
			}
			if own := bands(sw, m.YellowMeter); (name == "y") != (len(own) == 1) || len(own) == 1 && !strings.Contains(own[0], "500") {
				t.Errorf("%s at switch %v: discardable frames have bands %v", name, sw, own)
			}
		}
	}
	// Another switch has taken the place of the first, with other meters.
	b.net.marks[1] = marking{since: "an earlier connection", can: true}
	learnMarks(context.Background(), b, func(_ context.Context, sw flow.DPID) (*api.MeterFeatures, error) {
		if sw != 1 {
			t.Errorf("switch %v is asked again over the same connection", sw)
		}
		return &api.MeterFeatures{BandTypes: 1 << flow.MeterDrop}, nil
	})
	if c := b.get("a"); len(bands(1, c.Members[0].Meter)) != 1 || !strings.Contains(c.Members[0].Excess, "unmarked") {
		t.Errorf("a switch that does not mark any more: %q, bands %v", c.Members[0].Excess, bands(1, c.Members[0].Meter))
	}
	p := &poller{b: b}
	p.droppedBy(1, 0, []*api.MeterStats{{Meter: b.get("a").Members[0].Meter, Bands: []*api.PacketBytes{{Packets: 40}, {Packets: 2}}}})
	if n := b.get("a").DroppedPackets; n != 2 {
		t.Errorf("%d frames count as dropped, want 2", n)
	}
	for _, c := range []struct {
		m    *api.Circuit
		want string
	}{
		{&api.Circuit{ExcessKbps: 5}, "excess_kbps without rate_kbps"},
		{&api.Circuit{RateKbps: 5, Yellow: []string{"pcp:1"}}, "yellow without excess_kbps"},
		{&api.Circuit{RateKbps: 5, ExcessKbps: 5, Yellow: []string{"pcp:8"}}, "want pcp:0 to pcp:7"},
		{&api.Circuit{RateKbps: 5, ExcessKbps: 5, Yellow: []string{"tos:8"}}, "want pcp:0 to pcp:7"},
		{&api.Circuit{RateKbps: 5, ExcessKbps: 5, Yellow: []string{"dscp:8", "DSCP:8"}}, "named twice"},
	} {
		c.m.Name, c.m.Ends = "x", []string{"1:5", "2:5"}
		if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{c.m}}); api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v; want %q", c.m, err, c.want)
		}
	}
}

// dscpFrame returns an IPv4 or IPv6 frame with a DSCP and tags, which are VLAN and priority.
func dscpFrame(v6 bool, dscp byte, tags ...[2]uint16) []byte {
	b := packet.AppendEthernet(nil, packet.Ether{Dst: flow.MAC{2, 0, 0, 0, 0, 2}, Src: flow.MAC{2, 0, 0, 0, 0, 1}}, map[bool]uint16{true: flow.EthTypeIPv6, false: flow.EthTypeIPv4}[v6])
	if v6 {
		b = append(b, 0x60|dscp>>2, dscp<<6, 0, 0, 0, 0, 59, 64)
		b = append(b, make([]byte, 32)...)
		b[14+8+15], b[14+24+15] = 1, 2
	} else {
		b = append(b, 0x45, dscp<<2, 0, 20, 0, 0, 0, 0, 64, 253, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2)
	}
	b = packet.Pad(b)
	for _, tag := range slices.Backward(tags) {
		b = slices.Concat(b[:12], []byte{0x81, 0, byte(tag[1]<<5 | tag[0]>>8), byte(tag[0])}, b[12:])
	}
	return b
}

// TestCodePoints: frames that leave have the code points that the maps say, in the tag that is put on, one that
// is kept, the customer's own, or the IP header; others keep theirs, and so do copies for other ends.
func TestCodePoints(t *testing.T) {
	tag := func(vlan, pcp uint16) [2]uint16 { return [2]uint16{vlan, pcp} }
	for _, c := range []struct {
		name, typ, ends, maps string
		sent, want            []byte
	}{
		{"dscp to pcp of the tag put on", vpws, "1:1 2:1.20", "dscp:46=pcp:5", dscpFrame(false, 46), dscpFrame(false, 46, tag(20, 5))},
		{"IPv6", vpws, "1:1 2:1.20", "dscp:46=pcp:5", dscpFrame(true, 46), dscpFrame(true, 46, tag(20, 5))},
		{"another DSCP", vpws, "1:1 2:1.20", "dscp:46=pcp:5", dscpFrame(false, 10), dscpFrame(false, 10, tag(20, 0))},
		{"at the other end only", vpws, "1:1 2:1.20", "dscp:46=dscp:10@1:1", dscpFrame(false, 46), dscpFrame(false, 46, tag(20, 0))},
		{"dscp to dscp", vpws, "1:1 2:1", "dscp:46=dscp:34", dscpFrame(false, 46), dscpFrame(false, 34)},
		{"dscp to dscp on one switch", vpws, "1:1 1:2", "dscp:46=dscp:34", dscpFrame(true, 46), dscpFrame(true, 34)},
		{"pcp of a tag that is kept", vpws, "1:1.10 2:1.20", "pcp:3=pcp:6", dscpFrame(false, 0, tag(10, 3)), dscpFrame(false, 0, tag(20, 6))},
		{"pcp before dscp", vpws, "1:1.10 2:1.20", "pcp:3=pcp:6 dscp:46=pcp:1", dscpFrame(false, 46, tag(10, 3)), dscpFrame(false, 46, tag(20, 6))},
		{"dscp where the pcp is another", vpws, "1:1.10 2:1.20", "pcp:3=pcp:6 dscp:46=pcp:1", dscpFrame(false, 46, tag(10, 2)), dscpFrame(false, 46, tag(20, 1))},
		{"pcp to dscp", vpws, "1:1.10 2:1.20", "pcp:3=dscp:34", dscpFrame(true, 0, tag(10, 3)), dscpFrame(true, 34, tag(20, 3))},
		{"the customer's own tag", vpws, "1:1 2:1", "pcp:3=pcp:6", dscpFrame(false, 0, tag(7, 3)), dscpFrame(false, 0, tag(7, 6))},
		{"no tag to change", vpws, "1:1 2:1", "dscp:46=pcp:6", dscpFrame(false, 46), dscpFrame(false, 46)},
		{"a list", vpws, "1:1 2:1/10-12", "pcp:3=pcp:6", dscpFrame(false, 0, tag(11, 3)), dscpFrame(false, 0, tag(11, 6))},
		{"vpls", vpls, "1:1 2:1.20 2:2", "dscp:46=pcp:5@2:1.20 dscp:46=dscp:34@2:1.20", nil, nil},
		{"vpls, a copy", vpls, "1:1 2:1.20 2:2", "dscp:46=pcp:5@2:1.20", dscpFrame(false, 46), dscpFrame(false, 46, tag(20, 5))},
		{"vpls, DSCP", vpls, "1:1 2:1 2:2.20", "dscp:46=dscp:34@2:1", dscpFrame(false, 46), dscpFrame(false, 34)},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &api.Circuit{Name: "c", Type: c.typ, Ends: strings.Fields(c.ends), Maps: strings.Fields(c.maps)}
			if c.sent == nil {
				if err := newTestStore(t, wefttest.NewStore(), defaults()).try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{m}}); api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "named twice") {
					t.Error(err)
				}
				return
			}
			f := newPortsField(t, m)
			ends := f.b.status["c"].circuit.ends
			for _, e := range ends {
				f.host(e.at)
			}
			f.host(ends[0].at).Send(c.sent)
			if got := f.host(ends[1].at).Received(); len(got) != 1 || !bytesSame(got[0], c.want) {
				t.Errorf("%x arrives, want %x", got, c.want)
			}
			if len(ends) > 2 {
				want := dscpFrame(false, 46)
				if ends[2].vlan != 0 {
					want = dscpFrame(false, 46, tag(20, 0))
				}
				if got := f.host(ends[2].at).Received(); len(got) != 1 || !bytesSame(got[0], want) {
					t.Errorf("%x arrives at the third end, want %x", got, want)
				}
			}
			f.b.counters.count(f.flows())
			if n := f.b.get("c").Members[1].TxPackets; n != 1 {
				t.Errorf("%d frames to the end are counted", n)
			}
		})
	}
	b := newTestStore(t, wefttest.NewStore(), defaults())
	for text, want := range map[string]string{"dscp:46": "want FROM=TO", "dscp:64=pcp:1": "want pcp:0", "pcp:1=pcp:2@1:9": "is no end of it"} {
		err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Ends: []string{"1:1", "2:1"}, Maps: []string{text}}}})
		if api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
	err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{{Name: "c", Type: vpls, Ends: []string{"1:1", "2:1"}, Maps: []string{"pcp:1=dscp:2"}}}})
	if api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "want code points of one kind") {
		t.Error(err)
	}
}

// bytesSame reports whether a frame is another, but for the checksum of IPv4 and padding.
func bytesSame(x, y []byte) bool {
	clear := func(b []byte) []byte {
		b = slices.Clone(b)
		_, kind, body := frameTags(b)
		if kind == flow.EthTypeIPv4 {
			body[10], body[11] = 0, 0
		}
		return b
	}
	x, y = clear(x), clear(y)
	n := min(len(x), len(y))
	return slices.Equal(x[:n], y[:n])
}

package oftest

import (
	"fmt"
	"testing"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

func TestFlowStatistics(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	const many = 3000
	for i := range many {
		c.add(flow.Entry{Table: uint8(i % 2), Priority: uint16(i), Cookie: flow.Cookie(i % 4), Match: flow.Match{}.WithEthDst(flow.MACFrom(uint64(i))), Apply: out(flow.Port(1 + i%3))})
	}
	count := func(r openflow.MultipartRequest, wantParts bool) int {
		t.Helper()
		n := 0
		r.Type = openflow.MultipartFlow
		bodies := c.multipart(r)
		for _, b := range bodies {
			if err := v13.DecodeFlowStats(b, func(*openflow.FlowStats) error { n++; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if wantParts != (len(bodies) > 1) {
			t.Errorf("%d entries in %d messages", n, len(bodies))
		}
		r.Type = openflow.MultipartAggregate
		if a, err := v13.DecodeAggregate(c.multipart(r)[0]); err != nil || int(a.Flows) != n {
			t.Errorf("aggregate of %d entries, %v; want %d", a.Flows, err, n)
		}
		return n
	}
	for _, test := range []struct {
		r    openflow.MultipartRequest
		want int
	}{
		{openflow.MultipartRequest{}, many},
		{openflow.MultipartRequest{Table: 1}, many / 2},
		{openflow.MultipartRequest{Cookie: 1, CookieMask: 3}, many / 4},
		{openflow.MultipartRequest{OutPort: 2}, many / 3},
		{openflow.MultipartRequest{OutGroup: 2}, 0},
		{openflow.MultipartRequest{Match: flow.Match{}.WithEthDst(flow.MACFrom(7))}, 1},
	} {
		if n := count(test.r, test.want > 700); n != test.want {
			t.Errorf("%+v: %d entries, want %d", test.r, n, test.want)
		}
	}
}

func TestDescriptions(t *testing.T) {
	s := New(Config{MaxEntries: 50, MaxGroups: 3, MaxMeters: 4, Tables: 5, Desc: openflow.Desc{Manufacturer: "A", Serial: "B"}})
	c := connect(t, s, v13)
	c.add(flow.Entry{Table: 0, Apply: out(1)})
	s.Receive(2, udp(1, 2))
	ask := func(typ openflow.MultipartType) []byte {
		t.Helper()
		b := c.multipart(openflow.MultipartRequest{Type: typ, Port: flow.PortAny, Queue: openflow.QueueAll})
		if len(b) != 1 {
			t.Fatalf("%v: %d parts", typ, len(b))
		}
		return b[0]
	}
	desc, err1 := v13.DecodeDesc(ask(openflow.MultipartDesc))
	tables, err2 := v13.DecodeTableStats(ask(openflow.MultipartTable), nil)
	ports, err3 := v13.DecodePortDesc(ask(openflow.MultipartPortDesc), nil)
	features, err4 := v13.DecodeTableFeatures(ask(openflow.MultipartTableFeatures), nil)
	groups, err5 := v13.DecodeGroupFeatures(ask(openflow.MultipartGroupFeatures))
	meters, err6 := v13.DecodeMeterFeatures(ask(openflow.MultipartMeterFeatures))
	for i, err := range []error{err1, err2, err3, err4, err5, err6} {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if len(ask(openflow.MultipartQueue)) != 0 {
		t.Error("there are queues")
	}
	if desc.Manufacturer != "A" || desc.Serial != "B" {
		t.Errorf("%+v", desc)
	}
	if len(tables) != 5 || tables[0].Active != 1 || tables[0].Lookups != 1 || tables[0].Matched != 1 {
		t.Errorf("%+v", tables)
	}
	if len(ports) != 4 || !ports[3].Up() || ports[3].Name != "port4" || ports[3].HWAddr == ports[2].HWAddr {
		t.Errorf("%+v", ports)
	}
	if len(features) != 5 || features[1].MaxEntries != 50 || features[1].NextTables.Has(1) || !features[1].NextTables.Has(2) || !features[1].Match.Has(flow.FieldIPv4Dst) {
		t.Errorf("%+v", features)
	}
	if groups.MaxGroups[0] != 3 || groups.Types != 15 || meters.MaxMeter != 4 {
		t.Errorf("%+v %+v", groups, meters)
	}
	c.wantError(c.send(v13.AppendMultipartRequest(nil, c.next(), &openflow.MultipartRequest{Type: openflow.MultipartTableFeatures, Features: features})),
		openflow.ErrTableFeaturesFailed, openflow.TableFeaturesFailedEPerm)
}

// TestEverythingOfOpenFlow10 asks for all statistics that OpenFlow 1.0 has.
func TestEverythingOfOpenFlow10(t *testing.T) {
	v := openflow.V10
	s := New(Config{})
	c := connect(t, s, v)
	c.add(flow.Entry{Priority: 4, Apply: out(1)})
	s.Receive(2, udp(1, 2))
	body := func(r openflow.MultipartRequest) []byte { return c.multipart(r)[0] }
	tables, err1 := v.DecodeTableStats(body(openflow.MultipartRequest{Type: openflow.MultipartTable}), nil)
	ports, err2 := v.DecodePortStats(body(openflow.MultipartRequest{Type: openflow.MultipartPortStats, Port: flow.PortAny}), nil)
	sum, err3 := v.DecodeAggregate(body(openflow.MultipartRequest{Type: openflow.MultipartAggregate}))
	if got := fmt.Sprint(err1, err2, err3, len(tables), tables[0].Name, tables[0].Active, len(ports), ports[0].TxPackets, sum.Packets); got != "<nil> <nil> <nil> 254table01 4 1 1" {
		t.Error(got)
	}
}

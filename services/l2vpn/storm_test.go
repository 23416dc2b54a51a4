package l2vpn

import (
	"slices"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// TestStorm: what an end of a vpws sends to all passes a meter of its own, unless that of its
// rate is smaller; what it sends to one does not. Labelled frames come before.
func TestStorm(t *testing.T) {
	cfg := defaults()
	for _, c := range []struct {
		name, end   string
		rate, storm uint64
		payload     string
		want        uint32 // kbit/s; 0: no meter
	}{
		{"default", "1:1", 0, 0, "", cfg.StormKbps},
		{"said", "1:1.5", 0, 7000, "", 7000},
		{"two tags", "1:1.5.6", 0, 7000, "", 7000},
		{"ip", "1:1", 0, 7000, ip, 7000},
		{"small rate", "1:1", 20_000, 0, "", 0},
		{"small rate, smaller storm", "1:1", 20_000, 7000, "", 7000},
		{"large rate", "1:1", 400_000, 0, "", cfg.StormKbps},
	} {
		b := newTestStore(t, wefttest.NewStore(), cfg)
		m := &api.Circuit{Name: "c", Ends: []string{c.end, "2:1"}, RateKbps: c.rate, StormKbps: c.storm, Payload: c.payload}
		if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{m}}); err != nil {
			t.Fatal(c.name, err)
		}
		b.over("c")
		whole := wholeOf(b, 1)
		meter := b.get("c").Members[0].StormMeter
		kbps := uint32(0)
		for _, m := range whole.Meters {
			if _, m, err := m.Meter(); err == nil && m.ID == meter {
				kbps = m.Bands[0].Rate
			}
		}
		var casts, labelled, single []flow.Entry
		for _, f := range whole.Flows {
			_, e, err := f.Entry()
			if err != nil {
				t.Fatal(err)
			}
			switch dst := e.Match.Text()["eth_dst"]; {
			case len(e.Apply) == 0 && e.Match.Key.EthType != 0:
				labelled = append(labelled, e)
			case dst != "" && e.Priority != flow.PriorityCircuitRing:
				casts = append(casts, e)
			case e.Match.Key.InPort == 1 && e.Goto == 0 && e.Priority != flow.PriorityCircuitTags:
				single = append(single, e)
			}
		}
		if (meter != 0) != (c.want != 0) || kbps != c.want || len(single) != 1 {
			t.Errorf("%s: meter %d of %d kbit/s, want %d; %v", c.name, meter, kbps, c.want, single)
			continue
		}
		if c.want == 0 {
			if len(casts) > 0 {
				t.Errorf("%s: entries %v without a meter", c.name, casts)
			}
			continue
		}
		if len(casts) != 1 || casts[0].Meter != meter || single[0].Meter == meter || casts[0].Table != single[0].Table ||
			casts[0].Priority <= single[0].Priority || flow.FormatActions(casts[0].Apply) != flow.FormatActions(single[0].Apply) {
			t.Errorf("%s: to all %v, to one %v", c.name, casts, single)
		}
		if !slices.ContainsFunc(labelled, func(e flow.Entry) bool { return e.Table == casts[0].Table && e.Priority > casts[0].Priority }) {
			t.Errorf("%s: labelled frames, which Open vSwitch cannot encapsulate, do not come first: %v", c.name, labelled)
		}
		for _, f := range whole.Flows { // both kinds are frames from the customer
			if f.Packets = 0; f.Priority == uint32(casts[0].Priority) || f.Priority == uint32(single[0].Priority) {
				f.Packets = 5
			}
		}
		if b.counters.count(whole.Flows); c.payload != ip && b.get("c").RxPackets != 10 {
			t.Errorf("%s: %d packets, want 10", c.name, b.get("c").RxPackets)
		}
		m.RateKbps, m.StormKbps = 1000, 0
		if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{m}}); err != nil {
			t.Fatal(c.name, err)
		}
		if used := b.alloc.meters.used[1]; b.get("c").Members[0].StormMeter != 0 || len(used) != 1 {
			t.Errorf("%s: with a small rate meters %v are in use", c.name, used)
		}
	}
}

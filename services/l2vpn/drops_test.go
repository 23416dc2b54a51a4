package l2vpn

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// meters is what meters of switches have dropped.
type meters struct {
	dropped map[flow.DPID]map[uint32]uint64
	reads   int
}

func (m *meters) entries(context.Context, flow.DPID, flow.Cookie, flow.Cookie) ([]*api.FlowEntry, error) {
	return nil, errors.New("no entries are read here")
}

func (m *meters) meters(_ context.Context, sw flow.DPID, id uint32) (list []*api.MeterStats, err error) {
	m.reads++
	for x, n := range m.dropped[sw] {
		if id == flow.MeterAll || id == x {
			list = append(list, &api.MeterStats{Meter: x, Packets: 1000 + n, Bands: []*api.PacketBytes{{Packets: n, Bytes: 100 * n}}})
		}
	}
	if len(list) == 0 {
		err = errors.New("there is no such meter")
	}
	return list, err
}

// TestMetersDrop: what the meters of an end drop is counted there, of one circuit and of
// all, and stays where a switch begins anew or the meter goes.
func TestMetersDrop(t *testing.T) {
	b := newTestStore(t, wefttest.NewStore(), defaults())
	m := &meters{dropped: map[flow.DPID]map[uint32]uint64{1: {}, 2: {}}}
	p := &poller{b: b, read: m}
	ctx := context.Background()
	set := func(kbps uint64) {
		t.Helper()
		if err := b.try(&api.SetCircuitsRequest{Circuits: []*api.Circuit{
			{Name: "line", Ends: []string{"1:1", "2:1"}, RateKbps: kbps},
			{Name: "lan", Type: vpls, Ends: []string{"1:2.1", "1:2.2", "1:2.3", "1:2.4", "2:2"}, RateKbps: kbps},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	drop := func(name string, i int, rate, storm uint64) {
		c := b.status[name].circuit
		at := m.dropped[c.ends[i].at.Switch]
		at[c.Members[i].Meter] += rate
		at[c.Members[i].StormMeter] += storm
		delete(at, 0)
	}
	check := func(when string, line, lan uint64, ends ...uint64) {
		t.Helper()
		x, y := b.get("line"), b.get("lan")
		if x.DroppedPackets != line || y.DroppedPackets != lan {
			t.Errorf("%s: %d and %d dropped, want %d and %d", when, x.DroppedPackets, y.DroppedPackets, line, lan)
		}
		for i, n := range ends {
			if y.Members[i].DroppedPackets != n {
				t.Errorf("%s: end %s: %d dropped, want %d", when, y.Members[i].End, y.Members[i].DroppedPackets, n)
			}
		}
	}
	set(1000)
	drop("line", 0, 5, 0)
	drop("line", 1, 6, 0)
	drop("lan", 0, 1, 2)
	drop("lan", 3, 0, 4)
	drop("lan", 4, 8, 0)
	p.readOne(ctx, "lan")
	check("one is read", 0, 15, 3, 0, 0, 4, 8)
	p.readEach(ctx)
	check("all are read", 11, 15, 3, 0, 0, 4, 8)
	m.reads = 0
	if p.readOne(ctx, "line"); m.reads != 2 {
		t.Errorf("%d reads for two meters of one circuit", m.reads)
	}
	for _, at := range m.dropped {
		for id := range at {
			at[id] = 0
		}
	}
	p.readEach(ctx)
	drop("lan", 0, 1, 0)
	p.readEach(ctx)
	check("switches begun anew", 11, 16)
	set(0)
	check("without a rate", 11, 16)
	if x := b.get("line").Members[0]; x.Meter != 0 || x.StormMeter == 0 {
		t.Errorf("%v", x)
	}
	if i := slices.IndexFunc(b.get("lan").Members, func(x *api.CircuitMember) bool { return x.Meter != 0 || x.StormMeter == 0 }); i >= 0 {
		t.Errorf("%v", b.get("lan").Members[i])
	}
	if got := b.counters.total()[dropped].packets; got != 27 {
		t.Errorf("%d dropped in sum, want 27", got)
	}
}

package oftest

import (
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

// passed counts how many of n packets get through.
func passed(s *Switch, n int) (got int) {
	for range n {
		got += len(s.Receive(1, udp(1, 2)).Frames)
	}
	return got
}

func TestMeterPackets(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	c.fine(c.meter(flow.Add, flow.Meter{ID: 1, Flags: openflow.MeterFlagPktps | openflow.MeterFlagBurst, Bands: []flow.Band{{Kind: flow.MeterDrop, Rate: 10, BurstSize: 5}}}))
	c.add(flow.Entry{Meter: 1, Apply: out(2)})
	for i, step := range []struct {
		at   time.Duration
		want int
	}{{0, 5}, {0, 0}, {100 * time.Millisecond, 1}, {150 * time.Millisecond, 0}, {350 * time.Millisecond, 2}, {time.Minute, 5}} {
		s.Advance(at(step.at))
		if got := passed(s, 20); got != step.want {
			t.Errorf("step %d: %d packets pass, want %d", i, got, step.want)
		}
	}
	var stats []openflow.MeterStats
	for _, b := range c.multipart(openflow.MultipartRequest{Type: openflow.MultipartMeter, Meter: flow.MeterAll}) {
		stats, _ = v13.DecodeMeterStats(b, stats)
	}
	if len(stats) != 1 || stats[0].Packets != 120 || stats[0].Flows != 1 || stats[0].Bands[0].Packets != 107 || stats[0].Bytes != 120*60 {
		t.Errorf("%+v", stats)
	}
}

func TestMeterKilobits(t *testing.T) {
	s := New(Config{})
	c := connect(t, s, v13)
	c.fine(c.meter(flow.Add, flow.Meter{ID: 1, Flags: openflow.MeterFlagKbps, Bands: []flow.Band{{Kind: flow.MeterDrop, Rate: 48}}}))
	c.add(flow.Entry{Meter: 1, Apply: out(2)})
	if got := passed(s, 200); got != 100 { // of 480 bits each
		t.Errorf("%d packets pass in the first second, want 100", got)
	}
}

func TestMeterDelete(t *testing.T) {
	s := New(Config{MaxMeters: 1})
	c := connect(t, s, v13)
	m := flow.Meter{ID: 1, Flags: openflow.MeterFlagKbps, Bands: []flow.Band{drop}}
	c.fine(c.meter(flow.Add, m))
	c.wantError(c.meter(flow.Add, flow.Meter{ID: 2, Flags: openflow.MeterFlagKbps}), openflow.ErrMeterModFailed, openflow.MeterModFailedOutOfMeters)
	c.add(flow.Entry{Meter: 1, Apply: out(2)})
	c.fine(c.meter(flow.Modify, flow.Meter{ID: 1, Flags: openflow.MeterFlagPktps, Bands: []flow.Band{drop}}))
	var list []flow.Meter
	for _, b := range c.multipart(openflow.MultipartRequest{Type: openflow.MultipartMeterConfig, Meter: 1}) {
		list, _ = v13.DecodeMeterConfig(b, list)
	}
	if len(list) != 1 || list[0].Flags != openflow.MeterFlagPktps {
		t.Errorf("%+v", list)
	}
	c.fine(c.meter(flow.Delete, flow.Meter{ID: flow.MeterAll}))
	if len(s.Flows()) != 0 {
		t.Error("the entry of a meter that is gone is left")
	}
}

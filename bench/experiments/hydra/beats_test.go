package hydra

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/bench/sim"
)

func TestParseBeats(t *testing.T) {
	before := parseBeats("weft_heartbeat_beats_total 10\nweft_heartbeat_latency_seconds_bucket{le=\"0.01\"} 4\n")
	after := parseBeats(`# HELP weft_heartbeat_beats_total Beats.
weft_heartbeat_beats_total{worker="a"} 1010
weft_heartbeat_missed_total{worker="a"} 20
weft_heartbeat_latency_seconds_bucket{worker="a",le="0.001"} 500
weft_heartbeat_latency_seconds_bucket{worker="a",le="0.01"} 974
weft_heartbeat_latency_seconds_bucket{worker="a",le="+Inf"} 980
weft_heartbeat_latency_seconds_count{worker="a"} 980
weft_heartbeat_switches{state="alive"} 3
`)
	var c beatCounts
	c.add(after, before)
	f := c.figures()
	if f.due != 1000 || f.missed != 20 || f.over10 != 30 || f.p50 != 1 || f.p95 != 10 || !math.IsInf(f.p99, 1) || !math.IsNaN(f.over100) {
		t.Errorf("%+v", f)
	}
}

func TestSwitchFigures(t *testing.T) {
	r := &sim.BeatResult{Due: 4, Lost: 1, Latency: sim.NewHistogram(), Behind: sim.NewHistogram(), Asked: sim.NewHistogram()}
	for _, d := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond, 2 * time.Second} {
		_ = r.Latency.RecordValue(int64(d))
	}
	if f := switchFigures(r); f.due != 4 || f.missed != 1 || f.over10 != 3 || f.over100 != 2 || f.max < 1999 || f.max > 2003 {
		t.Errorf("%+v", f)
	}
}

// TestPlans: the slices are plans of two processes, and what is near packets is
// in the first; or of three, the first with what is real-time.
func TestPlans(t *testing.T) {
	for _, c := range append(sliced(), sliceConfig{slicing: hybridSlicing, partitions: 8, heartbeats: true}) {
		p := c.plan()
		if len(p.Workers) != 2 || p.Workers[0].Services[0] != "southbound" {
			t.Errorf("%+v", p)
		}
	}
	p := sliceConfig{slicing: functionalSlicing, partitions: 8, heartbeats: true}.plan()
	if len(p.Workers) != 3 || !slices.Equal(p.Workers[0].Services, []string{"southbound", "discovery", "heartbeat"}) || p.Workers[0].Nice > p.Workers[1].Nice ||
		!slices.Equal(p.Workers[1].Services, []string{"hosts", "firewall", "forwarding", "flowrules"}) || !slices.Contains(p.Workers[2].Services, "paths") {
		t.Errorf("%+v", p)
	}
	if n := len(firewallRules(100)); n != 100 {
		t.Errorf("%d rules of 100", n)
	}
}

// TestAgree: the saturation counts when it is there twice.
func TestAgree(t *testing.T) {
	for _, c := range []struct {
		a, b float64
		want bool
	}{{0, 0, false}, {0, 5, false}, {100, 86, true}, {86, 100, true}, {100, 84, false}} {
		if agree(c.a, c.b) != c.want {
			t.Errorf("%v and %v: %v", c.a, c.b, !c.want)
		}
	}
}

// TestLatencies: all heartbeats are kept, those that were never answered too.
func TestLatencies(t *testing.T) {
	o := outcome{controller: &beatCounts{beats: 10, buckets: map[float64]float64{.001: 5, .01: 8, math.Inf(1): 9}}}
	if got := o.latencies(); got != "+Inf:2 1:5 10:3" {
		t.Errorf("of the controller: %q", got)
	}
	o = outcome{switches: &sim.BeatResult{Lost: 1, Latency: sim.NewHistogram()}}
	for range 3 {
		_ = o.switches.Latency.RecordValue(int64(20 * time.Millisecond))
	}
	if got := o.latencies(); got != "+Inf:1 20:3" {
		t.Errorf("of switches: %q", got)
	}
}

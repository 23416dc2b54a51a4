package paths

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/wefttest"
)

// square tells of switches 1 to 4: 1 and 4 are joined by way of 2, gold and fast, and of 3, whose
// links cost more, and directly by a slow link; each link of 100 Mbit/s.
func square(h *wefttest.Harness) {
	for d := range flow.DPID(4) {
		wefttest.Publish(h, api.SwitchChangedEvent, switchMsg(d+1, true))
	}
	gold := &api.LinkSettings{Colours: []string{"gold"}, DelayUs: 1000, Metric: 1, RiskGroups: []string{"duct"}}
	plain := &api.LinkSettings{DelayUs: 2000, Metric: 5}
	slow := &api.LinkSettings{DelayUs: 50_000, Metric: 20, RiskGroups: []string{"duct"}}
	for _, l := range []struct {
		a, b flow.Location
		set  *api.LinkSettings
	}{{at2(1, 2), at2(2, 1), gold}, {at2(2, 4), at2(4, 2), gold}, {at2(1, 3), at2(3, 1), plain}, {at2(3, 4), at2(4, 3), plain}, {at2(1, 4), at2(4, 1), slow}} {
		say(h, l.a, l.b, l.set)
	}
}

func say(h *wefttest.Harness, a, b flow.Location, set *api.LinkSettings) {
	for _, ends := range [2][2]flow.Location{{a, b}, {b, a}} {
		m := linkMsg(ends[0], ends[1], false)
		m.Link.Settings, m.Link.CapacityKbps = set, 100_000
		wefttest.Publish(h, api.LinkChangedEvent, m)
	}
}

// ways returns the switches of an answer's paths, or why there are none.
func ways(a *api.PathAnswer) string {
	var list []string
	for _, p := range a.GetPaths() {
		var hops []string
		for _, h := range p.Hops {
			hops = append(hops, strings.TrimLeft(h.Dpid, "0"))
		}
		list = append(list, strings.Join(hops, "-"))
	}
	if len(list) == 0 {
		return a.GetReason()
	}
	return strings.Join(list, " ")
}

func priority(n uint32) *uint32 { return &n }

func TestComputePaths(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		square(h)
		out := func(sw flow.DPID, port flow.Port) *api.Location { return api.NewLocation(at2(sw, port)) }
		full := []*api.LinkBooking{{Src: out(1, 2), Kbps: 60_000, Priority: 4}, {Src: out(1, 3), Kbps: 50_000, Priority: 6}, {Src: out(1, 3), Kbps: 30_000, Priority: 7}, {Src: out(1, 4), Kbps: 90_000, Priority: 2}}
		asked := func(change func(*api.PathDemand), bookings ...*api.LinkBooking) string {
			t.Helper()
			d := &api.PathDemand{Name: "x", Src: "1", Dst: "4"}
			change(d)
			r, err := wefttest.Call(h, api.ComputePaths, &api.ComputePathsRequest{Demands: []*api.PathDemand{d}, Bookings: bookings})
			if err != nil {
				return err.Error()
			}
			return ways(r.Answers[0])
		}
		first := &api.Path{Hops: []*api.Hop{{Dpid: "0000000000000001", OutPort: 2}, {Dpid: "0000000000000002", InPort: 1, OutPort: 4}, {Dpid: "0000000000000004", InPort: 2}}}
		gone := &api.Path{Hops: []*api.Hop{{Dpid: "0000000000000001", OutPort: 9}, {Dpid: "0000000000000002", InPort: 9, OutPort: 9}, {Dpid: "0000000000000004", InPort: 9}}}
		for i, c := range []struct {
			change   func(*api.PathDemand)
			bookings []*api.LinkBooking
			want     string
		}{
			{func(d *api.PathDemand) {}, nil, "1-2-4"},
			{func(d *api.PathDemand) { d.BandwidthKbps = 50_000 }, full[:1], "1-3-4"},
			{func(d *api.PathDemand) { d.BandwidthKbps, d.SetupPriority = 50_000, priority(5) }, full, "1-3-4"},
			{func(d *api.PathDemand) { d.BandwidthKbps = 50_000 }, full, "no path from 1 to 4: bandwidth 50000 kbit/s is not free on 3 links of the cut: 1:2 to 2:1 (40000 kbit/s free), 1:3 to 3:1 (20000 kbit/s free), 1:4 to 4:1 (10000 kbit/s free)"},
			{func(d *api.PathDemand) { d.MaxHops = 1 }, nil, "1-4"},
			{func(d *api.PathDemand) { d.MaxHops, d.MaxDelayUs = 1, 3000 }, nil, "no path from 1 to 4: none has at most 3000 µs and at most 1 hops at once"},
			{func(d *api.PathDemand) { d.MaxDelayUs = 1500 }, nil, "no path from 1 to 4: the least delay is 2000 µs, at most 1500 is asked for"},
			{func(d *api.PathDemand) { d.ExcludeSwitches = []string{"2", "99"} }, nil, "1-3-4"},
			{func(d *api.PathDemand) { d.ExcludeLinks = []*api.Location{out(4, 2), out(3, 1)} }, nil, "1-4"},
			{func(d *api.PathDemand) { d.ExcludeRiskGroups = []string{"duct", "unheard-of"} }, nil, "1-3-4"},
			{func(d *api.PathDemand) { d.ExcludeAny = []string{"gold", "unheard-of"} }, nil, "1-3-4"},
			{func(d *api.PathDemand) { d.IncludeAll = []string{"gold"} }, nil, "1-2-4"},
			{func(d *api.PathDemand) { d.IncludeAll = []string{"gold", "unheard-of"} }, nil, "no path from 1 to 4: 3 links of the cut without the colours that are asked for: 1:2 to 2:1, 1:3 to 3:1, 1:4 to 4:1"},
			{func(d *api.PathDemand) { d.Via = []*api.PathVia{{Dpid: "3"}} }, nil, "1-3-4"},
			{func(d *api.PathDemand) { d.Via = []*api.PathVia{{Link: out(4, 1)}} }, nil, "1-4"},
			{func(d *api.PathDemand) { d.Via = []*api.PathVia{{Dpid: "2"}, {Dpid: "3"}} }, nil, "no path from 1 to 4: what it is to pass lies on no path that visits no node twice and meets the other conditions"},
			{func(d *api.PathDemand) { d.Via = []*api.PathVia{{Dpid: "9"}} }, nil, "no path: via: switch 0000000000000009 is not connected"},
			{func(d *api.PathDemand) { d.Dst = "9" }, nil, "no path: dst: switch 0000000000000009 is not connected"},
			{func(d *api.PathDemand) { d.Apart = []*api.PathApart{{Path: first}} }, nil, "1-3-4"},
			{func(d *api.PathDemand) { d.Apart = []*api.PathApart{{Path: gone, Kinds: []string{"switches"}}} }, nil, "1-3-4"},
			{func(d *api.PathDemand) { d.Disjoint = []string{"switches"} }, nil, "1-2-4 1-3-4"},
			{func(d *api.PathDemand) { d.Disjoint, d.ExcludeSwitches = []string{"risk_groups"}, []string{"3"} }, nil, "no path from 1 to 4: there is one, but no second one apart from it"},
			{func(d *api.PathDemand) { d.Minimise = "speed" }, nil, `demand 1 ("x"): minimise "speed": want cost, delay or narrowness`},
			{func(d *api.PathDemand) { d.Disjoint = []string{"ports"} }, nil, `demand 1 ("x"): disjoint: "ports": want links, switches or risk_groups`},
			{func(d *api.PathDemand) { d.Dst = "1" }, nil, `demand 1 ("x"): src and dst are both 1: want two switches`},
			{func(d *api.PathDemand) { d.Src = "one" }, nil, `demand 1 ("x"): src:`},
			{func(d *api.PathDemand) { d.SetupPriority = priority(300) }, nil, `want 0, the highest, to 7`},
			{func(d *api.PathDemand) { d.SetupPriority, d.HoldPriority = priority(2), priority(3) }, nil, `holding priority 3 is below setup priority 2`},
			{func(d *api.PathDemand) { d.Via = []*api.PathVia{{Dpid: "3"}, {Dpid: "3"}} }, nil, `via: the switch or link at place 2 is given twice`},
			{func(d *api.PathDemand) {}, []*api.LinkBooking{{Priority: 8}}, "booking 1: 0 kbit/s at priority 8"},
			{func(d *api.PathDemand) { d.BandwidthKbps = kbpsMax + 1 }, nil, "bandwidth_kbps"},
		} {
			if got := asked(c.change, c.bookings...); got != c.want && !strings.Contains(got, c.want) || c.want == "" {
				t.Errorf("%d: got  %s\nwant %s", i, got, c.want)
			}
		}
		say(h, at2(1, 2), at2(2, 1), &api.LinkSettings{Drained: true})
		if got := asked(func(*api.PathDemand) {}); got != "1-3-4" {
			t.Errorf("a link is drained: %s", got)
		}
		r, err := wefttest.Call(h, api.ComputePaths, &api.ComputePathsRequest{})
		if api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("nothing asked: %v, %v", r, err)
		}
	})
}

// TestComputeSeveral: several demands share the network, and are placed all or none if that is asked for; preemptions are
// told.
func TestComputeSeveral(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		square(h)
		req := &api.ComputePathsRequest{}
		for i := range 4 {
			req.Demands = append(req.Demands, &api.PathDemand{Name: fmt.Sprint("d", i), Src: "1", Dst: "4", BandwidthKbps: 60_000})
		}
		show := func() string {
			t.Helper()
			r, err := wefttest.Call(h, api.ComputePaths, req)
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for _, a := range r.Answers {
				list = append(list, a.Name+" "+ways(a))
			}
			return fmt.Sprint(r.Placed, " ", strings.Join(list, "; "))
		}
		const none = "no path from 1 to 4: bandwidth 60000 kbit/s is not free on 3 links of the cut: 1:2 to 2:1 (40000 kbit/s free), 1:3 to 3:1 (40000 kbit/s free), 1:4 to 4:1 (40000 kbit/s free)"
		if got := show(); got != "true d0 1-2-4; d1 1-3-4; d2 1-4; d3 "+none {
			t.Error(got)
		}
		req.AllOrNothing = true
		if got := show(); got != "false d0 ; d1 ; d2 ; d3 "+none {
			t.Error(got)
		}
		req.Demands = req.Demands[:2]
		req.Demands[0].Disjoint, req.Demands[0].Src = []string{"links"}, "2" // leaves 2 by its two links only
		if got := show(); got != "true d0 2-4 2-1-3-4; d1 1-4" {
			t.Error(got)
		}
		req.Demands = []*api.PathDemand{{Src: "1", Dst: "4", BandwidthKbps: 60_000, SetupPriority: priority(3)}}
		for _, port := range []flow.Port{2, 3, 4} {
			req.Bookings = append(req.Bookings, &api.LinkBooking{Src: api.NewLocation(at2(1, port)), Kbps: 50_000, Priority: 5}, &api.LinkBooking{Src: api.NewLocation(at2(1, port)), Kbps: 45_000, Priority: 7})
		}
		r, err := wefttest.Call(h, api.ComputePaths, req)
		if err != nil || len(r.Answers[0].Preempts) != 2 {
			t.Fatalf("%v, %v", r, err)
		}
		for i, want := range []*api.PathPreemption{{Priority: 7, Kbps: 45_000}, {Priority: 5, Kbps: 10_000}} {
			if p := r.Answers[0].Preempts[i]; p.Src.Flow() != at2(1, 2) || p.Priority != want.Priority || p.Kbps != want.Kbps {
				t.Errorf("%v, want %v", p, want)
			}
		}
		if p := r.Answers[0].Paths[0]; p.Cost != 2 || p.DelayUs != 2000 {
			t.Errorf("%v", p)
		}
	})
}

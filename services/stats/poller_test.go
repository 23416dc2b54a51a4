package stats

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// fakeNetwork is switches that count: every port and entry grows by so much a
// second.
type fakeNetwork struct {
	mu       sync.Mutex // guards what follows
	switches map[flow.DPID]*fakeSwitch
	busy     int
	most     int // switches that were read at the same time
}

type fakeSwitch struct {
	up      bool
	ports   []uint32
	entries []*api.FlowEntry
	since   time.Time // counters start
	rate    uint64    // bytes per second of every port and entry; a tenth of it packets
	takes   time.Duration
	fails   error
	asked   []time.Time // readings of the ports
	flowsAt []time.Time
	busy    int
	crossed bool
}

func (n *fakeNetwork) ask(ctx context.Context, sw flow.DPID) (*fakeSwitch, uint64, error) {
	n.mu.Lock()
	s := n.switches[sw]
	s.busy++
	s.crossed = s.crossed || s.busy > 1
	n.busy++
	n.most = max(n.most, n.busy)
	takes := s.takes
	n.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
	}
	n.mu.Lock()
	s.busy--
	n.busy--
	switch {
	case !s.up:
		return s, 0, api.Errorf(codes.Unavailable, "switch %v is not connected", sw)
	case ctx.Err() != nil:
		return s, 0, ctx.Err()
	case s.fails != nil:
		return s, 0, s.fails
	}
	return s, uint64(time.Since(s.since).Seconds() * float64(s.rate)), nil
}

func (n *fakeNetwork) ReadPorts(ctx context.Context, sw flow.DPID) ([]*api.PortStats, error) {
	asked := time.Now()
	s, v, err := n.ask(ctx, sw)
	defer n.mu.Unlock()
	s.asked = append(s.asked, asked)
	if err != nil {
		return nil, err
	}
	var ports []*api.PortStats
	for _, p := range s.ports {
		ports = append(ports, &api.PortStats{
			Dpid: sw.String(), Port: p, RxBytes: v, TxBytes: 2 * v, RxPackets: v / 10, TxPackets: v / 5, RxErrors: unsupported, TxErrors: 1, RxDropped: 2,
		})
	}
	return ports, nil
}

func (n *fakeNetwork) ReadTables(ctx context.Context, sw flow.DPID) ([]*api.TableStats, error) {
	_, v, err := n.ask(ctx, sw)
	defer n.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return []*api.TableStats{{Dpid: sw.String(), Table: 7}, {Dpid: sw.String(), Table: 1, Lookups: v}, {Dpid: sw.String(), Active: 3}}, nil
}

func (n *fakeNetwork) ReadFlows(ctx context.Context, sw flow.DPID) ([]*api.FlowEntry, error) {
	s, v, err := n.ask(ctx, sw)
	defer n.mu.Unlock()
	if err != nil {
		return nil, err
	}
	s.flowsAt = append(s.flowsAt, time.Now())
	var flows []*api.FlowEntry
	for _, e := range s.entries {
		flows = append(flows, &api.FlowEntry{
			Dpid: sw.String(), Priority: e.Priority, Match: maps.Clone(e.Match), Owner: e.Owner,
			Packets: v / 10, Bytes: v, Duration: time.Since(s.since).Seconds(),
		})
	}
	return flows, nil
}

// nothing is figures that nobody reads.
type nothing struct{}

func (nothing) Add(float64)     {}
func (nothing) Observe(float64) {}

func noMeters() Meters {
	return Meters{
		Counter:   func(string, string, ...string) Counter { return nothing{} },
		Gauge:     func(string, string, func() float64, ...string) {},
		Histogram: func(string, string, []float64, ...string) Observer { return nothing{} },
	}
}

// start runs a poller of n switches with two ports and two entries each, none
// connected, in a bubble of time.
func start(t *testing.T, cfg *Config, n int) (*Poller, *fakeNetwork) {
	net := &fakeNetwork{switches: map[flow.DPID]*fakeSwitch{}}
	for i := range n {
		net.switches[flow.DPID(i+1)] = &fakeSwitch{
			ports: []uint32{2, 1}, since: time.Now(), rate: 1000, takes: time.Millisecond,
			entries: []*api.FlowEntry{
				{Priority: 1, Owner: "routes", Match: map[string]string{"in_port": "1"}},
				{Priority: 1, Owner: "routes", Match: map[string]string{"in_port": "2"}},
				{Priority: 2, Owner: "operator"},
			},
		}
	}
	p := NewPoller(cfg, net, noMeters())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); p.Serve(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return p, net
}

func connect(p *Poller, net *fakeNetwork, sw flow.DPID, up bool) {
	net.mu.Lock()
	net.switches[sw].up = up
	net.mu.Unlock()
	p.SwitchChanged(&api.SwitchChanged{Switch: &api.Switch{Dpid: sw.String(), Connected: up}})
}

func near(got, want float64) bool { return got > 0.99*want && got < 1.01*want }

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, net := start(t, defaults(), 1)
		connect(p, net, 1, true)
		time.Sleep(time.Minute)
		resp, err := p.ListPortStats(t.Context(), &api.ListPortStatsRequest{Dpid: "1"})
		if err != nil || len(resp.Ports) != 2 {
			t.Fatalf("%v, %v", resp, err)
		}
		one := resp.Ports[0]
		if one.Port != 1 || !near(one.RxBitsPerS, 8000) || !near(one.TxBitsPerS, 16000) || !near(one.RxPacketsPerS, 100) ||
			one.RxBytes == 0 || one.RxErrors != 0 || one.TxErrors != 1 || one.Interval < 4.4 || one.Interval > 5.6 {
			t.Errorf("%v", one)
		}
		tables, err := p.ListTableStats(t.Context(), &api.ListTableStatsRequest{})
		if err != nil || len(tables.Tables) != 2 || tables.Tables[0].Table != 0 || tables.Tables[1].Table != 1 {
			t.Errorf("%v, %v: want tables 0 and 1, the others are not in use", tables, err)
		}
		time.Sleep(time.Minute)
		flows, err := p.ListFlowStats(t.Context(), &api.ListFlowStatsRequest{Dpid: "1"})
		if err != nil || len(flows.Flows) != 2 || flows.Flows[1].Owner != "routes" || flows.Flows[1].Entries != 2 ||
			!near(flows.Flows[1].BitsPerS, 16000) || !near(flows.Flows[0].PacketsPerS, 100) {
			t.Errorf("%v, %v", flows, err)
		}
		// An entry that goes takes its count with it, not its owner's rate.
		net.mu.Lock()
		net.switches[1].entries = net.switches[1].entries[1:]
		net.mu.Unlock()
		time.Sleep(40 * time.Second)
		flows, _ = p.ListFlowStats(t.Context(), &api.ListFlowStatsRequest{Dpid: "1"})
		if f := flows.Flows[1]; f.Entries != 1 || !near(f.BitsPerS, 8000) {
			t.Errorf("%v", f)
		}
		// Counters that start anew give no rate once, and then the right one.
		net.mu.Lock()
		net.switches[1].since = time.Now()
		net.mu.Unlock()
		for range 60 {
			time.Sleep(200 * time.Millisecond)
			resp, _ = p.ListPortStats(t.Context(), &api.ListPortStatsRequest{Dpid: "1"})
			if r := resp.Ports[0]; r.RxBitsPerS != 0 && !near(r.RxBitsPerS, 8000) {
				t.Errorf("after a reset: %v", r)
			}
		}
		if resp.Ports[0].RxBitsPerS == 0 {
			t.Error("no rate after a reset")
		}
		if _, err := p.ListPortStats(t.Context(), &api.ListPortStatsRequest{Dpid: "9"}); api.KindOf(err) != codes.NotFound {
			t.Errorf("unknown switch: %v", err)
		}
		if _, err := p.ListFlowStats(t.Context(), &api.ListFlowStatsRequest{Dpid: "?"}); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("bad switch: %v", err)
		}
	})
}

func TestAwayIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, net := start(t, defaults(), 2)
		connect(p, net, 1, true)
		time.Sleep(12 * time.Second)
		connect(p, net, 1, false)
		n := len(net.switches[1].asked)
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := len(net.switches[1].asked); got != n || n < 2 {
			t.Errorf("read %d times, then %d times while away", n, got-n)
		}
		if resp, err := p.ListPortStats(t.Context(), &api.ListPortStatsRequest{}); err != nil || len(resp.Ports) != 2 || resp.Ports[0].RxBytes == 0 || resp.Ports[0].RxBitsPerS != 0 {
			t.Errorf("%v, %v: want the last counters, and no rates", resp, err)
		}
		p.SwitchForgotten(t.Context(), &api.SwitchForgotten{Dpid: "1"})
		if resp, err := p.ListPortStats(t.Context(), &api.ListPortStatsRequest{}); err != nil || len(resp.Ports) != 0 {
			t.Errorf("%v, %v: want no counters of a forgotten switch", resp, err)
		}
		p.metrics.room = 0
		connect(p, net, 2, true)
		connect(p, net, 2, false)
		p.SwitchForgotten(t.Context(), &api.SwitchForgotten{Dpid: "2"})
		if p.switches[2] != nil || p.switches[1] == nil {
			t.Error("a forgotten switch is kept, or one with metrics is not")
		}
		connect(p, net, 1, true)
		time.Sleep(time.Second)
		resp, _ := p.ListPortStats(t.Context(), &api.ListPortStatsRequest{})
		if r := resp.Ports[0]; r.RxBitsPerS != 0 || r.Interval != 0 {
			t.Errorf("%v: a rate over the time away", r)
		}
	})
}

// Readings of one switch never overlap, however slow it is; they become rarer;
// others do not wait for it.
func TestSlowSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, net := start(t, defaults(), 2)
		net.switches[1].takes = 3 * time.Second
		connect(p, net, 1, true)
		connect(p, net, 2, true)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		slow, fast := net.switches[1], net.switches[2]
		if slow.crossed || fast.crossed {
			t.Error("readings of one switch overlap")
		}
		if n := len(slow.asked); n < 15 || n > 22 {
			t.Errorf("the slow one was read %d times in 10 minutes, want about every 33 s", n)
		}
		if n := len(fast.asked); n < 110 || n > 130 {
			t.Errorf("the fast one was read %d times in 10 minutes, want about every 5 s", n)
		}
	})
}

func TestFailingSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, net := start(t, defaults(), 1)
		net.switches[1].fails = fmt.Errorf("OFPBRC_BAD_MULTIPART")
		connect(p, net, 1, true)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(net.switches[1].asked); n < 12 || n > 20 {
			t.Errorf("asked %d times in an hour", n)
		}
		net.mu.Lock()
		net.switches[1].fails = nil
		net.mu.Unlock()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := len(net.switches[1].asked); n < 50 {
			t.Errorf("asked %d times; not back to the normal interval", n)
		}
	})
}

// 1,000 switches that connect at once are read evenly, a few at a time, and no
// more often than the budget allows.
func TestThousandSwitches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, net := start(t, defaults(), 1000)
		for sw := range net.switches {
			connect(p, net, sw, true)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		ports, flows, worst := 0, 0, 0
		perSecond := map[int64]int{}
		for _, s := range net.switches {
			ports += len(s.asked)
			flows += len(s.flowsAt)
			for _, at := range s.asked {
				perSecond[at.Unix()]++
			}
		}
		worst = slices.Max(slices.Collect(maps.Values(perSecond)))
		t.Logf("readings per second: %.0f of ports, at most %d; %.1f of flow entries; %d at once", float64(ports)/600, worst, float64(flows)/600, net.most)
		if ports < 27_000 || ports > 33_000 || flows < 7_500 || flows > 11_000 {
			t.Errorf("%d readings of ports and %d of flow entries in 10 minutes, want about 30,000 and 9,000", ports, flows)
		}
		if net.most > defaults().Parallel || worst > 150 {
			t.Errorf("%d at once, up to %d a second", net.most, worst)
		}
	})
}

func TestConfigValidate(t *testing.T) {
	if err := defaults().Validate(); err != nil {
		t.Fatal(err)
	}
	for key, change := range map[string]func(*Config){
		"interval": func(c *Config) { c.Interval = 1 }, "max_interval": func(c *Config) { c.MaxInterval = time.Second },
		"parallel": func(c *Config) { c.Parallel = 0 }, "flows_every": func(c *Config) { c.FlowsEvery = 0 },
		"metric_switches": func(c *Config) { c.MetricSwitches = -1 },
	} {
		c := defaults()
		change(c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), key+":") {
			t.Errorf("%s: error %v", key, err)
		}
	}
}

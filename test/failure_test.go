package test

import (
	"context"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"
)

// path returns the switches of the route between two hosts, in order.
func path(c *controller, l *lab.Lab, from, to string) (names []string, hops []*api.Hop) {
	c.t.Helper()
	a, err := l.Host(from)
	if err != nil {
		c.t.Fatal(err)
	}
	b, err := l.Host(to)
	if err != nil {
		c.t.Fatal(err)
	}
	byDPID := map[string]string{}
	for _, s := range l.Topology().Switches {
		byDPID[s.DPID.String()] = s.Name
	}
	for _, r := range call(c, api.ListRoutes, &api.ListRoutesRequest{}).Routes {
		if r.Src == a.MAC.String() && r.Dst == b.MAC.String() {
			for _, h := range r.Hops {
				names = append(names, byDPID[h.Dpid])
			}
			return names, r.Hops
		}
	}
	c.t.Fatalf("no route from %s to %s", from, to)
	return nil, nil
}

// distant returns two hosts of the lab whose route crosses at least one link.
func distant(c *controller, l *lab.Lab) (from, to string, names []string) {
	hosts := l.Topology().Hosts
	for _, h := range hosts[1:] {
		if names, _ := path(c, l, hosts[0].Name, h.Name); len(names) > len(l.Topology().Switches)/3 {
			return hosts[0].Name, h.Name, names
		}
	}
	c.t.Fatal("all hosts are near each other")
	return "", "", nil
}

// stream pings in the background; the last answers are waited for as long as Ping
// does by itself, for some may never come.
func stream(l *lab.Lab, from, to string, packets int, interval time.Duration) <-chan traffic.PingResult {
	return streamed(l, from, to, traffic.PingOptions{Count: packets, Interval: interval})
}

// steady is stream where nothing is to be lost: late answers count.
func steady(l *lab.Lab, from, to string, packets int, interval time.Duration) <-chan traffic.PingResult {
	return streamed(l, from, to, traffic.PingOptions{Count: packets, Interval: interval, Timeout: patience})
}

func streamed(l *lab.Lab, from, to string, opt traffic.PingOptions) <-chan traffic.PingResult {
	result := make(chan traffic.PingResult, 1)
	go func() {
		r, err := l.Ping(context.Background(), from, to, opt)
		if err != nil {
			r.Error = err.Error()
		}
		result <- r
	}()
	return result
}

// streaming pings until it is ended.
type streaming struct {
	t       *testing.T
	cancel  context.CancelFunc
	answers atomic.Int64
	result  chan traffic.PingResult
}

// endless begins to ping, where some may be lost.
func endless(t *testing.T, l *lab.Lab, from, to string, interval time.Duration) *streaming {
	return unending(t, l, from, to, traffic.PingOptions{Interval: interval})
}

// lossless is endless where nothing is to be lost: late answers count.
func lossless(t *testing.T, l *lab.Lab, from, to string, interval time.Duration) *streaming {
	return unending(t, l, from, to, traffic.PingOptions{Interval: interval, Timeout: patience})
}

func unending(t *testing.T, l *lab.Lab, from, to string, opt traffic.PingOptions) *streaming {
	ctx, cancel := context.WithCancel(context.Background())
	s := &streaming{t: t, cancel: cancel, result: make(chan traffic.PingResult, 1)}
	t.Cleanup(cancel)
	go func() {
		opt.Count, opt.Reply = -1, func(string, string, int, time.Duration) { s.answers.Add(1) }
		r, err := l.Ping(ctx, from, to, opt)
		if err != nil {
			r.Error = err.Error()
		}
		s.result <- r
	}()
	return s
}

// flows waits until so many more are answered.
func (s *streaming) flows(more int64) {
	s.t.Helper()
	more += s.answers.Load()
	eventually(s.t, "the stream flows", func() bool { return s.answers.Load() >= more })
}

// end ends it.
func (s *streaming) end() traffic.PingResult {
	s.cancel()
	return <-s.result
}

func TestLinkFailure(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		name string
		set  []string
		cut  func(*lab.Lab, context.Context, string, string) error
		most time.Duration // outage that is never to be exceeded, generously
	}{
		// Before a silent link would be found, which takes up to 3 s.
		{"carrier", nil, (*lab.Lab).LinkDown, 2 * time.Second},
		{"carrier with failover groups", []string{"forwarding.fast_failover=true"}, (*lab.Lab).LinkDown, 2 * time.Second},
		{"silent", nil, (*lab.Lab).LinkSilent, 6 * time.Second},
	} {
		t.Run(v.name, func(t *testing.T) {
			c := start(t, options{set: v.set})
			l := up(t, "demo", c)
			settled(c, l)
			pingAll(t, l, false)
			from, to, names := distant(c, l)
			s := endless(t, l, from, to, 3*time.Millisecond)
			s.flows(100)
			if err := v.cut(l, context.Background(), names[0], names[1]); err != nil {
				t.Fatal(err)
			}
			mended(t, l)
			s.flows(100)
			r := s.end()
			t.Logf("%s-%s cut under %s -> %s: %d of %d lost, outage %.0f ms", names[0], names[1], from, to, r.Lost(), r.Sent, r.Outage)
			if r.Error != "" || r.Outage > float64(v.most.Milliseconds()) {
				t.Errorf("outage %.0f ms, want at most %v; %s", r.Outage, v.most, r.Error)
			}
			if err := l.LinkUp(context.Background(), names[0], names[1]); err != nil {
				t.Fatal(err)
			}
			settled(c, l)
			pingAll(t, l, true)
			explain(c)
		})
	}
}

var entryOf = regexp.MustCompile(`cookie=(0x[0-9a-f]+), duration=([0-9.]+)s, table=(\d+), n_packets=\d+, n_bytes=\d+,(?: idle_age=\d+,)?(.*)`)

// entries returns the age in seconds of every flow entry of every switch.
func entries(t *testing.T, l *lab.Lab) map[string]float64 {
	t.Helper()
	ages := map[string]float64{}
	for _, s := range l.Topology().Switches {
		lines, err := l.OfctlDumpFlows(context.Background(), s.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			m := entryOf.FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("cannot read %q", line)
			}
			age, _ := strconv.ParseFloat(m[2], 64)
			ages[s.Name+" "+m[1]+" "+m[3]+m[4]] = age
		}
	}
	return ages
}

func TestControllerRestart(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		name string
		set  []string
	}{{"plain", nil}, {"failover groups", []string{"forwarding.fast_failover=true"}}} {
		t.Run(v.name, func(t *testing.T) {
			c := start(t, options{set: append(v.set, patientLinks)})
			l := up(t, "demo", c)
			settled(c, l)
			pingAll(t, l, false)
			keepNeighbours(t, l)
			time.Sleep(3 * time.Second) // so that the age of an entry tells
			before := entries(t, l)
			routes := len(call(c, api.ListRoutes, &api.ListRoutesRequest{}).Routes)
			from, to, _ := distant(c, l)
			began := time.Now()
			result := steady(l, from, to, 4000, 2*time.Millisecond)
			c.stop()
			time.Sleep(time.Second)
			c = start(t, options{set: append(v.set, patientLinks), store: c.store, address: c.address})
			settled(c, l)
			eventually(t, "all routes adopted", func() bool {
				return len(call(c, api.ListRoutes, &api.ListRoutesRequest{}).Routes) == routes
			})
			if r := <-result; r.Lost() > 0 || r.Error != "" {
				t.Errorf("established flow disturbed: %d of %d lost %s", r.Lost(), r.Sent, r.Error)
			}
			time.Sleep(time.Second)
			passed := time.Since(began).Seconds()
			after := entries(t, l)
			for e, age := range before {
				if now, ok := after[e]; !ok {
					t.Errorf("gone: %s", e)
				} else if now < age+passed-0.5 {
					t.Errorf("rewritten: %s: %.1f s old, was %.1f s %.1f s ago", e, now, age, passed)
				}
			}
			for e := range after {
				if _, ok := before[e]; !ok {
					t.Errorf("new: %s", e)
				}
			}
			pingAll(t, l, false)
			explain(c)
		})
	}
}

package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
)

// seen are the packets that one client has seen.
type seen struct {
	mu      sync.Mutex // guards what follows
	packets []*api.WatchedPacket
	missed  uint32
	lines   int
	err     error
	end     context.CancelFunc
	ended   chan struct{}
}

// watchAt watches packets at a process until the test ends. While hold, if it is
// not nil, is open, the client does not read.
func watchAt(c *cluster, process string, r *api.WatchPacketsRequest, hold <-chan struct{}) *seen {
	ctx, cancel := context.WithCancel(context.Background())
	s := &seen{end: cancel, ended: make(chan struct{})}
	c.t.Cleanup(cancel)
	go func() {
		defer close(s.ended)
		err := c.process(process).node.WatchPackets(ctx, r, time.Minute, func(line *api.WatchPacketsResponse) error {
			if line.Packet != nil && hold != nil {
				<-hold
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.lines++
			s.missed += line.Missed
			if line.Packet != nil {
				s.packets = append(s.packets, line.Packet)
			}
			return nil
		})
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
	}()
	c.eventually("the watch has begun", func() bool { return s.line() > 0 })
	return s
}

func (s *seen) line() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines
}

func (s *seen) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.packets)
}

// until sends packets until a client has seen some: a watch reaches all processes
// within a moment.
func (s *seen) until(c *cluster, from *session, n int) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%d packets are seen", n), func() bool {
		from.send(1)
		time.Sleep(5 * time.Millisecond)
		return s.count() >= n
	})
}

// TestWatchPackets watches packets, from the process that reads them and from
// another, in one process and in several: every packet has each stage that has seen
// it, with where it was and how the packet came there.
func TestWatchPackets(t *testing.T) {
	for name, at := range map[string][]string{
		"one process": {"southbound, discovery, hosts, firewall, forwarding", "idle", "idle", "idle"},
		"three":       {"southbound, discovery", "hosts, firewall", "idle, forwarding", "idle"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, staged(), stageSetup())
			c.apply(placed(at...))
			c.startAll()
			sb := c.run("southbound")
			s := open(sb, 5)
			defer s.pipeline.Close()
			idle := "w2"
			here, there := watchAt(c, sb.process, &api.WatchPacketsRequest{}, nil), watchAt(c, idle, &api.WatchPacketsRequest{Dpid: "5"}, nil)
			here.until(c, s, 20)
			there.until(c, s, 20)
			s.complete(c)
			for _, w := range []*seen{here, there} {
				w.mu.Lock()
				for _, p := range w.packets {
					checkWalk(c, sb.process, p)
				}
				w.mu.Unlock()
			}
			for _, w := range []*seen{here, there} {
				w.end()
				<-w.ended
			}
			for _, process := range c.names() {
				r := c.process(process).node.Worker().Recorder()
				c.eventually("nothing is recorded in "+process, func() bool { return !r.On() })
			}
		})
	}
}

func checkWalk(c *cluster, reader string, p *api.WatchedPacket) {
	c.t.Helper()
	if p.Process != reader || p.Dpid != "0000000000000005" || p.InPort == 0 || p.Summary == "" || p.DurationUs <= 0 || !slices.Contains([]string{"done", "drop"}, p.Verdict) {
		c.t.Errorf("packet %v", p)
	}
	if len(p.Missing) > 0 { // a process did not answer in time, and is named
		for _, process := range p.Missing {
			if c.process(process) == nil || process == reader {
				c.t.Errorf("nothing is known from %s: %v", process, p)
			}
		}
		return
	}
	if len(p.Stages) == 0 || p.Stages[len(p.Stages)-1].Verdict != p.Verdict {
		c.t.Fatalf("stages %v of a packet with verdict %s", p.Stages, p.Verdict)
	}
	for i, s := range p.Stages {
		want := "inproc"
		where := c.run(s.Service).process
		if where != reader {
			want = "grpc"
		}
		if s.Service != stageNames[i] || s.Process != where || s.Transport != want || len(s.Operations) != 1 {
			c.t.Errorf("stage %d: %v; want %s in %s by %s", i, s, stageNames[i], where, want)
		}
		if s.StartUs < 0 || s.DurationUs < 0 || s.StartUs+s.DurationUs > p.DurationUs {
			c.t.Errorf("stage %v of a packet that took %v us", s, p.DurationUs)
		}
	}
}

// TestWatchDifferentPackets has two clients at one process watch different
// packets, one of which does not read: it misses some, and the other none.
func TestWatchDifferentPackets(t *testing.T) {
	c := newCluster(t, staged(), stageSetup())
	c.apply("{name: a, events: grpc, workers: {w: {services: [southbound, discovery, hosts]}, r: {services: [firewall, forwarding, idle]}}}")
	c.startAll()
	s := open(c.run("southbound"), 1)
	defer s.pipeline.Close()
	hold := make(chan struct{})
	slow := watchAt(c, "r", &api.WatchPacketsRequest{}, hold)
	one := watchAt(c, "r", &api.WatchPacketsRequest{Match: map[string]string{"in_port": "1"}}, nil)
	two := watchAt(c, "r", &api.WatchPacketsRequest{Match: map[string]string{"in_port": "2"}}, nil)
	one.until(c, s, 70)
	two.until(c, s, 70)
	s.complete(c)
	close(hold)
	for port, w := range map[uint32]*seen{1: one, 2: two} {
		w.mu.Lock()
		for _, p := range w.packets {
			if p.InPort != port {
				t.Errorf("a client that wants port %d gets port %d", port, p.InPort)
			}
		}
		if w.missed != 0 {
			t.Errorf("%d packets are missed, though one reads", w.missed)
		}
		w.mu.Unlock()
	}
	slow.until(c, s, 100)
}

// TestWatchIsBounded: at most so many packets a second, and so many clients.
func TestWatchIsBounded(t *testing.T) {
	c := newCluster(t, staged(), stageSetup())
	c.apply("{name: a, events: grpc, workers: {w: {services: [southbound, discovery, hosts, firewall, forwarding, idle]}}}")
	c.startAll()
	s := open(c.run("southbound"), 1)
	defer s.pipeline.Close()
	w := watchAt(c, "w", &api.WatchPacketsRequest{MaxPerS: 10}, nil)
	w.until(c, s, 1)
	began, before := time.Now(), w.count()
	for time.Since(began) < time.Second {
		s.send(10)
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(600 * time.Millisecond)
	n, took := w.count()-before, time.Since(began)
	if most := 10 * (int(took/time.Second) + 2); n > most { // the seconds do not begin with the first packet
		t.Errorf("%d packets in %v, want at most %d", n, took, most)
	}
	for range local.MostWatches - 1 {
		watchAt(c, "w", &api.WatchPacketsRequest{}, nil)
	}
	err := c.process("w").node.WatchPackets(t.Context(), &api.WatchPacketsRequest{}, time.Minute, func(*api.WatchPacketsResponse) error { return nil })
	if api.KindOf(err) != codes.ResourceExhausted {
		t.Errorf("one client too many: %v", err)
	}
	for _, r := range []*api.WatchPacketsRequest{{MaxPerS: 101}, {Match: map[string]string{"ham": "1"}}, {Dpid: "ham"}} {
		if err := c.process("w").node.WatchPackets(t.Context(), r, time.Minute, func(*api.WatchPacketsResponse) error { return errors.New("no") }); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", r, err)
		}
	}
}

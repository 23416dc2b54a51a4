package southbound

import (
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/services/southbound/session"
	"github.com/weft-sdn/weft/wefttest"
)

// overTCP restarts nothing: it is newWorld with a TCP socket, whose buffers
// are bounded.
func overTCP(t *testing.T, h *wefttest.Harness, config string) *world {
	t.Helper()
	address, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	h.Configure("listen: [\"tcp:" + address + "\"]\n" + endless(config))
	h.Start()
	return &world{t, h, "tcp", address}
}

// TestCVE_2017_1000357: a switch that refuses to read costs its own connection
// only. What waits for it is bounded; what exceeds that is refused and counted.
func TestCVE_2017_1000357_SlowReader(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		w := overTCP(t, h, "queue_bytes: 131072\nwrite_timeout: 1s\necho_interval: 100ms")
		w.device(oftest.Config{DPID: 1})
		c := w.joined(9)
		_ = c.conn.(*net.TCPConn).SetReadBuffer(4096)
		out := &flow.Decision{}
		data := make([]byte, 1400)
		for range 100 {
			out.PacketOut(9, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: out.Actions(flow.Output(1)), Data: data})
		}
		// Until its connection is ended: that the queue is full once does not say that the switch
		// does not read, only that the queue is filled faster than it is written.
		var sending sync.WaitGroup
		var gone atomic.Bool
		sending.Go(func() {
			for !gone.Load() {
				if _, err := wefttest.Call(h, api.Send, out); err != nil {
					t.Error(err)
					return
				}
			}
		})
		w.works(1)
		reason := w.down(9)
		gone.Store(true)
		sending.Wait()
		if !strings.Contains(reason, "not read") {
			t.Errorf("reason %q", reason)
		}
		if h.Metric("messages_shed_total", "reason", "queue_full") == 0 {
			t.Error("nothing was shed: the queue has no bound, or it is not counted")
		}
		w.works(1)
	})
}

// TestSlowReaderInPipeline: a switch whose packets have rules written to one
// that does not read is not held up by that.
func TestSlowReaderInPipeline(t *testing.T) {
	wefttest.Run(t, Spec(), func(t *testing.T, h *wefttest.Harness) {
		answered := make(chan struct{}, 1<<16)
		data := make([]byte, 1400)
		h.Stage(func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
			for range 20 {
				d.PacketOut(9, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: d.Actions(flow.Output(1)), Data: data})
			}
			answered <- struct{}{}
			return flow.Done
		})
		w := overTCP(t, h, "queue_bytes: 131072\nwrite_timeout: 1h")
		stuck := w.joined(9)
		_ = stuck.conn.(*net.TCPConn).SetReadBuffer(4096)
		c := w.joined(1)
		in := flow.PacketIn{BufferID: flow.BufferNone, Data: make([]byte, 60), TotalLen: 60, Key: flow.Key{InPort: 1}}
		msg, _ := v13.AppendPacketIn(nil, 0, &in)
		for range 1000 {
			c.send(msg, nil)
		}
		for range 1000 {
			select {
			case <-answered:
			case <-time.After(testwait.Limit):
				t.Fatal("packets of a switch wait for another that does not read")
			}
		}
		c.alive()
	})
}

// TestCVE_2017_13763: messages that are declared long and never finished cost
// their connections, and no more memory than a receive buffer each.
func TestCVE_2017_13763_SlowLoris(t *testing.T) {
	inAllModes(t, "echo_interval: 100ms\ndead_after: 2s\nhandshake_timeout: 2s", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		const many = 40
		var conns []*wire
		for i := range many {
			c := w.wire()
			if i%2 == 0 {
				c.join(flow.DPID(100 + i))
			}
			c.send([]byte{4, 10, 0xff, 0xff, 0, 0, 0, 1}, nil)
			conns = append(conns, c)
		}
		stop := make(chan struct{})
		var drip sync.WaitGroup
		drip.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
				for _, c := range conns {
					c.send([]byte{0}, nil)
				}
			}
		})
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > many*4*session.ReadMax {
			t.Errorf("%d octets for %d connections", grown, many)
		}
		w.works(1)
		for _, c := range conns {
			c.closed()
		}
		close(stop)
		drip.Wait()
		w.works(1)
	})
}

// TestCVE_2017_1000361: of a flood of port-status messages a bounded number of
// events comes, the last of which tells the last state; another switch's comes
// through.
func TestCVE_2017_1000361_PortStatusFlood(t *testing.T) {
	inAllModes(t, "port_events_per_second: 20\necho_interval: 200ms", func(t *testing.T, w *world) {
		quick := w.device(oftest.Config{DPID: 1})
		c := w.joined(9)
		const flood = 20_000
		var b []byte
		for i := range flood {
			desc := portDesc(1, i%2 == 1) // up in the end
			if i == flood-1 {
				desc.Name = "last"
			}
			b, _ = v13.AppendPortStatus(b, 0, openflow.PortModified, &desc)
		}
		start := time.Now()
		go c.conn.Write(b)
		quick.SetLink(3, false)
		events := 0
		for sawOther, sawLast := false, false; !sawLast || !sawOther; {
			e := wefttest.Next(w.h, api.PortChangedEvent)
			events++
			if e.Port.Dpid == flow.DPID(1).String() {
				sawOther = true
			} else {
				sawLast = e.Port.Name == "last" && e.Port.Up
			}
		}
		took := time.Since(start)
		if limit := 2*20 + int(20*took.Seconds()) + 5; events > limit {
			t.Errorf("%d events within %v, want at most %d", events, took, limit)
		}
		wefttest.None(w.h, api.PortChangedEvent, 50*time.Millisecond)
		if n := w.h.Metric("port_events_held_total"); n < flood*9/10 {
			t.Errorf("%v held back, of %d", n, flood)
		}
		ports, err := wefttest.Call(w.h, api.ListPorts, &api.ListPortsRequest{Dpid: flow.DPID(9).String()})
		if err != nil || ports.Ports[0].Name != "last" {
			t.Errorf("%v, %v", ports, err)
		}
	})
}

// TestPortsComeAndGo: added, changed and removed ports are told of as they are.
func TestPortsComeAndGo(t *testing.T) {
	inAllModes(t, "", func(t *testing.T, w *world) {
		d := w.device(oftest.Config{DPID: 1, Ports: 2})
		want := func(no uint32, up, removed bool) {
			t.Helper()
			if e := wefttest.Next(w.h, api.PortChangedEvent); e.Port.Port != no || e.Port.Up != up || e.Removed != removed {
				t.Errorf("%v, want port %d up %v removed %v", e, no, up, removed)
			}
		}
		d.SetLink(1, false)
		want(1, false, false)
		d.Do(func(s *oftest.Switch) oftest.Effects { return s.AddPort(7) })
		want(7, true, false)
		d.Do(func(s *oftest.Switch) oftest.Effects { return s.RemovePort(2) })
		want(2, true, true)
		r, err := wefttest.Call(w.h, api.ListPorts, &api.ListPortsRequest{})
		if err != nil || len(r.Ports) != 2 || r.Ports[0].Port != 1 || r.Ports[0].Up || r.Ports[1].Port != 7 {
			t.Errorf("%v, %v", r, err)
		}
	})
}

// descriptors counts this process's open files.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestManySessions has 500 switches connect at once and be programmed, and the
// service stop: that closes all connections, and goroutines and files are as
// many as before.
func TestManySessions(t *testing.T) {
	const many = 500
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	inAllModes(t, "", func(t *testing.T, w *world) {
		start := time.Now()
		var ended []<-chan error
		var devices []*oftest.Device
		for i := range many {
			d := oftest.NewDevice(oftest.Config{DPID: flow.DPID(i + 1), Tables: 1}, nil)
			devices = append(devices, d)
			ended = append(ended, w.dial(d))
		}
		for range many {
			if e := wefttest.Next(w.h, api.SwitchChangedEvent); !e.Switch.Connected {
				t.Fatalf("%v", e)
			}
		}
		connected := time.Since(start)
		ops := &flow.Decision{}
		for i := range many {
			addFlow(ops, flow.DPID(i+1), 5)
		}
		if r := w.apply(ops); len(r.Failures) != 0 {
			t.Fatal(r.Failures[0])
		}
		for _, d := range devices {
			if len(d.Flows()) != 1 {
				t.Fatalf("switch %v has %d entries", d.DPID(), len(d.Flows()))
			}
		}
		t.Logf("%d switches connected within %v, programmed after %v", many, connected, time.Since(start))
		start = time.Now()
		w.h.Stop()
		for _, e := range ended {
			select {
			case <-e:
			case <-time.After(testwait.Limit):
				t.Fatal("a connection is open after the service has stopped")
			}
		}
		t.Logf("stopped within %v", time.Since(start))
	})
	for end := time.Now().Add(testwait.Limit); runtime.NumGoroutine() > goroutines || descriptors(t) > files; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d files; before: %d, %d\n%s", runtime.NumGoroutine(), descriptors(t), goroutines, files, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// TestReconnectsLeaveNothing: sessions that come and go leave neither
// goroutines nor files behind.
func TestReconnectsLeaveNothing(t *testing.T) {
	inAllModes(t, "new_sessions_per_second: 10000", func(t *testing.T, w *world) {
		w.device(oftest.Config{DPID: 1})
		c := w.joined(9)
		c.conn.Close()
		w.down(9)
		goroutines, files := runtime.NumGoroutine(), descriptors(t)
		for range 100 {
			c := w.joined(9)
			c.conn.Close()
			w.down(9)
		}
		w.eventually("goroutines and files are as many as before", func() bool {
			return runtime.NumGoroutine() <= goroutines && descriptors(t) <= files
		})
	})
}

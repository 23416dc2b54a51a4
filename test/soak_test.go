//go:build soak

package test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/lab"
)

// soakVariable says for how long TestSoak runs, as 30m.
const soakVariable = "WEFT_SOAK"

// vitals are what must not grow.
type vitals struct {
	heap       uint64 // octets in use after a collection
	goroutines int
	files      int
	frames     uint64 // sent so far
	routes     uint64 // programmed so far
	mishaps    int    // so far
}

func takeVitals(t *testing.T) (v vitals) {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return vitals{heap: m.HeapAlloc, goroutines: runtime.NumGoroutine(), files: len(files)}
}

// TestSoak churns for a long time: new flows from addresses that come and go,
// as fast as hosts can send them, entries of the operator's added and deleted,
// links and switches that fail and come back. Memory in use, goroutines and
// open files stay what they were.
func TestSoak(t *testing.T) {
	length := 30 * time.Minute
	if text := os.Getenv(soakVariable); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := number(t, seedVariable, 20)
	x := &chaos{t: t, rng: rand.New(rand.NewPCG(seed, 0)), cut: map[int]bool{}, dead: map[string]bool{}, plugs: map[string]bool{}}
	x.c = start(t, options{set: []string{"forwarding.idle_timeout=2s", "hosts.port_limit=10000", "hosts.age=20s", "flowrules.verify_interval=5s"}})
	x.l = up(t, "random:6,3,7", x.c)
	settled(x.c, x.l)
	pingAll(t, x.l, false) // so that everybody is known
	ctx, stop := context.WithTimeout(context.Background(), length)
	defer stop()
	var work sync.WaitGroup
	var sent atomic.Uint64
	for i, h := range x.l.Topology().Hosts {
		w := attach(t, x.l, h.Name)
		to := x.l.Topology().Hosts[(i+1)%len(x.l.Topology().Hosts)]
		work.Go(func() { churn(ctx, w, uint64(i), flow.MAC(to.MAC), &sent) })
	}
	work.Go(func() { x.operate(ctx) })

	samples := 20
	var list []vitals
	mishap, sample := time.NewTicker(2*time.Second), time.NewTicker(length/time.Duration(samples+1))
	defer mishap.Stop()
	defer sample.Stop()
	did := 0
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-mishap.C:
			m := mishaps[x.rng.IntN(len(mishaps)-1)] // the last restarts the controller
			if what, err := m.do(x); err != nil {
				t.Fatalf("%s: %v", what, err)
			} else if what != "" {
				did++
			}
			// Hosts that have been away make themselves known.
			if _, err := x.l.PingAll(ctx, x.l.AllPairs(false), lab.PingOptions{Count: 1, Timeout: 200 * time.Millisecond, Parallel: 64}); err != nil {
				t.Fatal(err)
			}
		case <-sample.C:
			v := takeVitals(t)
			v.frames, v.routes, v.mishaps = sent.Load(), uint64(x.c.metric("weft_forwarding_route_changes_total", "kind", "programmed")), did
			if n := len(list); n > 0 && v.routes == list[n-1].routes {
				t.Errorf("no route programmed since the last sample")
			}
			list = append(list, v)
			t.Logf("%8v  heap %6.1f MB  goroutines %4d  files %4d  frames %9d  routes programmed %8d  mishaps %4d", (time.Duration(len(list)) * length / time.Duration(samples+1)).Round(time.Second),
				float64(v.heap)/1e6, v.goroutines, v.files, v.frames, v.routes, v.mishaps)
		}
	}
	work.Wait()
	if len(list) < 9 {
		t.Fatalf("%d samples", len(list))
	}
	// The first part is for tables to fill.
	early, late := list[len(list)/4:len(list)/2], list[3*len(list)/4:]
	for _, q := range []struct {
		name  string
		of    func(vitals) float64
		slack float64
	}{
		{"heap in use (octets)", func(v vitals) float64 { return float64(v.heap) }, 8e6},
		{"goroutines", func(v vitals) float64 { return float64(v.goroutines) }, 20},
		{"open files", func(v vitals) float64 { return float64(v.files) }, 5},
	} {
		before, after := median(early, q.of), median(late, q.of)
		t.Logf("%s: %.0f, later %.0f", q.name, before, after)
		if after > before*1.1+q.slack {
			t.Errorf("%s has grown from %.0f to %.0f", q.name, before, after)
		}
	}
	if last := list[len(list)-1]; last.routes == 0 || did == 0 {
		t.Errorf("nothing has happened: %d routes, %d mishaps", last.routes, did)
	}
}

func median(list []vitals, of func(vitals) float64) float64 {
	var figures []float64
	for _, v := range list {
		figures = append(figures, of(v))
	}
	slices.Sort(figures)
	return figures[len(figures)/2]
}

// churn sends packets of flows that are new, from 200 addresses at a time which
// are others every second.
func churn(ctx context.Context, w *wire, host uint64, to flow.MAC, sent *atomic.Uint64) {
	rng := rand.New(rand.NewPCG(host, 1))
	for ctx.Err() == nil {
		era := uint64(time.Now().Unix())
		src := flow.MACFrom(0x020000000000 | host<<32 | (era&0xfff)<<8 | rng.Uint64N(200))
		frame := append(append(append(make([]byte, 0, 60), to[:]...), src[:]...), 0x88, 0xb5)
		frame = binary.BigEndian.AppendUint64(frame, rng.Uint64())[:60]
		if w.try(frame) {
			sent.Add(1)
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// operate adds and deletes entries of the operator's.
func (x *chaos) operate(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		sw := x.l.Topology().Switches[n%len(x.l.Topology().Switches)].DPID.String()
		e := &api.FlowEntry{Dpid: sw, Priority: 20000, Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": fmt.Sprintf("192.0.2.%d", n%200)}}
		call(x.c, api.AddFlows, &api.AddFlowsRequest{Flows: []*api.FlowEntry{e}, NoWait: true})
		if n >= 50 {
			old := n - 50
			call(x.c, api.DeleteFlows, &api.DeleteFlowsRequest{Flows: []*api.FlowEntry{{Dpid: x.l.Topology().Switches[old%len(x.l.Topology().Switches)].DPID.String(), Priority: 20000,
				Match: map[string]string{"eth_type": "0x0800", "ipv4_dst": fmt.Sprintf("192.0.2.%d", old%200)}}}})
		}
		_ = backoff.Sleep(ctx, 20*time.Millisecond)
	}
}

// try is send for an interface that may be down for a while.
func (w *wire) try(frame []byte) bool {
	_, err := unix.Write(w.fd, frame)
	return err == nil
}

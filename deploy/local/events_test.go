package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan"
)

// publisher starts a worker with the given subscribers and returns the
// environment of hosts, which publishes HostChanged.
func publisher(t testing.TB, c local.Config, subscribers ...weft.Spec) (env *weft.Env, stop func() error) {
	t.Helper()
	ready := make(chan struct{})
	spec := weft.Spec{Name: "hosts", Publishes: weft.Subjects(api.HostChangedEvent, api.HostsSettledEvent), Run: func(ctx context.Context, e *weft.Env) error {
		env = e
		close(ready)
		return weft.Serve(ctx, e)
	}}
	c.Specs = append([]weft.Spec{spec}, subscribers...)
	stop = start(t, c)
	<-ready
	return env, stop
}

// hearing subscribes to HostChanged with a function.
func hearing(h func(context.Context, *api.HostChanged)) weft.Spec {
	return listener(func(ctx context.Context, env *weft.Env) error {
		weft.On(env, api.HostChangedEvent, h)
		return weft.Serve(ctx, env)
	})
}

func numbered(i int) *api.HostChanged { return &api.HostChanged{Change: strconv.Itoa(i)} }

func TestEventsKeepOrderAndDoNotOverlap(t *testing.T) {
	const total = 5000
	inBothModes(t, func(t *testing.T, encoded bool) {
		var got []string
		var busy atomic.Bool
		done := make(chan struct{})
		env, _ := publisher(t, local.Config{Encoded: encoded}, hearing(func(_ context.Context, e *api.HostChanged) {
			if busy.Swap(true) {
				t.Error("two handlers at once")
			}
			defer busy.Store(false)
			if got = append(got, e.GetChange()); len(got) == total {
				close(done)
			}
		}))
		for i := range total {
			weft.Publish(env, api.HostChangedEvent, numbered(i))
		}
		<-done
		for i, s := range got {
			if s != strconv.Itoa(i) {
				t.Fatalf("event %d is %s", i, s)
			}
		}
	})
}

func TestEventsBeforeReadyAreKept(t *testing.T) {
	inBothModes(t, func(t *testing.T, encoded bool) {
		published := make(chan struct{})
		heard := make(chan string, 1)
		early := weft.Spec{Name: "hosts", Publishes: weft.Subjects(api.HostChangedEvent), Run: func(ctx context.Context, env *weft.Env) error {
			weft.Publish(env, api.HostChangedEvent, numbered(7))
			close(published)
			return weft.Serve(ctx, env)
		}}
		late := listener(func(ctx context.Context, env *weft.Env) error {
			<-published
			weft.On(env, api.HostChangedEvent, func(_ context.Context, e *api.HostChanged) { heard <- e.GetChange() })
			return weft.Serve(ctx, env)
		})
		start(t, local.Config{Encoded: encoded, Specs: []weft.Spec{early, late}})
		if got := <-heard; got != "7" {
			t.Errorf("heard %s, want 7", got)
		}
	})
}

func TestFullQueueMakesPublisherWait(t *testing.T) {
	inBothModes(t, func(t *testing.T, encoded bool) {
		release := make(chan struct{})
		var heard, published atomic.Int64
		var log bytes.Buffer
		registry := prometheus.NewRegistry()
		env, stop := publisher(t, local.Config{Encoded: encoded, Log: logTo(&log), Registry: registry}, hearing(func(context.Context, *api.HostChanged) {
			<-release
			heard.Add(1)
		}))
		const total = 70000
		done := make(chan struct{})
		go func() {
			defer close(done)
			e := numbered(0)
			for range total {
				weft.Publish(env, api.HostChangedEvent, e)
				published.Add(1)
			}
		}()
		for value(t, registry, "weft_deploy_slow_publishes", "paths") == 0 {
			select {
			case <-done:
				t.Fatal("70,000 events published without waiting")
			case <-time.After(10 * time.Millisecond):
			}
		}
		if n := published.Load(); n < 65536 || n > 65536+64+1024+1 {
			t.Errorf("%d events taken before the publisher waited, want 65,536 and a batch", n)
		}
		if n := value(t, registry, "weft_deploy_queue_depth", "paths"); n < 65536 {
			t.Errorf("queue_depth %v, want at least 65,536", n)
		}
		close(release)
		<-done
		for heard.Load() < total {
			time.Sleep(time.Millisecond)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		wantError(t, errors.New(log.String()), "publisher has waited", "subject=hosts.HostChanged", "service=paths")
	})
}

func TestStopFreesWaitingPublisher(t *testing.T) {
	inBothModes(t, func(t *testing.T, encoded bool) {
		done := make(chan struct{})
		env, stop := publisher(t, local.Config{Encoded: encoded}, hearing(func(ctx context.Context, _ *api.HostChanged) { <-ctx.Done() }))
		go func() {
			defer close(done)
			for range 70000 {
				weft.Publish(env, api.HostChangedEvent, numbered(0))
			}
		}()
		time.Sleep(20 * time.Millisecond)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		<-done
	})
}

func TestPanicInEventHandlerIsSurvived(t *testing.T) {
	registry := prometheus.NewRegistry()
	var log bytes.Buffer
	heard := make(chan string, 1)
	env, stop := publisher(t, local.Config{Registry: registry, Log: logTo(&log)}, hearing(func(_ context.Context, e *api.HostChanged) {
		if e.GetChange() == "0" {
			panic("zero hosts")
		}
		heard <- e.GetChange()
	}))
	weft.Publish(env, api.HostChangedEvent, numbered(0))
	weft.Publish(env, api.HostChangedEvent, numbered(1))
	if got := <-heard; got != "1" {
		t.Errorf("heard %s, want 1", got)
	}
	if n := value(t, registry, "weft_deploy_panics", "paths"); n != 1 {
		t.Errorf("panics %v, want 1", n)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	wantError(t, errors.New(log.String()), "zero hosts", "events_test.go", "service=paths")
}

func TestSettled(t *testing.T) {
	inBothModes(t, func(t *testing.T, encoded bool) {
		var heard atomic.Int64
		var env *weft.Env
		ready := make(chan struct{})
		w, err := local.New(local.Config{Encoded: encoded, Specs: []weft.Spec{
			{Name: "hosts", Publishes: weft.Subjects(api.HostChangedEvent), Run: func(ctx context.Context, e *weft.Env) error {
				env = e
				close(ready)
				return weft.Serve(ctx, e)
			}},
			hearing(func(context.Context, *api.HostChanged) {
				time.Sleep(time.Millisecond)
				heard.Add(1)
			}),
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		<-ready
		for i := range 20 {
			weft.Publish(env, api.HostChangedEvent, numbered(i))
		}
		if err := w.Settled(ctx, "paths"); err != nil || heard.Load() != 20 {
			t.Errorf("settled after %d of 20 events, %v", heard.Load(), err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		wantError(t, w.Settled(context.Background(), "nobody"), "nobody")
	})
}

// value reads a figure of the worker's own for a service.
func value(t *testing.T, r *prometheus.Registry, name, service string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == service {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no figure %s for %s", name, service)
	return 0
}

// BenchmarkEventLatency is the time from Publish until the handler runs, with
// one event under way at a time.
func BenchmarkEventLatency(b *testing.B) {
	for _, encoded := range []bool{false, true} {
		b.Run(fmt.Sprintf("encoded=%v", encoded), func(b *testing.B) {
			var took time.Duration
			var at time.Time
			back := make(chan struct{})
			env, _ := publisher(b, local.Config{Encoded: encoded}, hearing(func(context.Context, *api.HostChanged) {
				took += time.Since(at)
				back <- struct{}{}
			}))
			e := numbered(1)
			for b.Loop() {
				at = time.Now()
				weft.Publish(env, api.HostChangedEvent, e)
				<-back
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns-to-handler")
		})
	}
}

// BenchmarkEvents is the cost of an event when they come without pause.
func BenchmarkEvents(b *testing.B) {
	env, _ := publisher(b, local.Config{}, hearing(func(context.Context, *api.HostChanged) {}))
	e := numbered(1)
	b.ReportAllocs()
	for b.Loop() {
		weft.Publish(env, api.HostChangedEvent, e)
	}
}

// TestPipeline checks order, verdicts, absent stages and the view of stages on
// packet and decision, by pointer and encoded.
func TestPipeline(t *testing.T) {
	inBothModes(t, func(t *testing.T, encoded bool) {
		var order []string
		stage := func(name string, f weft.StageFunc) weft.Spec {
			return stageSpec(name, func(sw flow.DPID) weft.StageFunc {
				if f == nil {
					return nil
				}
				return func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
					order = append(order, fmt.Sprint(name, uint64(sw)))
					return f(in, d)
				}
			})
		}
		open := pipeline(t, local.Config{Encoded: encoded},
			stage("forwarding", func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
				d.PacketOut(in.Switch, flow.PacketOut{InPort: in.Src.Port})
				switch in.Data[0] {
				case 1:
					return flow.Done
				case 2:
					panic("cannot forward")
				}
				return flow.Next
			}),
			stage("hosts", func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
				in.Src = flow.Location{Switch: in.Switch, Port: 9}
				return flow.Next
			}),
			stage("nat", nil),
			stage("discovery", func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
				if in.Data[0] == 0 {
					return flow.Drop
				}
				return flow.Next
			}),
		)
		walk := open(5)
		for _, c := range []struct {
			data    byte
			verdict flow.Verdict
			order   string
			ops     int
		}{
			{0, flow.Drop, "[discovery5]", 0},
			{1, flow.Done, "[discovery5 hosts5 forwarding5]", 1},
			{2, flow.Drop, "[discovery5 hosts5 forwarding5]", 0}, // panics: nothing is done
			{3, flow.Next, "[discovery5 hosts5 forwarding5]", 1},
		} {
			order = nil
			in, d := &flow.PacketIn{Switch: 5, Data: []byte{c.data, 7}}, &flow.Decision{}
			v := walk(in, d)
			if v != c.verdict || fmt.Sprint(order) != c.order || len(d.Ops) != c.ops {
				t.Errorf("packet %d: verdict %v, order %v, %d operations; want %v, %s, %d", c.data, v, order, len(d.Ops), c.verdict, c.order, c.ops)
			}
			if c.ops == 1 && (d.Outs[0].InPort != 9 || in.Src.Port != 9 || !bytes.Equal(in.Data, []byte{c.data, 7})) {
				t.Errorf("packet %d: stages do not see each other's additions: %+v, %+v", c.data, in, d.Outs)
			}
		}
	})
}

func stageSpec(name string, open func(flow.DPID) weft.StageFunc) weft.Spec {
	return weft.Spec{Name: name, Stage: true, Run: func(ctx context.Context, env *weft.Env) error {
		weft.Stage(env, open)
		return weft.Serve(ctx, env)
	}}
}

// pipeline starts a worker with stages and returns what opens their pipeline.
func pipeline(t testing.TB, c local.Config, stages ...weft.Spec) func(flow.DPID) weft.StageFunc {
	t.Helper()
	var env *weft.Env
	c.Specs = append(stages, weft.Spec{Name: "southbound", Pipeline: true, Run: func(ctx context.Context, e *weft.Env) error {
		env = e
		return weft.Serve(ctx, e)
	}})
	start(t, c)
	return func(sw flow.DPID) weft.StageFunc { return weft.OpenPipeline(env, sw, nil).Packet }
}

// TestPanicInStageIsTheStages checks that a panic is counted where it comes
// from.
func TestPanicInStageIsTheStages(t *testing.T) {
	registry := prometheus.NewRegistry()
	next := func(flow.DPID) weft.StageFunc {
		return func(*flow.PacketIn, *flow.Decision) flow.Verdict { return flow.Next }
	}
	broken := func(flow.DPID) weft.StageFunc {
		return func(*flow.PacketIn, *flow.Decision) flow.Verdict { panic("no port") }
	}
	open := pipeline(t, local.Config{Registry: registry}, stageSpec("discovery", next), stageSpec("hosts", broken), stageSpec("forwarding", next))
	if v := open(1)(&flow.PacketIn{}, &flow.Decision{}); v != flow.Drop {
		t.Errorf("verdict %v, want Drop", v)
	}
	for name, want := range map[string]float64{"discovery": 0, "hosts": 1, "forwarding": 0, "southbound": 0} {
		if n := value(t, registry, "weft_deploy_panics", name); n != want {
			t.Errorf("%v panics of %s, want %v", n, name, want)
		}
	}
}

func BenchmarkPipeline(b *testing.B) {
	for _, n := range []int{1, 3} {
		b.Run(fmt.Sprintf("stages=%d", n), func(b *testing.B) {
			var specs []weft.Spec
			for _, name := range plan.DefaultPipeline()[:n] {
				specs = append(specs, stageSpec(name, func(flow.DPID) weft.StageFunc {
					return func(in *flow.PacketIn, _ *flow.Decision) flow.Verdict { in.Role = flow.RoleEdge; return flow.Next }
				}))
			}
			walk := pipeline(b, local.Config{}, specs...)(1)
			in, d := &flow.PacketIn{}, &flow.Decision{}
			b.ReportAllocs()
			for b.Loop() {
				walk(in, d)
			}
		})
	}
}

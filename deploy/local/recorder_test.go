package local

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
)

// order asks for packets as another process does.
func order(asker uint64, after uint64, wanted ...*api.WatchPacketsRequest) *api.WatchOrder {
	o := &api.WatchOrder{Asker: asker, After: after}
	for i, w := range wanted {
		o.Watches = append(o.Watches, &api.PacketWatch{Id: asker<<8 + uint64(i), Wanted: w})
	}
	return o
}

func arp(n int64) *flow.PacketIn {
	in := &flow.PacketIn{Switch: 1, Time: n, Data: make([]byte, 60), Parsed: true}
	in.Key.EthType, in.Key.InPort, in.Key.ARPOp = flow.EthTypeARP, 3, 1
	return in
}

// TestRecorderMatches records the packets that are asked for, each once, with the
// ids of those who want it.
func TestRecorderMatches(t *testing.T) {
	r := &Recorder{process: "w", life: time.Hour}
	if r.begin(arp(1), new(lottery)); r.On() {
		t.Error("something is recorded, and nobody watches")
	}
	all, ip := &api.WatchPacketsRequest{}, &api.WatchPacketsRequest{Match: map[string]string{"eth_type": "0x0800"}}
	other := &api.WatchPacketsRequest{Dpid: "2"}
	r.Watch(order(1, 0, all, ip, other, all))
	in := arp(time.Second.Nanoseconds())
	if r.begin(in, new(lottery)); !r.Watches(in.Trace) {
		t.Fatalf("trace %x is not watched", in.Trace)
	}
	r.Span(Span{Trace: in.Trace, Name: "hosts", Began: time.Unix(1, 0), Ended: time.Unix(1, 5), Verdict: flow.Drop})
	r.Span(Span{Trace: in.Trace, Name: RootSpan, Root: true})
	got := r.Watch(order(1, 0, all, ip, other, all))
	if len(got.Spans) != 3 || got.Next != 3 || got.More || fmt.Sprint(got.Spans[0].Watches) != "[256 259]" || got.Spans[0].Packet.Summary != "00:00:00:00:00:00 > 00:00:00:00:00:00, ARP request 0.0.0.0 > 0.0.0.0, 60 octets" {
		t.Fatalf("recorded %v", got)
	}
	if s := got.Spans[1]; s.Service != "hosts" || s.Verdict != "drop" || s.Trace != in.Trace || !got.Spans[2].End {
		t.Errorf("recorded %v", got)
	}
	fewer := order(1, got.Next, ip)
	fewer.Watches[0].Id++ // that of the second
	if got := r.Watch(fewer); len(got.Spans) != 0 {
		t.Errorf("told again: %v", got)
	}
	if r.begin(in, new(lottery)); in.Trace != 0 {
		t.Error("a packet is recorded that nobody wants any more")
	}
	r.Watch(order(1, 0))
	if r.On() || r.timer != nil {
		t.Error("it goes on after the last has ended")
	}
}

// TestRecorderHolds records what others choose for a watch that is held, and
// chooses nothing for it.
func TestRecorderHolds(t *testing.T) {
	r := &Recorder{process: "w", life: time.Hour}
	o := order(1, 0, &api.WatchPacketsRequest{})
	o.Watches[0].Hold = true
	r.Watch(o)
	in := arp(1)
	if r.begin(in, new(lottery)); in.Trace != 0 {
		t.Error("a packet is chosen while the watch is held")
	}
	r.Span(Span{Trace: traceWatched | 7, Name: "hosts"})
	o.Watches[0].Hold = false
	if got := r.Watch(o); len(got.Spans) != 1 {
		t.Errorf("of a packet that another process chose: %v", got)
	}
	if r.begin(in, new(lottery)); in.Trace == 0 {
		t.Error("no packet is chosen, though the watch is held no more")
	}
}

// exporter is a tracer that takes every second packet.
type exporter struct {
	seen  uint64
	spans []Span
}

func (e *exporter) Sample() uint64 { e.seen++; return e.seen % 2 * e.seen }
func (e *exporter) Span(s Span)    { e.spans = append(e.spans, s) }

// TestRecorderAndTracer: those who watch change nothing of what is exported.
func TestRecorderAndTracer(t *testing.T) {
	e := &exporter{}
	r := &Recorder{tracer: e, life: time.Hour}
	r.Watch(order(1, 0, &api.WatchPacketsRequest{}))
	for i := range 6 {
		in := arp(int64(i + 1))
		r.begin(in, new(lottery))
		r.Span(Span{Trace: in.Trace, Name: "hosts"})
	}
	if len(e.spans) != 3 || e.spans[0].Trace != 1 || e.spans[1].Trace != 3 || e.spans[2].Trace != 5 {
		t.Errorf("exported %v", e.spans)
	}
	if got := r.Watch(order(1, 0)); len(got.Spans) != 12 {
		t.Errorf("%d spans for who watches, want 12", len(got.Spans))
	}
}

// TestRecorderIsBounded: spans, askers, their watches, and packets in a second.
func TestRecorderIsBounded(t *testing.T) {
	r := &Recorder{life: time.Hour}
	for asker := range uint64(100) {
		var many []*api.WatchPacketsRequest
		for range 100 {
			many = append(many, &api.WatchPacketsRequest{})
		}
		r.Watch(order(asker, 0, many...))
	}
	if len(r.askers) != watchAskers || len(*r.watches.Load()) != watchMost {
		t.Errorf("%d askers, %d watches", len(r.askers), len(*r.watches.Load()))
	}
	var runs []int
	for second := range int64(3) {
		n := 0
		for i := range int64(1000) {
			in := arp(1 + (second*1000+i)*int64(time.Millisecond))
			if r.begin(in, new(lottery)); in.Trace != 0 {
				n++
			}
			for range 10 {
				r.Span(Span{Trace: in.Trace, Name: "hosts"})
			}
		}
		runs = append(runs, n)
	}
	for _, n := range runs {
		if n > MaxWatchRate || n < MaxWatchRate*3/4 {
			t.Errorf("%v packets per second, want at most %d, and not much less", runs, MaxWatchRate)
		}
	}
	for range 2 * ringSpans {
		r.Span(Span{Trace: traceWatched | 1, Name: "hosts"})
	}
	ring := r.packets.Load()
	if len(ring.spans) != ringSpans {
		t.Errorf("%d spans are kept, want %d", len(ring.spans), ringSpans)
	}
	if got := r.Watch(order(1, 0)); len(got.Spans) != answerSpans || !got.More {
		t.Errorf("%d spans in an answer, more %v", len(got.Spans), got.More)
	}
}

// TestPace: in no second more are admitted than may be, whenever they come, and
// nearly as many if there are enough.
func TestPace(t *testing.T) {
	for _, most := range []uint32{1, 2, 3, 10, 99, 100} {
		for _, apart := range []time.Duration{time.Microsecond, time.Millisecond, 7 * time.Millisecond} {
			var p Pace
			p.Set(most)
			var admitted []int64
			for now := int64(5); now < int64(3*time.Second); now += int64(apart) {
				if p.Admits(now) {
					admitted = append(admitted, now)
				}
			}
			for i := int(most); i < len(admitted); i++ {
				if within := admitted[i] - admitted[i-int(most)]; within < int64(time.Second) {
					t.Fatalf("at most %d a second: %d within %v", most, most+1, time.Duration(within))
				}
			}
			if n := len(admitted); n < int(most)*2 {
				t.Errorf("at most %d a second, one every %v: %d in 3 s", most, apart, n)
			}
		}
	}
}

// TestRecorderEnds: a watch that nobody renews ends by itself.
func TestRecorderEnds(t *testing.T) {
	r := &Recorder{life: 50 * time.Millisecond}
	r.Watch(order(1, 0, &api.WatchPacketsRequest{}))
	for end := time.Now().Add(testwait.Limit); r.On(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not end")
		}
	}
	runtime.GC()
	if r.packets.Load() != nil {
		t.Error("the ring is kept")
	}
}

// TestOperations describes a decision, and no more of it than is of use.
func TestOperations(t *testing.T) {
	d := &flow.Decision{}
	d.PacketOut(1, flow.PacketOut{Actions: []flow.Action{flow.Output(2)}})
	d.Flow(2, flow.Mod{Command: flow.Delete})
	d.Fence()
	if got := fmt.Sprint(Operations(d, 1)); got != "[delete flow at 0000000000000002: table=0 priority=0 any actions=drop wait until the switches have confirmed]" {
		t.Error(got)
	}
	for range 50 {
		d.PacketOut(1, flow.PacketOut{})
	}
	if got := Operations(d, 0); len(got) != operationsMost+1 || got[operationsMost] != "and 37 more" {
		t.Error(got)
	}
}

// BenchmarkWatch measures a packet-in on its way through a pipeline of five stages,
// when nobody watches and when one in 1,000 is watched: by turns, and the fastest
// turn of each counts, as the machine may be busy. The difference is to be at most
// 2 %.
func BenchmarkWatch(b *testing.B) {
	const turn = 4000 // packets
	for name, wanted := range map[string]*api.WatchPacketsRequest{
		"all":      {OneIn: 1000},
		"matching": {OneIn: 1000, Match: map[string]string{"eth_type": "0x0806"}},
	} {
		b.Run(name, func(b *testing.B) {
			p, in, d := benched(b), arp(time.Now().UnixNano()), &flow.Decision{}
			best := [2]time.Duration{time.Hour, time.Hour}
			for b.Loop() {
				for watched := range best {
					if p.owner.worker.recorder.Watch(order(1, 0)); watched == 1 {
						p.owner.worker.recorder.Watch(order(1, 0, wanted))
					}
					began := time.Now()
					for range turn {
						in.Time += 5000 // 200,000 packets a second
						d.Reset()
						p.Packet(in, d)
					}
					best[watched] = min(best[watched], time.Since(began))
				}
			}
			p.owner.worker.recorder.Watch(order(1, 0))
			b.ReportMetric(float64(best[0].Nanoseconds())/turn, "ns/packet-unwatched")
			b.ReportMetric(float64(best[1].Nanoseconds())/turn, "ns/packet-watched")
			b.ReportMetric(100*float64(best[1]-best[0])/float64(best[0]), "%-more")
		})
	}
}

// benched returns a pipeline of five stages.
func benched(b *testing.B) *pipeline {
	idle := func(ctx context.Context, env *weft.Env) error { return weft.Serve(ctx, env) }
	specs := []weft.Spec{{Name: "southbound", Pipeline: true, Run: idle}}
	var order []string
	for i, name := range []string{"discovery", "hosts", "firewall", "nat", "forwarding"} {
		order = append(order, name)
		specs = append(specs, weft.Spec{Name: name, Stage: true, Run: func(ctx context.Context, env *weft.Env) error {
			weft.Stage(env, func(sw flow.DPID) weft.StageFunc {
				var sum uint64
				return func(in *flow.PacketIn, d *flow.Decision) flow.Verdict {
					for j := range uint64(100) {
						sum = sum*31 + j ^ uint64(in.Time)
					}
					if i < 4 && sum != 1 {
						return flow.Next
					}
					d.PacketOut(sw, flow.PacketOut{Actions: d.Output(2)})
					return flow.Done
				}
			})
			return weft.Serve(ctx, env)
		}})
	}
	w, err := New(Config{Specs: specs, Pipeline: order})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-done })
	<-w.Started()
	return w.Running().Service("southbound").Pipeline(1, nil).(*pipeline)
}

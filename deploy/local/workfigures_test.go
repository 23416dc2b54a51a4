package local_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/flow"
)

// TestWorkOfAStage checks the live figures of a stage and their metrics.
func TestWorkOfAStage(t *testing.T) {
	var env *weft.Env
	registry := prometheus.NewRegistry()
	slow := func(flow.DPID) weft.StageFunc {
		return func(*flow.PacketIn, *flow.Decision) flow.Verdict {
			time.Sleep(50 * time.Microsecond)
			return flow.Done
		}
	}
	southbound := weft.Spec{Name: "southbound", Pipeline: true, Run: func(ctx context.Context, e *weft.Env) error {
		env = e
		return weft.Serve(ctx, e)
	}}
	w, err := local.New(local.Config{Registry: registry, Specs: []weft.Spec{stageSpec("hosts", slow), southbound}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	defer func() { cancel(); <-done }()
	select {
	case <-w.Started():
	case err := <-done:
		t.Fatal(err)
	}
	if got := w.Work(); len(got) != 0 {
		t.Fatalf("before the first packet: %v", got)
	}
	p := weft.OpenPipeline(env, 1, nil)
	const packets = 1280
	for i := range packets {
		in := &flow.PacketIn{Time: time.Now().Add(-time.Millisecond).UnixNano()}
		p.Packet(in, &flow.Decision{})
		if i%16 == 15 {
			p.Flush()
		}
	}
	list := w.Work()
	if len(list) != 1 || list[0].Service != "hosts" || list[0].Name != local.StageWork || list[0].Count() != packets {
		t.Fatalf("%+v, want %d packets of hosts", list, packets)
	}
	times := list[0].Times()
	if times.Count < packets/64-2 || times.Count > packets/64+2 || times.Mean() < 50e-6 || times.Squares < times.Sum*50e-6 {
		t.Errorf("service times %+v of %d packets of 50 us", times, packets)
	}
	if times.Waits != times.Count || times.WaitSum < float64(times.Waits)*1e-3 {
		t.Errorf("waiting times %+v, want 1 ms and more", times)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, f := range families {
		found[f.GetName()] = true
	}
	for _, name := range []string{"arrivals_total", "seconds", "seconds_squares", "wait_seconds"} {
		if !found["weft_deploy_work_"+name] {
			t.Errorf("no metric weft_deploy_work_%s", name)
		}
	}
}

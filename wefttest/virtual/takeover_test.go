package virtual

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

const standbyPlan = `name: standby
events: grpc
partial: true
workers:
  switches: {services: [southbound], standby: 1, settings: {southbound: {listen: ["tcp:127.0.0.1:6653"], standby_listen: ["tcp:127.0.0.1:6654"]}}}
  rest: {services: [discovery, hosts, paths, forwarding, flowrules, witness]}
`

// TestTakeover: within a second of the master's death, the standby programs the switches.
func TestTakeover(t *testing.T) {
	synctest.Test(t, takeover)
}

func takeover(t *testing.T) {
	w := newWorld(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	own, stop := context.WithCancel(ctx)
	a, b := w.addSwitch(), w.addSwitch()
	w.addLink(a, b)
	if err := w.cluster.apply(ctx, standbyPlan); err != nil {
		t.Fatal(err)
	}
	supervised := make(chan struct{})
	go func() { defer close(supervised); w.cluster.supervise(own) }()
	defer func() {
		stop()
		<-supervised
		for _, p := range w.cluster.all() {
			w.cluster.kill(p)
		}
		cancel()
		w.work.Wait()
	}()
	w.powerOn(ctx, a)
	w.powerOn(ctx, b)
	time.Sleep(20 * time.Second)
	n := 0
	programmed := func() bool {
		n++
		resp, err := weft.Call(ctx, w.cluster.present().env, api.AddFlows, &api.AddFlowsRequest{Flows: []*api.FlowEntry{entryOf(a.sw, n), entryOf(b.sw, n)}})
		if err != nil {
			return false
		}
		for _, f := range resp.Flows {
			if f.State != "confirmed" {
				return false
			}
		}
		return true
	}
	if err := w.masters(); err != nil || !programmed() {
		t.Fatalf("not programmed before: %v\n%s", err, w.logs.b.String())
	}
	for range 5 { // the one and the other in turn
		for _, p := range w.cluster.all() {
			if figures, err := p.figures(); err == nil && figures["weft_southbound_lease_held"] > 0 {
				w.cluster.kill(p)
			}
		}
		began := time.Now()
		for !programmed() && time.Since(began) < time.Minute {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("programmed %v after the master's death", took)
		} else {
			t.Logf("programmed %v after the master's death", took)
		}
		time.Sleep(20 * time.Second) // until the former master stands by
		if err := w.masters(); err != nil {
			t.Error(err)
		}
	}
}

package intake

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// decision sends a packet with a number, behind a fence if it is to have one.
func decision(d *flow.Decision, sw flow.DPID, n, size int, fenced bool) *flow.Decision {
	d.Reset()
	if fenced {
		d.Fence()
	}
	data := make([]byte, size)
	data[0], data[1] = byte(n>>8), byte(n)
	d.PacketOut(sw, flow.PacketOut{BufferID: flow.BufferNone, Actions: d.Output(1), Data: data})
	return d
}

// TestCarryOrder: those of a switch go in their order, joined while a call is
// under way, and one with a fence by itself.
func TestCarryOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := map[flow.DPID]int{}
		most, fences := 0, 0
		c := newSender(func(_ context.Context, d *flow.Decision) (*api.ApplyResult, error) {
			time.Sleep(time.Millisecond)
			for _, op := range d.Ops {
				if op.Kind == flow.OpFence {
					if fences++; len(d.Ops) != 2 {
						t.Errorf("a decision with a fence goes with %d operations", len(d.Ops))
					}
					continue
				}
				data := d.Outs[op.Index].Data
				if n := int(data[0])<<8 | int(data[1]); n != last[op.Switch] {
					t.Fatalf("%d of switch %v, want %d", n, op.Switch, last[op.Switch])
				}
				last[op.Switch]++
			}
			most = max(most, len(d.Ops))
			return &api.ApplyResult{}, nil
		}, discard())
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { c.run(ctx); close(done) }()
		d := &flow.Decision{}
		const count = 500
		for n := range count {
			c.enqueue(1, decision(d, 1, n, 100, n%50 == 3))
			if n%20 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		cancel()
		<-done
		if last[1] != count || fences != 10 || most < 5 {
			t.Errorf("%d carried, %d fences, at most %d at once", last[1], fences, most)
		}
		if c.calls.Load() > count/2 {
			t.Errorf("%d calls for %d decisions", c.calls.Load(), count)
		}
	})
}

// TestCarryIsBounded: while the southbound takes nothing, so much waits and no
// more; who brings more waits, and in the end it is shed.
func TestCarryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := newSender(func(ctx context.Context, _ *flow.Decision) (*api.ApplyResult, error) {
			select {
			case <-release:
				return &api.ApplyResult{Failures: []*api.ApplyFailure{{Text: "the switch is not connected"}}}, nil
			case <-ctx.Done():
				return nil, errors.New("the southbound is away")
			}
		}, discard())
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { c.run(ctx); close(done) }()
		d := &flow.Decision{}
		took := 0
		began := time.Now()
		for ; time.Since(began) == 0; took++ {
			c.enqueue(1, decision(d, 1, took, 60_000, false))
		}
		if took*60_000 > 2*queueMost {
			t.Errorf("%d octets wait", took*60_000)
		}
		if time.Since(began) > waitMost {
			t.Errorf("the next waited for %v", time.Since(began))
		}
		synctest.Wait()
		if c.shed.away.Load() == 0 {
			t.Error("what the southbound did not take is not counted")
		}
		close(release)
		cancel()
		<-done
		if c.failed.Load() == 0 {
			t.Error("what could not be sent is not counted")
		}
		if l := &c.queues[0]; l.octets != 0 {
			t.Errorf("%d octets are left", l.octets)
		}
	})
}

package discovery

import (
	"bytes"
	"context"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// TestReturns: probes come as they are, in order; those that are too many or too long cost
// nothing beyond the bounds.
func TestReturns(t *testing.T) {
	r := make(returns, returnsMost)
	in := &flow.PacketIn{Switch: 7}
	for n := range returnsMost + 10 {
		in.Key.InPort, in.Data = flow.Port(n+1), bytes.Repeat([]byte{byte(n)}, n)
		r.put(in)
	}
	ctx, cancel := context.WithCancel(t.Context())
	next := 0
	r.run(ctx, func(e *api.ProbeReturned) {
		want := bytes.Repeat([]byte{byte(next)}, min(next, returnedMost))
		if next++; e.At.Flow() != (flow.Location{Switch: 7, Port: flow.Port(next)}) || !bytes.Equal(e.Data, want) {
			t.Fatalf("probe %d: %v", next, e)
		}
		if next == returnsMost {
			cancel()
		}
	})
	if n := testing.AllocsPerRun(100, func() { r.put(in); <-r }); n > 0 {
		t.Errorf("a probe costs %v allocations", n)
	}
}

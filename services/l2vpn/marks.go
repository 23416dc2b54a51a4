package l2vpn

import (
	"context"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
)

// learnMarks asks switches of circuits with an excess whether their meters mark, those that have not
// said so since they connected.
func learnMarks(ctx context.Context, b *store, features func(context.Context, flow.DPID) (*api.MeterFeatures, error)) {
	b.mu.Lock()
	ask := map[flow.DPID]string{}
	for _, s := range b.status {
		if s.circuit.ExcessKbps == 0 {
			continue
		}
		for _, sw := range s.circuit.edges() {
			is := b.net.Info(sw)
			if m, known := b.net.marks[sw]; is.GetConnected() && (!known || m.since != is.GetSince()) {
				ask[sw] = is.GetSince()
			}
		}
	}
	b.mu.Unlock()
	for sw, since := range ask {
		f, err := features(ctx, sw)
		if err != nil {
			continue // it is asked again
		}
		setMarks(b, sw, marking{since, f.GetBandTypes()&(1<<flow.MeterDSCPRemark) != 0})
	}
}

// setMarks takes what a switch has said of its meters.
func setMarks(b *store, sw flow.DPID, is marking) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.net.marks[sw]
	b.net.marks[sw] = is
	if was.can == is.can {
		return
	}
	for name := range b.at[sw] {
		if s := b.status[name]; s.circuit.ExcessKbps > 0 {
			b.again(s)
		}
	}
}

// followMarks asks until ctx ends. A switch that does not answer holds up nothing else.
func followMarks(ctx context.Context, b *store, features func(context.Context, flow.DPID) (*api.MeterFeatures, error)) {
	for backoff.Sleep(ctx, poll) == nil {
		learnMarks(ctx, b, features)
	}
}

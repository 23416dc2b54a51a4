package l2vpn

import (
	"context"
	"slices"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// learnMarks asks switches of circuits with an excess whether their meters mark, those that have not been
// asked since they connected.
func learnMarks(ctx context.Context, b *store, features func(context.Context, flow.DPID) (*api.MeterFeatures, error)) {
	b.mu.Lock()
	var ask []flow.DPID
	for _, s := range b.status {
		for _, sw := range s.circuit.edges() {
			if _, known := s.marks[sw]; s.circuit.ExcessKbps > 0 && !known && b.net.Info(sw).GetConnected() && !slices.Contains(ask, sw) {
				ask = append(ask, sw)
			}
		}
	}
	b.mu.Unlock()
	for _, sw := range ask {
		f, err := features(ctx, sw)
		if err != nil {
			continue // it is asked again
		}
		marks := f.GetBandTypes()&(1<<flow.MeterDSCPRemark) != 0
		b.mu.Lock()
		for name := range b.at[sw] {
			s := b.status[name]
			if s.circuit.ExcessKbps == 0 {
				continue
			}
			if s.marks == nil {
				s.marks = map[flow.DPID]bool{}
			}
			if s.marks[sw] != marks {
				b.again(s)
			}
			s.marks[sw] = marks
		}
		b.mu.Unlock()
	}
}

package discovery

import (
	"context"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// returns are probes of functions that have come back. The stage puts them in, for chain is
// on no packet's way: that would be one process more where it runs in another.
type returns chan returned

// returned is a probe: where it came in, and its first octets.
type returned struct {
	at   flow.Location
	n    int
	data [returnedMost]byte
}

const (
	returnedMost = 64  // octets of a probe; ours have fewer
	returnsMost  = 512 // probes that wait; those beyond are lost, as others may be
)

func (r returns) put(in *flow.PacketIn) {
	p := returned{at: flow.Location{Switch: in.Switch, Port: in.Key.InPort}}
	p.n = copy(p.data[:], in.Data)
	select {
	case r <- p:
	default:
	}
}

// run publishes them until ctx ends.
func (r returns) run(ctx context.Context, publish func(*api.ProbeReturned)) {
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-r:
			publish(&api.ProbeReturned{At: api.NewLocation(p.at), Data: p.data[:p.n]})
		}
	}
}

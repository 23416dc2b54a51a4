package tunnels

import (
	"context"
	"fmt"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// BenchmarkOneBeside9000 measures one more tunnel beside 9,000 in a grid of 6 by 10
// switches.
func BenchmarkOneBeside9000(b *testing.B) {
	g := newRig(b, gridOf(6, 10)...)
	for at := range g.cables {
		g.set[at] = &api.LinkSettings{CapacityKbps: 1e9}
	}
	g.tell()
	n := 0
	set := func(count int) {
		q := &api.SetTunnelsRequest{}
		for range count {
			from := flow.DPID(1 + n%60)
			to := flow.DPID(1 + (n*7+n/60+13)%60)
			if from == to {
				to = from%60 + 1
			}
			q.Tunnels = append(q.Tunnels, &api.Tunnel{Name: fmt.Sprint("t", n), From: from.String(), To: to.String(), ReservedKbps: 1})
			n++
		}
		resp, err := g.setTunnels(context.Background(), q)
		if err != nil || resp.Outcomes[count-1].Tunnel.State != "up" {
			b.Fatal(resp.GetOutcomes()[count-1], err)
		}
	}
	for range 9 {
		set(1000)
	}
	for b.Loop() {
		set(1)
	}
}

func gridOf(rows, columns int) (cables [][2]flow.DPID) {
	at := func(r, c int) flow.DPID { return flow.DPID(1 + r*columns + c) }
	for r := range rows {
		for c := range columns {
			if c+1 < columns {
				cables = append(cables, [2]flow.DPID{at(r, c), at(r, c+1)})
			}
			if r+1 < rows {
				cables = append(cables, [2]flow.DPID{at(r, c), at(r+1, c)})
			}
		}
	}
	return cables
}

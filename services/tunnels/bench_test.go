package tunnels

import (
	"context"
	"fmt"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// crowd is a grid of 6 by 10 switches that has more and more tunnels.
type crowd struct {
	*rig
	n int
}

func newCrowd(b *testing.B, tunnels int) *crowd {
	c := &crowd{rig: newRig(b, gridOf(6, 10)...)}
	for at := range c.cables {
		c.set[at] = &api.LinkSettings{CapacityKbps: 1e9}
	}
	c.tell()
	for range tunnels / 1000 {
		c.grow(1000)
	}
	return c
}

// grow adds tunnels in one call.
func (c *crowd) grow(count int) {
	q := &api.SetTunnelsRequest{}
	for range count {
		from := flow.DPID(1 + c.n%60)
		to := flow.DPID(1 + (c.n*7+c.n/60+13)%60)
		if from == to {
			to = from%60 + 1
		}
		q.Tunnels = append(q.Tunnels, &api.Tunnel{Name: fmt.Sprint("t", c.n), From: from.String(), To: to.String(), ReservedKbps: 1})
		c.n++
	}
	resp, err := c.setTunnels(context.Background(), q)
	if err != nil || resp.Outcomes[count-1].Tunnel.State != "up" {
		c.t.Fatal(resp.GetOutcomes()[count-1], err)
	}
}

// BenchmarkOneBeside9000 measures one more tunnel beside 9,000.
func BenchmarkOneBeside9000(b *testing.B) {
	c := newCrowd(b, 9000)
	for b.Loop() {
		c.grow(1)
	}
}

// BenchmarkRound measures a round of the repairer in which one tunnel is seen to that
// lacks nothing, beside so many others.
func BenchmarkRound(b *testing.B) {
	for _, n := range []int{1000, 9000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := newCrowd(b, n)
			s := c.b.status["t5"]
			for b.Loop() {
				c.b.mu.Lock()
				c.b.need(s, c.clock)
				c.b.mu.Unlock()
				c.repair(context.Background())
				c.next()
			}
		})
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

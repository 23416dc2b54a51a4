package packets

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan"
)

// holdMax is how long a packet-in waits for a stage that is away.
const holdMax = 10 * time.Second

// forward runs the remaining stages on the listed packets of a batch. A packet that
// is not done when it returns has timed out.
func (c *Lanes) forward(ctx context.Context, p *batch, list []int) {
	for left := list; len(left) > 0; left = p.left(p.all()) {
		v := c.Links.View.Load()
		var replanned atomic.Bool
		splitByPartition(v.Parts, p, left, func(list []int, sw flow.DPID) {
			if !c.passShare(ctx, v.Wiring(), p, list, sw) {
				replanned.Store(true)
			}
		})
		if !replanned.Load() {
			return
		}
	}
}

// left returns the packets of list that are not done and have not waited too
// long.
func (p *batch) left(list []int) []int {
	now := time.Now().UnixNano()
	return slices.DeleteFunc(undone(p, list), func(i int) bool { return now-p.records[i].since > int64(holdMax) })
}

// splitByPartition calls f for the packets of each partition, with one of its
// switches. It runs the calls concurrently.
func splitByPartition(parts *members.Parts, p *batch, list []int, f func(list []int, sw flow.DPID)) {
	if len(list) == 0 {
		return
	}
	if parts == nil {
		f(list, 0)
		return
	}
	shares := map[string][]int{}
	for _, i := range list {
		name := parts.Plan.PartitionOf(p.switchOf(i))
		shares[name] = append(shares[name], i)
	}
	if len(shares) == 1 {
		f(list, p.switchOf(list[0]))
		return
	}
	var all sync.WaitGroup
	for _, share := range shares {
		all.Go(func() { f(share, p.switchOf(share[0])) })
	}
	all.Wait()
}

// passShare is pass for packets of one partition; sw is a switch of it. It
// returns false if the partition may have changed, because a plan with another
// wiring is in force.
func (c *Lanes) passShare(ctx context.Context, wiring uint64, p *batch, left []int, sw flow.DPID) bool {
	sent := false
	for len(left) > 0 && ctx.Err() == nil {
		v := c.Links.View.Load()
		if v.Wiring() != wiring {
			return false
		}
		targets := c.targets(v, p.rest[0], sw)
		if len(targets) == 0 {
			if policy := c.policy(v, p.rest[0]); policy != plan.AbsentHold {
				if err := c.without(ctx, p, left, policy); err != nil {
					c.Log.Error("packet-ins cannot be passed on", "error", err)
				}
				return true
			}
		}
		if len(targets) > 0 {
			if sent {
				c.retried.Add(float64(len(left)))
			}
			c.spread(ctx, v, p, left, targets)
			sent = true
			if left = undone(p, left); len(left) == 0 {
				return true
			}
			if n := len(c.targets(v, p.rest[0], sw)); n > 0 && n < len(targets) {
				continue // an instance has gone: ask the others at once
			}
		}
		if v.Pause(ctx, time.Now().Add(time.Hour)) != nil {
			return true
		}
		left = p.left(left)
	}
	return true
}

// switchOf returns the switch of a packet.
func (p *batch) switchOf(i int) flow.DPID {
	return flow.DPID(binary.LittleEndian.Uint64(p.data[p.records[i].run+8:]))
}

func undone(p *batch, list []int) []int {
	return slices.DeleteFunc(list, func(i int) bool { return p.records[i].done })
}

// targets returns the instances of a stage that serve packets of a switch now:
// those of its partition, if that runs the stage for itself. If none of them
// serves and the stage is clustered, it returns those of the other partitions.
func (c *Lanes) targets(v *members.View, stage string, sw flow.DPID) []*members.Target {
	partition := ""
	if v.Parts != nil {
		partition = v.Parts.Plan.PartitionOf(sw)
	}
	list := serving(v.Of(stage, partition))
	if len(list) == 0 && v.Parts.Clustered(stage) {
		list = serving(v.Routes[stage])
	}
	return list
}

// serving returns the instances that serve now.
func serving(all []*members.Target) []*members.Target {
	var list []*members.Target
	for _, t := range all {
		if t.State == members.StateReady {
			list = append(list, t)
		}
	}
	return members.Usable(list)
}

// spread divides packets among instances and waits for their answers.
func (c *Lanes) spread(ctx context.Context, v *members.View, p *batch, list []int, targets []*members.Target) {
	if len(targets) == 1 {
		c.send(ctx, v, p, list, targets[0])
		return
	}
	shares := make([][]int, len(targets))
	balance := v.BalanceOf(targets[0])
	var round uint32
	if balance == plan.BalanceRoundRobin {
		round = c.turn.Add(1)
	}
	for _, i := range list {
		r := &p.records[i]
		var at int
		switch balance {
		case plan.BalanceRoundRobin: // packets of a flow in the batch stay together
			at = int((r.hash + round) % uint32(len(targets)))
		case plan.BalanceLeast:
			at = leastBusy(targets)
		case plan.BalanceSwitch:
			at = int(binary.LittleEndian.Uint64(p.data[r.run:]) % uint64(len(targets)))
		default:
			at = int(uint64(r.hash) * uint64(len(targets)) >> 32)
		}
		shares[at] = append(shares[at], i)
	}
	var sent sync.WaitGroup
	for at, share := range shares {
		if len(share) > 0 {
			sent.Go(func() { c.send(ctx, v, p, share, targets[at]) })
		}
	}
	sent.Wait()
}

func leastBusy(targets []*members.Target) int {
	best, least := 0, int64(1<<62)
	for i, t := range targets {
		var n int64
		if t.Peer != nil {
			n = t.Peer.Outstanding.Load()
		}
		if n < least {
			best, least = i, n
		}
	}
	return best
}

// send sends packets to one instance and records its answer.
func (c *Lanes) send(ctx context.Context, v *members.View, p *batch, list []int, t *members.Target) {
	request, stamp := p.request(list), v.Stamp(t, nil)
	var answer []byte
	var err error
	if r := c.Worker.Recorder(); r.On() {
		began := time.Now()
		defer func() { traceCrossing(r, p, list, t, began) }()
	}
	if t.Peer == nil {
		answer, err = c.Packets(ctx, stamp, request)
	} else {
		answer, err = t.Peer.Send(ctx, members.PacketsMethod, stamp, request)
	}
	if err == nil {
		err = p.answered(answer, list)
		c.count(p, list, t)
	}
	if err != nil && ctx.Err() == nil {
		c.Log.Debug("packet-ins not dealt with yet", "stage", p.rest[0], "packets", len(list), "error", err)
	}
}

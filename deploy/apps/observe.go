package apps

import (
	"context"

	"github.com/weft-sdn/weft/api"
)

// observe puts packets into an observer's queue, and counts those that it has
// no room for.
func (a *app) observe(list []Packet) {
	for i := range list {
		if a.ctx.Err() != nil {
			return
		}
		m := a.message(list[i].In)
		if m == nil {
			a.skipped.Add(1)
			continue
		}
		select {
		case a.queue <- m:
		default:
			a.dropped.Add(1)
		}
	}
}

// pump sends an observer what is in its queue, until the app is gone.
func (a *app) pump() {
	for {
		var batch []*api.PacketIn
		select {
		case <-a.ctx.Done():
			return
		case m := <-a.queue:
			batch = append(batch, m)
		}
		for more := true; more && len(batch) < a.limits.Batch; {
			select {
			case m := <-a.queue:
				batch = append(batch, m)
			default:
				more = false
			}
		}
		a.packets.Add(uint64(len(batch)))
		ctx, cancel := context.WithTimeout(a.ctx, writeTimeout)
		err := a.link.deliver(ctx, &api.Packets{Packets: batch})
		cancel()
		if err != nil && a.ctx.Err() == nil {
			a.timeouts.Add(uint64(len(batch)))
			if a.missed.Add(1) >= maxTimeouts {
				a.end(a.fail(kinded(err).Kind, err))
			}
			continue
		}
		a.missed.Store(0)
	}
}

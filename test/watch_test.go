package test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
)

// TestWatchedUntilConfirmed watches the first packets of all pairs of a network:
// of each there are the entries that were made for it, and every switch has
// confirmed its own; what forwarding does after it has waited for a path is a
// stage of the packet's, too. In several processes, and in one.
func TestWatchedUntilConfirmed(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			c := start(t, options{plan: mode})
			l := up(t, "linear:3", c)
			settled(c, l)
			var mu sync.Mutex // guards packets
			var packets []*api.WatchedPacket
			ctx, cancel := context.WithCancel(t.Context())
			var watching sync.WaitGroup
			watching.Go(func() {
				_ = c.nodes[0].WatchPackets(ctx, &api.WatchPacketsRequest{}, time.Minute, func(line *api.WatchPacketsResponse) error {
					mu.Lock()
					defer mu.Unlock()
					if line.Packet != nil && len(line.Packet.Entries) > 0 {
						packets = append(packets, line.Packet)
					}
					return nil
				})
			})
			defer watching.Wait()
			defer cancel()
			time.Sleep(time.Second) // all processes sample by then
			pingAll(t, l, false)
			eventually(t, "packets with entries are told", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(packets) >= 3
			})
			mu.Lock()
			defer mu.Unlock()
			later := 0
			for _, p := range packets {
				var switches []string
				for _, e := range p.Entries {
					if e.State != "confirmed" || e.Error != "" || e.Operation == "" || e.AtUs <= 0 {
						t.Errorf("%s: entry %v", p.Summary, e)
					}
					if !slices.Contains(switches, e.Dpid) {
						switches = append(switches, e.Dpid)
					}
				}
				if len(switches) < 2 {
					t.Errorf("%s: switches %v have confirmed, want those of a path", p.Summary, switches)
				}
				last := p.Stages[len(p.Stages)-1]
				if last.Service != "forwarding" {
					t.Errorf("%s: the last stage is %v", p.Summary, last)
				}
				if last.Verdict == "later" {
					later++
					if len(last.Operations) == 0 || last.StartUs <= 0 {
						t.Errorf("%s: %v", p.Summary, last)
					}
				}
			}
			if mode == "split" && later == 0 {
				t.Errorf("of %d packets none waited for its path, which another process knows", len(packets))
			}
		})
	}
}

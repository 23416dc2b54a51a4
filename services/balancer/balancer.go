package balancer

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
	kit "github.com/weft-sdn/weft/policy"
)

// balancer is the virtual IPs and their connections.
type balancer struct {
	cfg     atomic.Pointer[Config]
	log     *slog.Logger
	index   atomic.Pointer[index] // nil: there are no VIPs
	out     *outbox
	count   *counts
	damaged func() bool           // whether VIPs may be missing from the store
	settle  func(context.Context) // waits until changes are in force

	mu      object.Guard // guards the following
	vips    *kit.Policy[*api.Vip, *vip]
	net     *network
	prober  *prober
	tracker *tracker
}

// networkChanged follows a change of the network.
func (b *balancer) networkChanged(c nib.Change, now int64) {
	c.Tag(&b.net.tagging)
	b.mu.Lock()
	defer b.mu.Unlock()
	regroup := b.net.changed(c, now) && slices.ContainsFunc(b.vips.List(), func(v *vip) bool { return v.host != nil })
	for _, h := range c.Hosts() {
		_, _, moved := b.net.hosts.Follow(h)
		regroup = b.moved(moved, now) || regroup
	}
	if regroup {
		b.vips.Recompute()
	}
}

// moved follows hosts to where they are now; it reports whether one is a member. It is
// called with mu held.
func (b *balancer) moved(hosts []place, now int64) (member bool) {
	for _, v := range b.vips.List() {
		for _, m := range v.all() {
			if !slices.Contains(hosts, m.addr) {
				continue
			}
			member = true
			m.health.hasten()
			if s, ok := b.net.reach(m); ok {
				b.tracker.relocate(m, s, now)
			}
		}
	}
	return member
}

package balancer

import (
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
)

// balancer is the virtual IPs and their connections.
type balancer struct {
	cfg     atomic.Pointer[Config]
	log     *slog.Logger
	index   atomic.Pointer[index] // nil: there are no VIPs
	out     *outbox
	count   *counts
	damage  func() string // what is wrong with the store
	regroup func()        // declares the groups of all switches again

	mu      object.Guard // guards the following
	vips    *object.Store[*vip]
	net     *network
	prober  *prober
	tracker *tracker
}

func newBalancer(cfg *Config, count *counts, store object.Bucket, log *slog.Logger) *balancer {
	b := &balancer{
		log: log, count: count, out: newOutbox(), damage: func() string { return "" }, regroup: func() {},
		net: newNetwork(),
	}
	b.cfg.Store(cfg)
	b.tracker = &tracker{
		cfg: &b.cfg, net: b.net, index: &b.index, out: b.out, count: count, after: b.after,
		connections: newConnections(), bindings: bindings{}, seals: seals{},
	}
	b.prober = &prober{
		cfg: &b.cfg, log: log, net: b.net, count: count, down: b.tracker.lose, probes: map[probeKey]*member{}, asked: map[place]asked{},
	}
	b.vips = object.New(&b.mu, store, object.Kind[*vip]{
		What: "vip", Many: "VIPs", Most: func() int { return b.cfg.Load().Vips }, Raise: "balancer.vips",
		Name:    func(v *vip) string { return v.name },
		Format:  object.Messages(b.parse, func(v *vip) *api.Vip { return v.said }),
		Changed: b.changed,
		Bad:     func(name string, err error) { log.Warn("vip of an earlier run not read", "key", name, "error", err) },
	})
	return b
}

// after calls a function later, with mu held.
func (b *balancer) after(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		f()
	})
}

// networkChanged follows a change of the network; it reports whether it was about a
// member.
func (b *balancer) networkChanged(c nib.Change, now int64) (member bool) {
	c.Tag(&b.net.tagging)
	b.mu.Lock()
	defer b.mu.Unlock()
	shadow := func(v *vip) bool { return v.host != nil }
	if b.net.changed(c, now) && slices.ContainsFunc(b.vips.List(), shadow) {
		defer b.regroup()
	}
	for _, h := range c.Hosts() {
		_, _, moved := b.net.hosts.Follow(h)
		member = b.moved(moved, now) || member
	}
	return member
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

func prefixOf(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

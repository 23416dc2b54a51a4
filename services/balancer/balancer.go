package balancer

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
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

func newBalancer(cfg *Config, count *counts, log *slog.Logger) *balancer {
	b := &balancer{
		log: log, count: count, out: newOutbox(), damaged: func() bool { return false }, settle: func(context.Context) {},
		net: newNetwork(),
	}
	b.cfg.Store(cfg)
	b.tracker = &tracker{
		cfg: &b.cfg, net: b.net, index: &b.index, out: b.out, count: count,
		connections: newConnections(), bindings: bindings{}, seals: seals{},
	}
	b.tracker.after = func(d time.Duration, f func()) {
		time.AfterFunc(d, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			f()
		})
	}
	b.prober = &prober{
		cfg: &b.cfg, log: log, net: b.net, count: count, down: b.tracker.lose, probes: map[probeKey]*member{}, asked: map[place]asked{},
	}
	b.vips = kit.New(b.kind())
	return b
}

// reads is what the service reads of the network.
const reads = nib.Switches | nib.Roles | nib.Hosts | nib.Segments

// kind describes the VIPs.
func (b *balancer) kind() kit.Kind[*api.Vip, *vip] {
	return kit.Kind[*api.Vip, *vip]{
		Owner: flow.OwnerBalancer, What: "vip", Many: "VIPs", Bucket: "vips", Guard: &b.mu, Raise: "balancer.vips",
		Set: api.SetVip, Delete: api.DeleteVip, List: api.ListVips,
		Check: b.check, Load: b.load, Said: func(v *vip) *api.Vip { return v.said }, Status: b.status,
		Admit: b.admit, Release: func(v *vip) error { return v.mine(byOperator) }, Changed: b.changed, Unchanged: hasten, All: b.rules,
		Reads: reads, Network: func(c nib.Change) { b.networkChanged(c, now()) },
		Observed: func(e *api.FlowsObserved) { b.observed(e, now()) },
		Most:     func() int { return b.cfg.Load().Vips }, Settle: func(ctx context.Context) { b.settle(ctx) },
	}
}

// hasten checks the members of a VIP at once that are not good.
func hasten(v *vip) {
	for _, m := range v.pool {
		m.health.hasten()
	}
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

// changed follows a change of a VIP: it keeps the connections whose members stay.
// It is called with mu held.
func (b *balancer) changed(old, now *vip) {
	defer func() { b.index.Store(newIndex(b.vips.List())) }()
	t, d := time.Now().UnixNano(), &flow.Decision{}
	if old != nil && old.lapse && (now == nil || !now.lapse || now.at != old.at) {
		old.letGo(d)
	}
	if old == nil {
		now.hold(b.net, b.tracker, t, d)
		b.out.postConfirmed(d)
		return
	}
	if now != nil {
		now.refused, now.closed, now.gates = old.refused, old.closed, old.gates
	}
	for _, was := range old.all() {
		delete(b.prober.probes, was.probeKey())
		var m *member
		if now != nil {
			m = now.like(was)
		}
		if m == nil || m.wish == rest || old.at != now.at || old.lapse != now.lapse {
			b.count.cut.Add(float64(len(was.conns)))
			for c := range was.conns {
				b.tracker.cut(d, c)
			}
			if m == nil || m.wish == rest {
				continue
			}
		}
		m.total, m.current, m.live = was.total, was.current, 0
		m.conns = was.conns
		for c := range m.conns {
			c.m = m
			c.recount()
			if m != now.responder && c.kind != direct && c.kind != aliased && !now.allow.has(c.key.client.Addr()) {
				b.tracker.revoke(d, now, c, t)
			}
		}
		m.resplit(d)
		if was.vip.check == now.check {
			m.health = was.health
			m.health.ends = 0
		}
		for a, s := range old.stuck {
			if s.m == was && now.sticky > 0 {
				now.stuck[a] = stay{m, s.until}
			}
		}
	}
	if now != nil {
		hasten(now)
		now.hold(b.net, b.tracker, t, d)
	}
	b.out.postConfirmed(d)
}

// status returns the message of a VIP with its state.
func (b *balancer) status(v *vip) *api.Vip {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := proto.CloneOf(v.said)
	m.Connections, m.Pairs, m.Refused, m.Open = uint32(v.live), uint32(v.pairs), v.refused, b.net.open(v)
	if v.host != nil {
		mac, _ := b.net.ether(v)
		m.Mac = mac.String()
	}
	for i, p := range v.pool {
		out := m.Pool[i]
		out.Connections, out.Total, out.Health = uint32(p.live), p.total, verdicts[p.grade()]
		out.Reason = p.health.reason
		s, known := b.net.find(p.addr)
		if known {
			out.Mac, out.At = s.MAC.String(), api.NewLocation(s.At)
		}
		if _, ok := b.net.reach(p); !ok && p.grade() != bad {
			out.Health, out.Reason = "away", "not known as a host; it is asked for by ARP or neighbour solicitation"
			if known {
				out.Reason = "its switch is away, or has too few tables to rewrite what it answers"
			}
		}
	}
	for sw := range b.net.switches {
		if b.net.groupFits(v, sw) {
			m.Groups = append(m.Groups, sw.String())
		}
	}
	return m
}

func prefixOf(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

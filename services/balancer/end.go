package balancer

import (
	"maps"
	"net/netip"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// removed handles the event: an entry of a connection has ended.
func (b *balancer) removed(e *api.FlowRemoved, now int64) {
	if e.GetFlow().GetOwner() != flow.OwnerBalancer.String() || e.Flow.GetIdleTimeout() == 0 {
		return
	}
	if sw, entry, err := e.Flow.Entry(); err == nil && (entry.Table == flow.TableTranslate || entry.Table == flow.TableProxy) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.tracker.removed(sw, &entry, e.GetReason() == "idle_timeout", now)
	}
}

// removed follows the end of an entry, for lack of packets or not. The connection is over
// when both have ended for lack of packets; the entry of the way back is put again while the
// client still sends.
func (t *tracker) removed(sw flow.DPID, entry *flow.Entry, idle bool, now int64) {
	src, dst, proto, vlan, ok := ends(&entry.Match)
	if !ok {
		return
	}
	if entry.Cookie.Generation()&genGuard != 0 {
		t.unguarded(sw, entry, now)
		return
	}
	if c := t.by[connKey{client: src, to: dst, proto: proto, vlan: vlan}]; c != nil && c.id == entry.Cookie.ID() {
		if c.there && entry.Table == c.table(there) && c.ingress.Switch == sw {
			c.mark(false, c.back)
			c.idled = idle
			t.ended(c, idle, now)
		}
		return
	}
	c := t.backs[backKey{src, dst, proto, vlan}]
	if c == nil || c.id != entry.Cookie.ID() || !c.back || c.egress != sw {
		return
	}
	c.mark(c.there, false)
	if c.there {
		d := &flow.Decision{}
		c.addBack(d)
		c.sent = now
		c.mark(true, true)
		t.out.post(d)
		return
	}
	t.ended(c, idle, now)
}

// guarded returns the conn of a guard; one that is not known may have ended: its
// guard ends, too.
func (t *tracker) guarded(sw flow.DPID, o *seenEntry) *conn {
	o.later = true
	holds := func(c *conn) bool {
		return c != nil && c.id == o.id && c.kind == o.kind && c.ingress.Switch == sw
	}
	k := o.key
	if o.kind == paired {
		if c := t.backs[k.with(k.to)]; holds(c) {
			return c
		}
		return nil
	}
	if v := t.index.Load().vip(k.service()); v != nil {
		for _, m := range v.pool {
			if c := t.by[connKey{k.client, m.key(), k.proto, k.vlan}]; holds(c) {
				return c
			}
		}
	}
	return nil
}

// unguarded puts the guard of a connection or a pair that goes on back.
func (t *tracker) unguarded(sw flow.DPID, e *flow.Entry, now int64) {
	if o, ok := readEntry(e); ok {
		if c := t.guarded(sw, &o); c != nil && c.there {
			d := &flow.Decision{}
			c.addGuard(d)
			c.sent = now
			t.out.post(d)
		}
	}
}

// ended forgets a connection without entries: at once if they ended for lack of
// packets, else after its idle time.
func (t *tracker) ended(c *conn, idle bool, now int64) {
	switch {
	case c.there || c.back:
	case idle:
		d := &flow.Decision{}
		if t.retire(d, c, now); c.kind == through && c.m.vip.leaves(c.key, now) {
			t.provoke(d, c)
		}
		t.out.post(d)
	default:
		c.until = now + int64(c.idle)*int64(time.Second)
	}
}

// tidyTick is how often connections are looked through.
const tidyTick = 3 * time.Second

// tidy forgets what is over: connections, clients' stays, and whom it has asked for.
func (b *balancer) tidy(now int64) {
	d := &flow.Decision{}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tracker.tidy(now, d)
	for _, v := range b.vips.List() {
		maps.DeleteFunc(v.stuck, func(_ netip.Addr, s stay) bool { return now >= s.until })
	}
	b.prober.expire(now)
	b.out.post(d)
}

// tidy forgets connections without entries, those of switches that have been away for
// long, and what was remembered. It also puts the way back of an earlier run's connections
// where no switch has reported it.
func (t *tracker) tidy(now int64, d *flow.Decision) {
	lost := func(sw flow.DPID) bool {
		s := t.net.switches[sw]
		return s != nil && !s.connected && now-s.away > awayMax
	}
	for _, c := range t.by { // what is ended meanwhile may be met, or not
		if c.there && lost(c.ingress.Switch) || c.back && lost(c.egress) {
			c.mark(c.there && !lost(c.ingress.Switch), c.back && !lost(c.egress))
		}
		if c.there && !c.back && c.kind != through && now-c.sent > young {
			if s, ok := t.net.reach(c.m); ok {
				t.place(c, c.ingress, s.At.Switch)
				c.sent = now
				c.addBack(d)
				c.mark(true, true)
			}
		}
		if c.there && c.back && c.rearm(now) {
			c.sent = now
			c.addBack(d)
		}
		if c.kind == through && c.m.vip.takeover && c.m.vip.closed != 0 && now-c.m.vip.closed >= takeoverTime {
			t.cut(d, c)
			continue
		}
		if !c.there && !c.back {
			if c.until == 0 {
				c.until = now + int64(c.idle)*int64(time.Second)
			} else if now >= c.until {
				t.retire(d, c, now)
			}
		} else if c.split {
			t.part(d, c, now)
		}
	}
	t.resample(now, d)
	t.bindings.expire(now)
	t.seals.expire(now)
	maps.DeleteFunc(t.served, func(_ served, until int64) bool { return now >= until })
}

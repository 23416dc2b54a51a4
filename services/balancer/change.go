package balancer

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// check returns the operator's VIP of a message.
func (b *balancer) check(m *api.Vip) (*vip, error) {
	m.Owner = owners[byOperator]
	return readVip(m, b.cfg.Load())
}

// load returns the stored VIP. It is called with mu held.
func (b *balancer) load(m *api.Vip) (*vip, error) {
	v, err := readVip(m, b.cfg.Load())
	if err == nil {
		err = v.fits(b.vips.List())
	}
	return v, err
}

// admit refuses a VIP that its owner may not have, or that contradicts the network or the
// others. It is called with mu held.
func (b *balancer) admit(v, old *vip) error {
	if old != nil {
		if err := old.mine(v.owner); err != nil {
			return err
		}
	}
	if v.host != nil && (old == nil || old.host == nil) {
		if err := b.net.intercepts(v); err != nil {
			return err
		}
	}
	return v.fits(b.vips.List())
}

// fits refuses a VIP that contradicts others.
func (v *vip) fits(others []*vip) error {
	for _, o := range others {
		if o.name == v.name {
			continue
		}
		switch {
		case o.at == v.at:
			return api.Errorf(codes.AlreadyExists, "vip %s: vip %s has the same address, protocol and port", v.name, o.name)
		case o.at.host == v.at.host && (o.host == nil) != (v.host == nil):
			return api.Errorf(codes.InvalidArgument, "vip %s: vip %s has the same address; both are shadows of a host there, or none", v.name, o.name)
		case o.at.host == v.at.host && o.mac != v.mac:
			return api.Errorf(codes.InvalidArgument, "vip %s: vip %s has the same address with mac %v; give both the same, or none", v.name, o.name, o.mac)
		}
		for _, m := range v.all() {
			if m.addr == o.at.host && m != v.host {
				return api.Errorf(codes.InvalidArgument, "vip %s: member %v is the address of vip %s", v.name, m.addr.Addr, o.name)
			}
		}
		for _, m := range o.all() {
			if m.addr == v.at.host && m != o.host {
				return api.Errorf(codes.InvalidArgument, "vip %s: its address is that of a member of vip %s", v.name, o.name)
			}
		}
	}
	return nil
}

// hasten checks the members of a VIP at once that are not good.
func hasten(v *vip) {
	for _, m := range v.pool {
		m.health.hasten()
	}
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
				b.tracker.abandon(d, c, t)
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
			switch {
			case m == now.responder || c.kind == direct || c.kind == aliased || now.allow.has(c.key.client.Addr()):
			case c.kind == redirected:
				b.tracker.abandon(d, c, t)
			default:
				b.tracker.revoke(d, now, c, t)
			}
		}
		m.resplit(d)
		if m.wish == retire {
			if m.retired = t; was.wish == retire {
				m.retired = was.retired
			}
		}
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
		for _, m := range now.pool {
			m.retire(b.tracker, d, t)
		}
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

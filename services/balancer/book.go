package balancer

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// fits refuses a VIP that contradicts the others. It is called with mu held.
func (b *balancer) fits(v *vip) error {
	for _, o := range b.vips.List() {
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

// SetVip answers the call.
func (b *balancer) SetVip(ctx context.Context, req *api.SetVipRequest) (*api.Vip, error) {
	if req.GetVip() == nil {
		return nil, api.Errorf(codes.InvalidArgument, "want a vip")
	}
	return b.edit(ctx, req, req.Vip.GetName(), func(*api.Vip) (*api.Vip, error) { return proto.CloneOf(req.Vip), nil })
}

// trial is a request that may be a dry run.
type trial interface{ GetDryRun() bool }

// edit does what a request of the operator wants of a VIP, or only says what it
// would do.
func (b *balancer) edit(ctx context.Context, req trial, name string, f func(*api.Vip) (*api.Vip, error)) (*api.Vip, error) {
	if req.GetDryRun() {
		return b.try(ctx, name, f)
	}
	return b.change(ctx, byOperator, name, f)
}

// try is change by the operator, without the change.
func (b *balancer) try(ctx context.Context, name string, f func(*api.Vip) (*api.Vip, error)) (*api.Vip, error) {
	old, v, err := b.vips.Try(ctx, name, b.admit(byOperator, f))
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.show(v)
	m.Effect = effectOf(old, v)
	return m, nil
}

// effectOf names what a change has done, or would do.
func effectOf(old, now *vip) string {
	switch {
	case old == nil:
		return "added"
	case old == now:
		return "unchanged"
	}
	return "replaced"
}

// SetMember answers the call.
func (b *balancer) SetMember(ctx context.Context, req *api.SetMemberRequest) (*api.Vip, error) {
	return b.edit(ctx, req, req.GetVip(), func(old *api.Vip) (*api.Vip, error) {
		if old == nil {
			return nil, noVip(req.GetVip())
		}
		key, err := memberKey(old, req.GetMember().GetAddress(), req.GetMember().GetPort())
		if err != nil {
			return nil, err
		}
		m := proto.CloneOf(req.GetMember())
		if i := find(old, key); i >= 0 {
			old.Pool[i] = m
		} else {
			old.Pool = append(old.Pool, m)
		}
		return old, nil
	})
}

// DeleteMember answers the call.
func (b *balancer) DeleteMember(ctx context.Context, req *api.DeleteMemberRequest) (*api.Vip, error) {
	return b.edit(ctx, req, req.GetVip(), func(old *api.Vip) (*api.Vip, error) {
		if old == nil {
			return nil, noVip(req.GetVip())
		}
		key, err := memberKey(old, req.GetAddress(), req.GetPort())
		if err != nil {
			return nil, err
		}
		if i := find(old, key); i >= 0 {
			old.Pool = append(old.Pool[:i], old.Pool[i+1:]...)
		}
		return old, nil
	})
}

// DrainMember answers the call.
func (b *balancer) DrainMember(ctx context.Context, req *api.DrainMemberRequest) (*api.Vip, error) {
	return b.edit(ctx, req, req.GetVip(), func(old *api.Vip) (*api.Vip, error) {
		if old == nil {
			return nil, noVip(req.GetVip())
		}
		key, err := memberKey(old, req.GetAddress(), req.GetPort())
		if err != nil {
			return nil, err
		}
		i := find(old, key)
		if i < 0 {
			return nil, api.Errorf(codes.NotFound, "vip %s has no member %v", old.Name, key)
		}
		old.Pool[i].State = wishes[drain]
		if req.GetUndo() {
			old.Pool[i].State = wishes[serve]
		}
		return old, nil
	})
}

func noVip(name string) error {
	return api.Errorf(codes.NotFound, "there is no virtual IP %q; weft balancer list shows those that are", name)
}

// memberKey returns the key of a member of a VIP.
func memberKey(v *api.Vip, address string, port uint32) (netip.AddrPort, error) {
	a, err := netip.ParseAddr(address)
	if err != nil || port > 65535 {
		return netip.AddrPort{}, api.Errorf(codes.InvalidArgument, "vip %s: member %q port %d: want an IPv4 or IPv6 address and a port", v.Name, address, port)
	}
	if port == 0 {
		port = v.Port
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(port)), nil
}

// find returns the index of a member in the pool of a stored VIP, -1 if it is not
// there.
func find(v *api.Vip, key netip.AddrPort) int {
	for i, m := range v.Pool {
		if a, _ := netip.ParseAddr(m.Address); a == key.Addr() && uint16(m.Port) == key.Port() {
			return i
		}
	}
	return -1
}

// change stores the VIP that f returns for the owner's VIP of that name, which may
// be nil and belongs to f.
func (b *balancer) change(ctx context.Context, who owner, name string, f func(*api.Vip) (*api.Vip, error)) (*api.Vip, error) {
	old, v, err := b.vips.Change(ctx, name, b.admit(who, f))
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if is := b.vips.Get(v.name); is != nil {
		for _, m := range is.pool {
			m.health.hasten()
		}
	}
	m := b.show(v)
	m.Effect = effectOf(old, v)
	return m, nil
}

// admit returns what decides on a change by an owner to what f returns.
func (b *balancer) admit(who owner, f func(*api.Vip) (*api.Vip, error)) func(*vip) (*vip, error) {
	return func(old *vip) (*vip, error) {
		var said *api.Vip
		if old != nil {
			if err := old.mine(who); err != nil {
				return nil, err
			}
			said = proto.CloneOf(old.said)
		}
		m, err := f(said)
		if err != nil {
			return nil, err
		}
		m.Owner = owners[who]
		v, err := readVip(m, b.cfg.Load())
		if err != nil {
			return nil, api.Errorf(codes.InvalidArgument, "%w", err)
		}
		if v.host != nil && (old == nil || old.host == nil) {
			if err := b.intercepts(v); err != nil {
				return nil, err
			}
		}
		return v, b.fits(v)
	}
}

// intercepts returns an error if packets for a shadowed host would get past the VIP at a
// connected switch: along routes, which a switch with one table cannot put it before. It is
// called with mu held.
func (b *balancer) intercepts(v *vip) error {
	var list []*api.Switch
	for _, d := range b.net.switches {
		list = append(list, d.info)
	}
	return api.CheckNeeds("the shadow of vip "+v.name, "give the VIP an address that no host has", slices.Values(list), api.NeedTables)
}

// parse returns the stored VIP.
func (b *balancer) parse(m *api.Vip) (*vip, error) {
	v, err := readVip(m, b.cfg.Load())
	if err == nil {
		err = b.fits(v)
	}
	return v, err
}

// changed follows a change of a VIP: it keeps the connections whose members stay.
// It is called with mu held.
func (b *balancer) changed(old, now *vip) {
	defer b.regroup()
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
		now.hold(b.net, b.tracker, t, d)
	}
	b.out.postConfirmed(d)
}

// DeleteVip answers the call.
func (b *balancer) DeleteVip(ctx context.Context, req *api.DeleteVipRequest) (*api.DeleteVipResponse, error) {
	if !req.GetDryRun() {
		return b.delete(ctx, byOperator, req.GetName())
	}
	old, _, err := b.vips.Try(ctx, req.GetName(), gone(byOperator))
	return &api.DeleteVipResponse{Deleted: old != nil}, err
}

// gone decides on the deletion of a VIP.
func gone(who owner) func(*vip) (*vip, error) {
	return func(old *vip) (*vip, error) {
		if old == nil {
			return nil, nil
		}
		return nil, old.mine(who)
	}
}

// delete removes the owner's VIP of that name.
func (b *balancer) delete(ctx context.Context, who owner, name string) (*api.DeleteVipResponse, error) {
	old, _, err := b.vips.Change(ctx, name, gone(who))
	if err != nil {
		return nil, err
	}
	return &api.DeleteVipResponse{Deleted: old != nil}, nil
}

// ListVips answers the call.
func (b *balancer) ListVips(_ context.Context, req *api.ListVipsRequest) (*api.ListVipsResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	resp := &api.ListVipsResponse{}
	for _, v := range b.vips.List() {
		if req.GetName() == "" || req.GetName() == v.name {
			resp.Vips = append(resp.Vips, b.show(v))
		}
	}
	return resp, nil
}

// show returns the API's view of a VIP. It is called with mu held.
func (b *balancer) show(v *vip) *api.Vip {
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

// Bounds of ListConnections.
const (
	listed    = 1000
	listedMax = 10_000
)

// ListConnections answers the call.
func (b *balancer) ListConnections(_ context.Context, req *api.ListConnectionsRequest) (*api.ListConnectionsResponse, error) {
	limit := int(req.GetLimit())
	if limit == 0 {
		limit = listed
	}
	if limit > listedMax {
		return nil, api.Errorf(codes.InvalidArgument, "limit %d: want at most %d", limit, listedMax)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	resp := &api.ListConnectionsResponse{}
	for _, c := range b.tracker.by {
		if c.kind != tracked || req.GetVip() != "" && c.m.vip.name != req.GetVip() {
			continue
		}
		resp.Total++
		if len(resp.Connections) >= limit {
			continue
		}
		resp.Connections = append(resp.Connections, &api.BalancedConnection{
			Vip: c.m.vip.name, Protocol: protocolName(c.key.proto),
			Client: c.key.client.Addr().String(), ClientPort: uint32(c.key.client.Port()),
			Member: c.to.Addr().String(), MemberPort: uint32(c.to.Port()), At: api.NewLocation(c.ingress),
			Since: time.Unix(0, c.since).UTC().Format(time.RFC3339),
		})
	}
	return resp, nil
}

// labelOf returns a member's label in metrics.
func labelOf(m *api.PoolMember) string {
	a, err := netip.ParseAddr(m.GetAddress())
	if err != nil {
		return strings.ToValidUTF8(m.GetAddress(), "")
	}
	return netip.AddrPortFrom(a, uint16(m.GetPort())).String()
}

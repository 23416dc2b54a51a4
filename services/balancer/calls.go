package balancer

import (
	"cmp"
	"context"
	"net/netip"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
)

// edit changes a member of a VIP, for the operator's request: f changes the VIP's message,
// whose pool has the member if find says so.
func (b *balancer) edit(ctx context.Context, req any, name string, member addressed, f func(v *api.Vip, key netip.AddrPort) error) (*api.Vip, error) {
	return b.vips.Apply(ctx, req, name, func(old *vip) (*vip, error) {
		if old == nil {
			return nil, api.Errorf(codes.NotFound, "there is no virtual IP %q; weft balancer list shows those that are", name)
		}
		m := proto.CloneOf(old.said)
		key, err := memberKey(m, member.GetAddress(), member.GetPort())
		if err == nil {
			err = f(m, key)
		}
		if err != nil {
			return nil, err
		}
		return b.replace(m, old, byOperator)
	})
}

// addressed is a message that names a member.
type addressed interface {
	GetAddress() string
	GetPort() uint32
}

// replace returns the owner's VIP of a message, which is to replace another. It is called
// with mu held.
func (b *balancer) replace(m *api.Vip, old *vip, who owner) (*vip, error) {
	m.Owner = owners[who]
	v, err := readVip(m, b.cfg.Load())
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "vip %s: %w", m.Name, err)
	}
	return v, b.admit(v, old)
}

// SetMember answers the call.
func (b *balancer) SetMember(ctx context.Context, req *api.SetMemberRequest) (*api.Vip, error) {
	return b.edit(ctx, req, req.GetVip(), req.GetMember(), func(v *api.Vip, key netip.AddrPort) error {
		m := proto.CloneOf(req.GetMember())
		if i := find(v, key); i >= 0 {
			v.Pool[i] = m
		} else {
			v.Pool = append(v.Pool, m)
		}
		return nil
	})
}

// DeleteMember answers the call.
func (b *balancer) DeleteMember(ctx context.Context, req *api.DeleteMemberRequest) (*api.Vip, error) {
	return b.edit(ctx, req, req.GetVip(), req, func(v *api.Vip, key netip.AddrPort) error {
		if i := find(v, key); i >= 0 {
			v.Pool = append(v.Pool[:i], v.Pool[i+1:]...)
		}
		return nil
	})
}

// DrainMember answers the call.
func (b *balancer) DrainMember(ctx context.Context, req *api.DrainMemberRequest) (*api.Vip, error) {
	return b.edit(ctx, req, req.GetVip(), req, func(v *api.Vip, key netip.AddrPort) error {
		i := find(v, key)
		if i < 0 {
			return api.Errorf(codes.NotFound, "vip %s has no member %v", v.Name, key)
		}
		v.Pool[i].State = wishes[drain]
		if req.GetUndo() {
			v.Pool[i].State = wishes[serve]
		}
		return nil
	})
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

// SetOwnedVip answers the call.
func (b *balancer) SetOwnedVip(ctx context.Context, req *api.SetOwnedVipRequest) (*api.Vip, error) {
	who, err := serviceOwner(req.GetOwner())
	switch {
	case err != nil:
		return nil, err
	case req.GetVip() == nil:
		return nil, api.Errorf(codes.InvalidArgument, "want a vip")
	}
	return b.vips.Apply(ctx, req, req.Vip.GetName(), func(old *vip) (*vip, error) { return b.replace(proto.CloneOf(req.Vip), old, who) })
}

// DeleteOwnedVip answers the call.
func (b *balancer) DeleteOwnedVip(ctx context.Context, req *api.DeleteOwnedVipRequest) (*api.DeleteVipResponse, error) {
	who, err := serviceOwner(req.GetOwner())
	if err != nil {
		return nil, err
	}
	old, _, err := b.vips.Change(ctx, req.GetName(), func(old *vip) (*vip, error) {
		if old == nil {
			return nil, nil
		}
		return nil, old.mine(who)
	})
	return &api.DeleteVipResponse{Deleted: err == nil && old != nil}, err
}

// listLimit returns how many connections or pairs a list has at most; 0 stands for 1000.
func listLimit(n uint32) (int, error) {
	const most = 10_000
	if n > most {
		return 0, api.Errorf(codes.InvalidArgument, "limit %d: want at most %d", n, most)
	}
	return int(cmp.Or(n, 1000)), nil
}

// ListConnections answers the call.
func (b *balancer) ListConnections(_ context.Context, req *api.ListConnectionsRequest) (*api.ListConnectionsResponse, error) {
	limit, err := listLimit(req.GetLimit())
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	resp := &api.ListConnectionsResponse{}
	for _, c := range b.tracker.by {
		if c.kind != tracked && c.kind != redirected || req.GetVip() != "" && c.m.vip.name != req.GetVip() {
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

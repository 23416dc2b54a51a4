package balancer

import (
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// owner is who made a VIP; nobody else changes it. The calls of clients are the
// operator's, whatever they say; services name themselves in calls that clients
// cannot make.
type owner uint8

const (
	byOperator owner = iota
	bySCP
)

var owners = [...]string{"operator", "scp"}

// mine refuses changes of a VIP by others than its owner.
func (v *vip) mine(who owner) error {
	switch {
	case v.owner == who:
		return nil
	case who == byOperator:
		return api.Errorf(codes.FailedPrecondition, "vip %s: belongs to the service %s, which alone changes it; use another name", v.name, owners[v.owner])
	default:
		return api.Errorf(codes.FailedPrecondition, "vip %s: belongs to %s; %s does not change it", v.name, owners[v.owner], owners[who])
	}
}

// serviceOwner returns the owner that a service names.
func serviceOwner(name string) (owner, error) {
	for i, o := range owners {
		if o == name && owner(i) != byOperator {
			return owner(i), nil
		}
	}
	return 0, api.Errorf(codes.InvalidArgument, "owner %q: want scp", name)
}

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

package balancer

import (
	"net/netip"
)

// allowed is the clients that may connect to a VIP; nil is everybody.
type allowed struct {
	said     []string
	hosts    map[netip.Addr]bool
	prefixes []netip.Prefix
}

// has reports whether a client may connect.
func (a *allowed) has(client netip.Addr) bool {
	if a == nil || a.hosts[client] {
		return true
	}
	for _, p := range a.prefixes {
		if p.Contains(client) {
			return true
		}
	}
	return false
}

// refusal is what happens to clients whom a VIP does not serve.
type refusal uint8

const (
	refuseReset refusal = iota
	refuseDrop
	refuseTo // translated to the responder; reset where that is impossible
)

// all returns the members of the pool, and what else the VIP's connections are
// given to.
func (v *vip) all() []*member {
	list := v.pool[:len(v.pool):len(v.pool)]
	for _, m := range [...]*member{v.responder, v.host} {
		if m != nil {
			list = append(list, m)
		}
	}
	return list
}

// pooled reports whether the member is one of the pool.
func (m *member) pooled() bool { return m != m.vip.responder && m != m.vip.host }

// like returns what the VIP has in place of the former VIP's member.
func (v *vip) like(was *member) *member {
	switch was {
	case was.vip.responder:
		if v.responder != nil && v.responder.key() == was.key() {
			return v.responder
		}
		return nil
	case was.vip.host:
		return v.host
	}
	return v.member(was.key())
}

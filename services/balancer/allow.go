package balancer

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/weft-sdn/weft/api"
)

// allowMax bounds the clients that a VIP names.
const allowMax = 10_000

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

// readAllow returns the clients that a message names; nil if there is none.
func readAllow(m *api.Allow, v *vip) (*allowed, error) {
	switch {
	case m == nil:
		return nil, nil
	case len(m.Clients) > allowMax:
		return nil, fmt.Errorf("allow: %d clients: want at most %d; prefixes stand for many", len(m.Clients), allowMax)
	case v.stateless:
		return nil, fmt.Errorf("allow: switches choose by themselves for a stateless VIP; use the firewall")
	}
	out := &allowed{hosts: map[netip.Addr]bool{}}
	for _, text := range m.Clients {
		p, err := netip.ParsePrefix(text)
		if a, aerr := netip.ParseAddr(text); aerr == nil && a.Zone() == "" {
			p, err = prefixOf(a.Unmap()), nil
		}
		if err != nil || p.Addr().Is4() != v.at.host.Addr.Is4() {
			return nil, fmt.Errorf("allow: client %q: want an address or a prefix of the family of %v", text, v.at.host.Addr)
		}
		if p = p.Masked(); p.IsSingleIP() {
			out.hosts[p.Addr()] = true
			out.said = append(out.said, p.Addr().String())
		} else {
			out.prefixes = append(out.prefixes, p)
			out.said = append(out.said, p.String())
		}
	}
	return out, nil
}

func (a *allowed) message() *api.Allow {
	if a == nil {
		return nil
	}
	return &api.Allow{Clients: a.said}
}

// refusal is what happens to clients whom a VIP does not serve.
type refusal uint8

const (
	refuseReset refusal = iota
	refuseDrop
	refuseTo // translated to the responder; reset where that is impossible
)

// readRefuse reads reset, drop or "to: ADDRESS:PORT".
func readRefuse(text string, v *vip) (err error) {
	switch word := strings.ToLower(strings.TrimSpace(text)); {
	case word == "" || word == "reset":
		return nil
	case word == "drop":
		v.refuse = refuseDrop
		return nil
	case strings.HasPrefix(word, "to:"):
		at, err := netip.ParseAddrPort(strings.TrimSpace(word[len("to:"):]))
		if err != nil || at.Port() == 0 {
			break
		}
		if v.at.proto == 0 {
			return fmt.Errorf("refuse %q: with protocol any ports stay as they are; want reset or drop", text)
		}
		v.refuse = refuseTo
		v.responder, err = readMember(&api.PoolMember{Address: at.Addr().String(), Port: uint32(at.Port())}, v)
		if err != nil {
			return fmt.Errorf("refuse: %w", err)
		}
		return nil
	}
	return fmt.Errorf("refuse %q: want reset, drop or to:ADDRESS:PORT", text)
}

// refusalText is what readRefuse reads.
func (v *vip) refusalText() string {
	switch v.refuse {
	case refuseDrop:
		return "drop"
	case refuseTo:
		return "to: " + v.responder.key().String()
	default:
		return "reset"
	}
}

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

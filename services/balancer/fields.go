package balancer

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

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

// readCheck returns the check that a message describes; none if the message is
// nil.
func readCheck(m *api.HealthCheck, at service) (c check, err error) {
	if c.kind, err = wordOf[checkKind](checkKinds[:], m.GetKind()); err != nil {
		return c, fmt.Errorf("kind %w", err)
	}
	def := func(v, otherwise uint32) uint32 {
		if v == 0 {
			return otherwise
		}
		return v
	}
	interval, timeout := def(m.GetIntervalMs(), 2000), def(m.GetTimeoutMs(), 1000)
	rise, fall := def(m.GetRise(), 2), def(m.GetFall(), 3)
	switch {
	case interval < 100 || interval > 3_600_000:
		return c, fmt.Errorf("interval_ms %d: want 100 to 3600000", interval)
	case m.GetIdleIntervalMs() != 0 && (m.GetIdleIntervalMs() < interval || m.GetIdleIntervalMs() > 3_600_000):
		return c, fmt.Errorf("idle_interval_ms %d: want interval_ms, %d, to 3600000, or 0", m.GetIdleIntervalMs(), interval)
	case !c.kind.connects() && m.GetIdleIntervalMs() != 0:
		return c, fmt.Errorf("idle_interval_ms %d: only checks of kind tcp and http2 have one", m.GetIdleIntervalMs())
	case timeout < 10 || timeout > 60_000:
		return c, fmt.Errorf("timeout_ms %d: want 10 to 60000", timeout)
	case rise > 100 || fall > 100:
		return c, fmt.Errorf("rise %d, fall %d: want 1 to 100", rise, fall)
	case m.GetPort() > 65535:
		return c, fmt.Errorf("port %d: want at most 65535", m.GetPort())
	case !c.kind.connects() && m.GetPort() != 0:
		return c, fmt.Errorf("port %d: only checks of kind tcp and http2 have one", m.GetPort())
	case c.kind.connects() && at.proto == 0 && m.GetPort() == 0:
		return c, fmt.Errorf("port 0: a VIP of protocol any has none; say which port is to be checked")
	}
	c.interval, c.timeout = time.Duration(interval)*time.Millisecond, time.Duration(timeout)*time.Millisecond
	c.rise, c.fall, c.port, c.idle = int(rise), int(fall), uint16(m.GetPort()), time.Duration(m.GetIdleIntervalMs())*time.Millisecond
	return c, nil
}

func (c *check) message() *api.HealthCheck {
	if c.kind == checkNone {
		return &api.HealthCheck{Kind: checkKinds[checkNone]}
	}
	return &api.HealthCheck{
		Kind: checkKinds[c.kind], IntervalMs: uint32(c.interval.Milliseconds()), TimeoutMs: uint32(c.timeout.Milliseconds()),
		Rise: uint32(c.rise), Fall: uint32(c.fall), Port: uint32(c.port), IdleIntervalMs: uint32(c.idle.Milliseconds()),
	}
}

// keep returns the message to store for a VIP: what users give, completed.
func (v *vip) keep() *api.Vip {
	m := &api.Vip{
		Name: v.name, Address: v.at.host.Addr.String(), Protocol: protocolName(v.at.proto), Port: uint32(v.at.port),
		Vlan: uint32(v.at.host.VLAN &^ flow.VLANPresent), Policy: v.policy.String(), Stickiness: uint32(v.sticky / time.Second),
		Stateless: v.stateless, IdleTimeout: uint32(v.idle), Mac: v.mac.String(), Health: v.check.message(),
		Owner: owners[v.owner], Allow: v.allow.message(), Refuse: v.refusalText(), Shadow: v.host != nil,
		Per: perNames[btoi(v.paired)], Again: v.againText(), Takeover: v.takeover, Lapse: v.lapse, Sample: uint32(v.sample),
	}
	for _, p := range v.pool {
		m.Pool = append(m.Pool, &api.PoolMember{
			Address: p.addr.Addr.String(), Port: uint32(p.port), Weight: uint32(p.weight), State: wishes[p.wish], Priority: uint32(p.tier),
		})
	}
	return m
}

package scp

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/weft-sdn/weft/api"
)

// owner is by what name the balancer knows whose VIPs they are.
const owner = "scp"

// nrfVip is the name of the VIP that shadows the NRF.
const nrfVip = "scp-nrf-shadow"

// How the balancer checks members: one that was killed gets no new connections
// after two seconds at most.
const (
	checkInterval = 1000 // milliseconds
	checkTimeout  = 500
	checkFall     = 2
	checkRise     = 1
)

// farther is added to the tiers of members elsewhere than consumers prefer, which
// come after all others.
const farther = 1 << 15

// tier returns the tier of a member by what its profile says: the lowest that
// serves is used.
func tier(said int, near bool) uint32 {
	said = min(said, farther-1)
	if !near {
		said += farther
	}
	return uint32(said)
}

func check() *api.HealthCheck {
	return &api.HealthCheck{Kind: "tcp", IntervalMs: checkInterval, TimeoutMs: checkTimeout, Fall: checkFall, Rise: checkRise}
}

// want returns the VIPs that there should be, by name.
func (p *proxy) want(now int64) map[string]*api.Vip {
	p.mu.Lock()
	defer p.mu.Unlock()
	cfg, vips := p.cfg.Load(), map[string]*api.Vip{}
	nrf, _, _ := cfg.nrf() // Validate has seen both
	listen, _ := cfg.listen()
	if p.serving && nrf.IsValid() && listen.IsValid() {
		vips[nrfVip] = &api.Vip{
			Name: nrfVip, Address: nrf.Addr().String(), Protocol: "tcp", Port: uint32(nrf.Port()), Vlan: uint32(cfg.VLAN), Shadow: true, Takeover: true, Health: check(),
			Pool: []*api.PoolMember{{Address: listen.Addr().String(), Port: uint32(listen.Port())}},
		}
	}
	for _, e := range p.endpoints {
		members := p.members(e.Group)
		if before := len(e.Doors); before != len(e.open(members)) {
			p.reindex()
			p.touch()
		}
		p.judge(e, members, now)
		for _, a := range e.Addrs {
			for _, d := range e.Doors {
				v := p.vip(e, members, a, d, now)
				vips[v.Name] = v
			}
		}
	}
	return vips
}

// vipName returns the name of the VIP of a door.
func vipName(e *endpoint, a netip.Addr, d door) string {
	name := e.Group.name() + "." + strconv.Itoa(int(d.Port))
	if a.Is6() {
		name += ".6"
	}
	return name
}

// judge sets whether an endpoint is overloaded: all members that serve have the
// load of its policy, until their mean is a tenth below.
func (p *proxy) judge(e *endpoint, members []member, now int64) {
	limit := int(p.policyOf(e.Group.Type).GetOverload())
	if limit == 0 {
		limit = p.cfg.Load().Overload
	}
	sum, least, n := 0, 100, 0
	for _, m := range members {
		if state, _ := m.serves(now, p.cfg.Load().Margin); state != "" {
			continue
		}
		load := loadOf(m)
		sum, least, n = sum+load, min(least, load), n+1
	}
	was := e.overloaded
	switch {
	case limit == 0 || n == 0:
		e.overloaded = false
	case least >= limit:
		e.overloaded = true
	case sum/n < limit-10:
		e.overloaded = false
	}
	if e.overloaded != was {
		p.log.Info("overload", "type", e.Group.Type, "overloaded", e.overloaded, "least", least)
	}
}

func loadOf(m member) int {
	if m.profile.Load != nil {
		return *m.profile.Load
	}
	if len(m.points) > 0 {
		return m.points[0].Load
	}
	return 0
}

// vip returns the VIP of one door at one address.
func (p *proxy) vip(e *endpoint, members []member, a netip.Addr, d door, now int64) *api.Vip {
	cfg, policy := p.cfg.Load(), p.policyOf(e.Group.Type)
	v := &api.Vip{
		Name: vipName(e, a, d), Address: a.String(), Protocol: "tcp", Port: uint32(d.Port), Vlan: uint32(cfg.VLAN), Policy: policy.Algorithm,
		IdleTimeout: policy.IdleTimeout, Health: check(), Per: policy.Per, Again: policy.Again, Allow: p.allow(e.Group, d, members, a.Is4()),
	}
	if v.Per != "pair" {
		v.Again = ""
	}
	if listen, _ := cfg.listen(); p.serving && d.Scheme == "http" && listen.IsValid() && listen.Addr().Is4() == a.Is4() {
		v.Refuse = "to: " + listen.String() // which says over HTTP why
	}
	for _, m := range members {
		state, _ := m.serves(now, cfg.Margin)
		for _, x := range m.at(d, a.Is4()) {
			pm := &api.PoolMember{
				Address: x.Addr.Addr().String(), Port: uint32(x.Addr.Port()), Priority: tier(x.Priority, m.near), Weight: weight(x.Capacity, x.Load),
			}
			if state != "" || e.overloaded {
				pm.State = "draining"
			}
			if !slices.ContainsFunc(v.Pool, func(o *api.PoolMember) bool { return o.Address == pm.Address && o.Port == pm.Port }) {
				v.Pool = append(v.Pool, pm)
			}
		}
	}
	return v
}

// weight returns the share of a member: its capacity, less its load in steps of a
// tenth, so that not every heartbeat changes it.
func weight(capacity, load int) uint32 {
	return uint32(max(1, min(capacity, 65535)*(10-min(load, 100)/10)/10))
}

// allow returns who may connect, nil if that is everybody.
func (p *proxy) allow(g group, d door, members []member, v4 bool) *api.Allow {
	if g.Class == "" && !p.cfg.Load().Strict {
		return nil
	}
	allow := &api.Allow{}
	for _, x := range p.book {
		r := x.requester()
		if !slices.ContainsFunc(members, func(m member) bool { return m.allows(r, d.Services...) }) {
			continue
		}
		for _, a := range x.addresses() {
			if a.Is4() == v4 {
				allow.Clients = append(allow.Clients, a.String())
			}
		}
	}
	slices.Sort(allow.Clients)
	allow.Clients = slices.Compact(allow.Clients)
	return allow
}

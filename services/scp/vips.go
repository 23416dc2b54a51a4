package scp

import (
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/sbi"
)

// owner is by what name the balancer knows whose VIPs they are.
const owner = "scp"

// nrfVip is the name of the VIP that shadows the NRF.
const nrfVip = "scp-nrf-shadow"

// How the balancer checks members: one that is used and was killed gets no new
// connections after a second and a half, one that hangs or whose host is silent after
// four, one that nobody uses after seven at most, and a machine that is busy for a
// second loses none.
const (
	checkInterval = 1000 // milliseconds
	checkIdle     = 5000
	checkTimeout  = 1000
	checkFall     = 3
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

func check(kind string) *api.HealthCheck {
	return &api.HealthCheck{Kind: kind, IntervalMs: checkInterval, IdleIntervalMs: checkIdle, TimeoutMs: checkTimeout, Fall: checkFall, Rise: checkRise}
}

// want returns the VIPs that there should be, by name.
func (p *proxy) want(now int64) map[string]*api.Vip {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(now)
	cfg, vips := p.cfg.Load(), map[string]*api.Vip{}
	nrf, _, _ := cfg.nrf() // Validate has seen both
	listen, _ := cfg.listen()
	if p.serving && nrf.IsValid() && listen.IsValid() {
		v := &api.Vip{
			Name: nrfVip, Address: nrf.Addr().String(), Protocol: "tcp", Port: uint32(nrf.Port()), Vlan: uint32(cfg.VLAN), Shadow: true, Takeover: true, Lapse: true, Health: check("tcp"),
			Pool: []*api.PoolMember{{Address: listen.Addr().String(), Port: uint32(listen.Port())}},
		}
		if vips[nrfVip] = v; p.leaving {
			v.Pool[0].State = "draining"
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

// refuse notes what the balancer has said to a VIP: an error that trying again does
// not mend is that it refuses it.
func (p *proxy) refuse(name string, err error) {
	why := ""
	switch api.KindOf(err) {
	case codes.OK:
	case codes.InvalidArgument, codes.AlreadyExists, codes.FailedPrecondition, codes.ResourceExhausted:
		why = err.Error()
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if name == nrfVip {
		p.shadowed = err == nil
	}
	if p.refused[name] == why {
		return
	}
	defer p.reindex()
	if p.refused[name] = why; why == "" {
		delete(p.refused, name)
	} else {
		p.log.Warn("the balancer refuses a VIP: consumers have producers' own addresses meanwhile", "vip", name, "error", err)
	}
	p.touch()
}

// wanted forgets what the balancer has said to VIPs that are not wanted any more.
func (p *proxy) wanted(vips map[string]*api.Vip) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shadowed = p.shadowed && vips[nrfVip] != nil
	maps.DeleteFunc(p.refused, func(name, _ string) bool { return vips[name] == nil })
}

// isRefused reports whether the balancer refuses one of some VIPs.
func (p *proxy) isRefused(names ...string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused.any(names)
}

// refusals are the VIPs that the balancer does not make, and why.
type refusals map[string]string

// any reports whether one of some VIPs is refused.
func (r refusals) any(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return r[name] != "" })
}

// vipName returns the name of the VIP of a door.
func vipName(e *endpoint, a netip.Addr, d door) string {
	name := e.name() + "." + strconv.Itoa(int(d.Port))
	if a.Is6() {
		name += ".6"
	}
	return name
}

// judge sets whether an endpoint is overloaded: all members that serve have the
// load of its policy, until their mean is a tenth below.
func (p *proxy) judge(e *endpoint, members []member, now int64) {
	limit := p.overloadOf(p.policyOf(e.Group.Type))
	sum, least, n := 0, 100, 0
	for _, m := range members {
		if state, _ := m.serves(now, p.cfg.Load().Margin); state != "" {
			continue
		}
		load := p.strain.loadOf(m, now, e.Group.wanted())
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

// loadOf returns the load of a member: what it last said in an answer, or registered.
func (s *strain) loadOf(m member, now int64, w wanted) int {
	if is := s.ofPart(m.id(), "", m.first().Addr, now, w); is.load >= 0 {
		return is.load
	}
	return loadOf(m)
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
		IdleTimeout: policy.IdleTimeout, Health: check("tcp"), Per: policy.Per, Again: policy.Again, Allow: p.allow(e.Group, d, members, a.Is4()),
	}
	switch {
	case v.Per != "pair":
		v.Again = ""
	case v.Again == "balance" && d.Scheme == "http": // whose answers can be read
		v.Again = "indicated"
	}
	if d.Scheme == "http" { // whose processes are to answer, too
		v.Health, v.Sample = check("http2"), policy.Sample
	}
	switch v.Policy {
	case twoChoices: // of which switches tell no time
		v.Policy = "least"
	case byLocality: // by the priorities of members
		v.Policy = "weighted"
	}
	if strings.HasPrefix(v.Policy, appPrefix) { // by the weights of members
		v.Policy = "weighted"
	}
	if listen, _ := cfg.listen(); p.serving && d.Scheme == "http" && listen.IsValid() && listen.Addr().Is4() == a.Is4() {
		v.Refuse = "to: " + listen.String() // which says over HTTP why
	}
	about := e.Group.wanted()
	pool, there := []poolMember{}, map[netip.AddrPort]int{}
	for _, m := range members {
		state, _ := m.serves(now, cfg.Margin)
		points := m.at(d, a.Is4())
		for _, x := range points {
			pm := &api.PoolMember{Address: x.Addr.Addr().String(), Port: uint32(x.Addr.Port()), Priority: tier(x.Priority, m.near)}
			if state != "" || e.overloaded {
				pm.State = "draining"
			}
			if m.drained && d.Scheme == "http" {
				pm.State = "retiring" // nor new requests on connections that it has
			}
			is := p.strain.ofPart(m.id(), "", x.Addr, now, about)
			load := x.Load
			if is.load >= 0 {
				load = is.load
			}
			if is.reduction == 100 && pm.State == "" {
				pm.State = "draining"
			}
			counts := int(weight(is.capacity(x.Capacity), load))
			if w, has := p.weights.of(policy, m.id(), now); has {
				if counts = w; w == 0 && pm.State == "" {
					pm.State = "draining"
				}
			}
			share := poolMember{pm, float64(counts) / float64(sharing(points, x))}
			if is.reduction > 0 {
				share.share *= float64(100-is.reduction) / 100
			}
			if was, twice := there[x.Addr]; !twice {
				there[x.Addr] = len(pool)
				pool = append(pool, share)
			} else if pool[was].State != "" && pm.State == "" {
				pool[was] = share // of several instances at a place, one that serves counts
			}
		}
	}
	v.Pool = weighted(pool)
	return v
}

// poolMember is a member of a VIP with its share of what is new, which need not be a
// whole number.
type poolMember struct {
	*api.PoolMember
	share float64
}

// sharing returns at how many places the capacity is of an end point of a member.
func sharing(points []sbi.EndPoint, x sbi.EndPoint) int {
	places := map[netip.AddrPort]bool{}
	for _, e := range points {
		if e.Source == x.Source {
			places[e.Addr] = true
		}
	}
	return len(places)
}

// weighted returns members with weights in the ratio of their shares: the shares
// themselves, if these are whole numbers.
func weighted(pool []poolMember) []*api.PoolMember {
	most, factor := 0.0, 1.0
	for _, m := range pool {
		most = max(most, m.share)
	}
	whole := func() bool {
		return !slices.ContainsFunc(pool, func(m poolMember) bool { return m.share*factor != math.Trunc(m.share*factor) })
	}
	for !whole() && most*(factor+1) <= mostWeight && factor < 64 {
		factor++
	}
	var all []*api.PoolMember
	for _, m := range pool {
		m.Weight = uint32(max(1, math.Round(m.share*factor)))
		all = append(all, m.PoolMember)
	}
	return all
}

// mostWeight is the largest weight of a member.
const mostWeight = 65_535

// weight returns the share of a member: its capacity, less its load in steps of a
// tenth, so that not every heartbeat changes it.
func weight(capacity, load int) uint32 {
	return uint32(max(1, min(capacity, mostWeight)*(10-min(load, 100)/10)/10))
}

// allow returns who may connect, nil if that is everybody.
func (p *proxy) allow(g group, d door, members []member, v4 bool) *api.Allow {
	if g.Class == "" && !p.cfg.Load().Strict {
		return nil
	}
	rules := map[clientsKey]*producer{} // members differ in few
	for _, m := range members {
		if services := m.offered(d.Services); len(services) > 0 {
			rules[clientsKey{m.class, strings.Join(services, " "), v4}] = m.producer
		}
	}
	known := p.groupsNow().clients
	allow := &api.Allow{}
	for _, r := range p.cfg.Load().exempt() {
		if r.Addr().Is4() == v4 {
			allow.Clients = append(allow.Clients, r.String())
		}
	}
	for k, x := range rules {
		clients, ok := known[k]
		if !ok {
			clients = p.clientsOf(x, strings.Fields(k.services), v4)
			known[k] = clients
		}
		if allow.Clients = append(allow.Clients, clients...); len(allow.Clients) > len(clients) {
			slices.Sort(allow.Clients)
			allow.Clients = slices.Compact(allow.Clients)
		}
	}
	return allow
}

// clientsKey is on what it depends who may connect to a producer's services.
type clientsKey struct {
	class, services string
	v4              bool
}

// clientsOf returns the addresses of those who may use one of some services of a
// producer, in order. It is called with mu held.
func (p *proxy) clientsOf(x *producer, services []string, v4 bool) (clients []string) {
	for _, c := range p.book {
		if !x.admits(c, services...) {
			continue
		}
		for _, a := range c.addresses() {
			if a.Is4() == v4 {
				clients = append(clients, a.String())
			}
		}
	}
	slices.Sort(clients)
	return slices.Compact(clients)
}

// offered returns those of some services that a member has.
func (m member) offered(services []string) (have []string) {
	for _, name := range services {
		if slices.ContainsFunc(m.points, func(x sbi.EndPoint) bool { return x.Service == name }) {
			have = append(have, name)
		}
	}
	return have
}

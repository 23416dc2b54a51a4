package scp

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/sbi"
)

// group is those producers that consumers see as one.
type group struct {
	Type     sbi.NFType `json:"type"`
	Class    string     `json:"class,omitempty"`    // of who may use them
	Slice    string     `json:"slice,omitempty"`    // that consumers have asked for, in JSON
	Locality string     `json:"locality,omitempty"` // that consumers prefer
	Form     string     `json:"form,omitempty"`     // what makes one as good as another
}

// name returns the name of the group's VIPs, without their ports.
func (g group) name() string {
	name := "scp-" + strings.ToLower(string(g.Type))
	if rest := (group{Class: g.Class, Slice: g.Slice, Locality: g.Locality, Form: g.Form}); rest != (group{}) {
		text, _ := json.Marshal(rest) // of strings
		name += "-" + digest(string(text))
	}
	return name
}

// plain returns the group without its form: that of one form, for the most part the
// only one, is named so.
func (g group) plain() group {
	g.Form = ""
	return g
}

// wanted returns what all requests to the group are about.
func (g group) wanted() (w wanted) {
	if g.Slice != "" {
		_ = json.Unmarshal([]byte(g.Slice), &w.slices) // written by sliceOf
	}
	return w
}

// endpoint is what consumers reach a group by. It is stored, for consumers that
// never ask again. The proxy's mu guards it.
type endpoint struct {
	Group group        `json:"group"`
	Addrs []netip.Addr `json:"addrs"` // one of each family
	Doors []door       `json:"doors"`
	Plain bool         `json:"plain,omitempty"` // it is named without its form

	overloaded bool
	used       int64 // when consumers last asked for it, or had connections
}

// name returns the name of the endpoint's VIPs, without their ports.
func (e *endpoint) name() string {
	if e.Plain {
		return e.Group.plain().name()
	}
	return e.Group.name()
}

// instance returns the nfInstanceId by which consumers know the endpoint.
func (e *endpoint) instance() string { return sbi.InstanceID("scp", e.name()) }

// door is a port of an endpoint. All its services are reached there, at each
// member that it has.
type door struct {
	Port     uint16   `json:"port"`
	Services []string `json:"services"`
	Scheme   string   `json:"scheme"`
}

// member is an instance of a group, with what of it counts there.
type member struct {
	*producer
	points []sbi.EndPoint // of the services that fit the group
	near   bool
}

// apart is why the instances of groups are reached by their own addresses. The proxy's
// mu guards it.
type apart map[group]string

// mostApart bounds the groups of which that is remembered.
const mostApart = 4096

func (a apart) set(g group, whyNot string) {
	if whyNot == "" {
		delete(a, g)
		return
	}
	if len(a) >= mostApart {
		clear(a)
	}
	a[g] = whyNot
}

// groups is what has been found of groups, of one version. The proxy's mu guards it.
type groups struct {
	version uint64
	members map[group][]member
	clients map[clientsKey][]string
}

// groupsNow returns what has been found since the last change. It is called with mu
// held.
func (p *proxy) groupsNow() *groups {
	if p.groups.members == nil || p.groups.version != p.version {
		p.groups = groups{p.version, map[group][]member{}, map[clientsKey][]string{}}
	}
	return &p.groups
}

// members returns the instances of a group, in order, which nobody changes. It is
// called with mu held.
func (p *proxy) members(g group) []member {
	known := p.groupsNow().members
	all, ok := known[g]
	if !ok {
		all = p.membersOf(g)
		known[g] = all
	}
	return all
}

func (p *proxy) membersOf(g group) []member {
	q := &sbi.Query{TargetNFType: g.Type, SNSSAIs: g.wanted().slices}
	var all []member
	reserved := p.cfg.Load().reserved()
	for _, x := range p.byType[g.Type] {
		if x.class != g.Class || x.form != g.Form || x.whyNot != "" {
			continue
		}
		found, err := sbi.Search([]*sbi.NFProfile{x.open}, q)
		if err == nil && len(found) == 1 {
			points := slices.DeleteFunc(found[0].EndPoints(), func(e sbi.EndPoint) bool { return reserved(e.Addr.Addr()) })
			all = append(all, member{producer: x, points: points, near: g.Locality == "" || x.profile.Locality == g.Locality})
		}
	}
	return all
}

// at returns where a member has all of a door's services, of one family.
func (m member) at(d door, v4 bool) []sbi.EndPoint {
	var found []sbi.EndPoint
	for _, e := range m.points {
		if e.Addr.Addr().Is4() != v4 || e.Scheme != d.Scheme || e.Service != d.Services[0] {
			continue
		}
		all := true
		for _, s := range d.Services[1:] {
			all = all && slices.ContainsFunc(m.points, func(o sbi.EndPoint) bool { return o.Service == s && o.Addr == e.Addr && o.Scheme == e.Scheme })
		}
		if all {
			found = append(found, e)
		}
	}
	return found
}

// endpointOf returns the endpoint of a group, made if there is none; nil if there
// is no room for more, or no address. It is called with mu held.
func (p *proxy) endpointOf(g group, members []member, now int64) *endpoint {
	e := p.endpoints[g.plain().name()]
	switch {
	case e == nil:
	case e.Group.Form == g.Form:
	case len(p.members(e.Group)) == 0: // nobody is of its form any more
		e.Group, e.Plain = g, true
	default:
		e = p.endpoints[g.name()]
	}
	if e == nil {
		if !p.room(g) {
			p.giveBack(now, endpointIdle)
		}
		if !p.room(g) {
			p.count.noRoom.Add(1)
			return nil
		}
		e = &endpoint{Group: g, Plain: p.endpoints[g.plain().name()] == nil}
	}
	e.used = now
	before := len(e.Addrs) + len(e.Doors)
	p.address(e, members)
	e.open(members)
	if len(e.Addrs) == 0 || len(e.Doors) == 0 {
		return nil
	}
	if p.endpoints[e.name()] = e; before != len(e.Addrs)+len(e.Doors) {
		p.reindex()
		p.touch()
	}
	return e
}

// How long nobody has asked for an endpoint, nor had connections by it, before its
// addresses are given back: as a rule, and where there is no room for another.
const (
	endpointLife = 24 * time.Hour
	endpointIdle = time.Hour
)

// giveBack forgets the endpoints that nobody has used for a time. They are made
// again, with the same ids, when somebody asks. It is called with mu held.
func (p *proxy) giveBack(now int64, unused time.Duration) {
	before := len(p.endpoints)
	maps.DeleteFunc(p.endpoints, func(_ string, e *endpoint) bool { return now-e.used > int64(unused) })
	if len(p.endpoints) != before {
		p.reindex()
		p.touch()
	}
}

// lively notes which endpoints have connections, by what the balancer says of the
// VIPs, and gives back those that have long had none.
func (p *proxy) lively(vips []*api.Vip, now int64) {
	busy := map[string]bool{}
	for _, v := range vips {
		busy[v.GetName()] = v.GetPairs()+v.GetConnections() > 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.endpoints {
		if slices.ContainsFunc(e.vips(), func(name string) bool { return busy[name] }) {
			e.used = now
		}
	}
	p.giveBack(now, endpointLife)
}

// vips returns the names of the VIPs of an endpoint.
func (e *endpoint) vips() (names []string) {
	for _, a := range e.Addrs {
		for _, d := range e.Doors {
			names = append(names, vipName(e, a, d))
		}
	}
	return names
}

// room reports whether there may be an endpoint more. Those for slices and localities,
// of which consumers can ask for any number, have half of the room at most.
func (p *proxy) room(g group) bool {
	most := p.cfg.Load().Endpoints
	asked := func(g group) bool { return g.Slice != "" || g.Locality != "" }
	n := 0
	for _, e := range p.endpoints {
		if asked(e.Group) {
			n++
		}
	}
	return len(p.endpoints) < most && (!asked(g) || n < (most+1)/2)
}

// address gives an endpoint an address of each family that its members have.
func (p *proxy) address(e *endpoint, members []member) {
	for _, prefix := range p.cfg.Load().Vips {
		v4 := prefix.Addr().Is4()
		is := func(a netip.Addr) bool { return a.Is4() == v4 }
		if slices.ContainsFunc(e.Addrs, is) || !slices.ContainsFunc(members, func(m member) bool {
			return slices.ContainsFunc(m.points, func(x sbi.EndPoint) bool { return is(x.Addr.Addr()) })
		}) {
			continue
		}
		taken := map[netip.Addr]bool{p.own(): true}
		for _, o := range p.endpoints {
			for _, a := range o.Addrs {
				taken[a] = true
			}
		}
		if a, ok := p.free(prefix, taken); ok {
			e.Addrs = append(e.Addrs, a)
		} else {
			p.count.noRoom.Add(1)
		}
	}
}

// free returns the lowest address of a prefix that nobody has.
func (p *proxy) free(prefix netip.Prefix, taken map[netip.Addr]bool) (netip.Addr, bool) {
	a := prefix.Addr().Next() // the first is the subnet's, or could be taken for it
	for n := 0; n <= len(taken)+4096 && prefix.Contains(a); n++ {
		_, known := p.hosts.Station(object.In(a, object.VLAN(uint32(p.cfg.Load().VLAN))))
		if !taken[a] && !known && prefix.Contains(a.Next()) { // the last is IPv4's broadcast
			return a, true
		}
		a = a.Next()
	}
	return netip.Addr{}, false
}

// open gives an endpoint the doors that it needs: each service that a member
// offers has one behind which all of them are that offer it. Doors are never
// taken away, for consumers that know them. It returns all doors.
func (e *endpoint) open(members []member) []door {
	where := map[string]map[netip.AddrPort]string{} // scheme of a service at a place
	for _, m := range members {
		for _, x := range m.points {
			if where[x.Service] == nil {
				where[x.Service] = map[netip.AddrPort]string{}
			}
			where[x.Service][x.Addr] = x.Scheme
		}
	}
	for _, name := range slices.Sorted(maps.Keys(where)) {
		if e.door(name, members) != nil {
			continue
		}
		at := slices.SortedFunc(maps.Keys(where[name]), func(a, b netip.AddrPort) int {
			return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Port(), b.Port()))
		})
		d := door{Port: e.port(at[0].Port()), Scheme: where[name][at[0]], Services: []string{name}}
		for _, other := range slices.Sorted(maps.Keys(where)) {
			if other != name && maps.Equal(where[other], where[name]) && e.door(other, members) == nil {
				d.Services = append(d.Services, other)
			}
		}
		e.Doors = append(e.Doors, d)
	}
	return e.Doors
}

// door returns the door of a service: one behind which all members are that offer
// it. It returns nil if there is none.
func (e *endpoint) door(service string, members []member) *door {
	for i := range e.Doors {
		d := &e.Doors[i]
		if !slices.Contains(d.Services, service) {
			continue
		}
		if !slices.ContainsFunc(members, func(m member) bool {
			return slices.ContainsFunc(m.points, func(x sbi.EndPoint) bool {
				return x.Service == service && !slices.ContainsFunc(m.at(*d, x.Addr.Addr().Is4()), func(o sbi.EndPoint) bool { return o.Addr == x.Addr })
			})
		}) {
			return d
		}
	}
	return nil
}

// port returns a port that no door has, the wanted one if it is free.
func (e *endpoint) port(wanted uint16) uint16 {
	for p := wanted; ; p++ {
		if p != 0 && !slices.ContainsFunc(e.Doors, func(d door) bool { return d.Port == p }) {
			return p
		}
	}
}

// sliceOf returns slices as text, the same for the same slices.
func sliceOf(list []sbi.Snssai) string {
	if len(list) == 0 {
		return ""
	}
	var texts []string
	for _, s := range list {
		text, _ := json.Marshal(s) // of strings and numbers
		texts = append(texts, string(text))
	}
	slices.Sort(texts)
	return "[" + strings.Join(slices.Compact(texts), ",") + "]"
}

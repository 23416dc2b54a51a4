package chain

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// store is the chains, and what is known of the network.
type store struct {
	cfg     *Config
	declare func(...flow.DPID)     // declares the entries of switches anew
	publish func()                 // has the news published
	reroute func()                 // has the ways between switches sought anew
	overall func() (string, error) // how the switches stand together

	mu       object.Guard // guards the following
	chains   *object.Store[*chain]
	switches map[flow.DPID]*api.Switch             // those that are or were connected
	ports    map[flow.Location]bool                // whether it is up
	edges    map[flow.Location]bool                // edge ports
	roles    map[flow.DPID]bool                    // whether any role of its ports is known
	links    map[flow.Location]flow.Location       // that are up, by the port at one end
	hosts    map[flow.MAC]flow.Location            // untagged ones
	at       map[flow.DPID]map[flow.MAC]bool       // the same by switch
	taken    map[flow.Location]bool                // ports of functions
	said     map[flow.Location]bool                // those that have been published
	next     map[flow.DPID]map[flow.DPID]flow.Port // by which port to go from one switch to another
	whole    bool                                  // all ways have been found once
	told     time.Time                             // when hosts, roles or links were told of last
	settled  bool                                  // and all of them had been, once
	observed map[flow.DPID]map[spot]bool           // what entries switches have told that they have, until a chain changes
	tags     *tags
}

func newStore(cfg *Config, kept, numbers object.Bucket, bad func(what, name string, err error)) *store {
	b := &store{
		cfg: cfg, overall: func() (string, error) { return "in_sync", nil }, declare: func(...flow.DPID) {}, publish: func() {}, reroute: func() {}, switches: map[flow.DPID]*api.Switch{}, ports: map[flow.Location]bool{},
		edges: map[flow.Location]bool{}, links: map[flow.Location]flow.Location{}, hosts: map[flow.MAC]flow.Location{},
		at: map[flow.DPID]map[flow.MAC]bool{}, taken: map[flow.Location]bool{}, said: map[flow.Location]bool{}, roles: map[flow.DPID]bool{}, observed: map[flow.DPID]map[spot]bool{},
	}
	b.tags = newTags(&b.mu, cfg, numbers, func(name string, err error) { bad("tag", name, err) })
	b.chains = object.New(&b.mu, kept, object.Kind[*chain]{
		What: "chain", Many: "chains", Most: func() int { return cfg.Chains }, Raise: "chain.chains",
		Name:    func(c *chain) string { return c.said.Name },
		Format:  object.Messages(parse, func(c *chain) *api.ServiceChain { return c.said }),
		Changed: func(_, _ *chain) { clear(b.observed); b.take(); b.publish(); b.reroute(); b.declare() }, Bad: func(name string, err error) { bad("chain", name, err) },
	})
	return b
}

// take notes which ports are those of functions. It is called with mu held.
func (b *store) take() {
	clear(b.taken)
	for c := range b.chains.All() {
		for _, f := range c.functions {
			for _, p := range f {
				b.taken[p.in], b.taken[p.out] = true, true
			}
		}
	}
}

// news returns the changes of ports of functions since its last call.
func (b *store) news() (list []*api.ChainPortChanged) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for at := range b.said {
		if !b.taken[at] {
			list = append(list, &api.ChainPortChanged{At: api.NewLocation(at), Gone: true})
		}
	}
	for at := range b.taken {
		if !b.said[at] {
			list = append(list, &api.ChainPortChanged{At: api.NewLocation(at)})
		}
	}
	b.said = maps.Clone(b.taken)
	slices.SortFunc(list, func(x, y *api.ChainPortChanged) int {
		return cmp.Or(cmp.Compare(x.At.Dpid, y.At.Dpid), cmp.Compare(x.At.Port, y.At.Port))
	})
	return list
}

// parse returns the stored chain.
func parse(m *api.ServiceChain) (*chain, error) {
	c, err := readChain(m)
	if err == nil && (m.Number == 0 || m.Number > numberMax) {
		err = api.Errorf(codes.InvalidArgument, "has number %d", m.Number)
	}
	return c, err
}

// set stores a chain.
func (b *store) set(ctx context.Context, m *api.ServiceChain) error {
	c, err := readChain(m)
	if err != nil {
		return api.Errorf(codes.InvalidArgument, "%w", err)
	}
	_, _, err = b.chains.Change(ctx, c.said.Name, func(old *chain) (*chain, error) { return c, b.admit(c, old) })
	return err
}

// admit checks that a chain is compatible with the network and the other chains,
// and gives it its number. It is called with mu held.
func (b *store) admit(c, old *chain) error {
	for _, f := range c.functions {
		for _, p := range f {
			for _, at := range p.ports() {
				if err := b.usable(p, at); err != nil {
					return err
				}
			}
		}
	}
	if old == nil || !c.same(old) {
		if err := api.CheckNeeds("chain "+c.said.Name, c.remedy(), slices.Values(b.entrances()), c.needs()...); err != nil {
			return err
		}
	}
	numbers := map[uint32]bool{}
	for _, o := range b.chains.List() {
		if o == old {
			continue
		}
		if err := c.conflict(o); err != nil {
			return api.Errorf(codes.AlreadyExists, "chain %s: %w", c.said.Name, err)
		}
		numbers[o.said.Number] = true
	}
	if c.said.Number = 1; old != nil {
		c.said.Number = old.said.Number
	}
	for numbers[c.said.Number] {
		c.said.Number++
	}
	return nil
}

// usable returns why a port cannot be one of a copy. It is called with mu held.
func (b *store) usable(p copyOf, at flow.Location) error {
	sw := b.switches[at.Switch]
	switch {
	case sw == nil:
		return api.Errorf(codes.NotFound, "there is no switch %v; weft get switches shows those that are", at.Switch)
	case unable(sw):
		return api.Errorf(codes.FailedPrecondition, "port %v cannot be one of a function: its switch %s", at, sw.Lack(api.NeedChains))
	}
	if _, known := b.ports[at]; !known && sw.Connected {
		return api.Errorf(codes.NotFound, "switch %v has no port %v", at.Switch, at.Port)
	}
	if far, linked := b.links[at]; linked && far != p.in && far != p.out {
		return api.Errorf(codes.FailedPrecondition, "port %v leads to port %v of another switch; a function is not there", at, far)
	}
	return nil
}

// unable reports whether a switch cannot have chains.
func unable(sw *api.Switch) bool { return sw.Lack(api.NeedChains) != "" }

// entrances returns the switches at which packets may enter a chain: those with edge ports.
// It is called with mu held.
func (b *store) entrances() (list []*api.Switch) {
	seen := map[flow.DPID]bool{}
	for at := range b.edges {
		if !seen[at.Switch] && !b.taken[at] {
			seen[at.Switch] = true
			list = append(list, b.switches[at.Switch])
		}
	}
	return list
}

// list returns the chains, by name.
func (b *store) list() (list []*api.ServiceChain) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.chains.List() {
		list = append(list, b.message(c))
	}
	return list
}

// get returns a chain with its state; nil if there is none.
func (b *store) get(name string) *api.ServiceChain {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.chains.Get(name); c != nil {
		return b.message(c)
	}
	return nil
}

// dead returns how many copies are.
func (b *store) dead() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.chains.All() {
		for _, f := range c.functions {
			n += len(f) - len(b.alive(f))
		}
	}
	return n
}

// message returns a chain with its state. It is called with mu held.
func (b *store) message(c *chain) *api.ServiceChain {
	m := proto.CloneOf(c.said)
	m.State = "up"
	for i, f := range c.functions {
		alive := b.alive(f)
		for _, n := range alive {
			m.Functions[i].Copies[n].Alive = true
		}
		switch dead := len(f) - len(alive); {
		case dead == 0:
		case len(alive) == 0 && c.block:
			m.State, m.Reason = "blocked", "function "+number(i+1)+" is dead"
		case m.State == "up":
			m.State, m.Reason = "degraded", number(dead)+" of "+number(len(f))+" copies of function "+number(i+1)+" are dead"
		}
	}
	if err := api.CheckNeeds("chain "+c.said.Name, c.remedy(), slices.Values(b.entrances()), c.needs()...); m.State == "up" && err != nil {
		m.State, m.Reason = "degraded", err.Error()
	}
	if _, err := b.overall(); m.State == "up" && err != nil {
		m.State, m.Reason = "degraded", err.Error()
	}
	if m.State == "up" && b.tags.short > 0 {
		m.State, m.Reason = "degraded", "no VLAN identifier is free for "+number(b.tags.short)+" ports and switches: raise chain.last_tag, or lower chain.first_tag"
	}
	return m
}

// alive returns which copies of a function are alive: their ports are up, and their
// switches there. It is called with mu held.
func (b *store) alive(f function) (list []int) {
	for i, p := range f {
		if b.up(p.in) && b.up(p.out) && b.there(p.in.Switch) && b.there(p.out.Switch) {
			list = append(list, i)
		}
	}
	return list
}

// there reports whether a switch is connected, or has a link that is up: without a
// controller it still forwards. It is called with mu held.
func (b *store) there(sw flow.DPID) bool {
	if info := b.switches[sw]; info == nil || info.Connected {
		return true
	}
	for at := range b.links {
		if at.Switch == sw {
			return true
		}
	}
	return false
}

// up reports whether a port is; one of a switch that has not been heard of is
// taken to be. It is called with mu held.
func (b *store) up(at flow.Location) bool {
	up, known := b.ports[at]
	return up || !known && !b.switches[at.Switch].GetConnected()
}

func (b *store) switchChanged(e *api.SwitchChanged) {
	sw, err := flow.ParseDPID(e.GetSwitch().GetDpid())
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.switches[sw] = proto.CloneOf(e.Switch)
	if e.Switch.Connected {
		maps.DeleteFunc(b.ports, func(at flow.Location, _ bool) bool { return at.Switch == sw })
		for _, p := range e.Ports {
			b.ports[flow.Location{Switch: sw, Port: flow.Port(p.Port)}] = p.Up
		}
	}
	if slices.Contains(b.functional(), sw) {
		b.declare()
	}
	b.reroute()
}

func (b *store) portChanged(e *api.PortChanged) {
	at := (&api.Location{Dpid: e.GetPort().GetDpid(), Port: e.GetPort().GetPort()}).Flow()
	b.mu.Lock()
	defer b.mu.Unlock()
	was, known := b.ports[at]
	now := e.Port.GetUp() && !e.Removed
	if e.Removed {
		delete(b.ports, at)
	} else {
		b.ports[at] = now
	}
	if (!known || was != now) && b.taken[at] {
		b.declare()
	}
}

func (b *store) roleChanged(e *api.PortRoleChanged) {
	at := e.GetPort().GetAt().Flow()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.roles[at.Switch], b.told = true, time.Now()
	edge := !e.Gone && e.Port.GetRole() == flow.RoleEdge.String()
	if edge == b.edges[at] {
		return
	}
	if delete(b.edges, at); edge {
		b.edges[at] = true
	}
	if b.chains.Len() > 0 {
		b.reroute()
		b.declare(at.Switch)
	}
}

func (b *store) linkChanged(e *api.LinkChanged) {
	l := e.GetLink()
	src, dst := l.GetSrc().Flow(), l.GetDst().Flow()
	b.mu.Lock()
	defer b.mu.Unlock()
	up := !e.Removed && (l.State == "up" || l.State == "dampened")
	if was, there := b.links[src]; there == up && (!there || was == dst) {
		return
	}
	b.told = time.Now()
	was := b.there(src.Switch)
	if delete(b.links, src); up {
		b.links[src] = dst
	}
	switch {
	case b.chains.Len() == 0:
	case was != b.there(src.Switch):
		b.declare()
	default:
		b.declare(src.Switch)
	}
}

func (b *store) hostChanged(e *api.HostChanged) {
	h := e.GetHost()
	mac, err := flow.ParseMAC(h.GetMac())
	if err != nil || h.Vlan != 0 {
		return
	}
	at := h.GetAt().Flow()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = time.Now()
	was, there := b.hosts[mac]
	gone := e.Change == "gone"
	if gone && !there || !gone && there && was == at {
		return
	}
	if delete(b.hosts, mac); there {
		if delete(b.at[was.Switch], mac); len(b.at[was.Switch]) == 0 {
			delete(b.at, was.Switch)
		}
	}
	first := false // of its switch
	if !gone {
		if first = b.at[at.Switch] == nil; first {
			b.at[at.Switch] = map[flow.MAC]bool{}
		}
		b.hosts[mac], b.at[at.Switch][mac] = at, true
	}
	if b.chains.Len() == 0 {
		return
	}
	if first {
		b.reroute()
	}
	which := []flow.DPID{at.Switch}
	if there {
		which = append(which, was.Switch)
	}
	b.declare(append(which, b.functional()...)...)
}

// functional returns the switches that functions are at. It is called with mu held.
func (b *store) functional() (list []flow.DPID) {
	seen := map[flow.DPID]bool{}
	for at := range b.taken {
		if !seen[at.Switch] {
			seen[at.Switch] = true
			list = append(list, at.Switch)
		}
	}
	return list
}

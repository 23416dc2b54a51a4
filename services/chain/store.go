package chain

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/policy"
)

// store is the chains, and what is known of the network.
type store struct {
	cfg        *Config
	chains     *policy.Policy[*api.ServiceChain, *chain]
	news, ways chan struct{} // notified when ports of functions, or ways, may have changed
	damaged    func() bool   // whether chains may be missing from the store
	find       func(context.Context, *api.FindPathRequest) (*api.FindPathResponse, error)

	mu       object.Guard // guards the following, and chains
	net      nib.Snapshot
	at       map[flow.DPID]map[flow.MAC]bool       // untagged hosts by switch
	taken    map[flow.Location]bool                // ports of functions
	said     map[flow.Location]bool                // those that have been published
	next     map[flow.DPID]map[flow.DPID]flow.Port // by which port to go from one switch to another
	whole    bool                                  // all ways have been found once
	told     time.Time                             // when hosts, roles or links were told of last
	settled  bool                                  // and all of them had been, once
	held     map[flow.DPID]time.Time               // until when each connected switch keeps its entries at most; zero: it does not
	observed map[flow.DPID]map[flow.EntryKey]bool  // what entries switches have told that they have, until a chain changes
	tags     *tags
	probes   *prober
}

// changed follows a change of a chain. It is called with mu held.
func (b *store) changed(_, _ *chain) {
	clear(b.observed)
	b.take()
	object.Notify(b.news)
	object.Notify(b.ways)
}

// take notes which ports are those of functions. It is called with mu held.
func (b *store) take() {
	clear(b.taken)
	for c := range b.chains.All() {
		for p := range c.copies() {
			b.taken[p.in], b.taken[p.out] = true, true
		}
	}
}

// portsChanged returns the changes of ports of functions since its last call.
func (b *store) portsChanged() (list []*api.ChainPortChanged) {
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
		err = fmt.Errorf("has number %d", m.Number)
	}
	return c, err
}

// admit checks that a chain is compatible with the network and the other chains,
// and gives it its number. It is called with mu held.
func (b *store) admit(c, old *chain) error {
	for p := range c.copies() {
		for _, at := range p.ports() {
			if err := b.usable(p, at); err != nil {
				return err
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
	sw := b.net.Info(at.Switch)
	switch {
	case sw == nil:
		return api.Errorf(codes.NotFound, "there is no switch %v; weft get switches shows those that are", at.Switch)
	case unable(sw):
		return api.Errorf(codes.FailedPrecondition, "port %v cannot be one of a function: its switch %s", at, sw.Lack(api.NeedChains))
	}
	if b.net.Port(at) == nil && sw.Connected {
		return api.Errorf(codes.NotFound, "switch %v has no port %v", at.Switch, at.Port)
	}
	for _, l := range linksFrom(b.net, at.Switch) {
		if l.Src == at && l.Dst != p.in && l.Dst != p.out {
			return api.Errorf(codes.FailedPrecondition, "port %v leads to port %v of another switch; a function is not there", at, l.Dst)
		}
	}
	return nil
}

// unable reports whether a switch cannot have chains.
func unable(sw *api.Switch) bool { return sw.Lack(api.NeedChains) != "" }

// entrances returns the switches at which packets may enter a chain: those with edge ports.
// It is called with mu held.
func (b *store) entrances() (list []*api.Switch) {
	for f := range b.net.Switches() {
		taken := func(p flow.Port) bool { return b.taken[flow.Location{Switch: f.Key, Port: p}] }
		if len(slices.DeleteFunc(b.net.PortsWith(f.Key, flow.RoleEdge), taken)) > 0 {
			list = append(list, f.Is.Switch)
		}
	}
	return list
}

// dead returns how many copies are.
func (b *store) dead() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(slices.DeleteFunc(b.copies(), b.works))
}

// copies returns those of the functions of all chains, each once. It is called with mu held.
func (b *store) copies() (list []copyOf) {
	seen := map[copyOf]bool{}
	for _, c := range b.chains.List() {
		for p := range c.copies() {
			if !seen[p] {
				seen[p], list = true, append(list, p)
			}
		}
	}
	return list
}

// message returns a chain with its state.
func (b *store) message(c *chain) *api.ServiceChain {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := proto.CloneOf(c.said)
	m.State = "up"
	for i, f := range c.functions {
		alive := b.alive(f)
		silent := false // whether one is dead behind ports that are up
		for n, p := range f {
			is := m.Functions[i].Copies[n]
			is.Alive = slices.Contains(alive, n)
			is.By, is.Since = b.probes.status(p)
			silent = silent || !is.Alive && b.reached(p)
		}
		why := ""
		if silent {
			why = ": probes do not come back, though its ports are up"
		}
		switch dead := len(f) - len(alive); {
		case dead == 0:
		case len(alive) == 0 && c.block:
			m.State, m.Reason = "blocked", "function "+number(i+1)+" is dead"+why
		case m.State == "up":
			m.State, m.Reason = "degraded", number(dead)+" of "+number(len(f))+" copies of function "+number(i+1)+" are dead"+why
		}
	}
	if err := api.CheckNeeds("chain "+c.said.Name, c.remedy(), slices.Values(b.entrances()), c.needs()...); m.State == "up" && err != nil {
		m.State, m.Reason = "degraded", err.Error()
	}
	if f := b.chains.Flows(); f != nil && m.State == "up" {
		if _, err := f.OverallStatus(); err != nil {
			m.State, m.Reason = "degraded", err.Error()
		}
	}
	if m.State == "up" && b.tags.short > 0 {
		m.State, m.Reason = "degraded", "no VLAN identifier is free for "+number(b.tags.short)+" ports and switches: raise chain.last_tag, or lower chain.first_tag"
	}
	return m
}

// alive returns which copies of a function are alive: their ports are up, their switches
// there, and probes come through if they have before. It is called with mu held.
func (b *store) alive(f function) (list []int) {
	for i, p := range f {
		if b.works(p) {
			list = append(list, i)
		}
	}
	return list
}

// works reports whether a copy is alive. It is called with mu held.
func (b *store) works(p copyOf) bool { return b.reached(p) && !b.probes.dead(p) }

// probed is what the prober knows of the chains.
func (b *store) probed() probed {
	return probed{
		net:       func() nib.Snapshot { return b.net },
		copies:    b.copies,
		reached:   b.reached,
		recompute: func() { b.chains.Recompute() },
	}
}

// reached reports whether packets get to a copy and back. It is called with mu held.
func (b *store) reached(p copyOf) bool {
	return b.up(p.in) && b.up(p.out) && there(b.net, p.in.Switch) && there(b.net, p.out.Switch)
}

// there reports whether a switch is connected, or has a link that is up: without a
// controller it still forwards.
func there(net nib.Snapshot, sw flow.DPID) bool {
	info := net.Info(sw)
	return info == nil || info.Connected || len(linksFrom(net, sw)) > 0
}

// linksFrom returns the links from a switch that are up.
func linksFrom(net nib.Snapshot, sw flow.DPID) (list []nib.LinkKey) {
	for l := range net.LinksFrom(sw) {
		if l.Is.Usable() {
			list = append(list, l.Key)
		}
	}
	return list
}

// up reports whether a port is; one of a switch that has not been heard of is
// taken to be. It is called with mu held.
func (b *store) up(at flow.Location) bool {
	p := b.net.Port(at)
	return isUp(p) || p == nil && b.net.Connected(at.Switch) == nil
}

func isUsable(l *nib.Link) bool { return l != nil && l.Is.Usable() }
func isEdge(r *nib.Role) bool   { return r != nil && r.Is.Role == flow.RoleEdge.String() }

// networkChanged follows a change of the network.
func (b *store) networkChanged(c nib.Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.net = c.Is
	for sw, e := range c.Connections() {
		switch _, there := b.held[sw]; {
		case !e.Switch.Connected:
			delete(b.held, sw)
		case !there && b.chains.Len() > 0:
			b.held[sw] = time.Now().Add(holdMost)
		case !there:
			b.held[sw] = time.Time{}
		}
	}
	all, reroute := false, len(c.Switches()) > 0
	var some []flow.DPID // whose entries may change if there are chains
	functional := b.functional()
	for _, s := range c.Switches() {
		all = all || slices.Contains(functional, cmp.Or(s.Is, s.Was).Key)
	}
	for _, s := range c.Ports() {
		at := cmp.Or(s.Is, s.Was).Key
		all = all || b.taken[at] && (s.Was == nil || isUp(s.Was) != isUp(s.Is))
	}
	for _, s := range c.Roles() {
		sw := cmp.Or(s.Is, s.Was).Key.Switch
		b.told = time.Now()
		if isEdge(s.Was) != isEdge(s.Is) {
			some, reroute = append(some, sw), reroute || b.chains.Len() > 0
		}
	}
	for _, s := range c.Links() {
		if isUsable(s.Was) != isUsable(s.Is) {
			sw := cmp.Or(s.Is, s.Was).Key.Src.Switch
			b.told, some = time.Now(), append(some, sw)
			all = all || b.chains.Len() > 0 && there(c.Was, sw) != there(c.Is, sw)
		}
	}
	for _, s := range c.Hosts() {
		if cmp.Or(s.Is, s.Was).Key.VLAN == 0 {
			b.told = time.Now()
			moved, first := b.place(s)
			if len(moved) > 0 {
				some = slices.Concat(some, moved, functional)
			}
			reroute = reroute || first && b.chains.Len() > 0
			all = all || first && len(b.at) == 1 // until then no switch is given its entries
		}
	}
	if reroute {
		object.Notify(b.ways)
	}
	if all {
		b.chains.Recompute()
	} else if len(some) > 0 && b.chains.Len() > 0 {
		b.chains.Recompute(some...)
	}
}

// place notes where a host is. It returns the switches between which it has moved, and
// whether it is the first of its own. It is called with mu held.
func (b *store) place(s nib.Step[nib.Host]) (moved []flow.DPID, first bool) {
	if s.Was != nil && s.Is != nil && s.Was.Is.GetAt().Flow() == s.Is.Is.GetAt().Flow() {
		return nil, false
	}
	if s.Was != nil {
		sw := s.Was.Is.GetAt().Flow().Switch
		if delete(b.at[sw], s.Was.Key.MAC); len(b.at[sw]) == 0 {
			delete(b.at, sw)
		}
		moved = append(moved, sw)
	}
	if s.Is != nil {
		sw := s.Is.Is.GetAt().Flow().Switch
		if first = b.at[sw] == nil; first {
			b.at[sw] = map[flow.MAC]bool{}
		}
		b.at[sw][s.Is.Key.MAC] = true
		moved = append(moved, sw)
	}
	return moved, first
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

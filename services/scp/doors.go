package scp

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/nib"
)

// A door is a producer's own address and port. Where consumer and producer have a route
// already, such as from a ping, no packet of a connection to the door would come to the
// controller: it would be neither judged nor counted. So each switch with ports of hosts
// has an entry for each door in TableProxy, which leads to the controller what hosts send
// there and no entry of an allowed pair (countEntries) has taken. Its gates lead TCP of the
// core to that table, and as those of the front they end by themselves when the controller
// is away: then routes count alone.

// inCore matches TCP of an IP version in the core's VLAN.
func inCore(v6 bool, vlan uint16) flow.Match {
	m := flow.Match{}.WithEthType(flow.EthTypeIPv4)
	if v6 {
		m = flow.Match{}.WithEthType(flow.EthTypeIPv6)
	}
	if m = m.WithIPProto(flow.IPProtoTCP); vlan == 0 {
		return m.WithNoVLAN()
	}
	return m.WithVLAN(vlan)
}

// planDoors returns the entries of all switches that lead to the controller what is for
// doors, except what comes by links or from the addresses past. A switch without ports of
// hosts, or with one table, has none.
func planDoors(net nib.Snapshot, vlan uint16, doors []netip.AddrPort, past []netip.Addr) map[flow.DPID][]flow.Entry {
	entries := map[flow.DPID][]flow.Entry{}
	for s := range net.Switches() {
		sw, info := s.Key, net.Connected(s.Key)
		if info == nil || info.Openflow == "1.0" || flow.ForwardTable(info.Tables, false) == 0 || len(net.PortsWith(sw, flow.RoleEdge)) == 0 {
			continue
		}
		add := func(priority uint16, m flow.Match, to uint8, apply ...flow.Action) {
			e := flow.Entry{Table: flow.TableProxy, Priority: priority, Match: m, Goto: to, Apply: apply, Cookie: flow.NewCookie(flow.OwnerSCP, 0, 0)}
			e.Match.Normalize()
			entries[sw] = append(entries[sw], e)
		}
		for _, v6 := range []bool{false, true} {
			add(flow.PriorityDoorRest, inCore(v6, vlan), flow.TableForward)
			for _, p := range net.PortsWith(sw, flow.RoleLink) {
				add(flow.PriorityDoorPast, inCore(v6, vlan).WithInPort(p), flow.TableForward)
			}
		}
		for _, a := range past {
			add(flow.PriorityDoorPast, inCore(a.Is6(), vlan).WithIPSrc(netip.PrefixFrom(a, a.BitLen())), flow.TableForward)
		}
		for _, door := range doors {
			a := door.Addr()
			add(flow.PriorityDoor, inCore(a.Is6(), vlan).WithIPDst(netip.PrefixFrom(a, a.BitLen())).WithTCPDst(door.Port()), 0, flow.Output(flow.PortController))
		}
	}
	return entries
}

// doorGates is what is known of the gates to the doors of switches.
type doorGates struct {
	mu       sync.Mutex // guards the following
	switches map[flow.DPID]*doorSwitch
}

// doorSwitch is a switch with doors.
type doorSwitch struct {
	v4, v6 bool // it was last declared doors of this IP version
	there  bool // it has confirmed what it was declared last
}

// declared takes the entries that a switch is being declared.
func (g *doorGates) declared(sw flow.DPID, list []flow.Entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.switches[sw]
	if s == nil {
		s = &doorSwitch{}
		g.switches[sw] = s
	}
	s.v4, s.v6 = false, false
	for i := range list {
		if e := &list[i]; e.Table == flow.TableProxy && e.Priority == flow.PriorityDoor {
			_, _, v6 := e.Match.Get(flow.FieldIPv6Dst)
			s.v6, s.v4 = s.v6 || v6, s.v4 || !v6
		}
	}
}

// answered takes what a switch has refused or not confirmed of them.
func (g *doorGates) answered(sw flow.DPID, failed []*api.WantedFlow) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.switches[sw]; s != nil {
		s.there = len(failed) == 0
	}
}

// networkChanged forgets switches that have gone, or have connected anew.
func (g *doorGates) networkChanged(c nib.Change) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range c.Switches() {
		switch {
		case s.Is == nil:
			delete(g.switches, s.Was.Key)
		case nib.Anew(s) || !s.Is.Is.Switch.Connected:
			delete(g.switches, s.Is.Key)
		}
	}
}

// due returns the gates of all switches that have confirmed what is behind them.
func (g *doorGates) due(vlan uint16) *flow.Decision {
	d := &flow.Decision{}
	g.mu.Lock()
	defer g.mu.Unlock()
	for sw, s := range g.switches {
		for _, v6 := range []bool{false, true} {
			if s.there && (v6 && s.v6 || !v6 && s.v4) {
				d.AddFlow(sw).Entry = flow.Entry{
					Table: flow.TableTranslate, Goto: flow.TableProxy, Priority: flow.PriorityDoors, HardTimeout: gateTime,
					Match: inCore(v6, vlan), Cookie: flow.NewCookie(flow.OwnerSCP, 0, 0),
				}
			}
		}
	}
	return d
}

// with returns the switches with doors.
func (g *doorGates) with() []flow.DPID {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(g.switches))
}

// keepDoors renews the gates until ctx ends, and removes the entries of pairs that are no
// longer allowed, and those to addresses that are forbidden now. What is not taken is sent again with the next.
func (w *ways) keepDoors(ctx context.Context, p *proxy, vlan uint16, apply func(context.Context, *flow.Decision) error) {
	var last *index
	for backoff.Sleep(ctx, gateRenew) == nil {
		d, x := w.gates.due(vlan), p.index.Load()
		if x != last {
			p.direct.withdraw(x, p.cfg.Load().Strict, p.trusted, d)
			x.close(last, w.gates.with(), d)
		}
		if d.Empty() || apply(ctx, d) == nil {
			last = x
		}
	}
}

// withdraw appends the removal of the entries of direct pairs that are not allowed: the
// next packet of each comes to the controller, which resets its connection.
func (d *direct) withdraw(x *index, strict bool, trusted func(netip.Addr) bool, out *flow.Decision) {
	var list []directPair
	d.all(func(k directKey, pair *directPair) {
		producers := x.doors[k.producer]
		if pair.sent == 0 || len(producers) == 0 || permitted(x.nfs[k.consumer], producers, strict) || trusted(k.consumer) {
			return
		}
		for _, nf := range x.nfs[k.consumer] {
			if d.partners.get(partnerKey{k.producer.Addr(), nf.profile.NFType}) != nil { // it calls back
				return
			}
		}
		list = append(list, *pair)
	})
	for _, pair := range list {
		mod := out.AddFlow(pair.at)
		mod.Command, mod.CookieMask = flow.Delete, ^flow.Cookie(0)
		mod.Entry.Table, mod.Entry.Cookie = flow.TableTranslate, flow.NewCookie(flow.OwnerSCP, 1, pair.id)
	}
}

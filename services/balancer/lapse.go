package balancer

import (
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A VIP that lapses needs the controller. One entry of a switch, its gate, leads what is
// for the shadowed host to TableProxy, where the entries are that take it to a member. The
// switch removes the gate by itself unless the balancer renews it: then packets go on to
// the host as if there were no VIP.
const (
	gateTime  = 4 // seconds that a gate stays
	gateRenew = int64(time.Second)
	gateYoung = int64(5 * time.Second) // a report may be older than the gate
)

// gate returns the gate of a VIP that lapses.
func (v *vip) gate() flow.Entry {
	m := inVLAN(flow.Match{}.WithIPDst(prefixOf(v.at.host.Addr)), v.at.host.VLAN)
	return flow.Entry{
		Table: flow.TableTranslate, Goto: flow.TableProxy, Priority: flow.PriorityShadow, HardTimeout: gateTime,
		Match: ports(m, 0, v.at.port, v.at.proto), Cookie: flow.NewCookie(flow.OwnerBalancer, 0, 0),
	}
}

// holds reports whether a VIP that lapses needs its gates: a member serves, or drains and
// still has connections. It is called with the balancer's mu held.
func (v *vip) holds(n *network) bool {
	return v.lapse && (!n.open(v) || slices.ContainsFunc(v.pool, func(m *member) bool { return len(m.conns) > 0 && m.wish != rest && m.grade() != bad }))
}

// hold appends the gates of a VIP that are due, if it needs them: at switches that have
// reported their entries. It is called with the balancer's mu held.
func (v *vip) hold(n *network, t *tracker, now int64, d *flow.Decision) {
	if !v.holds(n) {
		return
	}
	for sw, s := range n.switches {
		g := v.gates[sw]
		if !s.connected || !s.rewrites || !s.told || s.read != s.now || g.in == s.now && now-g.sent < gateRenew && now >= g.sent {
			continue
		}
		if len(n.view.PortsWith(sw, flow.RoleEdge)) == 0 {
			continue
		}
		if g.in == s.now && now-g.sent > gateTime*int64(time.Second) { // this process stood still
			v.cutAt(t, d, sw, now)
		}
		if g.since == 0 || g.in != s.now {
			g = gate{in: s.now, since: now}
		}
		g.before, g.sent = g.sent, now
		v.gates[sw] = g
		d.AddFlow(sw).Entry = v.gate()
	}
}

// missedGate notes that a switch has not taken a gate. If it is one of the VIP, the gate
// before it may have ended. It is called with the balancer's mu held.
func (v *vip) missedGate(sw flow.DPID, e flow.Entry) {
	if g, had := v.gates[sw]; had && v.isGate(e) {
		g.sent = g.before
		v.gates[sw] = g
	}
}

// isGate reports whether an entry is the gate of a VIP.
func (v *vip) isGate(e flow.Entry) bool {
	want := v.gate()
	want.Match.Normalize()
	e.Match.Normalize()
	return v.lapse && e.HardTimeout == gateTime && e.Key() == want.Key()
}

// letGo appends the removal of the gates of a VIP. It is called with the balancer's mu
// held.
func (v *vip) letGo(d *flow.Decision) {
	e := v.gate()
	for sw := range v.gates {
		removeEntry(d, sw, e.Table, e.Priority, e.Match, e.Cookie)
	}
	clear(v.gates)
}

// lapsedAt returns whether a switch, in a connection, has reported its entries without the
// gate of a VIP: its clients there have connections with the host. It is called with the
// balancer's mu held.
func (v *vip) lapsedAt(sw flow.DPID, in session, flows []*api.FlowEntry, now int64) bool {
	if g := v.gates[sw]; !v.lapse || g.since != 0 && g.in == in && now-g.since < gateYoung {
		return false
	}
	return !slices.ContainsFunc(flows, func(f *api.FlowEntry) bool {
		if f.HardTimeout != gateTime {
			return false
		}
		_, e, err := f.Entry()
		return err == nil && v.isGate(e)
	})
}

// cutAt ends the connections and pairs of a switch's clients with members of a VIP whose
// gate was missing there, and returns how many: what they have begun meanwhile goes on with
// the host. It is called with the balancer's mu held.
func (v *vip) cutAt(t *tracker, d *flow.Decision, sw flow.DPID, now int64) (cut int) {
	for _, m := range v.pool {
		for c := range m.conns {
			if c.ingress.Switch == sw {
				t.cut(d, c)
				cut++
			}
		}
	}
	if _, had := v.gates[sw]; (had || cut > 0) && v.closed != 0 {
		v.closed = now
	}
	return cut
}

package balancer

import (
	"encoding/binary"
	"math"
	"net/netip"

	"github.com/weft-sdn/weft/flow"
)

// thereMatch matches what a client sends to a VIP.
func (c *conn) thereMatch() flow.Match {
	return between(c.key.client, c.key.to, c.key.proto, c.key.vlan)
}

// backMatch matches what a member answers.
func (c *conn) backMatch() flow.Match { return between(c.to, c.source(), c.key.proto, c.key.vlan) }

// between matches packets from one end of a connection to the other. vlan is as
// in flow.Key.
func between(src, dst netip.AddrPort, proto uint8, vlan uint16) flow.Match {
	m := ports(flow.Match{}.WithIPSrc(prefixOf(src.Addr())).WithIPDst(prefixOf(dst.Addr())), src.Port(), dst.Port(), proto)
	return inVLAN(m, vlan)
}

func inVLAN(m flow.Match, vlan uint16) flow.Match {
	if vlan == 0 {
		return m.WithoutVLAN()
	}
	return m.WithVLAN(vlan)
}

// ports adds the ports that are not 0 to a match.
func ports(m flow.Match, src, dst uint16, proto uint8) flow.Match {
	m = m.WithIPProto(proto)
	if src != 0 {
		if proto == flow.IPProtoUDP {
			m = m.WithUDPSrc(src)
		} else {
			m = m.WithTCPSrc(src)
		}
	}
	if dst != 0 {
		if proto == flow.IPProtoUDP {
			m = m.WithUDPDst(dst)
		} else {
			m = m.WithTCPDst(dst)
		}
	}
	return m
}

// setIP returns the action that rewrites an address.
func setIP(v4, v6 flow.Field, a netip.Addr) flow.Action {
	act := flow.Action{Kind: flow.ActionSetField, Field: v4}
	if a.Is4() {
		b := a.As4()
		copy(act.Value[:], b[:])
	} else {
		act.Field, act.Value = v6, a.As16()
	}
	return act
}

// setPort returns the action that rewrites a port.
func setPort(tcp, udp flow.Field, proto uint8, port uint16) flow.Action {
	act := flow.Action{Kind: flow.ActionSetField, Field: tcp}
	if proto == flow.IPProtoUDP {
		act.Field = udp
	}
	binary.BigEndian.PutUint16(act.Value[:], port)
	return act
}

// toMember appends the actions that redirect a packet for a VIP's port to a
// member.
func toMember(list []flow.Action, mac flow.MAC, to netip.AddrPort, from uint16, proto uint8) []flow.Action {
	list = append(list, flow.SetEthDst(mac), setIP(flow.FieldIPv4Dst, flow.FieldIPv6Dst, to.Addr()))
	if to.Port() != from {
		list = append(list, setPort(flow.FieldTCPDst, flow.FieldUDPDst, proto, to.Port()))
	}
	return list
}

// fromVip appends the actions that make a member's answer come from the VIP. The
// Ethernet source stays the member's: switches know where it is.
func fromVip(list []flow.Action, vip netip.AddrPort, from uint16, proto uint8) []flow.Action {
	list = append(list, setIP(flow.FieldIPv4Src, flow.FieldIPv6Src, vip.Addr()))
	if vip.Port() != from {
		list = append(list, setPort(flow.FieldTCPSrc, flow.FieldUDPSrc, proto, vip.Port()))
	}
	return list
}

// The generations of cookies say what an entry is for: its conn's kind; these are
// added to that.
const (
	genGuard = 0x10 // leads to the controller what may not be of the conn
	genSeal  = 0x20 // takes the place of an entry back of a client that lost its leave
	genBye   = 0x40 // leads to the controller, for the member retires
	genBound = 0x08 // back, of a pair with a binding indication
	genWatch = 0x80 // copies packets to the controller
)

// copyBits are the bits of a cookie that change while an entry lasts.
const copyBits = flow.Cookie(genBound|genWatch) << 32

// ofConn reports whether a cookie is of an entry for a connection or a pair. Entries that are
// declared have no number, and flowrules gives them any generation.
func ofConn(c flow.Cookie) bool { return c.Owner() == flow.OwnerBalancer && c.ID() != 0 }

func (c *conn) cookie(gen uint8) flow.Cookie {
	if c.attended() {
		gen |= genBye
	}
	return flow.NewCookie(flow.OwnerBalancer, uint8(c.kind)|gen, c.id)
}

// backCookie returns the cookie of the entry back.
func (c *conn) backCookie() flow.Cookie {
	gen := uint8(0)
	if c.copiesBack() {
		gen |= genWatch
	}
	if c.watch.bound {
		gen |= genBound
	}
	return c.cookie(gen)
}

// copiesBack reports whether the entry back copies packets to the controller.
func (c *conn) copiesBack() bool { return c.watch.on || c.sampling() }

// addThere appends the entries at the client's switch.
func (c *conn) addThere(d *flow.Decision) {
	var room [5]flow.Action
	e := &d.AddFlow(c.ingress.Switch).Entry
	c.fill(e, c.thereMatch(), c.idle)
	e.Table = c.table(there)
	list := room[:0]
	if c.sampling() {
		e.Cookie = c.cookie(genWatch)
		list = append(list, flow.Output(flow.PortController))
	}
	switch {
	case c.split || c.attended():
		e.Goto, e.Apply = 0, d.Output(flow.PortController)
	case c.kind != direct && c.kind != through:
		e.Apply = d.Actions(c.toMember(list, c.mac)...)
	}
	c.addGuard(d)
}

// addBack appends the entry at the member's switch. It lasts twice as long, so
// that a late answer is not taken for the member's own.
func (c *conn) addBack(d *flow.Decision) {
	var room [4]flow.Action
	e := &d.AddFlow(c.egress).Entry
	c.fill(e, c.backMatch(), 2*c.idle)
	e.Cookie = c.backCookie()
	list := room[:0]
	if c.copiesBack() {
		list = append(list, flow.Output(flow.PortController))
	}
	switch {
	case c.attended():
		e.Goto, e.Apply = 0, d.Output(flow.PortController)
	case c.kind != direct && c.kind != through:
		if c.kind.aliases() {
			list = append(list, setPort(flow.FieldTCPDst, flow.FieldUDPDst, c.key.proto, c.key.client.Port()))
		}
		if c.to != c.key.to {
			list = fromVip(list, c.key.to, c.to.Port(), c.key.proto)
		}
		e.Apply = d.Actions(list...)
	}
}

// toMember appends the actions that make what the client sends be for the member.
func (c *conn) toMember(list []flow.Action, mac flow.MAC) []flow.Action {
	if c.kind.aliases() {
		list = append(list, c.alias())
	}
	if c.to != c.key.to {
		list = toMember(list, mac, c.to, c.key.to.Port(), c.key.proto)
	}
	return list
}

// alias returns the action that gives the client the port that it has at the member.
func (c *conn) alias() flow.Action {
	return setPort(flow.FieldTCPSrc, flow.FieldUDPSrc, c.key.proto, c.source().Port())
}

// guardMatch matches what leads to the controller as long as the conn lasts. Of a
// pair it is what the client sends to the member's own address, for the entry back
// would take the answers for the VIP's. Of such a direct connection it is what the
// client sends to the VIP from the same port, for the member could not tell both.
func (c *conn) guardMatch() (flow.Match, bool) {
	switch c.kind {
	case paired:
		return between(c.key.client, c.to, c.key.proto, c.key.vlan), true
	case direct:
		return between(c.key.client, netip.AddrPortFrom(c.m.vip.at.host.Addr, c.m.vip.at.port), c.key.proto, c.key.vlan), true
	}
	return flow.Match{}, false
}

// addGuard appends the guard, if the conn has one.
func (c *conn) addGuard(d *flow.Decision) {
	m, ok := c.guardMatch()
	if !ok {
		return
	}
	e := &d.AddFlow(c.ingress.Switch).Entry
	c.fill(e, m, uint16(min(lasting*int(c.idle), math.MaxUint16)))
	e.Table, e.Goto, e.Apply, e.Cookie = c.table(guard), 0, d.Output(flow.PortController), c.cookie(genGuard)
}

// shieldTime is how long a shield lasts, in seconds.
const shieldTime = 10

// addShield appends the entry that leads to the controller, for a moment, what the client
// of a new connection to a paired member's own address sends to the VIP from the port that
// it has at the member. A client sends a reset from there if the cache of a switch has rewritten the first answer as
// the pair's; by the pair's entry it would reach the member, perhaps once the connection is made.
func (c *conn) addShield(d *flow.Decision, sw flow.DPID) {
	e := &d.AddFlow(sw).Entry
	c.fill(e, between(c.source(), netip.AddrPortFrom(c.m.vip.at.host.Addr, c.m.vip.at.port), c.key.proto, c.key.vlan), 0)
	e.Goto, e.Apply, e.Cookie, e.Flags, e.HardTimeout = 0, d.Output(flow.PortController), c.cookie(genGuard), 0, shieldTime
}

func (c *conn) fill(e *flow.Entry, m flow.Match, idle uint16) {
	e.Table, e.Goto, e.Priority, e.Match = flow.TableTranslate, flow.TableForward, c.priority(), m
	e.IdleTimeout, e.Flags, e.Cookie = idle, flow.FlagSendRem, c.cookie(0)
}

// table returns the table of an entry: what matches packets to the host that a VIP
// shadows is in a table of its own, if the VIP lapses.
func (c *conn) table(p part) uint8 {
	own := c.kind == direct || c.kind.aliases() // whose packets are for the member's own address
	if p == there && !own || p == guard && c.kind == direct {
		return c.m.vip.table()
	}
	return flow.TableTranslate
}

func (c *conn) priority() uint16 {
	if c.kind == paired {
		return flow.PriorityPair
	}
	return flow.PriorityConnection
}

// removeThere and removeBack append the removal of entries, if they are still of
// this connection.
func (c *conn) removeThere(d *flow.Decision) {
	removeEntry(d, c.ingress.Switch, c.table(there), c.priority(), c.thereMatch(), c.cookie(0)).CookieMask = ^copyBits
	if m, ok := c.guardMatch(); ok {
		removeEntry(d, c.ingress.Switch, c.table(guard), c.priority(), m, c.cookie(genGuard))
	}
}

func (c *conn) removeBack(d *flow.Decision) {
	removeEntry(d, c.egress, flow.TableTranslate, c.priority(), c.backMatch(), c.cookie(0)).CookieMask = ^copyBits
}

func removeEntry(d *flow.Decision, sw flow.DPID, table uint8, priority uint16, m flow.Match, cookie flow.Cookie) *flow.Mod {
	mod := d.AddFlow(sw)
	mod.Command, mod.CookieMask = flow.DeleteStrict, ^flow.Cookie(0)
	e := &mod.Entry
	e.Table, e.Priority, e.Match, e.Cookie = table, priority, m, cookie
	return mod
}

// cut ends a connection and appends the removal of its entries.
func (t *connections) cut(d *flow.Decision, c *conn) {
	if c.there {
		c.removeThere(d)
	}
	if c.back {
		c.removeBack(d)
	}
	t.end(c)
}

func prefixOf(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

package balancer

import (
	"net/netip"

	"github.com/weft-sdn/weft/flow"
)

// connKey names a connection as the client has it.
type connKey struct {
	client, to netip.AddrPort
	proto      uint8
	vlan       uint16
}

// backKey names a connection as its member has it: no two may share one.
type backKey struct {
	member, client netip.AddrPort
	proto          uint8
	vlan           uint16
}

// conn is one connection: an entry at the client's switch that rewrites what
// goes to the VIP, and one at the member's that rewrites what comes back.
type conn struct {
	key     connKey
	m       *member
	to      netip.AddrPort // of the member
	mac     flow.MAC       // of the member, in the entry there
	id      uint32         // in the cookies of its entries
	idle    uint16
	ingress flow.Location // of the client's last packet
	egress  flow.DPID     // the member's switch; 0 is not known
	there   bool          // the switches have the entry there,
	back    bool          // and that back
	since   int64
	sent    int64 // when entries were last sent
	until   int64 // when it is over, once it has no entries
}

func (c *conn) backKey() backKey { return backKey{c.to, c.key.client, c.key.proto, c.key.vlan} }

// connections is all connections.
type connections struct {
	by    map[connKey]*conn
	backs map[backKey]*conn
	at    map[flow.DPID]map[*conn]struct{} // those that have, or had, an entry at a switch
	last  uint32                           // id
}

func newConnections() connections {
	return connections{by: map[connKey]*conn{}, backs: map[backKey]*conn{}, at: map[flow.DPID]map[*conn]struct{}{}}
}

// add makes a connection of a member.
func (t *connections) add(key connKey, m *member, to netip.AddrPort, id uint32, now int64) *conn {
	c := &conn{key: key, m: m, to: to, id: id, idle: m.vip.idle, since: now}
	t.by[key], t.backs[c.backKey()] = c, c
	m.conns[c] = struct{}{}
	return c
}

// nextID returns the number of a new connection.
func (t *connections) nextID() uint32 {
	t.last++
	return t.last
}

// end forgets a connection.
func (t *connections) end(c *conn) {
	c.mark(false, false)
	delete(c.m.conns, c)
	t.place(c, flow.Location{}, 0)
	if t.by[c.key] == c {
		delete(t.by, c.key)
	}
	if t.backs[c.backKey()] == c {
		delete(t.backs, c.backKey())
	}
}

// place records at which switches the entries of a connection are.
func (t *connections) place(c *conn, ingress flow.Location, egress flow.DPID) {
	for _, sw := range [...]flow.DPID{c.ingress.Switch, c.egress} {
		if sw != 0 && sw != ingress.Switch && sw != egress {
			delete(t.at[sw], c)
			if len(t.at[sw]) == 0 {
				delete(t.at, sw)
			}
		}
	}
	c.ingress, c.egress = ingress, egress
	for _, sw := range [...]flow.DPID{ingress.Switch, egress} {
		if sw == 0 {
			continue
		}
		if t.at[sw] == nil {
			t.at[sw] = map[*conn]struct{}{}
		}
		t.at[sw][c] = struct{}{}
	}
}

// mark records which entries the switches have. A connection counts as live
// while it has one.
func (c *conn) mark(there, back bool) {
	was, is := c.there || c.back, there || back
	c.there, c.back = there, back
	n := 0
	switch {
	case is && !was:
		n = 1
	case was && !is:
		n = -1
	}
	c.m.live += n
	c.m.vip.live += n
}

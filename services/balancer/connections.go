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

// kind is what the entries of a conn are for.
type kind uint8

const (
	tracked    kind = iota // one connection of a client to a VIP
	paired                 // all connections of a client to a VIP; its client has port 0
	direct                 // one to a paired member's own address, older than the pair, which nothing rewrites
	through                // one to the host that a VIP shadows, which nothing rewrites
	aliased                // one to a paired member's own address, for which the client has another port at the member
	redirected             // one to a member's own address that is given to the member that the VIP chooses, which may be that; aliased, too
	kinds
)

// part is which of a conn's entries one is.
type part uint8

const (
	there part = iota
	back
	guard
)

// conn is one connection, or a pair: an entry at the client's switch that rewrites
// what goes to the VIP, and one at the member's that rewrites what comes back.
type conn struct {
	kind    kind
	split   bool // of a pair: connections get entries of their own, for new ones go elsewhere
	idled   bool // of a pair: the entry there has ended for lack of packets
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
	sent    int64     // when entries were last sent
	until   int64     // when it is over, once it has no entries; if it is split, in any case
	counted [2]tally  // of the entries there and back, when they were last read
	watch   watch     // of a pair: for binding indications
	sampled *sampled  // what samples of its packets have had; nil: there were none
	bye     *farewell // its packets come to the controller, for its member retires; nil: they do not
}

// pair returns the key of the pair that a connection belongs to.
func (k connKey) pair() connKey {
	k.client = netip.AddrPortFrom(k.client.Addr(), 0)
	return k
}

// pair returns the key of the pair that a connection belongs to.
func (k backKey) pair() backKey {
	k.client = netip.AddrPortFrom(k.client.Addr(), 0)
	return k
}

// with returns the key of the connection as a member has it.
func (k connKey) with(member netip.AddrPort) backKey {
	return backKey{member, k.client, k.proto, k.vlan}
}

func (c *conn) backKey() backKey { return backKey{c.to, c.source(), c.key.proto, c.key.vlan} }

// source is the client as the member has it.
func (c *conn) source() netip.AddrPort { return c.kind.source(c.key.client) }

// source is a client as the member has it. A client may use one port for a VIP and
// for a member's own address at a time, which the member could not tell apart: those to own
// addresses have the port's complement, which of an ephemeral port is none.
func (k kind) source(client netip.AddrPort) netip.AddrPort {
	if port := client.Port(); k.aliases() && port != 65535 {
		return netip.AddrPortFrom(client.Addr(), ^port)
	}
	return client
}

// aliases reports whether clients have another port at the member.
func (k kind) aliases() bool { return k == aliased || k == redirected }

// connections is all connections.
type connections struct {
	by      map[connKey]*conn
	backs   map[backKey]*conn
	at      map[flow.DPID]map[*conn]struct{} // those that have, or had, an entry at a switch
	served  map[served]int64                 // until when it counts; of VIPs of scp's
	last    uint32                           // id
	samples int                              // under way
}

func newConnections() connections {
	return connections{by: map[connKey]*conn{}, backs: map[backKey]*conn{}, served: map[served]int64{}, at: map[flow.DPID]map[*conn]struct{}{}}
}

// add makes a connection of a member.
func (t *connections) add(k kind, key connKey, m *member, to netip.AddrPort, id uint32, now int64) *conn {
	c := &conn{kind: k, key: key, m: m, to: to, id: id, idle: m.vip.idle, since: now}
	if t.by[key] = c; k != through {
		t.backs[c.backKey()] = c
	}
	m.conns[c] = struct{}{}
	if m.vip.owner == bySCP && m.pooled() && k != direct && k != aliased {
		t.serves(served{key.client.Addr(), to}, now)
	}
	return c
}

// nextID returns the number of a new connection, never 0.
func (t *connections) nextID() uint32 {
	t.last = max(t.last+1, 1)
	return t.last
}

// end forgets a connection.
func (t *connections) end(c *conn) {
	t.unsample(c)
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
	c.count(btoi(is) - btoi(was))
}

// recount counts the conn for its member, which is new.
func (c *conn) recount() { c.count(btoi(c.there || c.back)) }

func (c *conn) count(n int) {
	switch c.kind {
	case tracked, redirected:
		c.m.live += n
		c.m.vip.live += n
	case paired:
		c.m.live += n
		c.m.vip.pairs += n
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// tally is what an entry has counted.
type tally struct{ packets, bytes uint64 }

// since returns what has been counted since then; all, if the entry is another.
func (t tally) since(then tally) tally {
	if t.packets < then.packets || t.bytes < then.bytes {
		return t
	}
	return tally{t.packets - then.packets, t.bytes - then.bytes}
}

// answers reports whether packets of a member cannot all be without data, as those
// are by which a host acknowledges, or refuses for a process that has gone.
func (t tally) answers(v4 bool) bool {
	bare := uint64(74) // the longest: Ethernet, IPv4, and TCP of a SYN with the usual options
	if !v4 {
		bare += 20
	}
	return t.bytes > bare*t.packets
}

// lasting is how many times its idle timeout a TCP connection, or a pair, is
// remembered after its entries have ended: an open connection may be silent for
// longer, and what comes then is for the member that it was with.
const lasting = 12

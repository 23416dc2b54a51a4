package scp

import (
	"math"
	"net/netip"

	"github.com/weft-sdn/weft/flow"
)

// forbidden returns the doors of producers at which their types' policies allow no new
// connections of consumers: those for which an end point stands, by which they are to be
// reached. Without the front discoveries find nothing else, and none is forbidden. It is called
// with mu held.
func forbidden(p *proxy) map[netip.AddrPort]bool {
	doors := map[netip.AddrPort]bool{}
	if !p.serving {
		return doors
	}
	for _, e := range p.endpoints {
		if p.policyOf(e.Group.Type).GetOwnAddress() != "forbid" || p.refused.any(e.vips()) {
			continue
		}
		for _, m := range p.members(e.Group) {
			for _, a := range e.Addrs {
				for _, d := range e.Doors {
					for _, x := range m.at(d, a.Is4()) {
						doors[x.Addr] = true
					}
				}
			}
		}
	}
	return doors
}

// Why connections to producers' own addresses were refused.
const (
	reasonForbidden  = "the policy of its type forbids its own address"
	reasonNotAllowed = "the producer does not allow the consumer"
)

// excepted reports whether a consumer may use an address of a producer that is forbidden to
// others: it connects for others, or perhaps for a callback.
func excepted(p *proxy, x *index, src, dst netip.Addr) bool {
	return p.relays(src) || p.direct.callsBack(x.nfs[src], dst)
}

// connection is one of a consumer to a producer's own address.
type connection struct{ consumer, producer netip.AddrPort }

// mostGoOn bounds the connections that have entries of their own.
const mostGoOn = 4096

// goesOn notes a connection to a forbidden address that goes on, for it is older than that, or
// its consumer is excepted. It returns the number of its pair, and whether entries that count it
// are due. A connection for which there is no room goes on by way of the controller.
func (d *direct) goesOn(c connection, at flow.Location, now int64) (id uint32, due bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.pair(directKey{c.consumer.Addr(), c.producer}, at, now)
	sent := d.goOn.get(c)
	if sent == nil {
		if d.goOn.crowded(at) {
			d.goOn.prune(func(_ connection, sent *int64) bool { return now-*sent > countRest })
		}
		if d.goOn.crowded(at) {
			return x.id, false
		}
		sent, _ = d.goOn.use(c, at)
	}
	if due = now-*sent > countSoon; due {
		*sent, x.at = now, at.Switch
	}
	return x.id, due
}

// refuse notes that a connection of a pair was refused, and why.
func (d *direct) refuse(k directKey, at flow.Location, now int64, reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.pair(k, at, now)
	x.refused++
	x.reason = reason
}

// pair returns a pair, which is made if there is none. It is called with mu held.
func (d *direct) pair(k directKey, at flow.Location, now int64) *directPair {
	x, fresh := d.pairs.use(k, at)
	if fresh {
		d.last++
		x.since, x.id = now, d.last
	}
	return x
}

// close appends the removal of what lets all connections of pairs pass to doors that a former
// index has not forbidden, at some switches. Connections that are established come to the
// controller then, and go on.
func (x *index) close(last *index, switches []flow.DPID, out *flow.Decision) {
	for door := range x.forbidden {
		if last != nil && last.forbidden[door] {
			continue
		}
		of := netip.PrefixFrom(door.Addr(), door.Addr().BitLen())
		to, from := flow.Match{}.WithIPDst(of).WithIPProto(flow.IPProtoTCP).WithTCPDst(door.Port()), flow.Match{}.WithIPSrc(of).WithIPProto(flow.IPProtoTCP).WithTCPSrc(door.Port())
		for _, sw := range switches {
			for _, m := range []flow.Match{to, from} {
				mod := out.AddFlow(sw)
				mod.Command, mod.CookieMask = flow.Delete, ^flow.Cookie(math.MaxUint32) // of all numbers
				mod.Entry.Table, mod.Entry.Match, mod.Entry.Cookie = flow.TableTranslate, m, flow.NewCookie(flow.OwnerSCP, 1, 0)
			}
		}
	}
}

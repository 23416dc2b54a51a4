package scp

import (
	"math"
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/sbi"
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

// balanced returns the doors of producers at which new connections of consumers are balanced, with
// the VIPs by which: the policy of their type says so, an end point stands for them, and all of its
// members can be taken for the one whose own address a consumer has. That needs all services of the
// door, and no certificate. It is called with mu held.
func balanced(p *proxy) map[netip.AddrPort]string {
	doors := map[netip.AddrPort]string{}
	if !p.serving {
		return doors
	}
	for _, e := range p.endpoints {
		members := p.members(e.Group)
		if p.policyOf(e.Group.Type).GetOwnAddress() != ownBalance || p.refused.any(e.vips()) || e.Group.Slice != "" || e.Group.Locality != "" || !interchangeable(members) {
			continue
		}
		for _, a := range e.Addrs {
			for _, d := range e.Doors {
				for _, m := range members {
					for _, x := range m.at(d, a.Is4()) {
						if d.Scheme == "http" && !slices.ContainsFunc(m.points, func(o sbi.EndPoint) bool { return o.Addr == x.Addr && !slices.Contains(d.Services, o.Service) }) {
							doors[x.Addr] = vipName(e, a, d)
						}
					}
				}
			}
		}
	}
	return doors
}

// balances reports whether a connection from one address to another, of some producers, is one of a
// consumer that does not care which producer it gets, as far as that can be known: not of one that
// is excepted, of the producers' own type, or that has chosen among them; nor of somebody unknown.
func balances(p *proxy, x *index, src, dst netip.Addr, producers []*producer) bool {
	of := producers[0].profile.NFType
	for _, nf := range producers {
		if nf.profile.NFType != of { // several types in one process
			return false
		}
	}
	alike := slices.ContainsFunc(x.nfs[src], func(nf *producer) bool { return nf.profile.NFType == of })
	return len(x.nfs[src]) > 0 && !alike && !excepted(p, x, src, dst) && !p.direct.chooses(src, of)
}

// balance notes a connection that the balancer gives to a producer.
func (d *direct) balance(k directKey, at flow.Location, now int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pair(k, at, now).balanced = true
}

// choose notes that a consumer, at a port of the network, chooses among the producers of a type: it
// has asked for one by its id, or by what the NRF alone judges.
func (d *direct) choose(consumer netip.Addr, of sbi.NFType, at flow.Location) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.choosers.use(partnerKey{consumer, of}, at)
}

// noteChoice notes that a consumer chooses among the producers of a type.
func noteChoice(p *proxy, consumer netip.Addr, of sbi.NFType) {
	at, _ := p.station(consumer)
	p.direct.choose(consumer, of, at.At)
}

// chooses reports whether a consumer chooses among the producers of a type.
func (d *direct) chooses(consumer netip.Addr, of sbi.NFType) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.choosers.get(partnerKey{consumer, of}) != nil
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

// closes reports whether new connections to a door are not to pass by themselves.
func (x *index) closes(door netip.AddrPort) bool { return x.forbidden[door] || x.balanced[door] != "" }

// close appends the removal of what lets all connections of pairs pass to doors that a former
// index has neither forbidden nor balanced, at some switches. Connections that are established come
// to the controller then, and go on.
func (x *index) close(last *index, switches []flow.DPID, out *flow.Decision) {
	for door := range x.doors {
		if !x.closes(door) || last != nil && last.closes(door) {
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

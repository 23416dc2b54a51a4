package qos

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// combinationsMax bounds the combinations of policies tried for one switch.
const combinationsMax = 1 << 20

// compiled is the policies as compiled for one switch.
type compiled struct {
	entries []flow.Entry
	by      []verdict // of each entry
	meters  []flow.Meter
	concern map[*policy]bool // the policies that apply here
}

// verdict is the policies whose limit, mark and queue an entry carries out; nil
// for none.
type verdict struct{ limit, mark, queue *policy }

// clause is one condition under which a policy applies.
type clause struct {
	match flow.Match
	of    *policy
}

// compile compiles the policies, in their order, for a switch. A table has one
// entry for a packet, so each combination of a limit, a mark and a queue that a
// packet may meet gets one: those of earlier policies first. If more than most
// are needed, compile returns the first ones and an error. fragments says whether the switch
// can be asked for fragments.
func compile(list []*policy, sw flow.DPID, at *object.Hosts, fragments bool, most int) (*compiled, error) {
	c := &compiled{concern: map[*policy]bool{}}
	var limits, marks, queues []clause
	for _, p := range list {
		matches := p.on(sw, at, fragments)
		if len(matches) == 0 {
			continue
		}
		c.concern[p] = true
		if p.said.Limit != nil {
			limits = appendClauses(limits, matches, p)
			c.meters = append(c.meters, p.meter())
		}
		if p.said.MarkDscp != nil {
			marks = appendClauses(marks, onlyIP(matches), p)
		}
		if p.said.Queue != nil {
			queues = appendClauses(queues, matches, p)
		}
	}
	if n := (len(limits) + 1) * (len(marks) + 1) * (len(queues) + 1); n > combinationsMax {
		return c, fmt.Errorf("%d limits, %d marks and %d queues meet on switch %v: more combinations than %d; give a policy a limit, a mark and a queue together, or use fewer",
			len(limits), len(marks), len(queues), sw, combinationsMax)
	}
	any := clause{}
	limits, marks, queues = append(limits, any), append(marks, any), append(queues, any)
	seen := map[flow.Match]bool{}
	for i := range limits {
		for j := range marks {
			lm, ok := intersect(&limits[i].match, &marks[j].match)
			if !ok {
				continue
			}
			for k := range queues {
				v := verdict{limits[i].of, marks[j].of, queues[k].of}
				m, ok := intersect(&lm, &queues[k].match)
				if v == (verdict{}) || !ok || seen[m] {
					continue
				}
				if len(c.entries) == most {
					return c, fmt.Errorf("the policies take more than %d flow entries on switch %v; use fewer, or raise qos.entries", most, sw)
				}
				seen[m] = true
				c.entries = append(c.entries, v.entry(m, flow.PriorityQoS-len(c.entries)))
				c.by = append(c.by, v)
			}
		}
	}
	return c, nil
}

func appendClauses(list []clause, matches []flow.Match, p *policy) []clause {
	for _, m := range matches {
		list = append(list, clause{m, p})
	}
	return list
}

// entry returns the flow entry that carries out a verdict.
func (v verdict) entry(m flow.Match, priority int) flow.Entry {
	e := flow.Entry{Table: flow.TableQoS, Goto: flow.TableTranslate, Priority: uint16(priority), Match: m}
	if v.limit != nil {
		e.Meter = v.limit.said.Meter
	}
	if v.mark != nil {
		a := flow.Action{Kind: flow.ActionSetField, Field: flow.FieldIPDSCP}
		a.Value[0] = byte(v.mark.said.GetMarkDscp())
		e.Apply = append(e.Apply, a)
	}
	if v.queue != nil {
		e.Apply = append(e.Apply, flow.Action{Kind: flow.ActionSetQueue, Arg: v.queue.said.GetQueue()})
	}
	return e
}

// on returns the conditions of a policy on a switch, none if it does not apply
// there.
func (p *policy) on(sw flow.DPID, at *object.Hosts, fragments bool) []flow.Match {
	if p.sited && p.sw != sw {
		return nil
	}
	match := p.matches(fragments)
	if p.port != 0 {
		return each(match, flow.Match{}.WithInPort(p.port))
	}
	if !p.host.given() {
		return match
	}
	var list []flow.Match
	for _, h := range p.host.of(at) {
		if h.At.Switch != sw {
			continue
		}
		m := flow.Match{}.WithNoVLAN()
		if h.VLAN != 0 {
			m = m.WithVLAN(h.VLAN &^ flow.VLANPresent)
		}
		switch ip := p.host.ip; {
		case p.said.ToHost && ip.IsValid():
			m = m.WithIPDst(netip.PrefixFrom(ip, ip.BitLen()))
		case p.said.ToHost:
			m = m.WithEthDst(p.host.mac)
		case ip.IsValid():
			m = m.WithInPort(h.At.Port).WithIPSrc(netip.PrefixFrom(ip, ip.BitLen()))
		default:
			m = m.WithInPort(h.At.Port).WithEthSrc(p.host.mac)
		}
		list = append(list, each(match, m)...)
	}
	return list
}

// matches returns what a policy asks of packets; fragments says whether that can be asked
// of later fragments. They have no ports: those of packets that a limit by ports is for are
// under it, and so are those of others.
func (p *policy) matches(fragments bool) []flow.Match {
	list := p.match
	for _, m := range p.match {
		if later, ok := m.LaterFragments(); ok && fragments && p.said.Limit != nil {
			list = append(slices.Clip(list), later)
		}
	}
	return list
}

// each returns the intersections of m with the matches of a list.
func each(list []flow.Match, m flow.Match) []flow.Match {
	var common []flow.Match
	for i := range list {
		if both, ok := intersect(&list[i], &m); ok {
			common = append(common, both)
		}
	}
	return common
}

// onlyIP returns the parts of matches that are IPv4 or IPv6.
func onlyIP(list []flow.Match) []flow.Match {
	return append(each(list, flow.Match{}.WithEthType(flow.EthTypeIPv4)), each(list, flow.Match{}.WithEthType(flow.EthTypeIPv6))...)
}

// intersect returns the condition that holds where both do, false if no packet
// can meet both.
func intersect(a, b *flow.Match) (flow.Match, bool) {
	if !a.Overlaps(b) {
		return flow.Match{}, false
	}
	m := *a
	for s := b.Set; s != 0; s &= s - 1 {
		f := flow.Field(bits.TrailingZeros64(uint64(s)))
		value, mask, _ := b.Get(f)
		if v, k, ok := a.Get(f); ok {
			for i := range value {
				value[i] |= v[i]
				mask[i] |= k[i]
			}
		}
		m.PutMasked(f, value, mask)
	}
	return m, true
}

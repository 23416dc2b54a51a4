package firewall

import (
	"fmt"
	"math/bits"

	"github.com/weft-sdn/weft/flow"
)

// compileSingle returns the entries for a switch with one table, where no entry
// can pass a packet on to routes. It drops packets of rules that deny where no
// rule before them allows any of it. What else may be denied goes to the
// controller, as do conditions that the switch cannot ask for. If the rules are
// too many, everything that enters goes to the controller.
func (v *view) compileSingle(t *target, limit int) *program {
	p := &program{mode: modeController}
	add := func(priority uint16, m flow.Match, number uint32, actions ...flow.Action) {
		p.entries = append(p.entries, flow.Entry{Priority: priority, Match: m, Cookie: flow.NewCookie(flow.OwnerFirewall, 0, number), Apply: actions})
	}
	trap := flow.Output(flow.PortController)
	everything := func(reason string) *program {
		p.entries, p.reason = nil, reason
		add(flow.PrioritySingleJudge, flow.Match{}, 0, trap)
		return p
	}
	if v.block {
		p.mode = modeCompiled
		add(flow.PrioritySingleDrop, flow.Match{}, 0)
		return p
	}
	rules, ok := v.applying(limit)
	if !ok || t.forced != "" {
		return everything(fmt.Sprintf("the rules take more than %d entries (table_limit)", limit))
	}
	var allowed []condition
	seen := map[flow.EntryKey]bool{}
	certain, denies, byPorts := true, false, false
	for _, r := range rules {
		conditions, err := r.conditions()
		if err != nil {
			return everything(fmt.Sprintf("rule %s: %v", r.id, err))
		}
		if !r.deny {
			allowed = append(allowed, conditions...)
			continue
		}
		denies = true
		for _, c := range conditions {
			byPorts = byPorts || c.match.Key.IPProto != 0
			clear := !overlaps(allowed, &c)
			for _, m := range c.matches() {
				exact := true
				if t.old {
					m, exact = weaken(m)
				}
				e := flow.Entry{Priority: flow.PrioritySingleJudge, Match: m}
				if clear && exact {
					e.Priority = flow.PrioritySingleDrop
				}
				if seen[e.Key()] {
					continue
				}
				seen[e.Key()] = true
				if e.Priority == flow.PrioritySingleDrop {
					add(flow.PrioritySingleDrop, m, r.number())
				} else {
					certain = false
					add(flow.PrioritySingleJudge, m, r.number(), trap)
				}
			}
		}
		if len(p.entries) > limit {
			return everything(fmt.Sprintf("the rules take more than %d entries (table_limit)", limit))
		}
	}
	if denies {
		for _, m := range disguises(t.old, byPorts) {
			add(flow.PrioritySingleJudge, m, 0, trap)
		}
	}
	switch {
	case v.deny && len(allowed) == 0:
		add(flow.PrioritySingleDrop-1, flow.Match{}, 0)
	case v.deny:
		return everything("with one table, and what no rule is about denied, the controller judges everything")
	case certain:
		p.mode = modeCompiled
	default:
		p.reason = "one table: what a rule denies and an earlier one may allow is judged by the controller"
	}
	return p
}

// disguises returns what a table with one stage does not see: what frames carry behind more
// tags than the switch looks behind and, if rules are about protocols, fragments and IPv6
// whose headers are cut off. The controller sees it (hides). OpenFlow 1.0 knows nothing of
// IPv6: there all of it goes to the controller if a rule denies any.
func disguises(old, byPorts bool) (list []flow.Match) {
	for _, kind := range [...]uint16{flow.EthTypeVLAN, flow.EthTypeQinQ} {
		list = append(list, flow.Match{}.WithEthType(kind))
	}
	if !byPorts {
		return list
	}
	kinds := []uint16{flow.EthTypeIPv4}
	if !old {
		kinds = append(kinds, flow.EthTypeIPv6)
		list = append(list, flow.Match{}.WithEthType(flow.EthTypeIPv6).WithIPProto(0))
	}
	for _, kind := range kinds {
		m := flow.Match{}.WithEthType(kind)
		list = append(list, m.WithTCPSrc(0).WithTCPDst(0), m.WithUDPSrc(0).WithUDPDst(0))
	}
	return list
}

// overlaps reports whether some packet may meet c and one of a list.
func overlaps(list []condition, c *condition) bool {
	for i := range list {
		o := &list[i]
		if o.match.Overlaps(&c.match) && o.src.from <= c.src.to && c.src.from <= o.src.to && o.dst.from <= c.dst.to && c.dst.from <= o.dst.to {
			return true
		}
	}
	return false
}

// weaken returns the part of a match that OpenFlow 1.0 can ask for, and whether
// that is all of it (OpenFlow 1.0.0 §5.2.3: exact values, but for IPv4 prefixes;
// neither IPv6 nor SCTP ports).
func weaken(m flow.Match) (flow.Match, bool) {
	n, exact := m, true
	for s := m.Set; s != 0; s &= s - 1 {
		f := flow.Field(bits.TrailingZeros64(uint64(s)))
		masked := m.Masked.Has(f)
		ok := false
		switch f {
		case flow.FieldInPort, flow.FieldEthDst, flow.FieldEthSrc, flow.FieldEthType, flow.FieldVLAN, flow.FieldVLANPCP, flow.FieldIPDSCP,
			flow.FieldIPProto, flow.FieldTCPSrc, flow.FieldTCPDst, flow.FieldUDPSrc, flow.FieldUDPDst, flow.FieldICMPv4Type, flow.FieldICMPv4Code:
			ok = !masked
		case flow.FieldIPv4Src, flow.FieldIPv4Dst, flow.FieldARPSPA, flow.FieldARPTPA:
			_, ok = prefixIn(&m, f, 32)
		case flow.FieldARPOp:
			ok = m.Key.ARPOp < 256
		}
		if ip := m.Key.EthType == flow.EthTypeIPv6; ip && (f >= flow.FieldIPDSCP && f <= flow.FieldSCTPDst) {
			ok = false
		}
		if !ok {
			exact = false
			n.Put(f, [16]byte{})
			n.PutMasked(f, [16]byte{}, [16]byte{})
		}
	}
	n.Normalize()
	for n.Check() != nil { // a prerequisite has gone
		s := n.Set
		f := flow.Field(63 - bits.LeadingZeros64(uint64(s)))
		n.PutMasked(f, [16]byte{}, [16]byte{})
		exact = false
		if n.Set == s {
			return flow.Match{}, false
		}
	}
	return n, exact
}

package firewall

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/weft-sdn/weft/flow"
)

// The modes in which a switch follows the rules.
const (
	modeOff        = "off"
	modeCompiled   = "compiled"
	modeReactive   = "reactive"
	modeController = "controller"
)

// target describes a switch for which rules are compiled.
type target struct {
	links  []flow.Port // ports to other switches
	single bool        // one table for everything
	old    bool        // it speaks OpenFlow 1.0
	forced string      // why it cannot hold the rules as entries, if so
}

// program is the entries that a switch should have.
type program struct {
	mode    string
	reason  string // why it is not compiled
	entries []flow.Entry
}

// compile returns the entries that make a switch do what v says: one for each
// condition of a rule, up to limit.
func (v *view) compile(t *target, limit int) *program {
	switch {
	case v.idle:
		return &program{mode: modeOff}
	case t.single:
		return v.compileSingle(t, limit)
	}
	p := &program{mode: modeReactive, reason: t.forced}
	if p.reason == "" {
		p = v.shared(limit)
	}
	var entries []flow.Entry
	if !v.local {
		for _, port := range t.links {
			entries = append(entries, passing(flow.PriorityFirewallLinks, flow.Match{}.WithInPort(port), 0))
		}
	}
	if p.mode == modeReactive {
		trap := flow.Entry{Table: flow.TableFirewall, Priority: flow.PriorityFirewallRest, Cookie: flow.NewCookie(flow.OwnerFirewall, 0, 0),
			Apply: []flow.Action{flow.Output(flow.PortController)}}
		return &program{modeReactive, p.reason, append(entries, trap)}
	}
	return &program{p.mode, p.reason, append(entries, p.entries...)}
}

// shared returns the entries of the rules, which are the same for all switches
// without rules of their own.
func (v *view) shared(limit int) *program {
	if v.local {
		return v.rules(limit)
	}
	v.set.once.Do(func() { v.set.common = v.rules(limit) })
	return v.set.common
}

// rules returns the entries of the rules.
func (v *view) rules(limit int) *program {
	if v.block {
		return &program{mode: modeCompiled, entries: []flow.Entry{dropping(flow.PriorityFirewallBlock, flow.Match{}, 0)}}
	}
	rules, ok := v.applying(limit)
	p := &program{mode: modeReactive, reason: fmt.Sprintf("the rules take more than %d entries (table_limit)", limit)}
	if !ok {
		return p
	}
	var entries []flow.Entry
	seen, behind := map[flow.EntryKey]bool{}, map[flow.Match]bool{}
	for i, priority := range priorities(rules) {
		r := rules[i]
		conditions, err := r.conditions()
		if err != nil {
			return &program{mode: modeReactive, reason: fmt.Sprintf("rule %s: %v", r.id, err)}
		}
		for _, c := range conditions {
			for _, m := range c.matches() {
				e := passing(priority, m, r.number())
				if r.deny {
					e = dropping(priority, m, r.number())
				}
				if !seen[e.Key()] {
					seen[e.Key()] = true
					entries = append(entries, e)
				}
			}
			if r.deny {
				for _, m := range c.furtherTags() {
					if !behind[m] {
						behind[m] = true
						entries = append(entries, dropping(priority, m, r.number()))
					}
				}
			}
			if len(entries) > limit {
				return p
			}
		}
	}
	if v.deny {
		entries = append(entries, dropping(flow.PriorityFirewallRest, flow.Match{}, 0))
	}
	return &program{mode: modeCompiled, entries: entries}
}

// applying returns the rules that hold on the switch, in the order in which they
// decide; false if they are more than limit.
func (v *view) applying(limit int) ([]*rule, bool) {
	if limit == 0 || v.size() > 2*limit { // a condition takes an entry, equal ones aside
		return nil, false
	}
	var list []*rule
	for _, c := range []*classifier{v.all, v.own} {
		c.each(func(x *cond) { list = append(list, x.rule) })
	}
	slices.SortFunc(list, compareRules)
	list = slices.Compact(list)
	return list, len(list) <= limit
}

func compareRules(a, b *rule) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.id, b.id))
}

// priorities returns the priorities of the entries of rules, which are in the
// order in which they decide. It keeps the rules' own as far as possible, so that
// a change of one rule leaves the others' entries alone. A rule goes below the
// one before it where both have the same priority and different actions, and
// within the priorities left for rules; if there is no room, all have made-up
// ones.
func priorities(rules []*rule) []uint16 {
	list := make([]uint16, len(rules))
	next := flow.PriorityFirewallBlock - 1
	for i, r := range rules {
		if i > 0 && rules[i-1].deny != r.deny {
			next--
		}
		next = min(next, max(int(r.priority), flow.PriorityFirewallRest+1))
		if next <= flow.PriorityFirewallRest {
			return madeUp(rules)
		}
		list[i] = uint16(next)
	}
	return list
}

// madeUp returns priorities for rules whose own leave no room: one for each run
// of rules with the same action.
func madeUp(rules []*rule) []uint16 {
	list := make([]uint16, len(rules))
	next := uint16(flow.PriorityFirewallMade)
	for i, r := range rules {
		if i > 0 && rules[i-1].deny != r.deny {
			next--
		}
		list[i] = next
	}
	return list
}

// matches returns the matches of a condition: a range of ports takes several.
func (c *condition) matches() []flow.Match {
	list := []flow.Match{c.match}
	src, dst, _, ok := portsOf(c.match.Key.EthType, c.match.Key.IPProto)
	if !ok {
		return list
	}
	for _, side := range []struct {
		field flow.Field
		ports portRange
	}{{src, c.src}, {dst, c.dst}} {
		if side.ports == everyPort {
			continue
		}
		var next []flow.Match
		for _, m := range list {
			for _, p := range side.ports.masks() {
				n := m
				n.PutMasked(side.field, [16]byte{byte(p.value >> 8), byte(p.value)}, [16]byte{byte(p.mask >> 8), byte(p.mask)})
				next = append(next, n)
			}
		}
		list = next
	}
	return list
}

// linkFields are those of a frame itself.
const linkFields = 1<<flow.FieldInPort | 1<<flow.FieldInPhyPort | 1<<flow.FieldEthDst | 1<<flow.FieldEthSrc | 1<<flow.FieldVLAN | 1<<flow.FieldVLANPCP

// furtherTags returns the matches of the packets behind whose first tag, or two, the switch
// finds another, and not what the condition asks for: they may meet it.
func (c *condition) furtherTags() (list []flow.Match) {
	m := c.match
	if !m.Set.Has(flow.FieldEthType) || m.Key.EthType == flow.EthTypeVLAN || m.Key.EthType == flow.EthTypeQinQ ||
		m.Set.Has(flow.FieldVLAN) && !m.Masked.Has(flow.FieldVLAN) && m.Key.VLAN == 0 {
		return nil
	}
	for s := m.Set &^ linkFields; s != 0; s &= s - 1 {
		m.PutMasked(flow.Field(bits.TrailingZeros64(uint64(s))), [16]byte{}, [16]byte{})
	}
	for _, kind := range [...]uint16{flow.EthTypeVLAN, flow.EthTypeQinQ} {
		list = append(list, m.WithEthType(kind))
	}
	return list
}

// passing returns an entry that lets packets go on to the next table.
func passing(priority uint16, m flow.Match, number uint32) flow.Entry {
	return flow.Entry{Table: flow.TableFirewall, Priority: priority, Match: m, Goto: flow.TableQoS,
		Cookie: flow.NewCookie(flow.OwnerFirewall, 0, number)}
}

// dropping returns an entry that drops packets.
func dropping(priority uint16, m flow.Match, number uint32) flow.Entry {
	return flow.Entry{Table: flow.TableFirewall, Priority: priority, Match: m, Cookie: flow.NewCookie(flow.OwnerFirewall, 0, number)}
}

package firewall

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// book is the rules and the defaults as they are kept, and what has changed since they
// were last published. Its user guards it.
type book struct {
	rules    map[string]*rule
	numbers  map[uint32]*rule
	low      uint32 // no lower number is free
	all      *builder
	own      map[flow.DPID]*builder
	back     string // the default
	ownBack  map[flow.DPID]string
	segments map[uint16]string // tenant whose virtual network a VLAN carries; nil: nothing is known of any
	changed  *change
}

func newBook() book {
	return book{
		rules: map[string]*rule{}, numbers: map[uint32]*rule{}, low: 1, all: newBuilder(), own: map[flow.DPID]*builder{},
		back: actionAllow, ownBack: map[flow.DPID]string{}, changed: &change{},
	}
}

// change is what has changed everywhere, and of single switches.
type change struct {
	delta
	own map[flow.DPID]*delta
}

type delta struct {
	add, remove []*cond
	fallback    bool // the default has changed
}

// at returns what has changed of a switch, to add to it.
func (x *change) at(sw flow.DPID) *delta {
	if x.own[sw] == nil {
		if x.own == nil {
			x.own = map[flow.DPID]*delta{}
		}
		x.own[sw] = &delta{}
	}
	return x.own[sw]
}

// everywhere reports whether the change concerns all switches.
func (x *change) everywhere() bool { return x.fallback || len(x.add)+len(x.remove) > 0 }

// empty reports whether nothing changes.
func (x *change) empty() bool { return !x.everywhere() && len(x.own) == 0 }

// switches returns the switches that the change concerns; none: all.
func (x *change) switches() []flow.DPID {
	if x.everywhere() {
		return nil
	}
	return slices.Sorted(maps.Keys(x.own))
}

// enter adds a rule, and works out the conditions of a tenant's rule.
func (b *book) enter(r *rule) {
	to, x := b.all, &b.changed.delta
	if r.local {
		if b.own[r.sw] == nil {
			b.own[r.sw] = newBuilder()
		}
		to, x = b.own[r.sw], b.changed.at(r.sw)
	}
	conditions := r.parsed
	if r.wide {
		r.vlans = b.vlansOf(r.msg.Tenant)
		conditions, _ = r.conditions() // parseRule has tried
	}
	r.conds, r.parsed = make([]*cond, len(conditions)), nil
	for i := range conditions {
		r.conds[i] = to.cond(r, &conditions[i].match, conditions[i].src, conditions[i].dst)
	}
	b.rules[r.id], b.numbers[r.number()] = r, r
	x.add = append(x.add, r.conds...)
}

// leave takes a rule out.
func (b *book) leave(r *rule) {
	delete(b.rules, r.id)
	delete(b.numbers, r.number())
	b.low = min(b.low, r.number())
	x := &b.changed.delta
	if r.local {
		x = b.changed.at(r.sw)
	}
	x.remove = append(x.remove, r.conds...)
}

// free returns the lowest number from n on that no rule has.
func (b *book) free(n uint32) uint32 {
	for b.numbers[n] != nil {
		n++
	}
	return n
}

// madeUp returns an id for a rule without one: the id of an equal rule, so that a
// repeated request changes nothing, else a new one.
func (b *book) madeUp(m *api.FirewallRule, taken map[string]int) string {
	value, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	h := uint64(len(value))
	for _, c := range value {
		h = mix(h+uint64(c), 0x2545f4914f6cdd1d)
	}
	for ; ; h++ {
		id := "r" + strconv.FormatUint(h, 36)
		_, twice := taken[id]
		old := b.rules[id]
		if !twice && (old == nil || old.same(old, m)) {
			return id
		}
	}
}

// setDefaults takes the defaults of a status.
func (b *book) setDefaults(m *api.FirewallStatus) {
	own := ownDefaults(m)
	b.changed.fallback = b.changed.fallback || m.DefaultAction != b.back
	for _, list := range []map[flow.DPID]string{b.ownBack, own} {
		for sw := range list {
			if own[sw] != b.ownBack[sw] {
				b.changed.at(sw).fallback = true
			}
		}
	}
	b.back, b.ownBack = m.DefaultAction, own
}

// ownDefaults returns the defaults of switches.
func ownDefaults(m *api.FirewallStatus) map[flow.DPID]string {
	own := map[flow.DPID]string{}
	for _, s := range m.Switches {
		if sw, err := flow.ParseDPID(s.Dpid); err == nil { // checked
			own[sw] = s.DefaultAction
		}
	}
	return own
}

func checkDefault(action string) error {
	if action != actionAllow && action != actionDeny && action != actionBlock {
		return fmt.Errorf("action %q: want allow, deny or block", action)
	}
	return nil
}

// assign takes whose virtual networks VLANs carry now, nobody's if empty, and makes the
// rules of these tenants anew. It reports whether anything has changed.
func (b *book) assign(news map[uint16]string) bool {
	if b.segments == nil {
		b.segments = map[uint16]string{}
	}
	tenants := map[string]bool{}
	for vlan, tenant := range news {
		old := b.segments[vlan]
		if old == tenant {
			continue
		}
		tenants[old], tenants[tenant] = true, true
		if b.segments[vlan] = tenant; tenant == "" {
			delete(b.segments, vlan)
		}
	}
	if len(tenants) == 0 {
		return false
	}
	var list []*rule
	for _, r := range b.rules {
		if r.wide && tenants[r.msg.Tenant] {
			list = append(list, r)
		}
	}
	for _, r := range list {
		next := *r
		b.leave(r)
		b.enter(&next)
	}
	return true
}

// vlansOf returns the VLANs of a tenant.
func (b *book) vlansOf(tenant string) (list []uint16) {
	for vlan, name := range b.segments {
		if name == tenant {
			list = append(list, vlan)
		}
	}
	slices.Sort(list)
	return list
}

// publish returns the ruleset that follows old, and what has changed since.
func (b *book) publish(old *ruleset) (*ruleset, *change) {
	x := b.changed
	b.changed = &change{}
	s := &ruleset{version: old.version + 1, own: maps.Clone(old.own), fallback: b.back, ownBack: maps.Clone(b.ownBack), rules: len(b.rules)}
	s.all = b.all.change(x.add, x.remove)
	for sw, d := range x.own {
		if len(d.add)+len(d.remove) == 0 {
			continue
		}
		if s.own[sw] = b.own[sw].change(d.add, d.remove); s.own[sw].size == 0 {
			delete(s.own, sw)
			delete(b.own, sw)
		}
	}
	return s, x
}

package nib

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// change takes the word of a partition's publisher about one thing, and reports
// whether the fact is another then. It is called with mu held.
func change[G, K comparable, M proto.Message](b *Base, p Parts, others claims[K, M], t *table[G, K, M], g G, k K, said claim[M]) bool {
	was := t.get(g, k)
	partition := said.from.Partition
	if r := b.runs[p][partition]; !said.gone && (said.from.Epoch < r.full || r.outlived(said.from.Epoch)) {
		return false // late: of a former run, and the last one has not said so
	}

	var rest []claim[M] // what other partitions say, the fact apart
	for _, o := range others[k] {
		switch {
		case o.from.Partition != partition:
			rest = append(rest, o)
		case b.late(p, o.from, said.from):
			return false // a later run has said something else
		}
	}
	ours := was != nil && was.from.Partition == partition
	switch {
	case ours && b.late(p, was.from, said.from):
		return false // a later run has said something else
	case ours && !said.gone && was.from == said.from && proto.Equal(was.Is, said.is):
		return false // said again
	}
	there := was != nil && !away(was.Is)
	if was != nil && !ours && (!said.gone || !there) && (there || b.keeps(p, was.from)) {
		rest = append(rest, claim[M]{was.from, was.Is, !there})
	}
	if said.gone && !ours && there {
		if b.keeps(p, said.from) {
			rest = append(rest, said)
		}
		others.put(k, rest)
		return false // it has moved to another partition
	}
	if said.gone {
		if i := lastThere(rest); i >= 0 {
			other := rest[i]
			rest = slices.Delete(rest, i, i+1)
			if b.keeps(p, said.from) {
				rest = append(rest, said)
			}
			said = other
		} else if !away(said.is) { // else the fact says that it is gone
			if b.keeps(p, said.from) {
				rest = append(rest, said)
			}
			others.put(k, rest)
			if was != nil {
				*t = t.with(g, k, nil)
			}
			return was != nil
		}
	}
	others.put(k, rest)
	is := &Fact[K, M]{Key: k, Is: said.is, Rev: b.next.rev, Since: b.next.rev, from: said.from}
	if there && !away(said.is) {
		is.Since = was.Since
	}
	*t = t.with(g, k, is)
	return true
}

// lastThere returns the last of some claims that a thing is there; -1 if none is.
func lastThere[M any](list []claim[M]) int {
	for i := len(list) - 1; i >= 0; i-- {
		if !list[i].gone {
			return i
		}
	}
	return -1
}

// away reports whether a message is one that remains when its thing is gone: that
// of a switch.
func away[M any](m M) bool {
	e, ok := any(m).(*api.SwitchChanged)
	return ok && !e.GetSwitch().GetConnected()
}

// switchChanged takes the event, which is about all ports of a switch that is
// connected, too. It is called with mu held.
func (b *Base) switchChanged(from Source, sw flow.DPID, e *api.SwitchChanged) Parts {
	t := &b.next.switches
	was := t.get(none{}, sw)
	if !change(b, Switches, b.switches, t, none{}, sw, word(from, e, away(e))) {
		return 0
	}
	is := t.get(none{}, sw)
	if b.readers[Ports] == 0 {
		return Switches
	}
	for i, o := range b.switches[sw] {
		if was != nil && o.from == was.from && !o.gone {
			b.switches[sw][i].is = b.withPorts(sw, o.is)
		}
	}
	if away(is.Is) {
		return Switches
	}
	return Switches | when(Ports, b.seed(is))
}

// withPorts returns the event of a switch with its ports as they are. It is called
// with mu held.
func (b *Base) withPorts(sw flow.DPID, e *api.SwitchChanged) *api.SwitchChanged {
	with := &api.SwitchChanged{Switch: e.Switch}
	for p := range b.next.Ports(sw) {
		with.Ports = append(with.Ports, p.Is)
	}
	return with
}

// seed makes the ports of a switch those that its event has. It is called with mu
// held.
func (b *Base) seed(f *Switch) (changed bool) {
	t := &b.next.ports
	there := map[flow.Location]bool{}
	for _, p := range f.Is.Ports {
		at := flow.Location{Switch: f.Key, Port: flow.Port(p.Port)}
		there[at] = true
		changed = b.port(at, claim[*api.Port]{from: f.from, is: p}) || changed
	}
	for p := range b.next.Ports(f.Key) { // of the table as it is now
		if !there[p.Key] {
			*t = t.with(f.Key, p.Key, nil)
			changed = true
		}
	}
	return changed
}

// port sets a port, or removes it. It is called with mu held.
func (b *Base) port(at flow.Location, said claim[*api.Port]) bool {
	t := &b.next.ports
	was := t.get(at.Switch, at)
	switch {
	case said.gone:
		if was == nil {
			return false
		}
		*t = t.with(at.Switch, at, nil)
		return true
	case was != nil && was.from == said.from && proto.Equal(was.Is, said.is):
		return false
	}
	is := &Port{Key: at, Is: said.is, Rev: b.next.rev, Since: b.next.rev, from: said.from}
	if was != nil {
		is.Since = was.Since
	}
	*t = t.with(at.Switch, at, is)
	return true
}

// portChanged takes the event of a port. It counts if it is of whose the switch
// is; else it counts as soon as that is so. It is called with mu held.
func (b *Base) portChanged(from Source, at flow.Location, e *api.PortChanged) Parts {
	sw := b.next.Switch(at.Switch)
	if sw != nil && sw.from.Partition != from.Partition {
		for i, o := range b.switches[at.Switch] {
			if o.from == from && !o.gone {
				o.is = withPort(o.is, e)
				b.switches[at.Switch][i] = o
			}
		}
		return 0
	}
	if sw != nil && b.late(Switches, sw.from, from) {
		return 0
	}
	if was := b.next.Port(at); was != nil && was.from.Partition == from.Partition && b.late(Ports, was.from, from) {
		return 0
	}
	return when(Ports, b.port(at, claim[*api.Port]{from, e.Port, e.Removed}))
}

// withPort returns the event of a switch with one of its ports as it is now.
func withPort(e *api.SwitchChanged, now *api.PortChanged) *api.SwitchChanged {
	list := slices.DeleteFunc(slices.Clone(e.Ports), func(p *api.Port) bool { return p.Port == now.Port.Port })
	if !now.Removed {
		list = append(list, now.Port)
	}
	return &api.SwitchChanged{Switch: e.Switch, Ports: list}
}

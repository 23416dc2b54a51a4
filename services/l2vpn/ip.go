package l2vpn

import (
	"github.com/weft-sdn/weft/flow"
)

// ipTypes are the Ethertypes that it carries, in the order of labelsOf.
var ipTypes = [...]uint16{flow.EthTypeIPv4, flow.EthTypeARP, flow.EthTypeIPv6}

// ipIngress adds the entries that take in the frames of an end: by their sender, which
// the controller is sent if it is not known, then by their Ethertype. Others are dropped.
func (s *set) ipIngress(c *circuit, i int, group uint32, known devices) {
	e, came := c.ends[i], c.came(i)
	m := flow.Match{}.WithTunnelID(came)
	var acts []flow.Action
	if e.tags() > 0 {
		acts = append(acts, flow.PopVLAN()) // the last of them
	}
	next := flow.TableCircuits
	if group == 0 {
		next = flow.TableLabels // frames leave as they are
	}
	in := c.inlet(i)
	in.id, in.storm = 0, c.Members[i].StormMeter
	in.acts = append(acts, flow.SetTunnelID(came), flow.Resubmit{In: flow.PortIn, Table: next}.Action())
	s.ingress(in)
	if group != 0 {
		s.enter(c.Id, flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityLANForged, Match: m.WithEthSrcMasked(toMany, toMany)})
		unknown := flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityLANUnknown, Match: m, Goto: flow.TableLabels}
		d := known[e]
		if d == nil || !d.held() {
			unknown.Apply = []flow.Action{flow.Output(flow.PortController)}
		}
		s.enter(0, unknown)
		if d != nil && d.there() {
			s.enter(0, flow.Entry{Table: flow.TableCircuits, Priority: flow.PriorityLANSender, Match: m.WithEthSrc(d.mac), Goto: flow.TableLabels})
		}
	}
	labels := c.labelsOf(c.Members[1-i])
	for k, kind := range ipTypes {
		acts := []flow.Action{flow.PushMPLS(), flow.SetMPLSLabel(*labels[k]), flow.SetMPLSTTL(flow.CarriedTTL), flow.ToGroup(group)}
		if group == 0 {
			acts = c.cross(i, 1-i)
		}
		s.enter(c.Id, flow.Entry{Table: flow.TableLabels, Priority: flow.PriorityLANKnown, Match: m.WithoutVLAN().WithEthType(kind), Apply: acts})
	}
	s.enter(c.Id, flow.Entry{Table: flow.TableLabels, Priority: flow.PriorityLANFlood, Match: m})
}

// ipEgress adds the entries that take the labels of an end off, put its tags on, and
// lead to groups that put on the addresses: those of ARP and of the others. A group is
// changed in place when a device is learnt, so entries keep what they have counted. ARP,
// which says itself whom it is for, is broadcast: a device that has taken another's place
// gets it before it has sent anything.
//
// Tags come on before the label comes off: after that Open vSwitch would look at
// the packet anew, at the cost of another pass.
func (s *set) ipEgress(c *circuit, i int, known devices) {
	e := c.ends[i]
	src := known.of(c.ends[1-i], flow.MAC{0x02, 'W', byte(c.Id >> 24), byte(c.Id >> 16), byte(c.Id >> 8), byte(c.Id)})
	tags := leave(0, e)
	out := tags[len(tags)-1]
	tags = tags[:len(tags)-1]
	group := func(label uint32, dst flow.MAC) uint32 {
		id := flow.CircuitGroups + label
		s.groups = append(s.groups, flow.Group{Kind: flow.GroupKindIndirect, ID: id, Buckets: []flow.Bucket{{WatchPort: flow.PortAny, WatchGroup: flow.GroupAny,
			Actions: []flow.Action{flow.SetEthDst(dst), flow.SetEthSrc(src), out}}}})
		return id
	}
	m := c.Members[i]
	all := group(m.Label, known.of(e, flow.Broadcast))
	to := [...]uint32{all, group(m.ArpLabel, flow.Broadcast), all}
	for k, l := range c.labelsOf(m) {
		var acts []flow.Action
		acts = append(append(acts, tags...), flow.PopMPLS(ipTypes[k]), flow.ToGroup(to[k]))
		s.enter(c.Id, flow.Entry{Table: flow.TableLabels, Priority: flow.PriorityCircuitLabel,
			Match: flow.Match{}.WithEthType(flow.EthTypeMPLS).WithMPLSLabel(*l).WithMPLSBOS(1), Apply: acts})
	}
}

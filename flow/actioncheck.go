package flow

import (
	"errors"
	"fmt"
	"slices"
)

// CheckActions returns an error if a list of actions cannot do, for the packets
// that an entry matches, what it says about labels and headers: an action on a label
// that the packets are not known to have, a second Ethernet header, a packet sent
// without one, or an action on a field that a decap has just uncovered.
// Open vSwitch accepts some of these, and drops the packets. The match may be
// nil: nothing is known of the packets then. The error names the action and what to change.
func (m *Match) CheckActions(list []Action) error {
	return (&headers{label: m.labelled()}).run(list)
}

// labelled reports whether the packets that a match lets through have a label.
func (m *Match) labelled() known {
	switch {
	case m == nil:
		return perhaps
	case m.Set.Has(FieldEthType) && mplsType(m.Key.EthType):
		return yes
	}
	return no
}

func mplsType(t uint16) bool { return t == EthTypeMPLS || t == EthTypeMPLSMC }

// known is what is known of a packet's header.
type known uint8

const (
	no known = iota
	yes
	perhaps
)

// headers is what is known of the headers of a packet on its way through a list
// of actions.
type headers struct {
	packet PacketType // PacketNext: not known
	label  known      // behind an Ethernet header, if there is one
	hidden bool       // a decap has uncovered a packet whose fields are not known yet
	unset  bool       // an encap has put on a label that says nothing yet
}

func (h *headers) run(list []Action) error {
	for i := range list {
		if err := h.apply(&list[i]); err != nil {
			return fmt.Errorf("action %v: %w", list[i], err)
		}
	}
	return nil
}

var (
	errLabel = errors.New("needs a packet with a label: match eth_type=0x8847, or put push_mpls or encap(mpls) before it")
	errBare  = errors.New("the packet has no Ethernet header here, so no port can send it and no condition on headers matches it: put encap(ethernet) before, or decap(packet_type(ns=0,type=0)) if the payload is Ethernet")
)

// apply carries out an action as far as headers are concerned.
func (h *headers) apply(a *Action) error {
	switch a.Kind {
	case ActionExperimenter:
		return h.applyNicira(*a)
	case ActionOutput, ActionGroup:
		return h.whole()
	case ActionPushVLAN, ActionPushPBB, ActionPopVLAN, ActionPopPBB:
		return h.visible(true)
	case ActionPushMPLS:
		h.label = yes
		return h.visible(true)
	case ActionPopMPLS:
		err := h.labelled()
		if h.packet != PacketEthernet && err == nil {
			err = fmt.Errorf("the packet has no Ethernet header here: decap(packet_type(ns=N,type=N)) removes its label")
		}
		if h.label = no; mplsType(uint16(a.Arg)) {
			h.label = yes
		}
		return err
	case ActionSetMPLSTTL, ActionDecMPLSTTL, ActionCopyTTLIn, ActionCopyTTLOut:
		return h.labelled()
	case ActionSetNwTTL, ActionDecNwTTL:
		return h.visible(false)
	case ActionSetField:
		return h.set(a.Field)
	}
	return nil
}

func (h *headers) set(f Field) error {
	switch f {
	case FieldMPLSLabel, FieldMPLSTC, FieldMPLSBOS, FieldMPLSTTL:
		h.unset = h.unset && f != FieldMPLSLabel
		return h.labelled()
	case FieldEthDst, FieldEthSrc, FieldVLAN, FieldVLANPCP:
		return h.visible(true)
	case FieldTunnelID, FieldMetadata, FieldCTMark, FieldCTState, FieldCTZone:
		return nil
	}
	return h.visible(false)
}

// labelled returns an error unless the packet has a label.
func (h *headers) labelled() error {
	if err := h.visible(false); err != nil {
		return err
	}
	if h.label == no {
		return errLabel
	}
	return nil
}

// visible returns an error if the fields of the packet are not known yet or, where
// ethernet says so, if it has no Ethernet header.
func (h *headers) visible(ethernet bool) error {
	switch {
	case h.hidden:
		return fmt.Errorf("what decap has uncovered is not known in the same list: move this into the bucket of an indirect group, or into another table by resubmit(,N)")
	case ethernet && h.packet != PacketEthernet:
		return errBare
	}
	return nil
}

// whole returns an error if the packet has no Ethernet header to be sent with.
func (h *headers) whole() error {
	if h.packet != PacketEthernet {
		return errBare
	}
	return nil
}

func (h *headers) applyNicira(a Action) error {
	if t, ok := ParseEncap(a); ok {
		if h.unset {
			return fmt.Errorf("the label under it is not set: put set_field:LABEL->mpls_label behind its encap")
		}
		if t == PacketEthernet {
			if h.packet == PacketEthernet {
				return fmt.Errorf("the packet has an Ethernet header already: encap(mpls) covers it, decap() removes it")
			}
			h.packet = PacketEthernet
			return nil
		}
		if h.packet == PacketEthernet && h.label == yes {
			return fmt.Errorf("the packet has a label under its Ethernet header: Open vSwitch cannot cover such a frame, and aborts or garbles it")
		}
		h.packet, h.label, h.hidden, h.unset = t, yes, false, true
		return nil
	}
	if to, ok := ParseDecap(a); ok {
		return h.decap(to)
	}
	if _, ok := ParseResubmit(a); ok {
		// the entry that it meets may do anything
		err := h.whole()
		h.label, h.hidden = perhaps, false
		return err
	}
	if _, ok := ParseController(a); ok {
		return h.whole()
	}
	if _, ok := ParseCT(a); ok {
		return h.visible(true)
	}
	*h = headers{label: perhaps} // it may do anything
	return nil
}

func (h *headers) decap(to PacketType) error {
	switch {
	case h.packet == PacketEthernet:
		if h.packet = to; to == PacketNext && h.label == yes {
			h.packet = PacketMPLS
		}
		if to == PacketEthernet {
			return fmt.Errorf("the packet begins with an Ethernet header, under which is no other: want decap()")
		}
		h.hidden = h.hidden || h.label == no
		return nil
	case to == PacketNext && !h.hidden:
		return fmt.Errorf("a label does not name what it covers: say it, such as decap(packet_type(ns=0,type=0)) for Ethernet")
	}
	h.packet, h.label = to, no
	h.hidden = true
	return nil
}

// setOrder is the order in which an action set is carried out: that of OpenFlow
// 1.3.5 §5.10, with Open vSwitch's additions. Of the last ones only one is carried out.
var setOrder = [...]string{
	"copy_ttl_in", "pop_vlan", "pop_pbb", "pop_mpls", "decap", "encap", "push_mpls", "push_pbb", "push_vlan",
	"copy_ttl_out", "dec_ttl", "dec_mpls_ttl", "set_ttl", "set_mpls_ttl", "set_field", "set_queue",
	"ct", "resubmit", "output", "group",
}

// finalAction is the index in setOrder of the first action that a set has only one of.
const finalAction = 16

// setRank returns where in setOrder an action stands; -1 if a set does not carry
// it out.
func setRank(a Action) int {
	name := ""
	switch a.Kind {
	case ActionOutput:
		name = "output"
	case ActionSetField:
		name = "set_field"
	case ActionExperimenter:
		if _, ok := ParseCT(a); ok {
			name = "ct"
		} else if _, ok := ParseEncap(a); ok {
			name = "encap"
		} else if _, ok := ParseDecap(a); ok {
			name = "decap"
		} else if _, ok := ParseResubmit(a); ok {
			name = "resubmit"
		}
	default:
		for _, f := range &actionForms {
			if f.kind == a.Kind {
				name = f.name
			}
		}
	}
	return slices.Index(setOrder[:], name)
}

// CheckActionSet returns an error if a switch would not carry out all the actions of
// a list as an action set, which a bucket and write-actions are: it holds one action of each
// kind, one set_field of each field, and sends packets in one way; or if
// they cannot be carried out in the order of a set (see CheckActions).
func CheckActionSet(list []Action) error {
	byRank := make([]Action, 0, len(list))
	final := -1
	for i, a := range list {
		rank := setRank(a)
		if rank < 0 {
			return fmt.Errorf("action %v: an action set does not carry it out: put it into the apply-actions of an entry, to which resubmit(,N) leads", a)
		}
		for _, b := range list[:i] {
			if setRank(b) == rank && a.Field == b.Field {
				return fmt.Errorf("actions %v and %v: an action set has one %s only, so the first would be lost: do one of them before the group, or lead by resubmit(,N) to an entry that does both", b, a, setOrder[rank])
			}
		}
		if rank >= finalAction {
			if final >= 0 {
				return fmt.Errorf("actions %v and %v: an action set sends packets in one way only (ct, resubmit, output or group), so one would be lost: lead by resubmit(,N) to an entry that does both, or add a bucket", list[final], a)
			}
			final = i
		}
		byRank = append(byRank, a)
	}
	slices.SortStableFunc(byRank, func(a, b Action) int { return setRank(a) - setRank(b) })
	if err := (*Match)(nil).CheckActions(byRank); err != nil {
		return fmt.Errorf("in the order of an action set (%s): %w", FormatActions(byRank), err)
	}
	return nil
}

// Check returns an error if no switch can hold the group, or if one would not carry out
// all that it says; see CheckActionSet.
func (g *Group) Check() error {
	if g.Kind == GroupKindIndirect && len(g.Buckets) != 1 {
		return fmt.Errorf("group %d: %d buckets: a group of type indirect has one", g.ID, len(g.Buckets))
	}
	for i := range g.Buckets {
		b := &g.Buckets[i]
		if g.Kind == GroupKindFastFailover && b.WatchPort == PortAny && b.WatchGroup == GroupAny {
			return fmt.Errorf("group %d: bucket %d: one of a fast failover group watches a port or a group: give watch_port", g.ID, i)
		}
		if p := b.WatchPort; p != PortAny && !p.Physical() && p != PortLocal {
			return fmt.Errorf("group %d: bucket %d: watch_port %v: want a port of the switch, 1 to %d, or local", g.ID, i, p, uint32(PortMax))
		}
		if b.Weight != 0 && g.Kind != GroupKindSelect {
			return fmt.Errorf("group %d: bucket %d: weight %d: buckets of select groups only have one", g.ID, i, b.Weight)
		}
		if err := CheckActionSet(b.Actions); err != nil {
			return fmt.Errorf("group %d: bucket %d: %w", g.ID, i, err)
		}
	}
	return nil
}

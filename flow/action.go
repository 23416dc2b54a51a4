package flow

// ActionKind numbers an action: its type in OpenFlow 1.3.5 §7.2.5.
type ActionKind uint16

// The actions of OpenFlow 1.3.5.
const (
	ActionOutput       ActionKind = 0
	ActionCopyTTLOut   ActionKind = 11
	ActionCopyTTLIn    ActionKind = 12
	ActionSetMPLSTTL   ActionKind = 15
	ActionDecMPLSTTL   ActionKind = 16
	ActionPushVLAN     ActionKind = 17
	ActionPopVLAN      ActionKind = 18
	ActionPushMPLS     ActionKind = 19
	ActionPopMPLS      ActionKind = 20
	ActionSetQueue     ActionKind = 21
	ActionGroup        ActionKind = 22
	ActionSetNwTTL     ActionKind = 23
	ActionDecNwTTL     ActionKind = 24
	ActionSetField     ActionKind = 25
	ActionPushPBB      ActionKind = 26
	ActionPopPBB       ActionKind = 27
	ActionExperimenter ActionKind = 0xffff
)

// NoBuffer asks for the whole packet (OFPCML_NO_BUFFER) as MaxLen of an output
// to the controller.
const NoBuffer uint16 = 0xffff

// Action is one action: a union told apart by Kind.
type Action struct {
	Kind   ActionKind
	Field  Field    // SetField: the field
	MaxLen uint16   // Output to the controller: octets of the packet to send
	Arg    uint32   // port, group, queue, ethertype, TTL or experimenter id
	Value  [16]byte // SetField: the value in wire order, left-aligned, as long as the field
	Data   string   // Experimenter: the body after the experimenter id
}

// Output returns the action that sends the packet out of p.
func Output(p Port) Action {
	a := Action{Kind: ActionOutput, Arg: uint32(p)}
	if p == PortController {
		a.MaxLen = NoBuffer
	}
	return a
}

// ToGroup returns the action that sends the packet through a group.
func ToGroup(id uint32) Action { return Action{Kind: ActionGroup, Arg: id} }

// SetEthDst returns the action that rewrites the destination address.
func SetEthDst(m MAC) Action {
	a := Action{Kind: ActionSetField, Field: FieldEthDst}
	copy(a.Value[:], m[:])
	return a
}

// SetEthSrc returns the action that rewrites the source address.
func SetEthSrc(m MAC) Action {
	a := Action{Kind: ActionSetField, Field: FieldEthSrc}
	copy(a.Value[:], m[:])
	return a
}

// SetVLAN returns the action that rewrites the VLAN identifier of a tagged frame.
func SetVLAN(vid uint16) Action {
	a := Action{Kind: ActionSetField, Field: FieldVLAN}
	vid |= VLANPresent
	a.Value[0], a.Value[1] = byte(vid>>8), byte(vid)
	return a
}

// PushVLAN returns the action that adds a tag of the given ethertype (0x8100 or 0x88a8).
func PushVLAN(ethertype uint16) Action { return Action{Kind: ActionPushVLAN, Arg: uint32(ethertype)} }

// PushMPLS returns the action that adds an outer label, behind the Ethernet header
// (RFC 3032; OpenFlow 1.3.5 §5.12.1), with the ethertype 0x8847. Set
// its label next: OpenFlow repeats the outer one, and Open vSwitch does so in part only.
func PushMPLS() Action { return Action{Kind: ActionPushMPLS, Arg: uint32(EthTypeMPLS)} }

// PopMPLS returns the action that removes the outer label; what is under it is of
// the given ethertype: 0x8847 for another label.
func PopMPLS(ethertype uint16) Action { return Action{Kind: ActionPopMPLS, Arg: uint32(ethertype)} }

// SetMPLSLabel returns the action that rewrites the outer label. Open vSwitch caches, with the
// rewriting of a label, traffic class and bottom-of-stack bit of the packet that it saw first:
// match mpls_bos, and mpls_tc where it matters, in an entry that swaps labels.
func SetMPLSLabel(label uint32) Action {
	a := Action{Kind: ActionSetField, Field: FieldMPLSLabel}
	a.Value = align(FieldMPLSLabel, 0, uint64(label))
	return a
}

// SetMPLSTTL returns the action that sets the time to live of the outer label.
func SetMPLSTTL(ttl uint8) Action { return Action{Kind: ActionSetMPLSTTL, Arg: uint32(ttl)} }

// SetTunnelID returns the action that sets a packet's tunnel_id, by which entries to
// which a Resubmit leads know it.
func SetTunnelID(id uint64) Action {
	return Action{Kind: ActionSetField, Field: FieldTunnelID, Value: align(FieldTunnelID, 0, id)}
}

// DecMPLSTTL returns the action that decrements the time to live of the outer label.
func DecMPLSTTL() Action { return Action{Kind: ActionDecMPLSTTL} }

// PopVLAN returns the action that removes the outer tag.
func PopVLAN() Action { return Action{Kind: ActionPopVLAN} }

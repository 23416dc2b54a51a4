package flow

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// PacketType says with which header a packet begins: a name space in the upper
// 16 bits and a type within it in the lower (OpenFlow 1.5.1 §7.2.3.11).
type PacketType uint32

// The packet types between which Open vSwitch converts here. What ports send and
// receive, and what entries without a packet type match, is Ethernet.
const (
	PacketEthernet PacketType = 0
	PacketMPLS     PacketType = 1<<16 | PacketType(EthTypeMPLS)
	PacketMPLSMC   PacketType = 1<<16 | PacketType(EthTypeMPLSMC)
	PacketNext     PacketType = 0xfffe // in a Decap: what the removed header names
)

// The numbers of the actions (nicira-ext.h and ofp-actions.c of Open vSwitch).
const (
	niciraResubmit = 14
	niciraEncap    = 46
	niciraDecap    = 47
)

// String returns the type as ovs-ofctl writes it: "packet_type(ns=1,type=0x8847)".
func (t PacketType) String() string {
	if t&0xffff == 0 {
		return fmt.Sprintf("packet_type(ns=%d,type=0)", t>>16)
	}
	return fmt.Sprintf("packet_type(ns=%d,type=%#x)", t>>16, uint32(t&0xffff))
}

// encapNames are the packet types that an encap may add, as ovs-ofctl calls them.
var encapNames = [...]struct {
	name string
	t    PacketType
}{{"mpls", PacketMPLS}, {"mpls_mc", PacketMPLSMC}, {"ethernet", PacketEthernet}}

// Encap returns Open vSwitch's action encap (NXAST_ENCAP, ovs-actions(7)), which
// adds an outer header, so that the packet becomes one of type t.
//
// PacketMPLS and PacketMPLSMC put a label in front of the whole packet: of an
// Ethernet frame, its Ethernet header becomes payload. The packet then has no
// Ethernet header, so a port cannot send it: PacketEthernet, which only such a
// packet takes, adds one whose addresses are zero.
func Encap(t PacketType) Action {
	b := binary.BigEndian.AppendUint32(nil, niciraEncap<<16)
	return nicira(binary.BigEndian.AppendUint32(b, uint32(t)))
}

// ParseEncap reads an encap; false if the action is another one, malformed, or adds a header
// that Encap does not name, such as NSH's.
func ParseEncap(a Action) (PacketType, bool) {
	kind, b, ok := niciraAction(a)
	if !ok || kind != niciraEncap || b[0]|b[1] != 0 {
		return 0, false
	}
	t := PacketType(binary.BigEndian.Uint32(b[2:]))
	for _, n := range encapNames {
		if n.t == t {
			return t, true
		}
	}
	return 0, false
}

// Decap returns Open vSwitch's action decap (NXAST_DECAP, ovs-actions(7)), which
// removes the outer header: an untagged Ethernet header, or one label of a packet
// that has no Ethernet header. The packet becomes one of type to; PacketNext says
// that the removed header names it, which a label does not. Match mpls_bos: Open vSwitch
// loses sight of what is under a label that is removed as the last one and is not. After the label nothing
// is known of what it covered, so actions on its fields belong to an entry or group
// that the packet reaches by Resubmit or ToGroup.
func Decap(to PacketType) Action {
	b := binary.BigEndian.AppendUint32(nil, niciraDecap<<16)
	return nicira(binary.BigEndian.AppendUint32(b, uint32(to)))
}

// ParseDecap reads a decap; false if the action is another one, or malformed.
func ParseDecap(a Action) (to PacketType, ok bool) {
	kind, b, ok := niciraAction(a)
	if !ok || kind != niciraDecap || b[0]|b[1] != 0 {
		return 0, false
	}
	return PacketType(binary.BigEndian.Uint32(b[2:])), true
}

// Resubmit is Open vSwitch's action resubmit (NXAST_RESUBMIT_TABLE,
// ovs-actions(7)): it carries out the entry that the packet, as it is by now,
// meets in a table, also the same or an earlier one, and then goes on with the actions
// behind it. If no entry matches, it does nothing.
type Resubmit struct {
	In    Port  // what the entry sees as in_port; PortIn is the packet's own
	Table uint8 // NoTable is that of the action
}

// Action returns the action as OpenFlow carries it: an experimenter's. In is a
// physical port below 0xff00, PortLocal or PortIn.
func (r Resubmit) Action() Action {
	b := binary.BigEndian.AppendUint16(nil, niciraResubmit)
	b = binary.BigEndian.AppendUint16(b, uint16(r.In))
	return nicira(append(b, r.Table, 0, 0, 0))
}

// ParseResubmit reads a resubmit; false if the action is another one, malformed, or
// leads nowhere else.
func ParseResubmit(a Action) (Resubmit, bool) {
	kind, b, ok := niciraAction(a)
	if !ok || kind != niciraResubmit {
		return Resubmit{}, false
	}
	r := Resubmit{In: Port(binary.BigEndian.Uint16(b)), Table: b[2]}
	if r.In >= portMax16 {
		r.In |= 0xffff0000
	}
	return r, r.check() == nil && r.Action() == a
}

// portMax16 is the first number that is no port where ports have 16 bits
// (OFPP_MAX of OpenFlow 1.0).
const portMax16 = 0xff00

func (r *Resubmit) check() error {
	switch {
	case r.In == PortIn && r.Table == NoTable:
		return fmt.Errorf("leads nowhere: give a table, a port, or both")
	case r.In == 0 || r.In >= portMax16 && r.In != PortIn && r.In != PortLocal:
		return fmt.Errorf("port %v: want 1 to %d, in_port or local", r.In, portMax16-1)
	}
	return nil
}

// ForgetInPort returns Open vSwitch's action load:0->NXM_OF_IN_PORT[] (NXAST_REG_LOAD,
// ovs-actions(7)): the packet has come in by no port from then on, so that it can leave by
// the one that it came in by, whoever decides that.
func ForgetInPort() Action {
	return nicira([]byte{0, 7, 0, 15, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0})
}

// String returns the action as ovs-ofctl writes it: "resubmit(,2)",
// "resubmit(3,2)", "resubmit:3". ParseAction reads it back.
func (r Resubmit) String() string {
	in := ""
	if r.In != PortIn {
		in = r.In.String()
	}
	if r.Table == NoTable {
		return "resubmit:" + in
	}
	return fmt.Sprintf("resubmit(%s,%d)", in, r.Table)
}

// nicira returns the experimenter action of Open vSwitch with a body.
func nicira(body []byte) Action {
	return Action{Kind: ActionExperimenter, Arg: Nicira, Data: string(body)}
}

// niciraAction returns the number of an action of Open vSwitch whose body has
// eight octets, and the octets behind the number.
func niciraAction(a Action) (kind uint16, rest []byte, ok bool) {
	if a.Kind != ActionExperimenter || a.Arg != Nicira || len(a.Data) != 8 {
		return 0, nil, false
	}
	b := []byte(a.Data)
	return binary.BigEndian.Uint16(b), b[2:], true
}

// parseEncapText reads what is between the parentheses of an encap.
func parseEncapText(s string) (Action, error) {
	names := make([]string, len(encapNames))
	for i, n := range encapNames {
		if strings.EqualFold(n.name, strings.TrimSpace(s)) {
			return Encap(n.t), nil
		}
		names[i] = n.name
	}
	return Action{}, fmt.Errorf("%q: want one of %s", s, strings.Join(names, ", "))
}

// parseDecapText reads what is between the parentheses of a decap.
func parseDecapText(s string) (Action, error) {
	if strings.TrimSpace(s) == "" {
		return Decap(PacketNext), nil
	}
	wrong := fmt.Errorf("%q: want nothing, or packet_type(ns=N,type=N), such as packet_type(ns=0,type=0) for Ethernet", s)
	inner, ok := cutCall(strings.TrimSpace(s), "packet_type")
	space, kind, two := strings.Cut(inner, ",")
	space, ok2 := strings.CutPrefix(strings.TrimSpace(space), "ns=")
	kind, ok3 := strings.CutPrefix(strings.TrimSpace(kind), "type=")
	n, err := strconv.ParseUint(space, 0, 16)
	k, err2 := strconv.ParseUint(kind, 0, 16)
	if !ok || !two || !ok2 || !ok3 || err != nil || err2 != nil {
		return Action{}, wrong
	}
	return Decap(PacketType(n<<16 | k)), nil
}

// parseResubmitText reads what is between the parentheses of a resubmit.
func parseResubmitText(s string) (Action, error) {
	r := Resubmit{In: PortIn, Table: NoTable}
	port, table, _ := strings.Cut(s, ",")
	if port = strings.TrimSpace(port); port != "" {
		p, err := ParsePort(port)
		if err != nil {
			return Action{}, err
		}
		r.In = p
	}
	if table = strings.TrimSpace(table); table != "" {
		n, err := strconv.ParseUint(table, 0, 8)
		if err != nil || n == uint64(NoTable) {
			return Action{}, fmt.Errorf("table %q: want a number from 0 to 254", table)
		}
		r.Table = uint8(n)
	}
	if err := r.check(); err != nil {
		return Action{}, err
	}
	return r.Action(), nil
}

// encapText returns the text of an encap, decap or resubmit; false if the action is another one.
func encapText(a Action) (string, bool) {
	if t, ok := ParseEncap(a); ok {
		for _, n := range encapNames {
			if n.t == t {
				return "encap(" + n.name + ")", true
			}
		}
	}
	if to, ok := ParseDecap(a); ok {
		if to == PacketNext {
			return "decap()", true
		}
		return "decap(" + to.String() + ")", true
	}
	if r, ok := ParseResubmit(a); ok {
		return r.String(), true
	}
	return "", false
}

package oftest

import (
	"encoding/binary"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
)

const (
	groupMax = 0xffffff00 // OFPG_MAX
	modFlags = flow.FlagSendRem | flow.FlagOverlap | flow.FlagReset | flow.FlagNoPackets | flow.FlagNoBytes
)

// checkMod checks a flow-mod as §6.4 asks.
func (ct *contents) checkMod(m *flow.Mod, legacy bool) error {
	e := &m.Entry
	deletes := m.Command >= flow.Delete
	if int(e.Table) >= len(ct.tables) && !(deletes && e.Table == flow.TableAll) {
		return refuse(openflow.ErrFlowModFailed, openflow.FlowModFailedBadTableID)
	}
	if e.Flags&^modFlags != 0 {
		return refuse(openflow.ErrFlowModFailed, openflow.FlowModFailedBadFlags)
	}
	if err := openflow.CheckMatch(&e.Match); err != nil {
		return err
	}
	if e.Match.Set.Has(flow.FieldIPFrag) && !ct.cfg.Nicira {
		return refuse(openflow.ErrBadMatch, openflow.BadMatchBadField)
	}
	if deletes {
		return nil // its instructions mean nothing
	}
	if e.Goto != 0 && (e.Goto <= e.Table || int(e.Goto) >= len(ct.tables)) {
		return refuse(openflow.ErrBadInstruction, openflow.BadInstructionBadTableID)
	}
	if e.Meter != 0 && ct.meters[e.Meter] == nil {
		return refuse(openflow.ErrMeterModFailed, openflow.MeterModFailedInvalidMeter)
	}
	var known *headers
	if !legacy {
		known = matchedHeaders(&e.Match)
	}
	if err := ct.checkActions(e.Apply, known, false); err != nil {
		return err
	}
	// An action set is carried out later, and in another order: Open vSwitch,
	// and so this switch, is strict about its set-fields only.
	if known != nil {
		known.lenient = true
	}
	return ct.checkActions(e.Write, known, false)
}

// checkActions checks a list of actions. Where known is given, each of them
// must be for a packet that has these headers.
func (ct *contents) checkActions(list []flow.Action, known *headers, packetOut bool) error {
	for i := range list {
		a := &list[i]
		if err := ct.checkAction(a, packetOut); err != nil {
			return err
		}
		if known != nil && !known.apply(a) && (!known.lenient || a.Kind == flow.ActionSetField) {
			return refuse(openflow.ErrBadAction, openflow.BadActionMatchInconsistent)
		}
	}
	return nil
}

// checkAction checks an action for itself.
func (ct *contents) checkAction(a *flow.Action, packetOut bool) error {
	bad := func(code uint16) error { return refuse(openflow.ErrBadAction, code) }
	switch a.Kind {
	case flow.ActionOutput:
		switch p := flow.Port(a.Arg); {
		case p.Physical():
		case p == flow.PortTable && packetOut:
		case p == flow.PortIn, p == flow.PortFlood, p == flow.PortAll, p == flow.PortController, p == flow.PortLocal:
		default: // there is no NORMAL here
			return bad(openflow.BadActionBadOutPort)
		}
	case flow.ActionGroup:
		if ct.groups[a.Arg] == nil {
			return bad(openflow.BadActionBadOutGroup)
		}
	case flow.ActionPushVLAN:
		if a.Arg != uint32(flow.EthTypeVLAN) && a.Arg != uint32(flow.EthTypeQinQ) {
			return bad(openflow.BadActionBadArgument)
		}
	case flow.ActionPushMPLS:
		if a.Arg != uint32(flow.EthTypeMPLS) && a.Arg != uint32(flow.EthTypeMPLSMC) {
			return bad(openflow.BadActionBadArgument)
		}
	case flow.ActionPushPBB:
		if a.Arg != uint32(flow.EthTypePBB) {
			return bad(openflow.BadActionBadArgument)
		}
	case flow.ActionExperimenter:
		if _, tracks := flow.ParseCT(*a); ct.cfg.Nicira && (known(*a) || tracks && ct.cfg.Untracked) {
			return nil
		}
		return bad(openflow.BadActionBadExperimenter)
	case flow.ActionSetField:
		return checkSetField(a)
	}
	return nil
}

// checkSetField checks the field and value of a set-field (§7.2.5, table 15).
func checkSetField(a *flow.Action) error {
	switch a.Field {
	case flow.FieldInPort, flow.FieldInPhyPort, flow.FieldMetadata, flow.FieldIPv6ExtHdr, flow.FieldIPFrag:
		return refuse(openflow.ErrBadAction, openflow.BadActionBadSetType)
	}
	n := a.Field.Len()
	spare := 8*n - a.Field.Bits()
	if spare > 0 {
		var v uint64
		for _, b := range a.Value[:n] {
			v = v<<8 | uint64(b)
		}
		if v>>a.Field.Bits() != 0 {
			return refuse(openflow.ErrBadAction, openflow.BadActionBadSetArgument)
		}
	}
	if a.Field == flow.FieldVLAN && binary.BigEndian.Uint16(a.Value[:])&flow.VLANPresent == 0 {
		return refuse(openflow.ErrBadAction, openflow.BadActionBadSetArgument)
	}
	return nil
}

// headers is what a match says for certain about the headers of a packet, as
// far as actions have them as prerequisites.
type headers struct {
	packet   flow.PacketType
	ethType  uint16 // 0 is not known
	tags     int    // VLAN tags at least
	proto    uint8  // 0 is not known
	icmpType int    // -1 is not known
	lenient  bool   // only set-fields are held to it
}

func matchedHeaders(m *flow.Match) *headers {
	h := &headers{icmpType: -1}
	if m.Set.Has(flow.FieldEthType) {
		h.ethType = m.Key.EthType
	}
	if m.Set.Has(flow.FieldVLAN) && m.Key.VLAN&flow.VLANPresent != 0 {
		h.tags = 1
	}
	if m.Set.Has(flow.FieldIPProto) {
		h.proto = m.Key.IPProto
	}
	if m.Set.Has(flow.FieldICMPv6Type) || m.Set.Has(flow.FieldICMPv4Type) {
		h.icmpType = int(m.Key.ICMPType)
	}
	return h
}

func (h *headers) ip() bool { return h.ethType == flow.EthTypeIPv4 || h.ethType == flow.EthTypeIPv6 }

func (h *headers) mpls() bool {
	return h.ethType == flow.EthTypeMPLS || h.ethType == flow.EthTypeMPLSMC
}

// payload notes that what the packet carries is now of another type.
func (h *headers) payload(ethType uint16) {
	h.ethType, h.proto, h.icmpType = ethType, 0, -1
}

// apply reports whether a packet with these headers has what an action needs,
// and makes them those of the packet after it.
func (h *headers) apply(a *flow.Action) bool {
	switch a.Kind {
	case flow.ActionPushVLAN:
		h.tags++
	case flow.ActionPopVLAN:
		was := h.tags > 0
		h.tags = max(0, h.tags-1)
		return was
	case flow.ActionPushMPLS:
		h.payload(uint16(a.Arg))
		return h.packet == flow.PacketEthernet
	case flow.ActionPopMPLS:
		was := h.mpls() && h.packet == flow.PacketEthernet
		h.payload(uint16(a.Arg))
		return was
	case flow.ActionPushPBB:
		h.payload(flow.EthTypePBB)
		h.tags = 0
	case flow.ActionPopPBB:
		was := h.ethType == flow.EthTypePBB
		h.payload(0)
		return was
	case flow.ActionSetMPLSTTL, flow.ActionDecMPLSTTL, flow.ActionCopyTTLIn, flow.ActionCopyTTLOut:
		return h.mpls()
	case flow.ActionSetNwTTL, flow.ActionDecNwTTL:
		return h.ip()
	case flow.ActionSetField:
		return h.has(a.Field)
	case flow.ActionExperimenter:
		h.encap(*a)
	}
	return true
}

// encap notes what Open vSwitch's encap and decap make of the packet.
func (h *headers) encap(a flow.Action) {
	if t, ok := flow.ParseEncap(a); ok {
		if h.packet = t; t != flow.PacketEthernet {
			h.payload(uint16(t))
		}
	}
	if _, ok := flow.ParseDecap(a); !ok {
		return
	}
	if h.packet == flow.PacketEthernet {
		h.packet = 1<<16 | flow.PacketType(h.ethType)
		return
	}
	h.packet = flow.PacketNext // not known before the packet is there
	h.payload(0xffff)
}

// has reports whether a packet with these headers has a field (§7.2.3.8).
func (h *headers) has(f flow.Field) bool {
	switch f {
	case flow.FieldEthDst, flow.FieldEthSrc:
		return h.packet == flow.PacketEthernet
	case flow.FieldVLAN, flow.FieldVLANPCP:
		return h.tags > 0 && h.packet == flow.PacketEthernet
	case flow.FieldIPDSCP, flow.FieldIPECN, flow.FieldIPProto:
		return h.ip()
	case flow.FieldIPv4Src, flow.FieldIPv4Dst:
		return h.ethType == flow.EthTypeIPv4
	case flow.FieldIPv6Src, flow.FieldIPv6Dst, flow.FieldIPv6FLabel:
		return h.ethType == flow.EthTypeIPv6
	case flow.FieldTCPSrc, flow.FieldTCPDst:
		return h.ip() && h.proto == flow.IPProtoTCP
	case flow.FieldUDPSrc, flow.FieldUDPDst:
		return h.ip() && h.proto == flow.IPProtoUDP
	case flow.FieldSCTPSrc, flow.FieldSCTPDst:
		return h.ip() && h.proto == flow.IPProtoSCTP
	case flow.FieldICMPv4Type, flow.FieldICMPv4Code:
		return h.ethType == flow.EthTypeIPv4 && h.proto == flow.IPProtoICMP
	case flow.FieldICMPv6Type, flow.FieldICMPv6Code:
		return h.icmpv6()
	case flow.FieldNDTarget:
		return h.icmpv6() && (h.icmpType == int(flow.ICMPv6Solicit) || h.icmpType == int(flow.ICMPv6Advert))
	case flow.FieldNDSLL:
		return h.icmpv6() && h.icmpType == int(flow.ICMPv6Solicit)
	case flow.FieldNDTLL:
		return h.icmpv6() && h.icmpType == int(flow.ICMPv6Advert)
	case flow.FieldARPOp, flow.FieldARPSPA, flow.FieldARPTPA, flow.FieldARPSHA, flow.FieldARPTHA:
		return h.ethType == flow.EthTypeARP
	case flow.FieldMPLSLabel, flow.FieldMPLSTC, flow.FieldMPLSBOS, flow.FieldMPLSTTL:
		return h.mpls()
	case flow.FieldPBBISID:
		return h.ethType == flow.EthTypePBB
	}
	return true
}

func (h *headers) icmpv6() bool {
	return h.ethType == flow.EthTypeIPv6 && h.proto == flow.IPProtoICMPv6
}

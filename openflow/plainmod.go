package openflow

import "github.com/weft-sdn/weft/flow"

// A plain flow-mod is of the form that stages make for packets: its entry
// matches the ingress port, both Ethernet addresses and the VLAN, and outputs
// to one port. Its length and the places of all its fields are known, so it is
// written as whole words, without a look at what it could have besides. The
// octets are those of any other flow-mod.
const (
	plainFields = 1<<flow.FieldInPort | 1<<flow.FieldEthDst | 1<<flow.FieldEthSrc | 1<<flow.FieldVLAN
	plainLen    = 112
	plainLen10  = 80
)

// The headers of the match fields of a plain flow-mod.
const (
	plainMatchLen        = 4 + 8 + 10 + 10 + 6
	oxmInPort     uint64 = 0x80000004 | uint64(flow.FieldInPort)<<9
	oxmEthDst     uint64 = 0x80000006 | uint64(flow.FieldEthDst)<<9
	oxmEthSrc     uint64 = 0x80000006 | uint64(flow.FieldEthSrc)<<9
	oxmVLAN       uint64 = 0x80000002 | uint64(flow.FieldVLAN)<<9
)

// plain reports whether m is a plain flow-mod.
func plain(m *flow.Mod) bool {
	e := &m.Entry
	return e.Match.Set == plainFields && e.Match.Masked == 0 && len(e.Apply) == 1 && e.Apply[0].Kind == flow.ActionOutput &&
		len(e.Write) == 0 && !e.HasWrite && !e.Clear && e.Goto == 0 && e.Meter == 0 && e.MetaMask == 0
}

// plain10 reports whether m, which is plain, is so in OpenFlow 1.0, too.
func plain10(m *flow.Mod) bool {
	e := &m.Entry
	const reserved = flow.Port(0xff00) // ports from here on have another number in 1.0, or none
	return m.Command < flow.Delete && e.Table == 0 && m.CookieMask == 0 && e.Flags&^(flow.FlagSendRem|flow.FlagOverlap) == 0 &&
		e.Match.Key.InPort < reserved && flow.Port(e.Apply[0].Arg) < reserved && m.OutPort == flow.PortAny
}

// appendPlainMod appends a plain flow-mod of OpenFlow 1.3.
func appendPlainMod(dst []byte, v Version, xid uint32, m *flow.Mod) []byte {
	n := len(dst)
	dst = extend(dst, plainLen)
	b := (*[plainLen]byte)(dst[n:])
	e, k := &m.Entry, &m.Entry.Match.Key
	be.PutUint64(b[0:], uint64(v)<<56|uint64(TypeFlowMod)<<48|plainLen<<32|uint64(xid))
	be.PutUint64(b[8:], uint64(e.Cookie))
	be.PutUint64(b[16:], uint64(m.CookieMask))
	be.PutUint64(b[24:], uint64(e.Table)<<56|uint64(m.Command)<<48|uint64(e.IdleTimeout)<<32|uint64(e.HardTimeout)<<16|uint64(e.Priority))
	be.PutUint64(b[32:], uint64(m.BufferID)<<32|uint64(m.OutPort))
	be.PutUint64(b[40:], uint64(m.OutGroup)<<32|uint64(e.Flags)<<16)
	be.PutUint64(b[48:], matchTypeOXM<<48|plainMatchLen<<32|oxmInPort)
	be.PutUint64(b[56:], uint64(k.InPort)<<32|oxmEthDst)
	be.PutUint64(b[64:], k.EthDst.Uint64()<<16|oxmEthSrc>>16)
	be.PutUint64(b[72:], oxmEthSrc&0xffff<<48|k.EthSrc.Uint64())
	be.PutUint64(b[80:], oxmVLAN<<32|uint64(k.VLAN)<<16)
	be.PutUint64(b[88:], instrApplyActions<<48|24<<32)
	be.PutUint64(b[96:], uint64(flow.ActionOutput)<<48|16<<32|uint64(e.Apply[0].Arg))
	be.PutUint64(b[104:], uint64(e.Apply[0].MaxLen)<<48)
	return dst
}

// appendPlainMod10 appends a plain flow-mod of OpenFlow 1.0.
func appendPlainMod10(dst []byte, xid uint32, m *flow.Mod) []byte {
	n := len(dst)
	dst = extend(dst, plainLen10)
	b := (*[plainLen10]byte)(dst[n:])
	e, k := &m.Entry, &m.Entry.Match.Key
	const wild = wildAll &^ (wildInPort | wildDLVLAN | wildDLSrc | wildDLDst)
	src, dest, vlan := k.EthSrc.Uint64(), k.EthDst.Uint64(), vlanNone10
	if k.VLAN&flow.VLANPresent != 0 {
		vlan = k.VLAN & vlanVIDMask
	}
	be.PutUint64(b[0:], uint64(V10)<<56|uint64(TypeFlowMod)<<48|plainLen10<<32|uint64(xid))
	be.PutUint64(b[8:], uint64(wild)<<32|uint64(k.InPort)<<16|src>>32)
	be.PutUint64(b[16:], src<<32|dest>>16)
	be.PutUint64(b[24:], dest<<48|uint64(vlan)<<32)
	be.PutUint64(b[32:], 0)
	be.PutUint64(b[40:], 0)
	be.PutUint64(b[48:], uint64(e.Cookie))
	be.PutUint64(b[56:], uint64(m.Command)<<48|uint64(e.IdleTimeout)<<32|uint64(e.HardTimeout)<<16|uint64(e.Priority))
	be.PutUint64(b[64:], uint64(m.BufferID)<<32|uint64(flow.PortAny&0xffff)<<16|uint64(e.Flags))
	be.PutUint64(b[72:], action10Output<<48|8<<32|uint64(e.Apply[0].Arg)<<16|uint64(e.Apply[0].MaxLen))
	return dst
}

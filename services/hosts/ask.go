package hosts

import (
	"net/netip"
	"slices"

	"weft/api"
	"weft/flow"
	"weft/packet"
)

// ask appends to d a question to a host at its place: for one of its addresses,
// or, if ip is not valid, for the one confirmed last. It reports false if the
// host has none.
func (t *table) ask(h *host, ip netip.Addr, d *flow.Decision) bool {
	if !ip.IsValid() {
		var newest int64
		for _, a := range h.addresses {
			if a.confirmed >= newest {
				ip, newest = a.ip, a.confirmed
			}
		}
	}
	if !ip.IsValid() {
		return false
	}
	at := h.at.Load().Location
	tag, ok := t.tagging.Egress(at, tagged(h.id))
	if !ok {
		return false
	}
	d.PacketOut(at.Switch, flow.PacketOut{
		BufferID: flow.BufferNone, InPort: flow.PortController,
		Actions: d.Actions(append(slices.Clip(tag), flow.Output(at.Port))...), Data: t.question(h.id, ip),
	})
	return true
}

// tagged returns the VLAN of a host as flow.Key has it.
func tagged(who id) uint16 {
	if v := who.vlan(); v != 0 {
		return v | flow.VLANPresent
	}
	return 0
}

// segmentChanged takes what a virtual network's ports are.
func (t *table) segmentChanged(ev *api.SegmentChanged) {
	switch vlan, ports := ev.GetSegment().Tagged(); {
	case vlan == 0:
	case ev.Removed:
		t.tagging.Remove(vlan)
	default:
		t.tagging.Set(vlan, ports)
	}
}

// question returns the frame that asks a host for an address of its own: an ARP
// probe (RFC 5227 §2.1.1) or a neighbour solicitation as of unreachability
// detection (RFC 4861 §7.3), both to the host alone.
func (t *table) question(who id, ip netip.Addr) []byte {
	src, _ := flow.ParseMAC(t.cfg.ProbeMAC)
	vlan := tagged(who)
	if ip.Is4() {
		return packet.Pad(packet.AppendARPRequest(nil, vlan, packet.ARPFields{
			SenderMAC: src, SenderIP: netip.IPv4Unspecified(), TargetMAC: who.mac(), TargetIP: ip,
		}))
	}
	return packet.AppendNDSolicit(nil, vlan, packet.NDFields{
		SrcMAC: src, SrcIP: linkLocal(src), DstMAC: who.mac(), DstIP: ip, Target: ip,
	})
}

// linkLocal returns the link-local address of an Ethernet address (RFC 4291,
// appendix A).
func linkLocal(m flow.MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]})
}

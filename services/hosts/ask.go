package hosts

import (
	"net/netip"

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
	d.PacketOut(at.Switch, flow.PacketOut{
		BufferID: flow.BufferNone, InPort: flow.PortController,
		Actions: d.Actions(flow.Output(at.Port)), Data: t.question(h.id, ip),
	})
	return true
}

// question returns the frame that asks a host for an address of its own: an ARP
// probe (RFC 5227 §2.1.1) or a neighbour solicitation as of unreachability
// detection (RFC 4861 §7.3), both to the host alone.
func (t *table) question(who id, ip netip.Addr) []byte {
	src, _ := flow.ParseMAC(t.cfg.ProbeMAC)
	vlan := who.vlan()
	if vlan != 0 {
		vlan |= flow.VLANPresent
	}
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

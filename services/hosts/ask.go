package hosts

import (
	"net/netip"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// questions asks hosts for their addresses: new ones soon, so that it is known which
// of them answer, others whenever the table wants to know whether they are still
// there. mu guards it, except probes and tagging; owner takes it, all else is called with it
// held.
type questions struct {
	shared
	probes        uint64        // Config.ProbeMAC
	tagging       flow.Tagging  // of virtual networks
	first, second []dueQuestion // to new hosts
	due           deadline      // of these
}

// dueQuestion is a host and the time at which to probe it.
type dueQuestion struct {
	host *host
	due  int64
}

// rollCallAtOnce bounds the hosts that are asked for the first time in one step.
const rollCallAtOnce = 10

// ask appends to d a question to a host at its place: for ip, or, if ip is not
// valid, for the address confirmed last.
func (q *questions) ask(h *host, ip netip.Addr, d *flow.Decision) {
	if ip = h.address(ip); ip.IsValid() {
		a := h.has(ip)
		q.askAt(h.at.Load().Location, h.id, ip, a == nil || a.used, d)
	}
}

// address returns ip if it is valid, else the host's address that was confirmed
// last, or, if it has none, the source of an IP packet that it sent: a host that
// answers for it has that address. The result may not be valid.
func (h *host) address(ip netip.Addr) netip.Addr {
	if ip.IsValid() {
		return ip
	}
	ip = h.source
	var newest int64
	for _, a := range h.addresses {
		if a.confirmed >= newest {
			ip, newest = a.ip, a.confirmed
		}
	}
	return ip
}

// askAt appends to d a question for an address to a host at a port, unless no
// frames of the host's VLAN leave there. used says that the host has sent packets
// with the address.
func (q *questions) askAt(at flow.Location, who id, ip netip.Addr, used bool, d *flow.Decision) {
	tag, ok := q.tagging.Egress(at, keyVLAN(who))
	if !ok {
		return
	}
	d.PacketOut(at.Switch, flow.PacketOut{
		BufferID: flow.BufferNone, InPort: flow.PortController,
		Actions: d.Actions(append(slices.Clip(tag), flow.Output(at.Port))...), Data: q.buildProbe(who, ip, used),
	})
}

// call schedules questions to a new host: soon, and a second later unless it
// has answered.
func (q *questions) call(now int64, h *host) {
	if !h.answers && !h.called {
		h.called = true
		q.first = append(q.first, dueQuestion{h, now})
		q.due.moveUp(now)
	}
}

// askNewHosts probes the new hosts that are due.
func (q *questions) askNewHosts(now int64, d *flow.Decision) {
	left := rollCallAtOnce
	ask := func(list []dueQuestion, then func(*host)) []dueQuestion {
		for len(list) > 0 && left > 0 && list[0].due <= now {
			if h := list[0].host; !h.gone.Load() && !h.answers {
				left--
				q.ask(h, netip.Addr{}, d)
				then(h)
			}
			list[0].host = nil
			list = list[1:]
		}
		if len(list) == 0 {
			return nil
		}
		q.due.moveUp(max(list[0].due, now+1))
		return list
	}
	second := int64(time.Second)
	q.first = ask(q.first, func(h *host) { q.second = append(q.second, dueQuestion{h, now + second}) })
	q.second = ask(q.second, func(*host) {})
}

// keyVLAN returns the VLAN of a host as flow.Key has it.
func keyVLAN(who id) uint16 {
	if v := who.vlan(); v != 0 {
		return v | flow.VLANPresent
	}
	return 0
}

// segmentChanged updates the ports of a virtual network.
func (q *questions) segmentChanged(ev *api.SegmentChanged) {
	switch vlan, ports := ev.GetSegment().Tagged(); {
	case vlan == 0:
	case ev.Removed:
		q.tagging.Remove(vlan)
	default:
		q.tagging.Set(vlan, ports)
	}
}

// dummy4 is the address from which Weft asks a host that does not use the address
// yet (RFC 7600 §4.8).
var dummy4 = netip.AddrFrom4([4]byte{192, 0, 0, 8})

// buildProbe returns the frame that asks a host for its own address: an ARP request
// or a neighbour solicitation as in unreachability detection (RFC 4861 §7.3), both
// unicast to the host. The ARP request is a probe, which any host answers, only if
// the host uses the address already: one that still probes it itself would take
// another's probe for a conflict and give the address up (RFC 5227 §2.1.1). A
// solicitation from a unicast address is none (RFC 4862 §5.4.3).
func (q *questions) buildProbe(who id, ip netip.Addr, used bool) []byte {
	src := flow.MACFrom(q.probes)
	vlan := keyVLAN(who)
	if ip.Is4() {
		from := dummy4
		if used {
			from = netip.IPv4Unspecified()
		}
		return packet.Pad(packet.AppendARPRequest(nil, vlan, packet.ARPFields{
			SenderMAC: src, SenderIP: from, TargetMAC: who.mac(), TargetIP: ip,
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

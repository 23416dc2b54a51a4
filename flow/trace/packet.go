package trace

import (
	"errors"
	"fmt"
	"math"
	"net/netip"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// etherTypeExperimental is for hosts that no IP address is known of (IEEE 802,
// Local Experimental Ethertype 1).
const etherTypeExperimental = 0x88b5

// maxDSCP is the largest differentiated services code point (RFC 2474 §3).
const maxDSCP = 63

// build returns the packet from a to b, and what it is in words.
func build(r *api.TracePacketRequest, a, b end) (frame []byte, what string, err error) {
	for _, p := range []struct {
		name  string
		value uint32
	}{{"tcp_src", r.TcpSrc}, {"tcp_dst", r.TcpDst}, {"udp_src", r.UdpSrc}, {"udp_dst", r.UdpDst}} {
		if p.value > math.MaxUint16 {
			return nil, "", fmt.Errorf("%s %d: want a port up to 65535", p.name, p.value)
		}
	}
	if r.Dscp > maxDSCP {
		return nil, "", fmt.Errorf("dscp %d: want 0 to %d", r.Dscp, maxDSCP)
	}
	e := packet.Ether{}
	if e.Src, err = flow.ParseMAC(a.host.Mac); err != nil {
		return nil, "", err
	}
	if e.Dst, err = flow.ParseMAC(b.host.Mac); err != nil {
		return nil, "", err
	}
	if r.EthDst != "" {
		if e.Dst, err = flow.ParseMAC(r.EthDst); err != nil {
			return nil, "", fmt.Errorf("eth_dst: %w", err)
		}
	}
	if a.host.Vlan != 0 {
		e.VLAN = flow.VLANPresent | uint16(a.host.Vlan)
	}
	src, dst := addresses(r.Ipv6, a, b)
	tcp, udp := r.TcpSrc != 0 || r.TcpDst != 0, r.UdpSrc != 0 || r.UdpDst != 0
	ip := packet.IP{Src: src, Dst: dst, DSCP: uint8(r.Dscp)}
	between := fmt.Sprintf("%v (%v) to %v (%v)", src, e.Src, dst, e.Dst)
	switch {
	case tcp && udp || r.Arp && (tcp || udp):
		return nil, "", errors.New("a packet is one of TCP, UDP and ARP: ask for one")
	case !src.IsValid() && (tcp || udp || r.Arp || r.Ipv6):
		return nil, "", fmt.Errorf("%s and %s have no IP address of the same family that the controller knows of", a.text, b.text)
	case !src.IsValid():
		return packet.Pad(packet.AppendEthernet(nil, e, etherTypeExperimental)), fmt.Sprintf("Ethernet frame from %v to %v (no IP addresses are known)", e.Src, e.Dst), nil
	case r.Arp:
		if !src.Is4() {
			return nil, "", errors.New("ARP is for IPv4")
		}
		frame := packet.AppendARPRequest(nil, e.VLAN, packet.ARPFields{SenderMAC: e.Src, SenderIP: src, TargetIP: dst})
		return frame, fmt.Sprintf("ARP request from %v (%v) for %v", src, e.Src, dst), nil
	case tcp:
		f := packet.TCPFields{SrcPort: portOrAny(r.TcpSrc), DstPort: portOrAny(r.TcpDst), Flags: packet.TCPSyn}
		return packet.AppendTCP(nil, e, ip, f, nil), fmt.Sprintf("TCP %s, ports %d to %d", between, f.SrcPort, f.DstPort), nil
	case udp:
		from, to := portOrAny(r.UdpSrc), portOrAny(r.UdpDst)
		return packet.AppendUDP(nil, e, ip, from, to, nil), fmt.Sprintf("UDP %s, ports %d to %d", between, from, to), nil
	}
	return packet.AppendICMPEcho(nil, e, ip, packet.Echo{ID: 1, Seq: 1}), "ICMP echo request from " + between, nil
}

// addresses returns the IP addresses of the packet: those that the hosts are
// named by, or of a family that both have; none if there is no such.
func addresses(wantV6 bool, a, b end) (src, dst netip.Addr) {
	for _, v6 := range []bool{wantV6, !wantV6} {
		src, ok := address(a, v6)
		dst, ok2 := address(b, v6)
		if ok && ok2 {
			return src, dst
		}
		if wantV6 {
			break // asked for
		}
	}
	return netip.Addr{}, netip.Addr{}
}

// address returns an address of a family that a host is named by or, if it is
// named by its Ethernet address, has.
func address(e end, v6 bool) (netip.Addr, bool) {
	if named, err := netip.ParseAddr(e.text); err == nil {
		return named, named.Is6() == v6
	}
	list := e.host.Ipv4
	if v6 {
		list = global(e.host)
	}
	for _, text := range list {
		if addr, err := netip.ParseAddr(text); err == nil {
			return addr, true
		}
	}
	return netip.Addr{}, false
}

// global returns the IPv6 addresses of a host, link-local ones last.
func global(h *api.Host) []string {
	var first, last []string
	for _, text := range h.Ipv6 {
		if a, err := netip.ParseAddr(text); err == nil && a.IsLinkLocalUnicast() {
			last = append(last, text)
		} else {
			first = append(first, text)
		}
	}
	return append(first, last...)
}

// portOrAny returns a port, or one of those for everybody's use (RFC 6335 §6).
func portOrAny(p uint32) uint16 {
	if p == 0 {
		return 49152
	}
	return uint16(p)
}

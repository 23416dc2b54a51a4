package trace

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/get"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// etherTypeExperimental is for hosts that no IP address is known of (IEEE 802,
// Local Experimental Ethertype 1).
const etherTypeExperimental = 0x88b5

// tracePacket is what the flags of weft trace make of the packet.
type tracePacket struct {
	tcpSrc, tcpDst uint16
	udpSrc, udpDst uint16
	arp            bool
	ipv6           bool
	dscp           uint8
	ethDst         string
}

func (p *tracePacket) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Uint16Var(&p.tcpDst, "tcp-dst", 0, "a TCP SYN to this port")
	f.Uint16Var(&p.tcpSrc, "tcp-src", 0, "a TCP SYN from this port")
	f.Uint16Var(&p.udpDst, "udp-dst", 0, "a UDP packet to this port")
	f.Uint16Var(&p.udpSrc, "udp-src", 0, "a UDP packet from this port")
	f.BoolVar(&p.arp, "arp", false, "an ARP request for B's address")
	f.BoolVarP(&p.ipv6, "ipv6", "6", false, "over IPv6, where a host has both addresses")
	f.Uint8Var(&p.dscp, "dscp", 0, "differentiated services code point")
	f.StringVar(&p.ethDst, "eth-dst", "", "Ethernet destination, if not that of B")
}

// build returns the packet from a to b, and what it is in words.
func (p *tracePacket) build(a, b get.Endpoint) (frame []byte, what string, err error) {
	e := packet.Ether{}
	if e.Src, err = flow.ParseMAC(a.Host.Mac); err != nil {
		return nil, "", err
	}
	if e.Dst, err = flow.ParseMAC(b.Host.Mac); err != nil {
		return nil, "", err
	}
	if p.ethDst != "" {
		if e.Dst, err = flow.ParseMAC(p.ethDst); err != nil {
			return nil, "", fmt.Errorf("--eth-dst: %w", err)
		}
	}
	if a.Host.Vlan != 0 {
		e.VLAN = flow.VLANPresent | uint16(a.Host.Vlan)
	}
	src, dst := p.addresses(a, b)
	tcp, udp := p.tcpSrc != 0 || p.tcpDst != 0, p.udpSrc != 0 || p.udpDst != 0
	ip := packet.IP{Src: src, Dst: dst, DSCP: p.dscp}
	between := fmt.Sprintf("%v (%v) to %v (%v)", src, e.Src, dst, e.Dst)
	switch {
	case tcp && udp || p.arp && (tcp || udp):
		return nil, "", errors.New("a packet is one of TCP, UDP and ARP: give the flags of one")
	case !src.IsValid() && (tcp || udp || p.arp || p.ipv6):
		return nil, "", fmt.Errorf("%s and %s have no IP address of the same family that the controller knows of", a.Text, b.Text)
	case !src.IsValid():
		return packet.Pad(packet.AppendEthernet(nil, e, etherTypeExperimental)), fmt.Sprintf("Ethernet frame from %v to %v (no IP addresses are known)", e.Src, e.Dst), nil
	case p.arp:
		if !src.Is4() {
			return nil, "", errors.New("--arp: ARP is for IPv4")
		}
		frame := packet.AppendARPRequest(nil, e.VLAN, packet.ARPFields{SenderMAC: e.Src, SenderIP: src, TargetIP: dst})
		return frame, fmt.Sprintf("ARP request from %v (%v) for %v", src, e.Src, dst), nil
	case tcp:
		f := packet.TCPFields{SrcPort: portOrAny(p.tcpSrc), DstPort: portOrAny(p.tcpDst), Flags: packet.TCPSyn}
		return packet.AppendTCP(nil, e, ip, f, nil), fmt.Sprintf("TCP %s, ports %d to %d", between, f.SrcPort, f.DstPort), nil
	case udp:
		from, to := portOrAny(p.udpSrc), portOrAny(p.udpDst)
		return packet.AppendUDP(nil, e, ip, from, to, nil), fmt.Sprintf("UDP %s, ports %d to %d", between, from, to), nil
	}
	return packet.AppendICMPEcho(nil, e, ip, packet.Echo{ID: 1, Seq: 1}), "ICMP echo request from " + between, nil
}

// addresses returns the IP addresses of the packet: those that the hosts are
// named by, or of a family that both have; none if there is no such.
func (p *tracePacket) addresses(a, b get.Endpoint) (src, dst netip.Addr) {
	for _, v6 := range []bool{p.ipv6, !p.ipv6} {
		src, ok := address(a, v6)
		dst, ok2 := address(b, v6)
		if ok && ok2 {
			return src, dst
		}
		if p.ipv6 {
			break // asked for
		}
	}
	return netip.Addr{}, netip.Addr{}
}

// address returns an address of a family that a host is named by or, if it is
// named by its Ethernet address, has.
func address(e get.Endpoint, v6 bool) (netip.Addr, bool) {
	if named, err := netip.ParseAddr(e.Text); err == nil {
		return named, named.Is6() == v6
	}
	list := e.Host.Ipv4
	if v6 {
		list = global(e.Host)
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
func portOrAny(p uint16) uint16 {
	if p == 0 {
		return 49152
	}
	return p
}

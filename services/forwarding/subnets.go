package forwarding

import (
	"net/netip"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// routePacket routes a packet that a host sent to a gateway (RFC 1812 §5.2): to the
// destination if that is known; else it asks for the destination and holds the
// packet.
func (pp *packetPath) routePacket(in *flow.PacketIn, d *flow.Decision) {
	k := &in.Key
	var dst, src netip.Addr
	ttl := uint8(0)
	switch k.EthType {
	case flow.EthTypeIPv4:
		src, dst = netip.AddrFrom4(k.IPv4Src), netip.AddrFrom4(k.IPv4Dst)
		if ip, ok := packet.ParseIPv4(in.Data); ok {
			ttl = ip.TTL()
		}
	case flow.EthTypeIPv6:
		src, dst = netip.AddrFrom16(k.IPv6Src), netip.AddrFrom16(k.IPv6Dst)
		if ip, ok := packet.ParseIPv6(in.Data); ok {
			ttl = ip.HopLimit()
		}
	default:
		pp.count.malformed.Add(1)
		return
	}
	if pp.gateway(dst) != nil {
		pp.pingGateway(in, d, src, dst)
		return
	}
	to := pp.subnetOf(dst)
	if to == nil || ttl <= 1 {
		pp.count.unroutable.Add(1)
		return
	}
	if (in.Dst == flow.Location{}) || in.DstMAC == (flow.MAC{}) {
		pp.hold(in, d, dst, to)
		return
	}
	pp.connect(in, d, pair{src: k.EthSrc, dst: pp.cfg.RouterMAC, vlan: k.VLAN, ip: dst}, pp.rewriteTo(k.VLAN, to, in.DstMAC), nil)
}

// rewriteTo returns the header changes of a router for packets into a subnet.
func (pp *packetPath) rewriteTo(vlan uint16, to *subnet, mac flow.MAC) []flow.Action {
	var actions []flow.Action
	tagged, want := vlan&flow.VLANPresent != 0, to.vlan != 0
	switch {
	case tagged && !want:
		actions = append(actions, flow.PopVLAN())
	case !tagged && want:
		actions = append(actions, flow.PushVLAN(0x8100), flow.SetVLAN(to.vlan))
	case tagged && vlan&^flow.VLANPresent != to.vlan:
		actions = append(actions, flow.SetVLAN(to.vlan))
	}
	return append(actions, flow.SetEthSrc(pp.cfg.RouterMAC), flow.SetEthDst(mac), flow.Action{Kind: flow.ActionDecNwTTL})
}

// pingGateway answers an echo request to a gateway's address.
func (pp *packetPath) pingGateway(in *flow.PacketIn, d *flow.Decision, src, dst netip.Addr) {
	m, ok := packet.ParseICMP(in.Data)
	request := packet.ICMPv4EchoRequest
	if !ok {
		m, ok = packet.ParseICMPv6(in.Data)
		request = packet.ICMPv6EchoRequest
	}
	if !ok || m.Type() != request {
		pp.count.unroutable.Add(1)
		return
	}
	pp.reply(d, in, packet.AppendICMPEcho(nil,
		packet.Ether{Src: pp.cfg.RouterMAC, Dst: in.Key.EthSrc, VLAN: in.Key.VLAN},
		packet.IP{Src: dst, Dst: src, TTL: 64},
		packet.Echo{Reply: true, ID: m.EchoID(), Seq: m.EchoSeq(), Data: m.Payload()}))
}

// Bounds on what is held for a destination that is being asked for.
const (
	heldPerHost = 8
	heldMax     = 4096
	heldFor     = int64(3 * time.Second)
	askAgain    = int64(time.Second)
)

// holding holds packets to destinations with unknown Ethernet addresses.
type holding struct {
	mu  sync.Mutex // guards all below
	n   int
	dst map[netip.Addr]*heldHost
}

type heldHost struct {
	asked   int64
	packets []flow.PacketIn
}

func newHolding() *holding { return &holding{dst: map[netip.Addr]*heldHost{}} }

// hold holds a packet and asks all hosts of the subnet for its destination.
func (pp *packetPath) hold(in *flow.PacketIn, d *flow.Decision, dst netip.Addr, to *subnet) {
	h := pp.held
	h.mu.Lock()
	host := h.dst[dst]
	if host == nil {
		host = &heldHost{}
		if h.n < heldMax {
			h.dst[dst] = host
		}
	}
	ask := in.Time-host.asked > askAgain
	if ask {
		host.asked = in.Time
	}
	if len(host.packets) < heldPerHost && h.n < heldMax {
		kept := *in
		kept.Following = nil
		kept.Data = append([]byte(nil), in.Data...)
		host.packets = append(host.packets, kept)
		h.n++
	} else {
		pp.count.heldShed.Add(1)
	}
	h.mu.Unlock()
	if !ask {
		return
	}
	vlan := uint16(0)
	if to.vlan != 0 {
		vlan = to.vlan | flow.VLANPresent
	}
	var frame []byte
	if dst.Is4() {
		frame = packet.AppendARPRequest(nil, vlan, packet.ARPFields{SenderMAC: pp.cfg.RouterMAC, SenderIP: to.gateway, TargetIP: dst})
	} else {
		frame = packet.AppendNDSolicit(nil, vlan, packet.NDFields{SrcMAC: pp.cfg.RouterMAC, SrcIP: to.gateway, Target: dst})
	}
	pp.count.floods.Add(1)
	pp.toAll(d, frame, vlan, flow.Location{})
}

// releaseForSender releases the packets that wait for the sender of this packet.
func (pp *packetPath) releaseForSender(in *flow.PacketIn, d *flow.Decision, a netip.Addr) {
	if len(pp.subnets) > 0 && in.Src != (flow.Location{}) {
		pp.release(d, a, in.Src, in.Key.EthSrc, in.Time, in.Unapproved)
	}
}

// release sends the packets that are held for an address to the host that has
// it. If a stage holds that host, they are dropped, because no stage has seen
// them.
func (pp *packetPath) release(d *flow.Decision, a netip.Addr, at flow.Location, mac flow.MAC, now int64, unapproved bool) {
	h := pp.held
	h.mu.Lock()
	host := h.dst[a]
	if host != nil {
		delete(h.dst, a)
		h.n -= len(host.packets)
	}
	h.mu.Unlock()
	to := pp.subnetOf(a)
	if host == nil || to == nil {
		return
	}
	if unapproved {
		pp.count.unapproved.Add(uint64(len(host.packets)))
		return
	}
	for i := range host.packets {
		held := &host.packets[i]
		held.Time, held.Dst, held.DstMAC = now, at, mac
		k := &held.Key
		pp.connect(held, d, pair{src: k.EthSrc, dst: pp.cfg.RouterMAC, vlan: k.VLAN, ip: a}, pp.rewriteTo(k.VLAN, to, mac), nil)
	}
}

// expire drops packets that have been held too long.
func (h *holding) expire(now int64, c *counters) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a, host := range h.dst {
		if now-host.asked > heldFor {
			c.heldShed.Add(uint64(len(host.packets)))
			h.n -= len(host.packets)
			delete(h.dst, a)
		}
	}
}

// releaseForHost releases the packets that wait for the addresses of a host. The
// host's own packet may have come to another instance.
func (pp *packetPath) releaseForHost(host *api.Host, mac flow.MAC) {
	if len(pp.subnets) == 0 {
		return
	}
	d := &flow.Decision{}
	for _, text := range append(append([]string(nil), host.Ipv4...), host.Ipv6...) {
		if a, err := netip.ParseAddr(text); err == nil {
			pp.release(d, a, host.At.Flow(), mac, pp.now().UnixNano(), len(host.HeldBy) > 0)
		}
	}
	if d.Empty() {
		return
	}
	if err := pp.execute(pp.send, d); err != nil {
		pp.log.Warn("held packets not released", "host", host.Mac, "error", err)
	}
}

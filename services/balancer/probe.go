package balancer

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/packet"
)

// The source ports of TCP checks.
const (
	probePortFirst = 61000
	probePorts     = 4000
)

// probeKey identifies a TCP check that is under way by its answer.
type probeKey struct {
	member, from netip.AddrPort
	vlan         uint16
}

// probeKey returns the key of the member's check that is under way.
func (m *member) probeKey() probeKey {
	return probeKey{m.checked(), netip.AddrPortFrom(m.vip.at.host.Addr, uint16(m.health.token)), m.addr.VLAN}
}

// checked returns the address and port of TCP checks.
func (m *member) checked() netip.AddrPort {
	port := m.port
	if m.vip.check.port != 0 {
		port = m.vip.check.port
	}
	return netip.AddrPortFrom(m.addr.Addr, port)
}

// advance begins the checks that are due, gives up those without an answer in
// time, and asks for unknown members. It appends the packets to send.
func (b *balancer) advance(now int64, d *flow.Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := false
	for _, v := range b.vips.List() {
		b.close(v, now)
		v.hold(b, now, d)
		for _, m := range v.all() {
			if m.pooled() {
				changed = b.attend(m, now, d) || changed
			} else if _, known := b.net.find(m.addr); !known {
				b.ask(m, now, d)
			}
		}
	}
	if changed {
		b.regroup()
	}
}

// attend handles the checks of one member; it reports whether its health has
// changed. It is called with mu held.
func (b *balancer) attend(m *member, now int64, d *flow.Decision) (changed bool) {
	h, c := &m.health, &m.vip.check
	if m.wish == rest {
		return false
	}
	s, known := b.net.find(m.addr)
	if !known {
		b.ask(m, now, d)
	}
	if c.kind == checkNone {
		return false
	}
	if h.ends != 0 && now >= h.ends {
		delete(b.probes, m.probeKey())
		if h.opened && known {
			hangUp(b, m, s, d)
		}
		next := h.ends + int64(c.interval-c.timeout)
		changed = b.judge(m, h.opened && !h.speaks, fmt.Sprintf("no answer within %v", c.timeout), now)
		h.next = next // an interval after it began
	}
	if h.ends != 0 || now < h.next || h.calm(c, len(m.conns), now) {
		return changed
	}
	if _, asked := b.asked[m.addr]; !known && !asked {
		return changed // there was nobody to ask yet
	}
	if !known {
		h.next = now + int64(c.interval)
		return b.judge(m, false, "not known as a host", now) || changed
	}
	h.ends = now + int64(c.timeout)
	b.check(m, s, d)
	return changed
}

// judge takes the outcome of a check. It cuts the connections of a member that
// has gone down, so that their clients need not wait. It is called with mu held.
func (b *balancer) judge(m *member, ok bool, reason string, now int64) (changed bool) {
	result := "good"
	if !ok {
		result = "bad"
	}
	b.count.checks[result].Add(1)
	if !m.health.result(&m.vip.check, ok, reason, now) {
		return false
	}
	b.log.Info("member's health has changed", "vip", m.vip.name, "member", m.key(), "health", verdicts[m.health.verdict], "reason", m.health.reason)
	if !ok {
		b.lose(m)
	}
	return true
}

// lose cuts the connections of a member. It is called with mu held.
func (b *balancer) lose(m *member) {
	d := &flow.Decision{}
	b.count.cut.Add(float64(len(m.conns)))
	for c := range m.conns {
		b.table.cut(d, c)
	}
	b.out.post(d)
}

// check appends the packet that begins a check. It is called with mu held.
func (b *balancer) check(m *member, s station, d *flow.Decision) {
	v := m.vip
	mac, _ := b.net.ether(v)
	e := packet.Ether{Dst: s.MAC, Src: mac, VLAN: m.addr.VLAN}
	ip := packet.IP{Src: v.at.host.Addr, Dst: m.addr.Addr}
	var frame []byte
	switch v.check.kind {
	case checkTCP, checkHTTP2:
		m.health.opened = false
		m.health.token = uint32(b.probePort(v))
		k := m.probeKey()
		b.probes[k] = m
		frame = packet.AppendTCP(nil, e, ip, packet.TCPFields{SrcPort: k.from.Port(), DstPort: k.member.Port(), Seq: m.health.token, Flags: packet.TCPSyn}, nil)
	case checkICMP:
		b.probeLast++
		m.health.token = uint32(number(v.name))<<16 | uint32(b.probeLast)
		frame = packet.AppendICMPEcho(nil, e, ip, packet.Echo{ID: uint16(m.health.token >> 16), Seq: uint16(m.health.token)})
	case checkARP:
		frame = b.question(m, s.MAC)
	}
	b.net.deliver(d, frame, m.addr.VLAN, s.At)
}

// probePort returns a port for a TCP check of a member; many calls in a row return
// different ports, but for shadows: an entry leads the answers for their one port to
// the controller.
func (b *balancer) probePort(v *vip) uint16 {
	if v.host != nil {
		return probePortFirst
	}
	b.probeLast = (b.probeLast + 1) % (probePorts - 1)
	return probePortFirst + 1 + b.probeLast
}

// question returns the frame that asks a member, or everybody, for its Ethernet
// address.
func (b *balancer) question(m *member, to flow.MAC) []byte {
	v := m.vip
	mac, _ := b.net.ether(v)
	if m.addr.Addr.Is4() {
		return packet.AppendARPRequest(nil, m.addr.VLAN, packet.ARPFields{
			SenderMAC: mac, SenderIP: v.at.host.Addr, TargetMAC: to, TargetIP: m.addr.Addr,
		})
	}
	f := packet.NDFields{SrcMAC: mac, SrcIP: v.at.host.Addr, DstMAC: to, Target: m.addr.Addr}
	if to != (flow.MAC{}) {
		f.DstIP = m.addr.Addr
	}
	return packet.AppendNDSolicit(nil, m.addr.VLAN, f)
}

// asked is when a member was last asked for, and of how many places.
type asked struct {
	at     int64
	places int
}

// askAgain is the least time between two questions for a member, in nanoseconds,
// the second of which is also for edge ports that have come meanwhile.
const askAgain = int64(500 * time.Millisecond)

// ask appends a question for an unknown member, to all edge ports. It is called
// with mu held.
func (b *balancer) ask(m *member, now int64, d *flow.Decision) {
	if _, known := b.net.ether(m.vip); !known {
		return // the shadowed host itself is not known: it would be feigned
	}
	if last, is := b.asked[m.addr]; is && now-last.at < int64(b.cfg.Load().AskInterval) && (last.places == b.net.places || now-last.at < askAgain) {
		return
	}
	frame := b.question(m, flow.MAC{})
	for sw, dp := range b.net.switches {
		if !dp.connected {
			continue
		}
		list := b.net.view.PortsWith(sw, flow.RoleEdge)
		if len(list) == 0 {
			continue
		}
		if actions := b.net.tagging.Outputs(nil, sw, m.addr.VLAN, list); len(actions) > 0 {
			d.PacketOut(sw, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: d.Actions(actions...), Data: frame})
			b.asked[m.addr] = asked{now, b.net.places}
		}
	}
}

// answered takes a packet that may be the answer to a check by TCP or HTTP/2, and resets
// the connection that the check opened.
func (b *balancer) answered(in *flow.PacketIn, d *flow.Decision, src, dst netip.Addr) bool {
	k := &in.Key
	if k.TPDst < probePortFirst || k.TPDst >= probePortFirst+probePorts {
		return false
	}
	t, ok := packet.ParseTCP(in.Data)
	if !ok || t.Flags()&packet.TCPAck == 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	key := probeKey{netip.AddrPortFrom(src, k.TPSrc), netip.AddrPortFrom(dst, k.TPDst), k.VLAN}
	m := b.probes[key]
	if m == nil {
		return false
	}
	h := &m.health
	segment := func(seq uint32, flags uint8, payload []byte) {
		b.net.reply(d, in, packet.AppendTCP(nil, packet.Ether{Dst: k.EthSrc, Src: k.EthDst, VLAN: k.VLAN},
			packet.IP{Src: dst, Dst: src}, packet.TCPFields{SrcPort: k.TPDst, DstPort: k.TPSrc, Seq: seq, Ack: t.Seq() + 1, Flags: flags}, payload))
	}
	flags, first, next := t.Flags(), h.token+1, h.token+1+uint32(len(preface))
	refused, begins := flags&packet.TCPRst != 0, t.Ack() == first
	switch {
	case !begins && (!h.opened || t.Ack() != next):
		return false
	case refused:
	case flags&packet.TCPSyn != 0 && begins && m.exchanges():
		h.opened = true
		segment(first, packet.TCPAck|packet.TCPPsh, preface)
		return true
	case flags&packet.TCPSyn != 0 && begins:
		segment(first, packet.TCPRst, nil)
	case !h.opened:
		return false
	case len(t.Payload()) == 0 && flags&packet.TCPFin == 0:
		return true // it has only got there
	default:
		h.speaks = h.speaks || isSettings(t.Payload())
		segment(next, packet.TCPRst, nil)
	}
	delete(b.probes, key)
	if b.judge(m, !refused || h.opened && !h.speaks, fmt.Sprintf("port %d is closed", key.member.Port()), in.Time) {
		b.regroup()
	}
	if refused {
		h.repeat(in.Time)
	}
	return true
}

// exchanges reports whether a check goes on to HTTP/2 once its connection is established.
// For a member that is up and unused, the connection is enough.
func (m *member) exchanges() bool {
	h := &m.health
	return m.vip.check.kind == checkHTTP2 && (h.verdict != good || !h.speaks || len(m.conns) > 0)
}

// preface is the connection preface of an HTTP/2 client, with empty SETTINGS (RFC 9113,
// 3.4).
var preface = []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")

// isSettings reports whether a server's data begins with a SETTINGS frame of HTTP/2.
func isSettings(data []byte) bool { return len(data) >= 9 && data[3] == 4 }

// hangUp appends the packet that ends the connection of a check which the member has
// not answered in time. It is called with the balancer's mu held.
func hangUp(b *balancer, m *member, s station, d *flow.Decision) {
	mac, _ := b.net.ether(m.vip)
	k := m.probeKey()
	frame := packet.AppendTCP(nil, packet.Ether{Dst: s.MAC, Src: mac, VLAN: m.addr.VLAN}, packet.IP{Src: k.from.Addr(), Dst: k.member.Addr()},
		packet.TCPFields{SrcPort: k.from.Port(), DstPort: k.member.Port(), Seq: m.health.token + 1 + uint32(len(preface)), Flags: packet.TCPRst}, nil)
	b.net.deliver(d, frame, m.addr.VLAN, s.At)
}

// echoed takes the answer to a check by ICMP.
func (b *balancer) echoed(from place, to netip.Addr, token uint32, now int64) {
	b.passed(checkICMP, from, to, now, func(m *member) bool { return m.health.token == token })
}

// resolved takes the answer to a check by ARP or neighbour solicitation.
func (b *balancer) resolved(from place, to netip.Addr, now int64) {
	b.passed(checkARP, from, to, now, func(*member) bool { return true })
}

// passed takes a member's answer to a VIP's address.
func (b *balancer) passed(kind checkKind, from place, to netip.Addr, now int64, fits func(*member) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := false
	for _, v := range b.vips.List() {
		if v.check.kind != kind || v.at.host != object.In(to, from.VLAN) {
			continue
		}
		for _, m := range v.pool {
			if m.addr == from && m.health.ends != 0 && fits(m) {
				changed = b.judge(m, true, "", now) || changed
			}
		}
	}
	if changed {
		b.regroup()
	}
}

// The pause between two rounds of checks.
const checkTick = 50 * time.Millisecond

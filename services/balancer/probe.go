package balancer

import (
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/flow"
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

// prober checks the members of VIPs, and asks for those that are not known as hosts. The
// balancer's mu guards it.
type prober struct {
	cfg   *atomic.Pointer[Config]
	log   *slog.Logger
	net   *network
	count *counts
	down  func(*member, int64) // is called, with the time, when a member has gone down

	probes map[probeKey]*member // the TCP checks that are under way
	last   uint16               // what the last check was told apart by
	asked  map[place]asked      // when unknown members were last asked for
}

// attend handles the checks of one member; it reports whether its health has
// changed.
func (p *prober) attend(m *member, now int64, d *flow.Decision) (changed bool) {
	h, c := &m.health, &m.vip.check
	if m.wish == rest {
		return false
	}
	s, known := p.net.find(m.addr)
	if !known {
		p.ask(m, now, d)
	}
	if c.kind == checkNone {
		return false
	}
	if h.ends != 0 && now >= h.ends {
		delete(p.probes, m.probeKey())
		if h.opened && known {
			p.hangUp(m, s, d)
		}
		next := h.ends + int64(c.interval-c.timeout)
		changed = p.judge(m, h.opened && !h.speaks, fmt.Sprintf("no answer within %v", c.timeout), now)
		h.next = next // an interval after it began
	}
	if h.ends != 0 || now < h.next || h.calm(c, len(m.conns), now) {
		return changed
	}
	if _, asked := p.asked[m.addr]; !known && !asked {
		return changed // there was nobody to ask yet
	}
	if !known {
		h.next = now + int64(c.interval)
		return p.judge(m, false, "not known as a host", now) || changed
	}
	h.ends = now + int64(c.timeout)
	p.check(m, s, d)
	return changed
}

// judge takes the outcome of a check.
func (p *prober) judge(m *member, ok bool, reason string, now int64) (changed bool) {
	result := "good"
	if !ok {
		result = "bad"
	}
	p.count.checks[result].Add(1)
	if !m.health.result(&m.vip.check, ok, reason, now) {
		return false
	}
	p.log.Info("member's health has changed", "vip", m.vip.name, "member", m.key(), "health", verdicts[m.health.verdict], "reason", m.health.reason)
	if !ok {
		p.down(m, now)
	}
	return true
}

// check appends the packet that begins a check.
func (p *prober) check(m *member, s station, d *flow.Decision) {
	v := m.vip
	mac, _ := p.net.ether(v)
	e := packet.Ether{Dst: s.MAC, Src: mac, VLAN: m.addr.VLAN}
	ip := packet.IP{Src: v.at.host.Addr, Dst: m.addr.Addr}
	var frame []byte
	switch v.check.kind {
	case checkTCP, checkHTTP2:
		m.health.opened = false
		m.health.token = uint32(p.probePort(v))
		k := m.probeKey()
		p.probes[k] = m
		frame = packet.AppendTCP(nil, e, ip, packet.TCPFields{SrcPort: k.from.Port(), DstPort: k.member.Port(), Seq: m.health.token, Flags: packet.TCPSyn}, nil)
	case checkICMP:
		p.last++
		m.health.token = uint32(number(v.name))<<16 | uint32(p.last)
		frame = packet.AppendICMPEcho(nil, e, ip, packet.Echo{ID: uint16(m.health.token >> 16), Seq: uint16(m.health.token)})
	case checkARP:
		frame = p.question(m, s.MAC)
	}
	p.net.deliver(d, frame, m.addr.VLAN, s.At)
}

// probePort returns a port for a TCP check of a member; many calls in a row return
// different ports, but for shadows: an entry leads the answers for their one port to
// the controller.
func (p *prober) probePort(v *vip) uint16 {
	if v.host != nil {
		return probePortFirst
	}
	p.last = (p.last + 1) % (probePorts - 1)
	return probePortFirst + 1 + p.last
}

// question returns the frame that asks a member, or everybody, for its Ethernet
// address.
func (p *prober) question(m *member, to flow.MAC) []byte {
	v := m.vip
	mac, _ := p.net.ether(v)
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

// ask appends a question for an unknown member, to all edge ports.
func (p *prober) ask(m *member, now int64, d *flow.Decision) {
	if _, known := p.net.ether(m.vip); !known {
		return // the shadowed host itself is not known: it would be feigned
	}
	if last, is := p.asked[m.addr]; is && now-last.at < int64(p.cfg.Load().AskInterval) && (last.places == p.net.places || now-last.at < askAgain) {
		return
	}
	frame := p.question(m, flow.MAC{})
	for sw, dp := range p.net.switches {
		if !dp.connected {
			continue
		}
		list := p.net.view.PortsWith(sw, flow.RoleEdge)
		if len(list) == 0 {
			continue
		}
		if actions := p.net.tagging.Outputs(nil, sw, m.addr.VLAN, list); len(actions) > 0 {
			d.PacketOut(sw, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController, Actions: d.Actions(actions...), Data: frame})
			p.asked[m.addr] = asked{now, p.net.places}
		}
	}
}

// answered takes a packet that may be the answer to a check by TCP or HTTP/2, and resets
// the connection that the check opened. It reports whether it is one, and whether the
// member's health has changed.
func (p *prober) answered(in *flow.PacketIn, d *flow.Decision, src, dst netip.Addr) (is, changed bool) {
	k := &in.Key
	t, ok := packet.ParseTCP(in.Data)
	if !ok || t.Flags()&packet.TCPAck == 0 {
		return false, false
	}
	key := probeKey{netip.AddrPortFrom(src, k.TPSrc), netip.AddrPortFrom(dst, k.TPDst), k.VLAN}
	m := p.probes[key]
	if m == nil {
		return false, false
	}
	h := &m.health
	segment := func(seq uint32, flags uint8, payload []byte) {
		p.net.reply(d, in, packet.AppendTCP(nil, packet.Ether{Dst: k.EthSrc, Src: k.EthDst, VLAN: k.VLAN},
			packet.IP{Src: dst, Dst: src}, packet.TCPFields{SrcPort: k.TPDst, DstPort: k.TPSrc, Seq: seq, Ack: t.Seq() + 1, Flags: flags}, payload))
	}
	flags, first, next := t.Flags(), h.token+1, h.token+1+uint32(len(preface))
	refused, begins := flags&packet.TCPRst != 0, t.Ack() == first
	switch {
	case !begins && (!h.opened || t.Ack() != next):
		return false, false
	case refused:
	case flags&packet.TCPSyn != 0 && begins && m.exchanges():
		h.opened = true
		segment(first, packet.TCPAck|packet.TCPPsh, preface)
		return true, false
	case flags&packet.TCPSyn != 0 && begins:
		segment(first, packet.TCPRst, nil)
	case !h.opened:
		return false, false
	case len(t.Payload()) == 0 && flags&packet.TCPFin == 0:
		return true, false // it has only got there
	default:
		h.speaks = h.speaks || isSettings(t.Payload())
		segment(next, packet.TCPRst, nil)
	}
	delete(p.probes, key)
	changed = p.judge(m, !refused || h.opened && !h.speaks, fmt.Sprintf("port %d is closed", key.member.Port()), in.Time)
	if refused {
		h.repeat(in.Time)
	}
	return true, changed
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

// prefaceText is how many octets of it come before the first frame.
const prefaceText = 24

// isSettings reports whether a server's data begins with a SETTINGS frame of HTTP/2.
func isSettings(data []byte) bool { return len(data) >= 9 && data[3] == 4 }

// hangUp appends the packet that ends the connection of a check which the member has
// not answered in time.
func (p *prober) hangUp(m *member, s station, d *flow.Decision) {
	mac, _ := p.net.ether(m.vip)
	k := m.probeKey()
	frame := packet.AppendTCP(nil, packet.Ether{Dst: s.MAC, Src: mac, VLAN: m.addr.VLAN}, packet.IP{Src: k.from.Addr(), Dst: k.member.Addr()},
		packet.TCPFields{SrcPort: k.from.Port(), DstPort: k.member.Port(), Seq: m.health.token + 1 + uint32(len(preface)), Flags: packet.TCPRst}, nil)
	p.net.deliver(d, frame, m.addr.VLAN, s.At)
}

// passed takes a member's answer to a VIP's address; it reports whether its health has
// changed.
func (p *prober) passed(v *vip, from place, token uint32, now int64) (changed bool) {
	for _, m := range v.pool {
		if m.addr == from && m.health.ends != 0 && (v.check.kind != checkICMP || m.health.token == token) {
			changed = p.judge(m, true, "", now) || changed
		}
	}
	return changed
}

// expire forgets whom it has asked for long ago.
func (p *prober) expire(now int64) {
	maps.DeleteFunc(p.asked, func(_ place, last asked) bool { return now-last.at > 2*int64(p.cfg.Load().AskInterval) })
}

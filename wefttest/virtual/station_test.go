package virtual

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow/oftest"
	"github.com/weft-sdn/weft/packet"
)

// station is a host: it has an address, answers who asks for it, and pings.
type station struct {
	*oftest.Host
	trace *trace
	name  string
	mac   flow.MAC
	ip    netip.Addr

	mu      sync.Mutex // guards what follows
	known   map[netip.Addr]known
	resolve map[netip.Addr]chan struct{} // closed when the address is known
	waits   map[uint64]chan struct{}     // pings by number: closed when answered
	heard   map[uint64]int               // requests by number: how often they came
	strange int                          // frames that were for somebody else alone
}

type known struct {
	mac flow.MAC
	at  time.Time
}

// arpAge is how long a station remembers whose address it has heard.
const arpAge = 90 * time.Second

func newStation(n int, t *trace) *station {
	return &station{
		trace: t, name: fmt.Sprintf("h%d", n+1),
		mac: flow.MAC{2, 0, 0, 1, 0, byte(n + 1)}, ip: netip.AddrFrom4([4]byte{10, 0, 0, byte(n + 1)}),
		known: map[netip.Addr]known{}, resolve: map[netip.Addr]chan struct{}{}, waits: map[uint64]chan struct{}{}, heard: map[uint64]int{},
	}
}

// answer takes a frame (oftest.Network.Host).
func (s *station) answer(frame []byte) [][]byte {
	s.trace.add(s.name, frame)
	s.mu.Lock()
	defer s.mu.Unlock()
	dst, src := flow.MAC(frame[0:6]), flow.MAC(frame[6:12])
	if dst != s.mac && !dst.Multicast() {
		s.strange++
		return nil
	}
	if arp, ok := packet.ParseARP(frame); ok {
		if arp.SenderIP() != s.ip && arp.SenderIP().IsValid() && !arp.SenderIP().IsUnspecified() {
			s.learn(arp.SenderIP(), arp.SenderMAC())
		}
		if arp.Op() == packet.ARPRequest && arp.TargetIP() == s.ip {
			return [][]byte{packet.Pad(packet.AppendARPReply(nil, 0, packet.ARPFields{SenderMAC: s.mac, SenderIP: s.ip, TargetMAC: arp.SenderMAC(), TargetIP: arp.SenderIP()}))}
		}
		return nil
	}
	ip, ok := packet.ParseIPv4(frame)
	icmp, is := packet.ParseICMP(frame)
	if !ok || !is || ip.Dst() != s.ip || len(icmp.Payload()) < 8 {
		return nil
	}
	number := binary.BigEndian.Uint64(icmp.Payload())
	switch icmp.Type() {
	case packet.ICMPv4EchoReply:
		if c := s.waits[number]; c != nil {
			close(c)
			delete(s.waits, number)
		}
	case packet.ICMPv4EchoRequest:
		s.heard[number]++
		return [][]byte{s.echo(src, ip.Src(), number, true)}
	}
	return nil
}

// learn notes whose an address is; the lock is held.
func (s *station) learn(ip netip.Addr, mac flow.MAC) {
	s.known[ip] = known{mac, time.Now()}
	if c := s.resolve[ip]; c != nil {
		close(c)
		delete(s.resolve, ip)
	}
}

func (s *station) echo(dst flow.MAC, ip netip.Addr, number uint64, reply bool) []byte {
	return packet.Pad(packet.AppendICMPEcho(nil, packet.Ether{Dst: dst, Src: s.mac}, packet.IP{Src: s.ip, Dst: ip, TTL: 64},
		packet.Echo{Reply: reply, ID: uint16(number >> 16), Seq: uint16(number), Data: binary.BigEndian.AppendUint64(nil, number)}))
}

// announce tells everybody where the station is, as one that has been plugged in does.
func (s *station) announce() {
	s.Send(packet.Pad(packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: s.mac, SenderIP: s.ip, TargetIP: s.ip})))
}

// lookup returns whose an address is, and, if that has not been heard lately, what is closed when it is.
func (s *station) lookup(ip netip.Addr) (flow.MAC, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.known[ip]; ok && time.Since(k.at) < arpAge {
		return k.mac, nil
	}
	c := s.resolve[ip]
	if c == nil {
		c = make(chan struct{})
		s.resolve[ip] = c
	}
	return flow.MAC{}, c
}

// ping reports whether another station answers within a time, asked once a
// second, with what it takes to learn its address first.
func (s *station) ping(ctx context.Context, to *station, number uint64, within time.Duration) bool {
	end := time.NewTimer(within)
	defer end.Stop()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	mac, found := s.lookup(to.ip)
	for found != nil {
		s.Send(packet.Pad(packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: s.mac, SenderIP: s.ip, TargetIP: to.ip})))
		select {
		case <-found:
		case <-again.C:
		case <-end.C:
			return false
		case <-ctx.Done():
			return false
		}
		mac, found = s.lookup(to.ip)
	}
	answered := make(chan struct{})
	s.mu.Lock()
	s.waits[number] = answered
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.waits, number)
		s.mu.Unlock()
	}()
	s.Send(s.echo(mac, to.ip, number, false))
	select {
	case <-answered:
		return true
	case <-end.C:
	case <-ctx.Done():
	}
	return false
}

// duplicates returns the pings that came more than once, and forgets all.
func (s *station) duplicates() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, times := range s.heard {
		if times > 1 {
			n += times - 1
		}
	}
	clear(s.heard)
	return n
}

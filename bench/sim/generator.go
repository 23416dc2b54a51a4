package sim

import (
	"encoding/binary"
	"math"

	"github.com/weft-sdn/weft/flow"
)

// generator makes the packet-ins of one switch.
type generator struct {
	next  int    // hosts that have announced themselves
	rand  uint64 // state of xorshift
	due   int64  // at a rate: when the next packet is due
	every int64  // at a rate: nanoseconds between packets
	flows []hostPair
}

// hostPair is two hosts, the first of them of the switch.
type hostPair struct{ src, dst *endpoint }

// begin starts a load. At a rate the switches that take part take turns.
func (g *generator) begin(nd *node, l *load) {
	g.next, g.every = 0, 0
	if g.rand == 0 {
		g.rand = uint64(nd.index+1) * 0x9e3779b97f4a7c15
	}
	if l.conf.Rate > 0 {
		g.due = math.MaxInt64
		if turn := l.turn[nd.index]; turn >= 0 {
			n := l.senders
			g.every = max(int64(float64(n)*1e9/l.conf.Rate), 1)
			g.due = l.net.now + g.every*int64(turn)/int64(n)
		}
	}
}

// choose chooses the next packet's hosts: a flow of the switch if the load is of
// flows, else two of its hosts.
func (g *generator) choose(nd *node) (src, dst *endpoint) {
	if len(g.flows) == 0 {
		return g.pair(nd.hosts, nd.loud)
	}
	g.rand ^= g.rand << 13
	g.rand ^= g.rand >> 7
	g.rand ^= g.rand << 17
	f := &g.flows[g.rand&0xffffffff*uint64(len(g.flows))>>32]
	return f.src, f.dst
}

// pair chooses two hosts on different ports, the first of those that are loud and,
// where some are silent, the second of these.
func (g *generator) pair(hosts []endpoint, loud int) (src, dst *endpoint) {
	g.rand ^= g.rand << 13
	g.rand ^= g.rand >> 7
	g.rand ^= g.rand << 17
	n, first := uint64(len(hosts)), uint64(loud)
	if loud == len(hosts) {
		first = 0
	}
	s := g.rand & 0xffffffff * uint64(loud) >> 32
	d := first + g.rand>>32*(n-first)>>32
	src = &hosts[s]
	for hosts[d].at == src.at {
		if d++; d == n {
			d = 0
		}
	}
	return src, &hosts[d]
}

// feed sends what the load has for a switch now: in a closed loop as many
// packets as the window has room for, at a rate those that are due.
func (l *load) feed(nd *node) {
	if l.stage >= stageDrain && l.conf.Rate == 0 || len(nd.track.free) == 0 {
		return
	}
	if l.hello {
		l.announce(nd)
		return
	}
	if l.turn[nd.index] < 0 {
		return
	}
	lay := &l.layout
	buf := l.blank
	t, g := &nd.track, &nd.gen
	sent := l.net.now
	count := len(t.free)
	for i := range count {
		if l.conf.Rate > 0 {
			if sent = g.due; !l.owes(nd) {
				count = i
				break
			}
			g.due += g.every
		}
		b := buf[i*lay.size : (i+1)*lay.size]
		src, dst := g.choose(nd)
		s := t.free[len(t.free)-1]
		t.free = t.free[:len(t.free)-1]
		id := t.issue(s, dst.at, sent)
		onWire := id
		if l.conf.Unbuffered {
			onWire = flow.BufferNone
		}
		binary.BigEndian.PutUint32(b[lay.bufferID:], onWire)
		binary.BigEndian.PutUint16(b[lay.inPort:], uint16(src.at))
		address(b[lay.frame:], l.sum, src, dst, id)
	}
	l.sent(nd, buf[:count*lay.size], count)
}

// sent writes packet-ins; what the socket does not take now goes later.
func (l *load) sent(nd *node, b []byte, count int) {
	if count == 0 {
		return
	}
	l.counts.Sent += uint64(count)
	if k, ok := nd.write(b); ok && k < len(b) {
		nd.pending = append(nd.pending, b[k:]...)
	}
}

// announce sends the announcements of the hosts that have not spoken yet.
func (l *load) announce(nd *node) {
	lay, t, g := &l.layout, &nd.track, &nd.gen
	buf := l.blank
	count := min(len(t.free), len(nd.hosts)-g.next)
	for i := range count {
		h := &nd.hosts[g.next]
		g.next++
		s := t.free[len(t.free)-1]
		t.free = t.free[:len(t.free)-1]
		id := t.issue(s, 0, l.net.now)
		b := buf[i*lay.size : (i+1)*lay.size]
		binary.BigEndian.PutUint32(b[lay.bufferID:], id)
		binary.BigEndian.PutUint16(b[lay.inPort:], uint16(h.at))
		announcement(b[lay.frame:lay.frame], h, id)
	}
	l.sent(nd, buf[:count*lay.size], count)
}

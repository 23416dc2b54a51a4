package balancer

import (
	"bytes"
	"net/netip"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// A pair of a VIP with again: indicated stays with its member over idle times once an answer
// of the member has had a binding indication (TS 29.500, 6.12). Switches do not see HTTP, so
// the entry back copies the first packets of each idle time to the controller.

const (
	watchCopies   = 32                    // packets of a member that are looked at in an idle time
	indicatedTime = int64(24 * time.Hour) // for which a pair with an indication is remembered
)

// indications are the octets of which a packet with the header 3gpp-Sbi-Binding has one, in
// lower case where HPACK has not compressed them: the header's name, or what its value begins
// with, where the name is an index into HPACK's table.
var (
	indications        = [][]byte{[]byte("3gpp-sbi-binding"), []byte("bl=nf-instance"), []byte("bl=nf-set"), []byte("bl=nfservice-")}
	huffmanIndications = [][]byte{ // RFC 7541, Appendix B; whole octets
		[]byte("\x66\x6a\xeb\x59\x11\x99\x68\xcd\x54\x86\xaa\x6f"), []byte("\x8e\x88\x2a\x95\x63\x54\x84\x8e\xa2"),
		[]byte("\x8e\x88\x2a\x95\x64\x15"), []byte("\x8e\x88\x2a\x95\x05\xb3\xb9\x88\x55"),
	}
)

// indicates reports whether a segment's data has a binding indication, of HTTP/2 or HTTP/1.1. One
// that two segments share, and one that HPACK has as a whole in its table, is not seen.
func indicates(p []byte) bool {
	for _, x := range huffmanIndications {
		if bytes.Contains(p, x) {
			return true
		}
	}
	p = bytes.ToLower(p)
	for _, x := range indications {
		if bytes.Contains(p, x) {
			return true
		}
	}
	return false
}

// watch is what is known of the binding indications of a pair.
type watch struct {
	on    bool  // the entry back copies packets to the controller,
	left  int   // so many more
	since int64 // when that was last begun
	bound bool  // there was one
}

// rearm begins or ends the copies of a pair's answers as its VIP wants them. It reports whether
// the entry back is to be sent anew.
func (c *conn) rearm(now int64) bool {
	w, was := &c.watch, c.watch.on
	switch {
	case c.kind != paired || c.m.vip.again != indicated || w.bound || c.key.proto != flow.IPProtoTCP:
		w.on = false
	case !w.on && (w.since == 0 || now-w.since >= int64(c.idle)*int64(time.Second)):
		w.on, w.left, w.since = true, watchCopies, now
	}
	return w.on != was
}

// copied takes a copy of a packet that the member of a pair has sent to its client.
func (b *balancer) copied(in *flow.PacketIn) {
	t, ok := packet.ParseTCP(in.Data)
	k := packet.Headers(in)
	src, dst := netip.AddrFrom4(k.IPv4Src), netip.AddrFrom4(k.IPv4Dst)
	if k.EthType == flow.EthTypeIPv6 {
		src, dst = netip.AddrFrom16(k.IPv6Src), netip.AddrFrom16(k.IPv6Dst)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.tracker.backs[backKey{netip.AddrPortFrom(src, k.TPSrc), netip.AddrPortFrom(dst, 0), k.IPProto, k.VLAN}]
	if !ok || c == nil || !c.watch.on {
		return
	}
	w := &c.watch
	w.left--
	if w.bound = indicates(t.Payload()); w.bound {
		b.count.indicated.Add(1)
	}
	if w.bound || w.left <= 0 {
		if w.on = false; c.back {
			d := &flow.Decision{}
			c.sent = in.Time
			c.addBack(d)
			b.out.post(d)
		}
	}
}

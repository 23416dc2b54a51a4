package balancer

import (
	"bytes"
	"slices"
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

// longestIndication is how many octets the longest of them has.
const longestIndication = len("3gpp-sbi-binding")

// indicates reports whether what a member sends has a binding indication, of HTTP/2 or HTTP/1.1.
// One that HPACK has as a whole in its table is not seen.
func indicates(p []byte) bool {
	for _, x := range huffmanIndications {
		if bytes.Contains(p, x) {
			return true
		}
	}
	for _, x := range indications {
		for i := range len(p) - len(x) + 1 {
			if p[i]|0x20 == x[0] && bytes.EqualFold(p[i:i+len(x)], x) {
				return true
			}
		}
	}
	return false
}

// stream is the end of what a member has sent on one connection of a pair.
type stream struct {
	port uint16 // of the client
	next uint32 // the sequence number of the octet after it
	n    int    // octets of last, at its end
	last [longestIndication - 1]byte
}

// streams are those of the connections of a pair on which its member has sent last, the
// latest first. What two segments of others share is not seen.
type streams [4]stream

// resent is how many octets a member may have to send again: a segment of octets from before
// that is of another connection.
const resent = 1 << 20

// indicate reports whether a segment has a binding indication, or the end of one that the
// segments before it have begun. Those must have come in their order.
func (s *streams) indicate(t packet.TCP) bool {
	p, seq := t.Payload(), t.Seq()
	x, fresh := s.of(t.DstPort()), p
	if t.Flags()&packet.TCPSyn != 0 {
		seq++
		x.n = 0
	}
	switch known := x.next - seq; {
	case x.n == 0 || known == 0:
	case known > resent: // it does not follow
		x.n = 0
	case int(known) >= len(p):
		return indicates(p)
	default:
		fresh = p[known:]
	}
	most := len(x.last)
	joint := append(make([]byte, 0, 2*len(x.last)), x.last[most-x.n:]...)
	joint = append(joint, fresh[:min(len(fresh), most)]...)
	copy(x.last[:], x.last[min(len(fresh), most):])
	copy(x.last[max(0, most-len(fresh)):], fresh[max(0, len(fresh)-most):])
	x.next, x.n = seq+uint32(len(p)), min(most, x.n+len(fresh))
	return indicates(joint) || indicates(p)
}

// of returns the stream of a client's port, which is the first then.
func (s *streams) of(port uint16) *stream {
	i := slices.IndexFunc(s[:], func(x stream) bool { return x.port == port })
	found := stream{port: port}
	if i < 0 {
		i = len(s) - 1
	} else {
		found = s[i]
	}
	copy(s[1:i+1], s[:i])
	s[0] = found
	return &s[0]
}

// watch is what is known of the binding indications of a pair.
type watch struct {
	on    bool     // the entry back copies packets to the controller,
	left  int      // so many more,
	ends  *streams // and these are the ends of what has come
	since int64    // when that was last begun
	bound bool     // there was one
}

// rearm begins or ends the copies of a pair's answers as its VIP wants them. It reports whether
// the entry back is to be sent anew.
func (c *conn) rearm(now int64) bool {
	w, was := &c.watch, c.watch.on
	switch {
	case c.kind != paired || c.m.vip.again != indicated || w.bound || c.key.proto != flow.IPProtoTCP:
		w.on, w.ends = false, nil
	case !w.on && (w.since == 0 || now-w.since >= int64(c.idle)*int64(time.Second)):
		w.on, w.left, w.since = true, watchCopies, now
	}
	return w.on != was
}

// copied takes a copy of a packet of a conn, for a binding indication or as a sample.
func (b *balancer) copied(in *flow.PacketIn) {
	t, ok := packet.ParseTCP(in.Data)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c, client := b.tracker.copyOf(in)
	if c == nil {
		return
	}
	d := &flow.Decision{}
	if c.sampling() {
		c.sampled.take(t, client, in.Time)
		if c.sampled.left--; c.sampled.left <= 0 {
			b.tracker.unsample(c)
			c.renew(d)
		}
	}
	if w := &c.watch; w.on && !client {
		if w.left--; w.ends == nil {
			w.ends = &streams{}
		}
		if w.bound = w.ends.indicate(t); w.bound {
			b.count.indicated.Add(1)
		}
		if w.bound || w.left <= 0 {
			if w.on, w.ends = false, nil; c.back {
				c.addBack(d)
			}
		}
	}
	if !d.Empty() {
		c.sent = in.Time
		b.out.post(d)
	}
}

package balancer

import (
	"bytes"
	"cmp"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/sbi"
)

// Switches see no requests. Of a VIP with sample they copy some packets of a connection or a
// pair, both ways, to the controller now and then, which reads the requests and answers of
// HTTP/2 in them: how many there are, how they end, and how long they take.

const (
	sampleTime   = int64(10 * time.Second) // of one sample
	sampleAtOnce = 64                      // connections and pairs
	sampleAsked  = 64                      // requests under way on one TCP connection that are followed
)

// sampled is what the samples of a connection or a pair have had.
type sampled struct {
	copies bool  // packets are copied,
	left   int   // so many more
	since  int64 // when the last sample began
	on     [4]*dialogue

	requests, errors, congested, unread uint64
	took                                time.Duration
}

// dialogue is a TCP connection in a sample.
type dialogue struct {
	port           uint16 // of the client
	client, member octets
	asked          []request // in their order
}

// request is one that is under way.
type request struct {
	stream uint32
	at     int64
}

// octets follows the frames of HTTP/2 that one end of a TCP connection sends.
type octets struct {
	next  uint32 // the sequence number of the octet after what was seen
	left  int    // octets of a frame that are to come
	known bool   // both are known
}

// sampling reports whether the packets of a conn are copied.
func (c *conn) sampling() bool {
	return c.sampled != nil && c.sampled.copies && !c.split && !c.attended()
}

// sample begins a sample of a conn, if its VIP wants that and there are not too many.
func (t *tracker) sample(c *conn, now int64) {
	if c.m.vip.sample == 0 || c.key.proto != flow.IPProtoTCP || c.kind != tracked && c.kind != paired || t.samples >= sampleAtOnce {
		return
	}
	if c.sampled == nil {
		c.sampled = &sampled{}
	}
	if !c.sampled.copies {
		t.samples++
	}
	c.sampled.copies, c.sampled.left, c.sampled.since = true, c.m.vip.sample, now
}

// unsample ends the sample of a conn.
func (t *connections) unsample(c *conn) {
	if s := c.sampled; s != nil && s.copies {
		t.samples--
		s.copies, s.on = false, [4]*dialogue{}
	}
}

// resample ends the samples that are over, and begins those of the conns that have had none
// for the longest time.
func (t *tracker) resample(now int64, d *flow.Decision) {
	var next []*conn
	for _, v := range t.index.Load().all() {
		for _, m := range v.pool {
			for c := range m.conns {
				s := c.sampled
				switch {
				case s != nil && s.copies && (now-s.since >= sampleTime || v.sample == 0):
					t.unsample(c)
					c.renew(d)
				case v.sample == 0 || !c.there || !c.back || c.split || c.bye != nil || s != nil && (s.copies || now-s.since < sampleTime):
				default:
					next = keepOldest(next, c)
				}
			}
		}
	}
	for _, c := range next {
		if t.sample(c, now); c.sampling() {
			c.renew(d)
		}
	}
}

// keepOldest adds a conn to those with the oldest samples, by age, and drops what is too many.
func keepOldest(list []*conn, c *conn) []*conn {
	order := func(a, b *conn) int {
		return cmp.Or(cmp.Compare(a.sampledAt(), b.sampledAt()), cmp.Compare(a.id, b.id))
	}
	if n := len(list); n == sampleAtOnce && order(list[n-1], c) < 0 {
		return list
	}
	i, _ := slices.BinarySearchFunc(list, c, order)
	list = slices.Insert(list, i, c)
	return list[:min(len(list), sampleAtOnce)]
}

// sampledAt returns when the last sample of a conn began; 0: there was none.
func (c *conn) sampledAt() int64 {
	if c.sampled == nil {
		return 0
	}
	return c.sampled.since
}

// copyOf returns the conn of a copied packet, and whether its client has sent it.
func (t *connections) copyOf(in *flow.PacketIn) (c *conn, client bool) {
	k := packet.Headers(in)
	src, dst := netip.AddrFrom4(k.IPv4Src), netip.AddrFrom4(k.IPv4Dst)
	if k.EthType == flow.EthTypeIPv6 {
		src, dst = netip.AddrFrom16(k.IPv6Src), netip.AddrFrom16(k.IPv6Dst)
	}
	from, to := netip.AddrPortFrom(src, k.TPSrc), netip.AddrPortFrom(dst, k.TPDst)
	id := in.Cookie.ID()
	there := connKey{from, to, k.IPProto, k.VLAN}
	for _, key := range [...]connKey{there, there.pair()} {
		if c := t.by[key]; c != nil && c.id == id {
			return c, true
		}
	}
	back := backKey{from, to, k.IPProto, k.VLAN}
	for _, key := range [...]backKey{back, back.pair()} {
		if c := t.backs[key]; c != nil && c.id == id {
			return c, false
		}
	}
	return nil, false
}

// take takes a copy of a segment of a sample.
func (s *sampled) take(t packet.TCP, client bool, now int64) {
	port := t.DstPort()
	if client {
		port = t.SrcPort()
	}
	x := s.dialogue(port)
	if client {
		x.client.frames(t, func(f frameHeader, _ []byte) {
			switch f.kind {
			case frameHeaders:
				x.ask(f.stream, now)
			case frameReset:
				x.answered(f.stream)
			}
		})
	} else {
		x.member.frames(t, func(f frameHeader, block []byte) {
			switch f.kind {
			case frameHeaders:
				s.answer(x, f, block, now)
			case frameReset:
				if at, ok := x.answered(f.stream); ok {
					s.requests, s.errors, s.took = s.requests+1, s.errors+1, s.took+time.Duration(now-at)
				}
			}
		})
	}
}

// answer counts an answer that begins with a block of header fields.
func (s *sampled) answer(x *dialogue, f frameHeader, block []byte, now int64) {
	status := statusOf(f, block)
	if status >= 100 && status < 200 {
		return // the answer comes later
	}
	at, ok := x.answered(f.stream)
	if !ok {
		return // trailers, or of a request that was not copied
	}
	s.requests, s.took = s.requests+1, s.took+time.Duration(max(0, now-at))
	switch {
	case status == 0:
		s.unread++
	case status >= 400:
		s.errors++
	}
	if sbi.Congested(status) {
		s.congested++
	}
}

// dialogue returns the TCP connection of a client's port, which is the first then.
func (s *sampled) dialogue(port uint16) *dialogue {
	i := slices.IndexFunc(s.on[:], func(x *dialogue) bool { return x != nil && x.port == port })
	var x *dialogue
	if i < 0 {
		i, x = len(s.on)-1, &dialogue{port: port}
	} else {
		x = s.on[i]
	}
	copy(s.on[1:i+1], s.on[:i])
	s.on[0] = x
	return x
}

// ask notes that a request has begun.
func (x *dialogue) ask(stream uint32, now int64) {
	if slices.ContainsFunc(x.asked, func(r request) bool { return r.stream == stream }) {
		return // these are trailers
	}
	if len(x.asked) == sampleAsked {
		x.asked = slices.Delete(x.asked, 0, 1)
	}
	x.asked = append(x.asked, request{stream, now})
}

// answered forgets a request and returns when it began; false if it is not known.
func (x *dialogue) answered(stream uint32) (at int64, ok bool) {
	i := slices.IndexFunc(x.asked, func(r request) bool { return r.stream == stream })
	if i < 0 {
		return 0, false
	}
	at = x.asked[i].at
	x.asked = slices.Delete(x.asked, i, i+1)
	return at, true
}

// frameHeader is the header of a frame of HTTP/2 (RFC 9113, 4.1), without its length.
type frameHeader struct {
	kind, flags uint8
	stream      uint32
}

// frames calls f with each frame that begins in a segment, and with what the segment has of
// its payload. After octets that were not seen it waits for a segment that begins with a frame.
func (o *octets) frames(t packet.TCP, f func(frameHeader, []byte)) {
	p, seq := t.Payload(), t.Seq()
	if t.Flags()&packet.TCPSyn != 0 {
		*o = octets{}
		return
	}
	if len(p) == 0 {
		return
	}
	after := seq + uint32(len(p))
	if o.known {
		switch seen := o.next - seq; {
		case seen == 0:
		case seen < uint32(len(p)): // sent again, with more
			p = p[seen:]
		case seen <= resent: // sent again
			return
		default:
			o.known = false
		}
	}
	if !o.known {
		o.left, o.known = 0, true
		p = bytes.TrimPrefix(p, preface[:prefaceText])
	}
	for o.next = after; ; {
		if o.left >= len(p) {
			o.left -= len(p)
			return
		}
		p = p[o.left:]
		kind, stream, n, ok := frame(p)
		if !ok { // the middle of a frame, a header that is cut, or something else
			o.known = false
			return
		}
		f(frameHeader{kind, p[4], stream}, p[frameHead:min(n, len(p))])
		o.left = n
	}
}

// Flags of frames of kind frameHeaders (RFC 9113, 6.2).
const (
	flagPadded     = 0x8
	flagDependency = 0x20 // PRIORITY: five octets of it come first
)

// statusOf returns the status of an answer by the first field of its header block, which it is;
// 0 if it cannot be read without the fields that came before on the connection (RFC 7541, 2.3.2).
func statusOf(f frameHeader, p []byte) (status int) {
	skip := 0
	if f.flags&flagPadded != 0 {
		skip++
	}
	if f.flags&flagDependency != 0 {
		skip += 5
	}
	if len(p) < skip {
		return 0
	}
	d := hpack.NewDecoder(4096, nil)
	d.SetAllowedMaxDynamicTableSize(1 << 30)
	first := true
	d.SetEmitFunc(func(field hpack.HeaderField) {
		if first && field.Name == ":status" && len(field.Value) == 3 {
			for _, b := range []byte(field.Value) {
				status = 10*status + int(b-'0')
			}
		}
		first = false
	})
	_, _ = d.Write(p[skip:]) // later fields may be of the connection's table
	if status > 999 {
		return 0
	}
	return status
}

// message returns what the samples of a conn have had; nil if there were none.
func (s *sampled) message() *api.SampledRequests {
	if s == nil || s.since == 0 {
		return nil
	}
	return &api.SampledRequests{Requests: s.requests, Errors: s.errors, Congested: s.congested, Unread: s.unread, Seconds: s.took.Seconds()}
}

// addSampled adds what another conn of the same client and member has had.
func addSampled(sum, x *api.SampledRequests) *api.SampledRequests {
	switch {
	case sum == nil:
		return x
	case x == nil:
		return sum
	}
	return &api.SampledRequests{Requests: sum.Requests + x.Requests, Errors: sum.Errors + x.Errors, Congested: sum.Congested + x.Congested,
		Unread: sum.Unread + x.Unread, Seconds: sum.Seconds + x.Seconds}
}

package l2vpn

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// A customer whose bridges join ends of circuits may make a ring of them, in which
// frames to all run for ever. Each end sends its customer a ring probe now and then; one
// that comes in at another end says that the customer joins the two. It never enters a
// circuit.
//
// ringGroup is the destination of ring probes: a group, so that bridges pass them on, of
// those that are administered locally.
var ringGroup = flow.MAC{0x03, 'W', 'R', 'I', 'N', 'G'}

// A ring probe is an Ethernet frame of an experimental type, with the tags of the end
// that sends it. Then come, in network order, the circuit's number (4), the place of the
// end in it (2), the time of sending in nanoseconds (8), and the first half of the
// HMAC-SHA256 of all of these.
const (
	ringType   = 0x88b5 // IEEE 802's first for local experiments
	ringSigned = 4 + 2 + 8
	ringLen    = ringSigned + sha256.Size/2
)

// Times of ring probes.
const (
	ringTick  = 100 * time.Millisecond
	ringLeast = 5 * time.Second // how long a join is held at least that is heard no more
	ringParts = 10              // this part of l2vpn.probe_rate is theirs
)

// rings is what ring probes say.
type rings struct {
	b     *store
	key   []byte // of this run
	round []probedEnd
	began time.Time // of the round
	took  time.Duration

	heard map[end]join      // by where a probe came in: the last one; b.mu guards it
	dirty bool              // heard has other ends than when it was judged; b.mu guards it
	said  map[string]string // by circuit, why it is in a ring; b.mu guards it
}

// A join is a probe that came in.
type join struct {
	from end
	at   time.Time
}

type probedEnd struct {
	circuit string
	at      end
}

func newRings(b *store) *rings {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return &rings{b: b, key: key, heard: map[end]join{}, said: map[string]string{}}
}

func (r *rings) sign(signed []byte) []byte {
	h := hmac.New(sha256.New, r.key)
	h.Write(signed)
	return h.Sum(nil)[:sha256.Size/2]
}

// frame returns the probe of an end.
func (r *rings) frame(c *circuit, i int, now time.Time) []byte {
	e := c.ends[i]
	src := flow.MAC{0x06, 'W', byte(c.Id >> 16), byte(c.Id >> 8), byte(c.Id), byte(i)}
	b := packet.AppendEthernet(nil, packet.Ether{Dst: ringGroup, Src: src}, ringType)
	start := len(b)
	b = binary.BigEndian.AppendUint32(b, c.Id)
	b = binary.BigEndian.AppendUint16(b, uint16(i))
	b = binary.BigEndian.AppendUint64(b, uint64(now.UnixNano()))
	b = append(b, r.sign(b[start:])...)
	return e.tagged(b)
}

// due appends the probes that are to be sent now.
func (r *rings) due(d *flow.Decision) {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if b.cfg.RingInterval == 0 {
		return
	}
	if len(r.round) == 0 {
		if now.Sub(r.began) < b.cfg.RingInterval {
			return
		}
		if !r.began.IsZero() {
			r.took = now.Sub(r.began)
		}
		r.began = now
		for name, s := range b.status {
			for _, e := range s.circuit.ends {
				if !s.circuit.Oam {
					break
				}
				r.round = append(r.round, probedEnd{name, e})
			}
		}
	}
	most := max(1, b.cfg.ProbeRate/ringParts*int(ringTick)/int(time.Second))
	for most > 0 && len(r.round) > 0 {
		next := r.round[len(r.round)-1]
		r.round = r.round[:len(r.round)-1]
		s := b.status[next.circuit]
		if s == nil || s.phase != inForce || s.looped || b.net.unusable(next.at.at) != "" {
			continue
		}
		if i := slices.Index(s.circuit.ends, next.at); i >= 0 {
			most--
			d.PacketOut(next.at.at.Switch, flow.PacketOut{BufferID: flow.BufferNone, InPort: flow.PortController,
				Data: r.frame(s.circuit, i, now), Actions: d.Actions(flow.Output(next.at.at.Port))})
		}
	}
}

// takes takes a probe back; it returns false for other packets.
func (r *rings) takes(in *flow.PacketIn) bool {
	if in.Key.EthDst != ringGroup {
		return false
	}
	tags, body := ringTags(in.Data)
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(body) < ringLen || !hmac.Equal(body[ringSigned:ringLen], r.sign(body[:ringSigned])) {
		return true
	}
	sent := time.Unix(0, int64(binary.BigEndian.Uint64(body[6:])))
	s, i := b.counters.of[binary.BigEndian.Uint32(body)], int(binary.BigEndian.Uint16(body[4:]))
	now := b.now()
	if s == nil || i >= len(s.circuit.ends) || now.Sub(sent) > ringLeast || sent.After(now) {
		return true
	}
	for e := range b.taken[in.Switch][in.Key.InPort] {
		if from := s.circuit.ends[i]; e != from && e.carries(tags, b.taken.vlans(e.at)) {
			_, had := r.heard[e]
			r.dirty = r.dirty || !had
			r.heard[e] = join{from, now}
		}
	}
	return true
}

// ringTags returns the VLANs of a ring probe, the outer one first, and what is behind its type.
func ringTags(frame []byte) (tags []uint16, body []byte) {
	if tags, kind, body := frameTags(frame); kind == ringType {
		return tags, body
	}
	return nil, nil
}

// frameTags returns the VLANs of a frame, of at most two tags, the outer one first, its type, and what is
// behind that.
func frameTags(frame []byte) (tags []uint16, kind uint16, body []byte) {
	for at := 12; at+4 <= len(frame) && len(tags) <= 2; at += 4 {
		switch kind = binary.BigEndian.Uint16(frame[at:]); kind {
		case flow.EthTypeVLAN, flow.EthTypeQinQ:
			tags = append(tags, binary.BigEndian.Uint16(frame[at+2:])&0xfff)
		default:
			return tags, kind, frame[at+2:]
		}
	}
	return nil, 0, nil
}

// carries reports whether an end takes frames of its port with some tags; VLANs of the port that
// ends have for themselves are no port's.
func (e end) carries(tags []uint16, apart vlanList) bool {
	switch {
	case e.list != "":
		return len(tags) > 0 && e.list.has(tags[0])
	case e.vlan == 0:
		return len(tags) == 0 || !apart.has(tags[0])
	}
	for i, vlan := range []uint16{e.vlan, e.inner} {
		if vlan != 0 && (i >= len(tags) || tags[i] != vlan) {
			return false
		}
	}
	return true
}

// judge forgets joins that are heard no more, and has circuits assessed that have come into a
// ring or out of it.
func (r *rings) judge() {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	oldest := b.now().Add(-max(ringLeast, 3*r.took))
	for e, j := range r.heard {
		if j.at.Before(oldest) {
			delete(r.heard, e)
			r.dirty = true
		}
	}
	if !r.dirty && len(r.heard) == 0 {
		return
	}
	r.dirty = false
	said := r.find()
	for _, name := range slices.Concat(slices.Collect(maps.Keys(r.said)), slices.Collect(maps.Keys(said))) {
		s := b.status[name]
		if s != nil && s.ring != said[name] {
			s.ring = said[name]
			b.assess(s)
		}
	}
	r.said = said
}

// find returns the circuits that are in rings, with what is to be said of each: two of its
// ends are joined without it, by customers and other circuits. It is called with b.mu held.
func (r *rings) find() map[string]string {
	b, near := r.b, map[end][]end{}
	of := map[end]string{} // the circuits of ends
	names := map[string]bool{}
	note := func(e end) {
		for name := range b.taken[e.at.Switch][e.at.Port][e] {
			of[e], names[name] = name, true
		}
	}
	for e, j := range r.heard {
		near[e], near[j.from] = append(near[e], j.from), append(near[j.from], e)
		note(e)
		note(j.from)
	}
	said := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		ends := b.status[name].circuit.ends
		for i, e := range ends {
			if to := r.around(e, name, near, of, ends[i+1:]); to != nil {
				last := to[len(to)-1]
				said[name] = fmt.Sprintf("a loop: the customer joins its end %v with end %v of circuit %s", e, to[0], of[to[0]])
				if len(to) > 1 {
					said[name] += fmt.Sprintf(", and so what it sends comes back at its end %v", last)
				}
				said[name] += fmt.Sprintf("; broadcast and multicast of each end are bounded to %d kbit/s", b.cfg.boundOf(b.status[name].circuit))
				break
			}
		}
	}
	return said
}

// around returns the ends by which an end is joined with one of others without its
// circuit; nil if it is not. It is called with b.mu held.
func (r *rings) around(from end, but string, near map[end][]end, of map[end]string, others []end) []end {
	came := map[end]end{from: from}
	for queue := []end{from}; len(queue) > 0; queue = queue[1:] {
		e := queue[0]
		next := slices.Clone(near[e])
		if name := of[e]; name != "" && name != but {
			next = append(next, r.b.status[name].circuit.ends...)
		}
		for _, n := range next {
			if _, been := came[n]; been {
				continue
			}
			came[n] = e
			if slices.Contains(others, n) {
				var way []end
				for at := n; at != from; at = came[at] {
					way = append(way, at)
				}
				slices.Reverse(way)
				return way
			}
			queue = append(queue, n)
		}
	}
	return nil
}

// run sends ring probes and judges what comes back, until ctx ends.
func (r *rings) run(ctx context.Context, send func(context.Context, *flow.Decision) error) {
	probe(ctx, ringTick, r.judge, r.due, send)
}

// sendsRingProbes reports whether ring probes are sent at a port. Where they are, those that come in are
// the controller's. It is called with mu held.
func sendsRingProbes(b *store, at flow.Location) bool {
	if b.cfg.RingInterval == 0 {
		return false
	}
	for _, names := range b.taken[at.Switch][at.Port] {
		for name := range names {
			if b.status[name].circuit.Oam {
				return true
			}
		}
	}
	return false
}

// ringTrap adds the entry that gives the controller the ring probes that come in at a port.
func (s *set) ringTrap(port flow.Port) {
	s.enter(0, flow.Entry{Table: flow.TableIngress, Priority: flow.PriorityCircuitRing,
		Match: flow.Match{}.WithInPort(port).WithEthDst(ringGroup), Apply: []flow.Action{flow.Output(flow.PortController)}})
}

package cfm

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/packet"
)

// Config is what a maintenance end point is.
type Config struct {
	ID       uint16 // 1 to 8191
	Level    uint8  // 0 to 7
	MAID     MAID
	Interval time.Duration // between two continuity checks; see IntervalOK
	MAC      flow.MAC
}

// Remotes is how many others an end point follows; those that come later are not.
const Remotes = 16

// States of a remote end point.
const (
	Up   = "up"
	RDI  = "rdi" // it does not hear all others
	Lost = "lost"
)

// A Remote is another end point of the association.
type Remote struct {
	ID    uint16
	MAC   flow.MAC
	State string
	Since time.Time

	heard  time.Time
	probes window
}

// Measure is what the last delay messages to a remote say, microseconds.
type Measure struct {
	Sent, Lost            int
	P50, P99, Max, Jitter uint32
}

// A MEP is a maintenance end point. It is not safe for concurrent use.
type MEP struct {
	cfg     Config
	seq     uint32
	next    time.Time // of its next continuity check
	remotes map[uint16]*Remote
	fault   string // what it hears that must not be there
	until   time.Time
}

// NewMEP returns an end point that has heard nothing.
func NewMEP(cfg Config) *MEP { return &MEP{cfg: cfg, remotes: map[uint16]*Remote{}} }

// Config returns what the end point is.
func (m *MEP) Config() Config { return m.cfg }

// patience is how long the loss of continuity checks takes that are an interval apart: three and a half of
// them (802.1ag 20.16).
func patience(interval time.Duration) time.Duration { return interval * 7 / 2 }

// Remotes returns the others that it has heard, by identifier.
func (m *MEP) Remotes() (list []*Remote) {
	for _, id := range slices.Sorted(maps.Keys(m.remotes)) {
		list = append(list, m.remotes[id])
	}
	return list
}

// Measure returns what the last delay messages to a remote say.
func (r *Remote) Measure() Measure { return r.probes.measure() }

// Fault returns what it hears that must not be there; empty if nothing is.
func (m *MEP) Fault() string { return m.fault }

// defect reports whether it does not hear all others as it should.
func (m *MEP) defect() bool {
	for _, r := range m.remotes {
		if r.State == Lost {
			return true
		}
	}
	return m.fault != ""
}

// Due returns the frames that are to be sent now, and notices what is heard no more.
func (m *MEP) Due(now time.Time) (frames [][]byte) {
	for _, r := range m.remotes {
		if r.State != Lost && now.Sub(r.heard) > patience(m.cfg.Interval) {
			r.State, r.Since = Lost, now
		}
	}
	if now.After(m.until) {
		m.fault = ""
	}
	if now.Before(m.next) {
		return nil
	}
	if m.next = m.next.Add(m.cfg.Interval); m.next.Before(now) {
		m.next = now.Add(m.cfg.Interval)
	}
	m.seq++
	frames = append(frames, m.check())
	for _, r := range m.Remotes() {
		if r.State != Lost {
			p := newPDU(m.cfg.Level, codeDMM, 0, dmmLen)
			p.setStamp(sentAt, now.UnixNano())
			r.probes.send(now.UnixNano(), int64(m.cfg.Interval))
			frames = append(frames, m.frame(r.MAC, p))
		}
	}
	return frames
}

// check returns the next continuity check.
func (m *MEP) check() []byte {
	flags := intervals[m.cfg.Interval]
	if m.defect() {
		flags |= rdi
	}
	p := newPDU(m.cfg.Level, codeCCM, flags, ccmLen)
	binary.BigEndian.PutUint32(p[headerLen:], m.seq)
	binary.BigEndian.PutUint16(p[maidAt-2:], m.cfg.ID)
	copy(p[maidAt:], m.cfg.MAID[:])
	return m.frame(Group(m.cfg.Level), p)
}

func (m *MEP) frame(to flow.MAC, p pdu) []byte {
	return append(packet.AppendEthernet(nil, packet.Ether{Dst: to, Src: m.cfg.MAC}, EthType), p...)
}

// Receive takes a frame that came from an address, of which body is what is behind its type, at a time, and
// returns the answer that it asks for; nil if it asks for none. control is how long a frame takes from where
// it is sent to the wire and back.
func (m *MEP) Receive(now time.Time, src, dst flow.MAC, body []byte, control int64) (answer []byte) {
	p, ok := read(body)
	switch {
	case !ok || p.level() != m.cfg.Level || src.Multicast() || src == m.cfg.MAC:
		return nil
	case dst != m.cfg.MAC && dst != Group(m.cfg.Level):
		return nil
	}
	switch p.code() {
	case codeCCM:
		m.hear(now, src, p)
	case codeLBM, codeDMM:
		back := pdu(slices.Clone(p))
		back[1]--
		if p.code() == codeDMM {
			back.setStamp(receivedAt, now.UnixNano())
			back.setStamp(answeredAt, now.UnixNano())
		}
		return m.frame(src, back)
	case codeDMR:
		for _, r := range m.remotes {
			if r.MAC == src && dst == m.cfg.MAC {
				r.probes.arrive(p.stamp(sentAt), now.UnixNano()-p.stamp(sentAt)-(p.stamp(answeredAt)-p.stamp(receivedAt))-control)
			}
		}
	}
	return nil
}

// hear takes a continuity check.
func (m *MEP) hear(now time.Time, src flow.MAC, p pdu) {
	id, interval, defect, maid := p.ccm()
	wrong := func(format string, args ...any) {
		m.fault, m.until = fmt.Sprintf(format, args...), now.Add(patience(m.cfg.Interval))
	}
	switch {
	case maid != m.cfg.MAID:
		wrong("%v belongs to association %v (a wrong connection)", src, maid)
		return
	case id == m.cfg.ID:
		wrong("%v is end point %d, too", src, id)
		return
	case interval != intervals[m.cfg.Interval]:
		wrong("end point %d sends at another interval", id)
		return
	}
	r := m.remotes[id]
	if r == nil {
		if len(m.remotes) >= Remotes {
			return
		}
		r = &Remote{ID: id}
		m.remotes[id] = r
	}
	if r.MAC != src {
		r.MAC, r.probes = src, window{}
	}
	state := Up
	if defect {
		state = RDI
	}
	if r.heard = now; r.State != state {
		r.State, r.Since = state, now
	}
}

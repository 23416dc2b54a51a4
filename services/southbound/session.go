package southbound

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/packet"
)

type dpid = flow.DPID

// pipeline is the pipeline opened for one session.
type pipeline interface {
	Packet(*flow.PacketIn, *flow.Decision) flow.Verdict
	Flush()
	Returned() (all, probes uint64)
	Close()
}

// session is the connection of one switch. One goroutine reads it and runs the
// pipeline for its packets; any goroutine may send.
type session struct {
	hub     *shared
	conn    net.Conn
	secrets *secrets // nil, as the next: without TLS
	secured *secured
	begun   time.Time
	known   atomic.Bool // the handshake is over
	in      *reader
	out     *outbox
	waits   waits
	account *account
	claims  claims
	said    said
	waiting buffer // memory for a workspace that waits for the switch to read
	xid     atomic.Uint32
	version openflow.Version
	dpid    dpid
	role    openflow.Role
	feature openflow.Features
	desc    openflow.Desc
	since   time.Time
	counted atomic.Bool // counted among the refused connections

	mastered bool          // the handshake made this process master
	claiming atomic.Uint32 // xid of a later request for mastership
	asking   atomic.Uint32 // xid of the request for the switch's generation

	mu    sync.Mutex // guards ports
	ports map[flow.Port]*port
	held  atomic.Bool // a port event is held back

	limits atomic.Pointer[[]*api.PortLimit] // as of the last window; nil if there are none

	lastRead atomic.Int64 // ns
	asked    atomic.Int64 // when the unanswered echo was sent, in ns
	doubted  atomic.Bool  // another connection claims the identity
	partial  atomic.Int64 // since when a message is incomplete, in ns
	echo     atomic.Int64 // last round trip, in ns
	fastest  atomic.Int64 // shortest round trip, in ns; 0 before the first
	count    counts
	lost     atomic.Pointer[string] // why the session ends, if the peer did not end it
	ending   atomic.Bool            // the session is closing

	// Only the reading goroutine uses these, again for each packet.
	active    bool // this process is master, and the system knows the switch
	pipeline  pipeline
	batch     batch
	progress  progress
	outgoing  outgoing
	again     again
	admission admission
	backlog   backlog
	sent      sent
	guarding  guarding

	taking func(*flow.PacketIn) // of a receiver: sets the role of a packet's port; nil: no packets

	echoes  echoes
	pulse   pulse
	holding []*session // switches for which only this batch holds packets; of the reading goroutine
	late    late       // only for the goroutine that delivers decisions of other processes
}

// yieldAt is the size of a batch, in bytes, after which other goroutines run.
const yieldAt = 8 << 10

// flushAt is how many bytes are gathered for the session's own switch before
// they are sent.
const flushAt = 48 << 10

// newSession returns the session of a connection.
func newSession(h *shared, conn net.Conn, secrets *secrets) *session {
	s := &session{hub: h, secrets: secrets, begun: time.Now(), ports: map[flow.Port]*port{}}
	s.account = h.memory.newAccount(s.begun,
		func(e *excess) { s.end(s.exceeds(e).Error()) },
		func(e *excess) { s.waits.abandon(s.exceeds(e)) })
	s.waits.account, s.waiting.account, s.said.kept.account = s.account, s.account, s.account
	s.progress.tally = h.tally
	if secrets.plain() {
		s.conn = conn
	} else {
		s.secured = secrets.wrap(conn, s.account)
		s.conn = s.secured
	}
	cfg := h.config.Load()
	s.in, s.out = newReader(s.conn, &h.spaces, s.account), newOutbox(s.conn, cfg.queueBytes, h.fence, s.account)
	if s.in.raw != nil && s.in.records == nil {
		s.in.early = newEarly(s, s.in.raw)
	}
	s.pipeline, s.admission = idle{}, newAdmission(cfg.flood, s.account)
	s.lastRead.Store(s.begun.UnixNano())
	return s
}

// shaking reports whether the session is in its handshake.
func (s *session) shaking() bool {
	return !s.known.Load() && !s.ending.Load() && s.lost.Load() == nil
}

// refuse counts the connection among the refused ones, once; it returns false
// if it was counted before.
func (s *session) refuse(why refusal) bool {
	if s.counted.Swap(true) {
		return false
	}
	s.hub.refused(why)
	return true
}

// isKnown reports whether the handshake is over.
func (s *session) isKnown() bool { return s.known.Load() }

// isEnding reports whether the session is closing.
func (s *session) isEnding() bool { return s.ending.Load() }

// end closes the connection for a reason of ours.
func (s *session) end(reason string) {
	s.lost.CompareAndSwap(nil, &reason)
	s.conn.Close()
	if s.in.early != nil {
		s.in.early.stop()
	}
}

// run is the life of a connection: handshake, then messages until it ends.
func (s *session) run() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v", p)
			s.hub.log.Error("session ended by a fault of ours", "peer", s.conn.RemoteAddr(), "panic", p, "stack", string(debug.Stack()))
		}
		err = s.exceeds(s.cause(err))
		s.letGo() // the session ended in the middle of a batch
		s.ending.Store(true)
		s.conn.Close()
		s.out.close()
		s.waits.close()
		s.echoes.close()
		s.progress.end()
		s.hub.keep.end(s.outgoing.ring)
		s.account.end()
		if !s.known.Load() {
			s.refuse(refusedHandshake)
		}
	}()
	go s.write()
	if err := s.handshake(); err != nil {
		return err
	}
	if err := s.establish(); err != nil {
		return err
	}
	defer func() {
		s.ending.Store(true)
		if s.active {
			s.pipeline.Close()
			s.hub.owner.Leave(s, s.cause(err))
		}
	}()
	return s.receive()
}

// exceeds logs and counts an excess, and returns it. It returns other errors
// unchanged.
func (s *session) exceeds(err error) error {
	e := (*excess)(nil)
	if !errors.As(err, &e) {
		return err
	}
	s.hub.total.excesses[e.bound].Add(1)
	attrs := []any{"peer", s.conn.RemoteAddr(), "bound", string(e.bound), "error", err}
	if s.known.Load() {
		attrs = append(attrs, "dpid", s.dpid)
	}
	s.hub.log.Warn("switch exceeds a bound", attrs...)
	return err
}

// write writes what the socket does not take at once, until the session ends.
// If a write fails, goroutines that wait for room in the queue stop waiting.
func (s *session) write() {
	if err := s.out.drain(); err != nil {
		s.end("write: " + err.Error())
		s.out.close()
	}
}

// cause returns why the session ends: our reason if we ended it, else the read
// error.
func (s *session) cause(err error) error {
	if reason := s.lost.Load(); reason != nil {
		return errors.New(*reason)
	}
	return err
}

// receive reads in batches, handles every message of a batch and sends the
// results.
func (s *session) receive() error {
	defer s.in.endEarly()
	if s.active {
		if err := s.hear(time.Now().UnixNano()); err != nil {
			return err
		}
	}
	for ready := s.in.ws != nil; ; ready = false { // the handshake may have left messages
		if !ready {
			if err := s.in.fillFor(s.hub.config.Load().realtimeFirst && s.pulse.beats()); err != nil {
				if errors.Is(err, io.EOF) {
					return errors.New("closed by the switch")
				}
				return fmt.Errorf("read: %w", err)
			}
		}
		now := time.Now().UnixNano()
		s.hub.watch.tick(now)
		s.lastRead.Store(now)
		ws := s.in.ws
		left := packetIns(s.in.waiting())
		if !s.in.ahead { // else early counts them
			s.progress.read(left)
		}
		ws.packet.Switch, ws.packet.Time = s.dpid, now
		if behind := s.backlog.look(s.in, now); s.admission.due(now) {
			s.roll(now, behind)
		}
		if s.hub.config.Load().realtimeFirst {
			if err := s.ahead(); err != nil {
				return err
			}
		}
		finished := 0
		for ; ; finished++ {
			if finished%lookPackets == lookPackets-1 && s.hub.watch.busy() {
				s.hub.watch.tick(time.Now().UnixNano())
			}
			msg, err := s.in.take()
			if err != nil {
				return err
			}
			if msg == nil {
				break
			}
			if err := s.message(msg); err != nil {
				return err
			}
			if len(ws.own) >= flushAt {
				left -= int64(s.batch.packetIns)
				if err := s.flush(); err != nil {
					return err
				}
			}
		}
		if !s.in.ahead { // else early sees it
			s.unfinished(s.in.partial(), finished > 0, now)
		}
		left -= int64(s.batch.packetIns)
		if err := s.flush(); err != nil {
			return err
		}
		s.progress.settle(left) // those that this process does not handle
		if err := s.dealAgain(now); err != nil {
			return err
		}
		s.sendHeld(s.in.end, now)
		if s.in.end >= yieldAt {
			runtime.Gosched() // a busy switch takes turns with the others
		}
	}
}

// unfinished records whether the beginning of a message waits for its end:
// since now, if messages before it were finished.
func (s *session) unfinished(is, finished bool, now int64) {
	switch {
	case !is:
		s.partial.Store(0)
	case finished:
		s.partial.Store(now)
	default:
		s.partial.CompareAndSwap(0, now)
	}
}

// flush sends what the batch gathered for this switch.
func (s *session) flush() error {
	away, settled := int64(s.batch.away), int64(s.batch.packetIns-s.batch.away)
	s.count.add(&s.batch.batchCounts)
	if s.admission.anyShed {
		s.hub.total.shedPacketIns(&s.admission)
	}
	s.progress.leave(away)
	s.pipeline.Flush()
	if err := s.send(); err != nil {
		return err
	}
	s.progress.settle(settled)
	s.progress.back(s.pipeline.Returned())
	return nil
}

// send sends what was gathered for this switch.
func (s *session) send() error {
	if err := s.flushUrgent(); err != nil {
		return err
	}
	ws := s.in.ws
	if len(ws.own) == 0 {
		return nil
	}
	err := s.out.put(ws.own)
	if err == errQueueFull {
		s.letGo() // other switches do not wait for this one
		if err = s.waiting.resize(len(ws.buf)); err == nil {
			err = s.out.putWait(ws.own)
			_ = s.waiting.resize(0) // shrinking never fails
		}
	}
	ws.own = ws.own[:0]
	if err == errFenced {
		s.shed(err)
		return nil
	}
	return err
}

// message handles one message of a switch that is up.
func (s *session) message(msg []byte) error {
	if !s.active {
		if done, err := s.stand(msg); done || err != nil {
			return err
		}
	}
	if msg[0] == byte(s.version) && msg[1] == byte(openflow.TypePacketIn) { // most of them; the number is the same in 1.0
		return s.packetIn(msg)
	}
	h, err := openflow.ParseHeader(msg)
	if err != nil {
		return err
	}
	if h.Version != s.version {
		return fmt.Errorf("message of version %d after %v was agreed on", h.Version, s.version)
	}
	switch h.Type {
	case openflow.TypeEchoRequest:
		s.pulse.beat(s.in.ws.packet.Time)
		ws := s.in.ws
		to := &ws.own
		if s.hub.config.Load().realtimeFirst {
			to = &ws.urgent
		}
		*to, err = s.version.AppendEchoReply(*to, h.Xid, msg[openflow.HeaderLen:])
		return err
	case openflow.TypeEchoReply:
		s.pulse.beat(s.in.ws.packet.Time)
		s.echoReply(h.Xid, s.in.ws.packet.Time)
	case openflow.TypePortStatus:
		reason, desc, err := s.version.DecodePortStatus(msg)
		if err != nil {
			return err
		}
		return s.portStatus(reason, &desc)
	case openflow.TypeBarrierReply:
		return s.waits.answer(h.Xid, nil, false)
	case openflow.TypeMultipartReply:
		r, err := s.version.DecodeMultipartReply(msg)
		if err != nil {
			return err
		}
		return s.waits.answer(h.Xid, r.Body, r.More)
	case openflow.TypeQueueGetConfigReply, openflow.TypeRoleReply:
		return s.waits.answer(h.Xid, msg, false)
	case openflow.TypeFlowRemoved:
		var r openflow.FlowRemoved
		if err := s.version.DecodeFlowRemoved(msg, &r); err != nil {
			return err
		}
		s.claims.removed(&flow.Entry{Table: r.Table, Priority: r.Priority, Cookie: r.Cookie, Match: r.Match})
		s.hub.flowRemoved(&api.FlowRemoved{Flow: removedEntry(s.dpid, &r), Reason: removedReason(r.Reason)})
	case openflow.TypeError:
		return s.refused(msg)
	case openflow.TypeFeaturesReply:
		f, err := s.version.DecodeFeaturesReply(msg)
		if err != nil {
			return err
		}
		if f.DPID != s.dpid {
			return fmt.Errorf("the switch changed its datapath id to %v", f.DPID)
		}
	}
	return nil
}

// packetIn runs a packet through the pipeline and carries out the decision.
func (s *session) packetIn(msg []byte) error {
	in, d := &s.in.ws.packet, &s.in.ws.decision
	if err := s.version.DecodePacketIn(msg, in); err != nil {
		return err
	}
	s.batch.packetIns++
	if in.Parsed = !packet.ParseEthernet(in.Data, &in.Key); in.Parsed {
		packet.Parse(in.Data, &in.Key) // too short for any header: this clears the last key
	}
	if s.admission.admit(in) != admitted {
		return nil
	}
	in.Role, in.Src, in.Dst, in.DstMAC = 0, flow.Location{}, flow.Location{}, flow.MAC{}
	in.Unapproved, in.HeldBy = false, nil
	d.Reset()
	if s.hub.receiver != nil && !s.take(in) {
		return nil
	}
	switch v := s.pipeline.Packet(in, d); {
	case v == flow.Away:
		s.batch.away++
		s.outgoing.away(msg, in)
		return nil
	case len(d.Ops) == 0:
		return nil
	}
	s.emit(d)
	return nil
}

// refused passes a switch's error to the sender of the refused message.
func (s *session) refused(msg []byte) error {
	e, err := s.version.DecodeError(msg)
	if err != nil {
		return err
	}
	s.count.errors.Add(1)
	waited, err := s.waits.refuse(e)
	if waited || s.guarding.refused(s, e) {
		return err
	}
	event := &api.SwitchError{Dpid: s.dpid.String(), Type: uint32(e.Type), Code: uint32(e.Code), Text: e.Error(), Xid: e.Xid}
	if cookie, ok := refusedCookie(s.version, e.Data); ok {
		event.Cookie = fmt.Sprintf("%016x", uint64(cookie))
	}
	s.hub.switchError(event)
	return nil
}

// refusedCookie reads the cookie from the start of a refused flow-mod. An error
// message carries at least 64 bytes of that message (OpenFlow 1.3.5 §7.4.4).
func refusedCookie(v openflow.Version, data []byte) (flow.Cookie, bool) {
	at := openflow.HeaderLen
	if v == openflow.V10 {
		at += 40 // after the match
	}
	if h, err := openflow.ParseHeader(data); err != nil || h.Type != openflow.TypeFlowMod || len(data) < at+8 {
		return 0, false
	}
	return flow.Cookie(binary.BigEndian.Uint64(data[at:])), true
}

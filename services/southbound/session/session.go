package session

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/recovery"
	"github.com/weft-sdn/weft/services/southbound/secure"
)

// Pipeline is the pipeline opened for one session.
type Pipeline interface {
	Packet(*flow.PacketIn, *flow.Decision) flow.Verdict
	Flush()
	Returned() (all, probes uint64)
	Close()
}

// Session is the connection of one switch. One goroutine reads it and runs the
// pipeline for its packets; any goroutine may send.
type Session struct {
	channel
	exchanges
	Begun   time.Time
	waiting admission.Buffer // memory for a workspace that waits for the switch to read

	mu    sync.Mutex // guards since
	since time.Time

	handshake handshake
	alive     liveness
	Role      roleState
	ports     portTable

	// Only the reading goroutine uses these, again for each packet.
	active    bool // this process is master, and the system knows the switch
	pipeline  Pipeline
	batch     batch
	progress  recovery.Progress
	outgoing  recovery.Outgoing
	leftOvers leftOvers
	floods    floods
	refusals  refusals

	at      int64        // when the batch began, by the clock of the beats
	holding holding      // for other switches
	remote  remoteOutput // only for the goroutine that delivers decisions of other processes
}

// yieldAt is the size of a batch, in bytes, after which other goroutines run.
const yieldAt = 8 << 10

// flushAt is how many bytes are gathered for the session's own switch before
// they are sent.
const flushAt = 96 << 10

// lookPackets is how many messages are handled between two looks at the clock.
const lookPackets = 16

// NewSession returns the session of a connection.
func NewSession(h *Shared, conn net.Conn, secrets *secure.Secrets) *Session {
	s := &Session{channel: channel{shared: h}, Begun: time.Now()}
	s.account = h.memory.NewAccount(s.Begun,
		func(e *admission.Excess) { s.End(s.recordExcess(e).Error()) },
		func(e *admission.Excess) { s.waits.abandon(s.recordExcess(e)) })
	c := &s.channel
	s.exchanges.channel, s.alive.channel, s.Role.channel = c, c, c
	s.ports.channel, s.ports.known = c, map[flow.Port]*port{}
	s.handshake = handshake{channel: c, role: &s.Role, ports: &s.ports, secrets: secrets}
	s.handshake.takeIdentity = func(sw dpid) error { return h.owner.Identify(s, sw) }
	s.floods.channel, s.floods.alive, s.floods.handshake, s.floods.send = c, &s.alive, &s.handshake, s.sendLimiter
	s.Role.announceRestored = func() { h.owner.AnnounceRestored(s) }
	s.waits.account, s.waiting.Account, s.handshake.async.kept.Account = s.account, s.account, s.account
	s.progress.Tally = h.tally
	if secrets.Plain() {
		s.Conn = conn
	} else {
		s.handshake.secured = secrets.Wrap(conn, s.account)
		s.Conn = s.handshake.secured
	}
	cfg := h.Config.Load()
	s.in, s.out = newReader(s.Conn, &h.spaces, s.account), newOutbox(s.Conn, cfg.QueueBytes, h.fence, s.account)
	s.out.shed = s.shed
	if s.in.raw != nil && s.in.records == nil {
		s.in.early = newReadAhead(&s.alive, &s.progress, s.in.raw)
	}
	s.pipeline, s.floods.filter = Idle{}, admission.NewFilter(cfg.Flood, s.account)
	s.alive.lastRead.Store(s.Begun.UnixNano())
	return s
}

// Claimed returns the identity that the switch has given in its handshake; 0 if it
// has not come so far.
func (s *Session) Claimed() flow.DPID { return s.handshake.feature.DPID }

// Receives reports whether packets of the switch may be sent here.
func (s *Session) Receives() bool { return s.handshake.setRole != nil }

// Check sends an echo to a silent switch and ends the session of a switch that
// does not answer, does not read, does not finish a message, or obeys another
// master. It also sends packets and events that are held for too long.
func (s *Session) Check(now time.Time, t *Timeouts) {
	s.ports.releaseHeld(now)
	s.Role.checkRole(now, t.EchoInterval)
	s.out.release() // the reader that holds packets for it may itself be held up
	s.alive.check(now, t)
}

// Doubt gives a switch whose identity another connection claims a short time
// to answer an echo.
func (s *Session) Doubt() { s.alive.doubt() }

// Run is the life of a connection: handshake, then messages until it ends.
func (s *Session) Run() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v", p)
			s.shared.Log.Error("session ended by a fault of ours", "peer", s.Conn.RemoteAddr(), "panic", p, "stack", string(debug.Stack()))
		}
		err = s.recordExcess(s.endCause(err))
		s.holding.release() // the session ended in the middle of a batch
		s.ending.Store(true)
		s.Conn.Close()
		s.out.close()
		s.waits.close()
		s.alive.echoes.close()
		s.progress.End()
		s.shared.recovery.End(s.outgoing.Ring)
		s.account.End()
		if !s.known.Load() {
			s.Refuse(refusedHandshake)
		}
	}()
	go s.write()
	if err := s.handshake.run(); err != nil {
		return err
	}
	if err := s.establish(); err != nil {
		return err
	}
	defer func() {
		s.ending.Store(true)
		if s.active {
			s.deactivate(s.endCause(err))
		}
	}()
	return s.receive()
}

// receive reads in batches, handles every message of a batch and sends the
// results.
func (s *Session) receive() error {
	defer s.in.endEarly()
	if s.active {
		if err := s.handleAsync(time.Now().UnixNano()); err != nil {
			return err
		}
	}
	for ready := s.in.ws != nil; ; ready = false { // the handshake may have left messages
		if !ready {
			if err := s.in.fillFor(s.shared.Config.Load().RealtimeFirst && s.alive.pulse.beats()); err != nil {
				if errors.Is(err, io.EOF) {
					return errors.New("closed by the switch")
				}
				return fmt.Errorf("read: %w", err)
			}
		}
		began := time.Now()
		now := began.UnixNano()
		s.at = s.shared.Beats.At(began)
		s.shared.pollUrgent(began)
		s.alive.lastRead.Store(now)
		ws := s.in.ws
		left, urgent := survey(s.in.waiting(), s.Version)
		if !s.in.ahead { // else readAhead counts them
			s.progress.Read(left)
		}
		ws.packet.Switch, ws.packet.Time = s.DPID, now
		if behind := s.floods.backlog.evaluate(s.in, now); s.floods.filter.Due(now) {
			s.floods.roll(now, behind)
		}
		if urgent && s.shared.Config.Load().RealtimeFirst {
			if err := s.handleUrgent(); err != nil {
				return err
			}
		}
		finished := 0
		for ; ; finished++ {
			if finished%lookPackets == lookPackets-1 && s.shared.hasUrgent() {
				s.shared.pollUrgent(time.Now())
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
		if !s.in.ahead { // else readAhead sees it
			s.alive.notePartial(s.in.partial(), finished > 0, now)
		}
		left -= int64(s.batch.packetIns)
		if err := s.flush(); err != nil {
			return err
		}
		s.progress.Settle(left) // those that this process does not handle
		if err := s.handleLeftOvers(now); err != nil {
			return err
		}
		s.holding.send(&s.shared.gathering, s.in.end, now)
		if s.in.end >= yieldAt {
			runtime.Gosched() // a busy switch takes turns with the others
		}
	}
}

// flush sends what the batch gathered for this switch.
func (s *Session) flush() error {
	away, settled := int64(s.batch.away), int64(s.batch.packetIns-s.batch.away)
	s.count.add(&s.batch.batchCounts)
	if s.floods.filter.AnyShed {
		s.shared.total.shedPacketIns(&s.floods.filter)
	}
	s.progress.Leave(away)
	s.pipeline.Flush()
	if err := s.send(); err != nil {
		return err
	}
	s.progress.Settle(settled)
	s.progress.Back(s.pipeline.Returned())
	return nil
}

// send sends what was gathered for this switch.
func (s *Session) send() error {
	if err := s.flushUrgent(); err != nil {
		return err
	}
	ws := s.in.ws
	if len(ws.own) == 0 {
		return nil
	}
	ws.own = s.alive.joinBeat(ws.own, s.at)
	err := s.out.put(ws.own)
	if err == errQueueFull {
		s.holding.release() // other switches do not wait for this one
		if err = s.waiting.Resize(len(ws.buf)); err == nil {
			err = s.out.putWait(ws.own)
			_ = s.waiting.Resize(0) // shrinking never fails
		}
	}
	if err == errFenced {
		s.shed(err, ws.own)
		err = nil
	}
	ws.own = ws.own[:0]
	return err
}

// message handles one message of a switch that is up.
func (s *Session) message(msg []byte) error {
	if !s.active {
		switch outcome, err := s.Role.handleWhileSlave(msg); {
		case err != nil || outcome == handled:
			return err
		case outcome == becameMaster:
			return s.takeOver()
		}
	}
	if msg[0] == byte(s.Version) && msg[1] == byte(openflow.TypePacketIn) { // most of them; the number is the same in 1.0
		return s.packetIn(msg)
	}
	h, err := openflow.ParseHeader(msg)
	if err != nil {
		return err
	}
	if h.Version != s.Version {
		return fmt.Errorf("message of version %d after %v was agreed on", h.Version, s.Version)
	}
	switch h.Type {
	case openflow.TypeEchoRequest:
		s.alive.pulse.beat(s.in.ws.packet.Time)
		ws := s.in.ws
		to := &ws.own
		if s.shared.Config.Load().RealtimeFirst {
			to = &ws.urgent
		}
		*to, err = s.Version.AppendEchoReply(*to, h.Xid, msg[openflow.HeaderLen:])
		return err
	case openflow.TypeEchoReply:
		s.alive.pulse.beat(s.in.ws.packet.Time)
		s.alive.echoReply(h.Xid, s.in.ws.packet.Time)
	case openflow.TypePortStatus:
		reason, desc, err := s.Version.DecodePortStatus(msg)
		if err != nil {
			return err
		}
		return s.portStatus(reason, &desc)
	case openflow.TypeBarrierReply:
		return s.waits.answer(h.Xid, nil, false)
	case openflow.TypeMultipartReply:
		r, err := s.Version.DecodeMultipartReply(msg)
		if err != nil {
			return err
		}
		return s.waits.answer(h.Xid, r.Body, r.More)
	case openflow.TypeRoleReply:
		if mine, err := s.Role.handleRoleReply(h.Xid, msg); mine {
			return err
		}
		return s.waits.answer(h.Xid, msg, false)
	case openflow.TypeQueueGetConfigReply:
		return s.waits.answer(h.Xid, msg, false)
	case openflow.TypeFlowRemoved:
		var r openflow.FlowRemoved
		if err := s.Version.DecodeFlowRemoved(msg, &r); err != nil {
			return err
		}
		s.claims.Removed(&flow.Entry{Table: r.Table, Priority: r.Priority, Cookie: r.Cookie, Match: r.Match})
		s.shared.FlowRemoved(&api.FlowRemoved{Flow: removedEntry(s.DPID, &r), Reason: removedReason(r.Reason)})
	case openflow.TypeError:
		return s.refused(msg)
	case openflow.TypeFeaturesReply:
		f, err := s.Version.DecodeFeaturesReply(msg)
		if err != nil {
			return err
		}
		if f.DPID != s.DPID {
			return fmt.Errorf("the switch changed its datapath id to %v", f.DPID)
		}
	}
	return nil
}

// portStatus handles a port-status message (OpenFlow 1.3.5 §7.4.3). An error ends the
// session.
func (s *Session) portStatus(reason openflow.PortReason, desc *openflow.PortDesc) error {
	if !s.active {
		return s.ports.record(reason, desc)
	}
	return s.ports.report(reason, desc)
}

// Settle adds the counts of a session that is over to the totals, and
// publishes that its limits are over. Nobody reads the session any more.
func (s *Session) Settle() {
	s.shared.total.addClosed(&s.count)
	s.floods.end()
}

// PortList returns the ports in the order of their numbers.
func (s *Session) PortList() []*api.Port { return s.ports.list() }

// packetIn runs a packet through the pipeline and carries out the decision.
func (s *Session) packetIn(msg []byte) error {
	in, d := &s.in.ws.packet, &s.in.ws.decision
	if err := s.Version.DecodePacketIn(msg, in); err != nil {
		return err
	}
	s.batch.packetIns++
	if in.Parsed = !packet.ParseEthernet(in.Data, &in.Key); in.Parsed {
		packet.Parse(in.Data, &in.Key) // too short for any header: this clears the last key
	}
	if s.floods.filter.Admit(in) != admission.Admitted {
		return nil
	}
	in.Role, in.Src, in.Dst, in.DstMAC = 0, flow.Location{}, flow.Location{}, flow.MAC{}
	in.Unapproved, in.HeldBy, in.Following = false, nil, s.in.following(s.Version)
	d.Reset()
	if s.shared.Receiver != nil && !s.prepareForReceiver(in) {
		return nil
	}
	switch v := s.pipeline.Packet(in, d); {
	case v == flow.Away:
		s.batch.away++
		s.outgoing.Away(msg, in)
		return nil
	case len(d.Ops) == 0:
		return nil
	}
	s.emit(d)
	return nil
}

// prepareForReceiver prepares a packet-in of a receiver for the stages. It returns false for
// LLDP, because the southbound gets all of it.
func (s *Session) prepareForReceiver(in *flow.PacketIn) bool {
	switch {
	case s.handshake.setRole == nil:
		s.shared.Receiver.Strangers.Add(1)
		return false
	case in.Key.EthType == flow.EthTypeLLDP || in.Key.EthType == admission.EthTypeBDDP:
		s.shared.Receiver.Probes.Add(1)
		return false
	}
	s.handshake.setRole(in)
	return true
}

package southbound

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/southbound/mastership"
)

// hub holds all sessions, and the records of switches that had one.
type hub struct {
	tally  *tally // of packet-ins
	keep   *keep
	cfg    atomic.Pointer[Config]
	mine   atomic.Pointer[partition]
	epoch  atomic.Uint64     // of this run as master; on a standby, of the known master
	fence  *mastership.Fence // closed while this process is not master; nil: always open
	log    *slog.Logger
	total  totals
	memory *memory
	spaces workspaces

	sending   sending
	gathering gathering
	early     earlySpaces
	watch     *watch // set before there are sessions
	rooms     rooms
	intake    *Intake // nil in the southbound

	silent atomic.Bool // the mastership is lost: the hub publishes nothing more

	// The outputs to the rest of the system, set before serve.
	open          func(dpid, func(*flow.Decision)) pipeline
	switchChanged func(*api.SwitchChanged)
	portChanged   func(*api.PortChanged)
	flowRemoved   func(*api.FlowRemoved)
	switchError   func(*api.SwitchError)
	floodChanged  func(*api.FloodChanged)
	// surpassed is called when a switch reports a generation higher than ours;
	// it reports whether something is done about it.
	surpassed func(generation uint64) bool

	up roster

	mu       sync.Mutex        // guards all below, and changes of up
	claimed  map[dpid]*session // sessions whose handshake is over
	records  map[dpid]*record
	conns    map[net.Conn]*session
	standing map[*session]bool // sessions that stand by
	master   bool              // this process is master of its switches
	before   *partition        // the switches before the last change, until settled
	settled  time.Time
}

// rooms is a pool of buffers for messages to switches.
type rooms struct{ pool sync.Pool }

// roomMax is the largest buffer that the pool keeps.
const roomMax = 256 << 10

func (p *rooms) get() *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return b
	}
	return new([]byte)
}

func (p *rooms) put(b *[]byte) {
	if cap(*b) <= roomMax {
		p.pool.Put(b)
	}
}

// record is what the hub remembers of a switch.
type record struct {
	last       *api.Switch // the switch when its session ended
	duplicates uint64
}

// recordsMax bounds the number of remembered switches.
const recordsMax = 100_000

// newHub returns a hub whose sessions stand by until promote.
func newHub(cfg Config, f *mastership.Fence, log *slog.Logger) *hub {
	mine, _ := cfg.partition() // Validate has checked it
	h := &hub{
		fence: f, log: log, memory: newMemory(&cfg), tally: &tally{}, keep: &keep{},
		claimed: map[dpid]*session{}, records: map[dpid]*record{}, conns: map[net.Conn]*session{}, standing: map[*session]bool{},
	}
	h.cfg.Store(&cfg)
	h.mine.Store(&mine)
	h.total.excesses = map[bound]*atomic.Uint64{}
	for _, b := range bounds() {
		h.total.excesses[b] = &atomic.Uint64{}
	}
	h.surpassed = func(uint64) bool { return false }
	h.floodChanged = func(*api.FloodChanged) {}
	return h
}

// session returns the session of a switch that is up, or nil.
func (h *hub) session(sw dpid) *session { return h.up.get(sw) }

// serve accepts switches until ctx ends, and then ends all sessions.
func (h *hub) serve(ctx context.Context, listeners []listener) error {
	h.watch = newWatch()
	limit := rate.NewLimiter(rate.Limit(h.cfg.Load().NewSessionsPerSecond), max(1, h.cfg.Load().NewSessionsPerSecond/5))
	g, ctx := errgroup.WithContext(ctx)
	var sessions sync.WaitGroup
	for _, l := range listeners {
		h.log.Info("listening for switches", "address", l.Addr().String(), "tls", !l.secrets.plain())
		g.Go(func() error {
			<-ctx.Done()
			return l.Close()
		})
		g.Go(func() error {
			for {
				if n := h.cfg.Load().NewSessionsPerSecond; rate.Limit(n) != limit.Limit() {
					limit.SetLimit(rate.Limit(n))
					limit.SetBurst(max(1, n/5))
				}
				if limit.Wait(ctx) != nil {
					return nil
				}
				conn, err := l.Accept()
				if ctx.Err() != nil {
					return nil
				}
				if err != nil {
					h.log.Error("accept", "error", err)
					if mastership.Pause(ctx, 100*time.Millisecond) {
						continue
					}
					return nil
				}
				if s := h.admit(conn, l.secrets); s != nil {
					sessions.Go(func() { h.hold(s) })
				}
			}
		})
	}
	g.Go(func() error { return h.watch.run(ctx) })
	g.Go(func() error { return h.keepAlive(ctx) })
	g.Go(func() error { return h.rearrange(ctx) })
	err := g.Wait()
	h.mu.Lock()
	for _, s := range h.conns {
		s.end("the controller is stopping")
	}
	h.mu.Unlock()
	sessions.Wait()
	return err
}

// admit makes a session for a connection, unless there are too many.
func (h *hub) admit(conn net.Conn, secrets *secrets) *session {
	s := &session{hub: h, secrets: secrets, over: make(chan struct{}), begun: time.Now(), ports: map[flow.Port]*port{}}
	s.account = h.memory.newAccount(s)
	s.waits.account, s.waiting.account, s.said.kept.account = s.account, s.account, s.account
	s.progress.tally = h.tally
	if secrets.plain() {
		s.conn = conn
	} else {
		s.secured = secrets.wrap(conn, s.account)
		s.conn = s.secured
	}
	s.in, s.out = newReader(s.conn, &h.spaces, s.account), newOutbox(s.conn, h.cfg.Load().QueueBytes, h.fence, s.account)
	if s.in.raw != nil && s.in.records == nil {
		s.in.early = newEarly(s, s.in.raw)
	}
	s.pipeline, s.admission = idle{}, newAdmission(h.cfg.Load().flood(), s.account)
	s.lastRead.Store(s.begun.UnixNano())
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.conns) >= h.cfg.Load().MaxSessions && !h.giveWay(s.begun) {
		h.total.refused.tooMany.Add(1)
		conn.Close()
		return nil
	}
	h.conns[s.conn] = s
	return s
}

// tooLong is how long a handshake may take before it has to make room for
// another when there are too many connections. A handshake takes a switch
// milliseconds.
const tooLong = time.Second

// giveWay ends the connection whose handshake has lasted longest, if that is
// too long; mu is held.
func (h *hub) giveWay(now time.Time) bool {
	var first *session
	for _, s := range h.conns {
		if !s.known.Load() && !s.ending.Load() && s.lost.Load() == nil && now.Sub(s.begun) > tooLong && (first == nil || s.begun.Before(first.begun)) {
			first = s
		}
	}
	if first == nil {
		return false
	}
	first.end("it was at its handshake for longest when there were southbound.max_sessions connections, and made room for another")
	delete(h.conns, first.conn)
	return true
}

// hold runs a session and says how it ended.
func (h *hub) hold(s *session) {
	err := s.exceeds(s.run())
	s.account.end()
	h.mu.Lock()
	delete(h.conns, s.conn)
	delete(h.standing, s)
	if h.claimed[s.dpid] == s {
		delete(h.claimed, s.dpid)
	}
	h.mu.Unlock()
	close(s.over)
	if !s.known.Load() {
		if !s.counted.Load() {
			h.total.refused.handshake.Add(1)
		}
		h.log.Warn("connection ended before it was a switch", "peer", s.conn.RemoteAddr(), "reason", err)
	}
}

// record returns the record of a switch. The caller holds the lock.
func (h *hub) record(sw dpid) *record {
	r := h.records[sw]
	if r == nil {
		r = &record{}
		if len(h.records) < recordsMax {
			h.records[sw] = r
		}
	}
	return r
}

// join makes the switch known to the system.
func (h *hub) join(s *session) error {
	s.pipeline = h.open(s.dpid, s.later)
	s.admission = newAdmission(h.cfg.Load().flood(), s.account)
	s.backlog.away, _ = s.pipeline.(awayer)
	var left []leftOver
	s.outgoing, left = h.keep.begin(s.dpid)
	s.progress.ring = s.outgoing.ring
	s.resume(left)
	h.mu.Lock()
	h.record(s.dpid)
	h.up.put(s.dpid, s)
	h.mu.Unlock()
	h.log.Info("switch up", "dpid", s.dpid, "peer", s.conn.RemoteAddr(), "version", s.version, "ports", len(s.ports))
	h.switchChanged(newSwitchChanged(s))
	return nil
}

// newSwitchChanged returns the event for a switch that is up.
func newSwitchChanged(s *session) *api.SwitchChanged {
	return &api.SwitchChanged{Switch: s.describe(), Ports: s.portList()}
}

// leave publishes that the switch is gone.
func (h *hub) leave(s *session, cause error) {
	last := s.describe()
	last.Connected = false
	last.Since = time.Now().UTC().Format(time.RFC3339)
	last.Reason = "closed"
	if cause != nil {
		last.Reason = plain(cause.Error())
	}
	h.mu.Lock()
	h.record(s.dpid).last = last
	delete(h.conns, s.conn) // before the event, so that its receivers find room for another connection
	h.up.drop(s.dpid)
	h.mu.Unlock()
	h.total.closed(&s.count)
	s.endLimits()
	h.log.Info("switch down", "dpid", s.dpid, "reason", last.Reason)
	h.switchChanged(&api.SwitchChanged{Switch: last})
}

// keepAlive sends an echo to silent switches and ends the sessions of switches
// that do not answer, do not read, or do not finish a message. It also sends
// packets that are held for too long.
func (h *hub) keepAlive(ctx context.Context) error {
	for {
		cfg := h.cfg.Load()
		if !mastership.Pause(ctx, min(500*time.Millisecond, cfg.EchoInterval/4)) {
			return nil
		}
		now := time.Now()
		h.keep.expire(now)
		for _, s := range h.all() {
			s.releaseHeld(now)
			s.out.release() // the reader that holds packets for it may itself be held up
			silent := now.Sub(time.Unix(0, s.lastRead.Load()))
			partial, asked := s.partial.Load(), s.asked.Load()
			switch {
			case s.doubted.Load() && asked != 0 && now.Sub(time.Unix(0, asked)) > doubt:
				s.end("another connection claims this datapath id, and this one does not answer")
			case s.out.stuck(now) > cfg.WriteTimeout:
				s.end(fmt.Sprintf("the switch has not read for %v", cfg.WriteTimeout))
			case silent > cfg.DeadAfter:
				s.end(fmt.Sprintf("the switch has been silent for %v", cfg.DeadAfter))
			case partial != 0 && now.Sub(time.Unix(0, partial)) > cfg.DeadAfter:
				s.end(fmt.Sprintf("the switch has not finished a message within %v", cfg.DeadAfter))
			case silent > cfg.EchoInterval && asked == 0:
				s.askEcho(now)
			}
		}
	}
}

// askEcho sends the switch an echo request.
func (s *session) askEcho(now time.Time) {
	s.asked.Store(now.UnixNano())
	if msg, err := s.version.AppendEchoRequest(nil, s.xid.Add(1), nil); err == nil {
		_ = s.out.put(msg)
	}
}

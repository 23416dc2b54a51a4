package southbound

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/services/southbound/mastership"
)

// hub holds all sessions, and the records of switches that had one.
type hub struct {
	shared
	cfg   atomic.Pointer[Config]
	mine  atomic.Pointer[partition]
	epoch atomic.Uint64 // of this run as master; on a standby, of the known master

	silent atomic.Bool // the mastership is lost: the hub publishes nothing more
	// onSurpassed is called when a switch reports a generation higher than ours;
	// it reports whether something is done about it.
	onSurpassed func(generation uint64) bool

	mu       sync.Mutex       // guards all below, members, and changes of up
	claimed  map[dpid]*member // sessions whose handshake is over
	records  map[dpid]*record
	members  map[*session]*member
	standing map[*session]bool // sessions that stand by
	master   bool              // this process is master of its switches
	before   *partition        // the switches before the last change, until settled
	settled  time.Time
}

// member is the hub's part of a session.
type member struct {
	*session
	over       chan struct{} // closed when the identity is free again
	identified bool          // dpid is known

	leavingSince atomic.Int64 // since when the switch is of another partition, ns; 0 if it is not
	yielding     atomic.Bool  // a check is under way whether the switch may be released
	warned       atomic.Bool  // the log says that nobody took the switch
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
	h := &hub{claimed: map[dpid]*member{}, records: map[dpid]*record{}, members: map[*session]*member{}, standing: map[*session]bool{}}
	h.shared.init(h, f, newMemory(cfg.SessionBytes, cfg.TotalBytes), log)
	h.configure(&cfg)
	h.mine.Store(&mine)
	h.onSurpassed = func(uint64) bool { return false }
	return h
}

// configure applies a configuration.
func (h *hub) configure(cfg *Config) {
	h.cfg.Store(cfg)
	h.config.Store(cfg.session())
}

// serve accepts switches until ctx ends, and then ends all sessions.
func (h *hub) serve(ctx context.Context, listeners []listener) error {
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
				if m := h.admit(conn, l.secrets); m != nil {
					sessions.Go(func() { h.hold(m) })
				}
			}
		})
	}
	g.Go(func() error { return h.readEarly(ctx) })
	g.Go(func() error { return h.keepAlive(ctx) })
	g.Go(func() error { return h.rearrange(ctx) })
	err := g.Wait()
	h.mu.Lock()
	for s := range h.members {
		s.end("the controller is stopping")
	}
	h.mu.Unlock()
	sessions.Wait()
	return err
}

// admit makes a session for a connection, unless there are too many.
func (h *hub) admit(conn net.Conn, secrets *secrets) *member {
	m := &member{session: newSession(&h.shared, conn, secrets), over: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.members) >= h.cfg.Load().MaxSessions && !h.giveWay(m.begun) {
		h.refused(refusedTooMany)
		conn.Close()
		return nil
	}
	h.members[m.session] = m
	return m
}

// tooLong is how long a handshake may take before it has to make room for
// another when there are too many connections. A handshake takes a switch
// milliseconds.
const tooLong = time.Second

// giveWay ends the connection whose handshake has lasted longest, if that is
// too long; mu is held.
func (h *hub) giveWay(now time.Time) bool {
	var first *session
	for s := range h.members {
		if s.shaking() && now.Sub(s.begun) > tooLong && (first == nil || s.begun.Before(first.begun)) {
			first = s
		}
	}
	if first == nil {
		return false
	}
	first.end("it was at its handshake for longest when there were southbound.max_sessions connections, and made room for another")
	delete(h.members, first)
	return true
}

// hold runs a session and says how it ended.
func (h *hub) hold(m *member) {
	err := m.run()
	h.mu.Lock()
	delete(h.members, m.session)
	delete(h.standing, m.session)
	if h.claimed[m.dpid] == m {
		delete(h.claimed, m.dpid)
	}
	h.mu.Unlock()
	close(m.over)
	if !m.isKnown() {
		h.log.Warn("connection ended before it was a switch", "peer", m.conn.RemoteAddr(), "reason", err)
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

// Join makes a switch known to the system.
func (h *hub) Join(s *session) {
	h.mu.Lock()
	delete(h.standing, s)
	h.record(s.dpid)
	h.up.put(s.dpid, s)
	h.mu.Unlock()
	h.log.Info("switch up", "dpid", s.dpid, "peer", s.conn.RemoteAddr(), "version", s.version, "ports", len(s.portList()))
	h.switchChanged(newSwitchChanged(s))
}

// newSwitchChanged returns the event for a switch that is up.
func newSwitchChanged(s *session) *api.SwitchChanged {
	return &api.SwitchChanged{Switch: s.describe(), Ports: s.portList()}
}

// Leave publishes that the switch is gone.
func (h *hub) Leave(s *session, cause error) {
	last := s.describe()
	last.Connected = false
	last.Since = time.Now().UTC().Format(time.RFC3339)
	last.Reason = "closed"
	if cause != nil {
		last.Reason = plain(cause.Error())
	}
	h.mu.Lock()
	h.record(s.dpid).last = last
	delete(h.members, s) // before the event, so that its receivers find room for another connection
	h.up.drop(s.dpid)
	h.mu.Unlock()
	s.settleMetrics()
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
		h.expire(now)
		for _, m := range h.all() {
			m.check(now, &timeouts{cfg.EchoInterval, cfg.DeadAfter, cfg.WriteTimeout})
		}
	}
}

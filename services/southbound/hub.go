package southbound

import (
	"container/list"
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/internal/resend"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/mastership"
	"github.com/weft-sdn/weft/services/southbound/secure"
	"github.com/weft-sdn/weft/services/southbound/session"
)

// hub holds all sessions, and the records of switches that had one.
type hub struct {
	reached object.Limits // of the configuration
	intake  bool          // it is that of a Receiver
	session.Shared
	cfg   atomic.Pointer[Config]
	mine  atomic.Pointer[admission.Partition]
	epoch atomic.Uint64 // of this run as master; on a standby, of the known master

	sparing sparing // of what anybody can cause

	silent atomic.Bool // the mastership is lost: the hub publishes nothing more
	// onHigherGeneration is called when a switch reports a generation higher than ours;
	// it reports whether something is done about it.
	onHigherGeneration func(generation uint64) bool

	beatChanged func(*api.BeatChanged)
	forgotten   func(*api.SwitchForgotten)
	failures    failures

	mu      sync.Mutex            // guards all below, members, and changes of up
	claimed map[flow.DPID]*member // sessions whose handshake is over
	records map[flow.DPID]*record
	away    list.List // of flow.DPID: records of switches that are away, in the order in which they left
	members map[*session.Session]*member
	standby map[*session.Session]bool // sessions that stand by
	master  bool                      // this process is master of its switches
	before  *admission.Partition      // the switches before the last change, until settled
	settled time.Time
}

// member is the hub's part of a session.
type member struct {
	*session.Session
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
	away       *list.Element // in hub.away; nil while it is connected, or has never been
}

// awayMost bounds how many switches that are away are remembered: whoever reaches the
// port can make them up.
const awayMost = 10_000

// newHub returns a hub whose sessions stand by until promote.
func newHub(cfg Config, f *mastership.Fence, log *slog.Logger) *hub {
	mine, _ := cfg.partition() // Validate has checked it
	h := &hub{claimed: map[flow.DPID]*member{}, records: map[flow.DPID]*record{}, members: map[*session.Session]*member{}, standby: map[*session.Session]bool{}}
	h.Shared.Init(h, f, admission.NewMemory(cfg.SessionBytes, cfg.TotalBytes), log)
	h.configure(&cfg)
	h.mine.Store(&mine)
	h.onHigherGeneration = func(uint64) bool { return false }
	h.forgotten = func(*api.SwitchForgotten) {}
	h.sparing.limit = rate.NewLimiter(rate.Every(refusalEvery), refusalsAtOnce)
	return h
}

// configure applies a configuration.
func (h *hub) configure(cfg *Config) {
	h.cfg.Store(cfg)
	h.Config.Store(cfg.session())
}

// serve accepts switches until ctx ends, and then ends all sessions.
func (h *hub) serve(ctx context.Context, listeners []listener) error {
	limit := rate.NewLimiter(rate.Limit(h.cfg.Load().NewSessionsPerSecond), max(1, h.cfg.Load().NewSessionsPerSecond/5))
	g, ctx := errgroup.WithContext(ctx)
	var sessions sync.WaitGroup
	for _, l := range listeners {
		h.Log.Info("listening for switches", "address", l.Addr().String(), "tls", !l.secrets.Plain())
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
					h.Log.Error("accept", "error", err)
					if backoff.Sleep(ctx, 100*time.Millisecond) == nil {
						continue
					}
					return nil
				}
				resend.Soon(conn)
				if m := h.admit(conn, l.secrets); m != nil {
					sessions.Go(func() { h.runSession(m) })
				}
			}
		})
	}
	g.Go(func() error { return h.ReadEarly(ctx) })
	g.Go(func() error { return h.Beats.Run(ctx) })
	g.Go(func() error { return h.Beats.Report(ctx, h.beatChanged) })
	g.Go(func() error { return h.keepAlive(ctx) })
	g.Go(func() error { return h.rearrange(ctx) })
	err := g.Wait()
	h.mu.Lock()
	for s := range h.members {
		s.End("the controller is stopping")
	}
	h.mu.Unlock()
	sessions.Wait()
	h.Beats.ReportChanges(h.beatChanged) // the switches are away
	return err
}

// maxSessions is the key of the configuration, of the southbound and of an intake.
var maxSessions = map[bool]string{false: "southbound.max_sessions", true: "intake.max_sessions"}

// admit makes a session for a connection, unless there are too many.
func (h *hub) admit(conn net.Conn, secrets *secure.Secrets) *member {
	m := &member{Session: session.NewSession(&h.Shared, conn, secrets), over: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.members) >= h.cfg.Load().MaxSessions && !h.endOldestHandshake(m.Begun) {
		h.Refused(session.RefusedTooMany)
		h.reached.Reach(time.Now().UnixNano(), maxSessions[h.intake], h.cfg.Load().MaxSessions, "")
		conn.Close()
		return nil
	}
	h.members[m.Session] = m
	return m
}

// tooLong is how long a handshake may take before it has to make room for
// another when there are too many connections. A handshake takes a switch
// milliseconds.
const tooLong = time.Second

// endOldestHandshake ends the connection whose handshake has lasted longest, if that is
// too long; mu is held.
func (h *hub) endOldestHandshake(now time.Time) bool {
	var first *session.Session
	for s := range h.members {
		if s.InHandshake() && now.Sub(s.Begun) > tooLong && (first == nil || s.Begun.Before(first.Begun)) {
			first = s
		}
	}
	if first == nil {
		return false
	}
	first.End("it was at its handshake for longest when there were southbound.max_sessions connections, and made room for another")
	delete(h.members, first)
	return true
}

// runSession runs a session and logs how it ended.
func (h *hub) runSession(m *member) {
	err := m.Run()
	h.mu.Lock()
	delete(h.members, m.Session)
	delete(h.standby, m.Session)
	if h.claimed[m.DPID] == m {
		delete(h.claimed, m.DPID)
		if r := h.records[m.DPID]; r != nil && r.last == nil { // it has never joined
			h.drop(m.DPID)
		}
	}
	h.mu.Unlock()
	close(m.over)
	if !m.Known() && h.failures.add(m.Conn.RemoteAddr(), m.Claimed(), err, time.Now()) {
		h.sparing.warn(h.Log, "connection ended before it was a switch", "peer", m.Conn.RemoteAddr(), "reason", err)
	}
}

// record returns the record of a switch. The caller holds the lock.
func (h *hub) record(sw flow.DPID) *record {
	r := h.records[sw]
	if r == nil {
		r = &record{}
		h.records[sw] = r
	}
	return r
}

// drop drops the record of a switch. The caller holds the lock.
func (h *hub) drop(sw flow.DPID) {
	if r := h.records[sw]; r != nil && r.away != nil {
		h.away.Remove(r.away)
	}
	delete(h.records, sw)
}

// recordJoin records a switch that has connected. The caller holds the lock.
func (h *hub) recordJoin(sw flow.DPID) {
	if r := h.record(sw); r.away != nil {
		h.away.Remove(r.away)
		r.away = nil
	}
}

// recordLeave records a switch that has disconnected, and limits the number of such records.
func (h *hub) recordLeave(sw flow.DPID) {
	h.mu.Lock()
	var oldest []flow.DPID
	if r := h.records[sw]; r != nil && r.away == nil && h.Session(sw) == nil { // neither forgotten nor back
		r.away = h.away.PushBack(sw)
	}
	for h.away.Len() > awayMost {
		first := h.away.Front().Value.(flow.DPID)
		oldest = append(oldest, first)
		h.drop(first)
	}
	h.mu.Unlock()
	for _, sw := range oldest {
		h.forgotten(&api.SwitchForgotten{Dpid: sw.String()})
	}
}

// Join makes a switch known to the system.
func (h *hub) Join(s *session.Session) {
	h.mu.Lock()
	delete(h.standby, s)
	h.recordJoin(s.DPID)
	h.Up.Put(s.DPID, s)
	h.mu.Unlock()
	h.failures.forgetPeer(s.Conn.RemoteAddr(), s.DPID)
	h.Log.Info("switch up", "dpid", s.DPID, "peer", s.Conn.RemoteAddr(), "version", s.Version, "ports", len(s.PortList()))
	h.SwitchChanged(newSwitchChanged(s))
}

// newSwitchChanged returns the event for a switch that is up.
func newSwitchChanged(s *session.Session) *api.SwitchChanged {
	return &api.SwitchChanged{Switch: s.Describe(), Ports: s.PortList()}
}

// Leave publishes that the switch is gone.
func (h *hub) Leave(s *session.Session, cause error) {
	last := s.Describe()
	last.Connected = false
	last.Since = time.Now().UTC().Format(time.RFC3339)
	last.Reason = "closed"
	if cause != nil {
		last.Reason = session.Printable(cause.Error())
	}
	h.mu.Lock()
	h.record(s.DPID).last = last
	delete(h.members, s) // before the event, so that its receivers find room for another connection
	h.Up.Drop(s.DPID)
	h.mu.Unlock()
	s.Settle()
	h.Log.Info("switch down", "dpid", s.DPID, "reason", last.Reason)
	h.SwitchChanged(&api.SwitchChanged{Switch: last})
	h.recordLeave(s.DPID)
}

// keepAlive sends an echo to silent switches and ends the sessions of switches
// that do not answer, do not read, or do not finish a message. It also sends
// packets that are held for too long.
func (h *hub) keepAlive(ctx context.Context) error {
	for {
		cfg := h.cfg.Load()
		if backoff.Sleep(ctx, min(500*time.Millisecond, cfg.EchoInterval/4)) != nil {
			return nil
		}
		now := time.Now()
		h.Expire(now)
		for _, m := range h.allMembers() {
			m.Check(now, &session.Timeouts{EchoInterval: cfg.EchoInterval, DeadAfter: cfg.DeadAfter, WriteTimeout: cfg.WriteTimeout})
		}
	}
}

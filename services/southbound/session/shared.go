package session

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/southbound/admission"
	"github.com/weft-sdn/weft/services/southbound/beats"
	"github.com/weft-sdn/weft/services/southbound/mastership"
	"github.com/weft-sdn/weft/services/southbound/recovery"
	"github.com/weft-sdn/weft/services/southbound/watch"
)

// Shared is what the sessions of a process share.
type Shared struct {
	owner    Owner
	Config   atomic.Pointer[Config]
	fence    *mastership.Fence // closed while this process is not master; nil: always open
	Log      *slog.Logger
	Up       roster
	total    totals
	memory   *admission.Memory
	tally    *recovery.Tally // of packet-ins
	recovery *recovery.Recovery

	spaces    workspaces
	rooms     rooms
	sending   admission.Rates
	gathering gathering
	early     earlySpaces
	watch     *watch.Watch
	Beats     *beats.Beats
	Receiver  *Receiver

	// The outputs to the rest of the system, set before there are sessions.
	Open          func(dpid, func(*flow.Decision)) Pipeline
	SwitchChanged func(*api.SwitchChanged)
	PortChanged   func(*api.PortChanged)
	FlowRemoved   func(*api.FlowRemoved)
	SwitchError   func(*api.SwitchError)
	FloodChanged  func(*api.FloodChanged)
	Confirmed     func(*flow.Confirmation)

	confirming atomic.Int32 // decisions that wait for switches to confirm
}

// Owner makes the decisions that concern all sessions of a process.
type Owner interface {
	// Identify gives a session its switch. It returns an error if the switch may
	// not connect here, or another connection has its identity.
	Identify(*Session, dpid) error
	// Claim gives a session whose handshake is over its identity.
	Claim(*Session) error
	// IsOwner reports whether this process is master of a switch. epoch is the
	// epoch of its mastership, or the highest epoch that it knows.
	IsOwner(dpid) (epoch uint64, master bool)
	// HandleHigherGeneration handles a generation of a switch that is higher than ours. It
	// reports whether it has taken action.
	HandleHigherGeneration(generation uint64) bool
	// AddSession adds a session whose handshake is over.
	AddSession(*Session) error
	// Join makes a switch known to the system, leave publishes that it is gone.
	Join(*Session)
	Leave(*Session, error)
	// AnnounceRestored announces a switch whose session was a slave for a while.
	AnnounceRestored(*Session)
	// Coming reports whether a switch that is not up is about to come up.
	Coming(dpid) bool
}

// Config is the part of the configuration that concerns one session.
type Config struct {
	HandshakeTimeout    time.Duration
	ConfirmTimeout      time.Duration
	QueueBytes          int
	PortEventsPerSecond int
	Flood               admission.FloodRule
	FloodMeters         bool
	RealtimeFirst       bool
}

// Receiver is what the sessions of a packet-in receiver have beside others.
type Receiver struct {
	Number uint16 // of the connections; not 0
	// Roles returns the function that sets the role of a packet's ingress port.
	Roles func(dpid) func(*flow.PacketIn)
	// Carry takes the decision about a packet, valid during the call.
	Carry             func(dpid, *flow.Decision)
	Strangers, Probes atomic.Uint64 // packet-ins that were for somebody else
}

// Init makes what sessions share; the outputs are set afterwards.
func (h *Shared) Init(o Owner, f *mastership.Fence, m *admission.Memory, log *slog.Logger) {
	h.owner, h.fence, h.Log, h.memory, h.tally, h.recovery, h.watch = o, f, log, m, &recovery.Tally{}, &recovery.Recovery{}, watch.New()
	h.Beats = beats.New()
	h.total.excesses = map[admission.Bound]*atomic.Uint64{}
	for _, b := range admission.Bounds() {
		h.total.excesses[b] = &atomic.Uint64{}
	}
	h.FloodChanged = func(*api.FloodChanged) {}
	h.Confirmed = func(*flow.Confirmation) {}
}

// ReadEarly reads early from sessions with heartbeats, until ctx ends.
func (h *Shared) ReadEarly(ctx context.Context) error { return h.watch.Run(ctx, h.sendBeats) }

// pollUrgent reads what has arrived at other sessions, and sends the heartbeats
// that are due.
func (h *Shared) pollUrgent(now time.Time) {
	h.watch.Tick(now.UnixNano())
	h.sendBeats(now)
}

// hasUrgent reports whether pollUrgent has anything to do.
func (h *Shared) hasUrgent() bool { return h.watch.Busy() || h.Beats.Ordered() }

// sendBeats sends the beats that are due. If nothing has priority over
// packet-ins, it leaves them to the timer.
func (h *Shared) sendBeats(now time.Time) {
	if h.Config.Load().RealtimeFirst {
		h.Beats.Turn(now)
	}
}

// OpenRecovery opens the memory that an earlier process may have left.
func (h *Shared) OpenRecovery(memory []byte) { h.tally, h.recovery = recovery.Open(memory, time.Now()) }

// Expire counts as lost the packet-ins that an earlier process left, if their
// switches did not reconnect in time.
func (h *Shared) Expire(now time.Time) { h.recovery.Expire(now) }

// Session returns the session of a switch that is up, or nil.
func (h *Shared) Session(sw dpid) *Session { return h.Up.get(sw) }

// number is the number of the connections, 0 in the southbound.
func (h *Shared) number() uint16 {
	if h.Receiver == nil {
		return 0
	}
	return h.Receiver.Number
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

package southbound

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/southbound/mastership"
)

// shared is what the sessions of a process share.
type shared struct {
	owner  owner
	config atomic.Pointer[sessionConfig]
	fence  *mastership.Fence // closed while this process is not master; nil: always open
	log    *slog.Logger
	up     roster
	total  totals
	memory *memory
	tally  *tally // of packet-ins
	keep   *keep

	spaces    workspaces
	rooms     rooms
	sending   sending
	gathering gathering
	early     earlySpaces
	watch     *watch
	receiver  *receiver

	// The outputs to the rest of the system, set before there are sessions.
	open          func(dpid, func(*flow.Decision)) pipeline
	switchChanged func(*api.SwitchChanged)
	portChanged   func(*api.PortChanged)
	flowRemoved   func(*api.FlowRemoved)
	switchError   func(*api.SwitchError)
	floodChanged  func(*api.FloodChanged)
}

// owner decides about all sessions of a process together.
type owner interface {
	// Identify gives a session its switch. It returns an error if the switch may
	// not connect here, or another connection has its identity.
	Identify(*session, dpid) error
	// Claim gives a session whose handshake is over its identity.
	Claim(*session) error
	// Mandate reports whether this process is master of a switch. epoch is the
	// epoch of its mastership, or the highest epoch that it knows.
	Mandate(dpid) (epoch uint64, master bool)
	// Surpassed handles a generation of a switch that is higher than ours; it
	// reports whether something is done about it.
	Surpassed(generation uint64) bool
	// Enlist adds a session whose handshake is over.
	Enlist(*session) error
	// Join makes a switch known to the system, leave publishes that it is gone.
	Join(*session)
	Leave(*session, error)
	// Coming reports whether a switch that is not up is about to come up.
	Coming(dpid) bool
}

// sessionConfig is the part of the configuration that concerns one session.
type sessionConfig struct {
	handshakeTimeout    time.Duration
	confirmTimeout      time.Duration
	queueBytes          int
	portEventsPerSecond int
	flood               floodRule
	floodMeters         bool
	realtimeFirst       bool
}

// receiver is what the sessions of a packet-in receiver have beside others.
type receiver struct {
	number uint16 // of the connections; not 0
	// roles returns the function that sets the role of a packet's ingress port.
	roles func(dpid) func(*flow.PacketIn)
	// carry takes the decision about a packet, valid during the call.
	carry             func(dpid, *flow.Decision)
	strangers, probes atomic.Uint64 // packet-ins that were for somebody else
}

// init makes what sessions share; the outputs are set afterwards.
func (h *shared) init(o owner, f *mastership.Fence, m *memory, log *slog.Logger) {
	h.owner, h.fence, h.log, h.memory, h.tally, h.keep, h.watch = o, f, log, m, &tally{}, &keep{}, newWatch()
	h.total.excesses = map[bound]*atomic.Uint64{}
	for _, b := range bounds() {
		h.total.excesses[b] = &atomic.Uint64{}
	}
	h.floodChanged = func(*api.FloodChanged) {}
}

// readEarly reads early from sessions with heartbeats, until ctx ends.
func (h *shared) readEarly(ctx context.Context) error { return h.watch.run(ctx) }

// openEstate takes over memory that an earlier process may have left.
func (h *shared) openEstate(memory []byte) { h.tally, h.keep = openEstate(memory, time.Now()) }

// expire counts as lost what an earlier process left of switches that did not
// come back in time.
func (h *shared) expire(now time.Time) { h.keep.expire(now) }

// session returns the session of a switch that is up, or nil.
func (h *shared) session(sw dpid) *session { return h.up.get(sw) }

// number is the number of the connections, 0 in the southbound.
func (h *shared) number() uint16 {
	if h.receiver == nil {
		return 0
	}
	return h.receiver.number
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

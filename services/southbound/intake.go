package southbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/keypair"
	"github.com/weft-sdn/weft/openflow"
)

// Intake is the packet-in receiver: connections of switches, beside those of
// the southbound, that carry nothing but the packet-ins of entries that name
// its number (flow.Controller). It is a slave of every switch, so that no
// switch takes a change from it; Carry passes the decisions about the packets
// to the southbound.
type Intake struct {
	hub  *hub
	cfg  IntakeConfig
	lots struct{ strangers, probes atomic.Uint64 }
}

// IntakeConfig holds the parameters of an Intake.
type IntakeConfig struct {
	Sessions *Config // where and how switches are received
	Number   uint16  // not 0
	Log      *slog.Logger
	Memory   []byte // outlives the process; TallySize octets
	// Open opens the pipeline for one session.
	Open func(sw flow.DPID, later func(*flow.Decision)) Pipeline
	// Roles returns the function that sets the role of a packet's ingress port
	// on a switch.
	Roles func(sw flow.DPID) func(*flow.PacketIn)
	// Carry takes the decision about a packet of a switch, valid during the
	// call. Where stages are in this process there is one call at a time for
	// each switch; where they are not, one at a time.
	Carry func(sw flow.DPID, d *flow.Decision)
	// Changed is called when Switches has changed.
	Changed func()
}

// Pipeline is the stages, opened for one session.
type Pipeline = pipeline

// DefaultConfig returns the configuration of the southbound.
func DefaultConfig() *Config { return defaults() }

// NewIntake returns an intake, which accepts no switch before Serve.
func NewIntake(cfg IntakeConfig) *Intake {
	i := &Intake{cfg: cfg}
	h := newHub(*cfg.Sessions, nil, cfg.Log)
	h.intake = i
	h.open = cfg.Open
	h.switchChanged = func(*api.SwitchChanged) { cfg.Changed() }
	h.portChanged = func(*api.PortChanged) {}
	h.flowRemoved = func(*api.FlowRemoved) {}
	h.switchError = func(*api.SwitchError) {}
	h.tally, h.keep = openEstate(cfg.Memory, time.Now())
	i.hub = h
	return i
}

// Switches returns, in order, the switches whose packets may be sent here.
func (i *Intake) Switches() []flow.DPID {
	var list []flow.DPID
	for sw, s := range i.hub.up.all() {
		if s.taking != nil {
			list = append(list, sw)
		}
	}
	slices.Sort(list)
	return list
}

// Register registers the metrics.
func (i *Intake) Register(m figures) {
	i.hub.tally.register(m)
	i.hub.total.register(m, i.hub)
	m.CounterFunc("unwanted_total", "Packet-ins that were for somebody else.", func() float64 { return float64(i.lots.strangers.Load()) }, "what", "number")
	m.CounterFunc("unwanted_total", "Packet-ins that were for somebody else.", func() float64 { return float64(i.lots.probes.Load()) }, "what", "probe")
}

// Serve accepts switches until ctx ends. It calls ready once it listens.
func (i *Intake) Serve(ctx context.Context, m figures, ready func() error) error {
	var pair *keypair.Pair
	secrets, pair, err := i.cfg.Sessions.openSecrets()
	if err != nil {
		return err
	}
	secrets.register(m, pair)
	listeners, err := listen(i.cfg.Sessions.Listen, secrets, listenLocal)
	if err != nil {
		return fmt.Errorf("intake: %w", err)
	}
	if err := ready(); err != nil {
		return err
	}
	return i.hub.serve(ctx, listeners)
}

// enroll makes the connection one for packet-ins: as a slave, which gets
// packet-ins if it asks for them (OpenFlow 1.3.5 §6.3.6, §7.3.10), and with the
// intake's number. A switch without such numbers sends it nothing, because the
// southbound gets its packets.
func (s *session) enroll() error {
	if s.version != openflow.V13 {
		return fmt.Errorf("switch %v speaks %v here: packets are taken over connections with OpenFlow 1.3; set protocols=OpenFlow13 on the bridge, or leave this controller out", s.dpid, s.version)
	}
	if err := s.takeSlave(0); err != nil { // with the switch's generation, if it has one
		return err
	}
	s.mastered = true   // nothing to wait for: it stays a slave
	xid := s.xid.Add(1) // of both messages: the answer is a refusal or the barrier reply
	msg, err := s.version.AppendSetControllerID(nil, xid, s.hub.intake.cfg.Number)
	if err != nil {
		return err
	}
	err = s.settle(xid, msg)
	var refused *openflow.Error
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	async := openflow.Async{}
	if refused == nil {
		async.PacketIn[0] = 1<<flow.ReasonNoMatch | 1<<flow.ReasonAction | 1<<flow.ReasonInvalidTTL
		async.PacketIn[1] = async.PacketIn[0]
	}
	xid = s.xid.Add(1)
	if msg, err = s.version.AppendSetAsync(nil, xid, &async); err != nil {
		return err
	}
	if err := s.settle(xid, msg); err != nil {
		return fmt.Errorf("switch %v: asynchronous configuration: %w", s.dpid, err)
	}
	if refused != nil {
		s.hub.log.Warn("switch knows no numbers of controllers (Open vSwitch's controller id): the southbound gets its packets, and passes them on", "dpid", s.dpid, "error", refused)
		return nil
	}
	s.taking = s.hub.intake.cfg.Roles(s.dpid)
	return nil
}

// settle sends a message and a barrier with the same xid, and waits until the
// switch answers one of them.
func (s *session) settle(xid uint32, msg []byte) error {
	if err := s.out.put(s.version.AppendBarrierRequest(msg, xid)); err != nil {
		return err
	}
	_, err := s.reply(xid, openflow.TypeBarrierReply)
	return err
}

// take prepares a packet-in of an intake for the stages. It returns false for
// LLDP, because the southbound gets all of it.
func (s *session) take(in *flow.PacketIn) bool {
	switch {
	case s.taking == nil:
		s.hub.intake.lots.strangers.Add(1)
		return false
	case in.Key.EthType == flow.EthTypeLLDP || in.Key.EthType == ethTypeBDDP:
		s.hub.intake.lots.probes.Add(1)
		return false
	}
	s.taking(in)
	return true
}

// number is the number of the connections, 0 in the southbound.
func (h *hub) number() uint16 {
	if h.intake == nil {
		return 0
	}
	return h.intake.cfg.Number
}

// guard passes a flood limiter to the southbound, which confirms its meter
// before it writes the entries that use it.
func (i *Intake) guard(sw flow.DPID, d *flow.Decision) {
	all := &flow.Decision{}
	for k, op := range d.Ops {
		switch op.Kind {
		case flow.OpMeter:
			all.Meter(op.Switch, d.Meters[op.Index])
		case flow.OpFlow:
			if k > 0 && d.Ops[k-1].Kind == flow.OpMeter {
				all.Fence()
			}
			all.Flow(op.Switch, d.Flows[op.Index])
		}
	}
	i.cfg.Carry(sw, all)
}

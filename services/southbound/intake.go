package southbound

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/keypair"
)

// Intake is the packet-in receiver: connections of switches, beside those of
// the southbound, that carry nothing but the packet-ins of entries that name
// its number (flow.Controller). It is a slave of every switch, so that no
// switch takes a change from it; Carry passes the decisions about the packets
// to the southbound.
type Intake struct {
	hub      *hub
	cfg      IntakeConfig
	receiver receiver
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
	i.receiver.number, i.receiver.roles, i.receiver.carry = cfg.Number, cfg.Roles, cfg.Carry
	h.receiver = &i.receiver
	h.open = cfg.Open
	h.switchChanged = func(*api.SwitchChanged) { cfg.Changed() }
	h.portChanged = func(*api.PortChanged) {}
	h.flowRemoved = func(*api.FlowRemoved) {}
	h.switchError = func(*api.SwitchError) {}
	h.openEstate(cfg.Memory)
	i.hub = h
	return i
}

// Switches returns, in order, the switches whose packets may be sent here.
func (i *Intake) Switches() []flow.DPID {
	var list []flow.DPID
	for sw, s := range i.hub.up.all() {
		if s.receives() {
			list = append(list, sw)
		}
	}
	slices.Sort(list)
	return list
}

// Register registers the metrics.
func (i *Intake) Register(m weft.Metrics) {
	i.hub.register(m)
	m.CounterFunc("unwanted_total", "Packet-ins that were for somebody else.", func() float64 { return float64(i.receiver.strangers.Load()) }, "what", "number")
	m.CounterFunc("unwanted_total", "Packet-ins that were for somebody else.", func() float64 { return float64(i.receiver.probes.Load()) }, "what", "probe")
}

// Serve accepts switches until ctx ends. It calls ready once it listens.
func (i *Intake) Serve(ctx context.Context, m weft.Metrics, ready func() error) error {
	var pair *keypair.Pair
	secrets, pair, err := i.cfg.Sessions.openSecrets()
	if err != nil {
		return err
	}
	registerSecrets(m, secrets, pair)
	listeners, err := listen(i.cfg.Sessions.Listen, secrets, listenLocal)
	if err != nil {
		return fmt.Errorf("intake: %w", err)
	}
	if err := ready(); err != nil {
		return err
	}
	return i.hub.serve(ctx, listeners)
}

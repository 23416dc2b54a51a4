package southbound

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/keypair"
	"github.com/weft-sdn/weft/services/southbound/recovery"
	"github.com/weft-sdn/weft/services/southbound/session"
)

// Receiver is the packet-in receiver: connections of switches, beside those of
// the southbound, that carry nothing but the packet-ins of entries that name
// its number (flow.Controller). It is a slave of every switch, so that no
// switch takes a change from it; Carry passes the decisions about the packets
// to the southbound.
type Receiver struct {
	hub      *hub
	cfg      ReceiverConfig
	receiver session.Receiver
}

// ReceiverConfig holds the parameters of a Receiver.
type ReceiverConfig struct {
	Sessions *Config // where and how switches are received
	Number   uint16  // not 0
	Log      *slog.Logger
	Memory   []byte // outlives the process; EstateSize octets
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
type Pipeline = session.Pipeline

// EstateSize is the size of the memory for what outlives the process.
const EstateSize = recovery.Size

// DefaultConfig returns the configuration of the southbound.
func DefaultConfig() *Config { return defaults() }

// NewReceiver returns a receiver, which accepts no switch before Serve.
func NewReceiver(cfg ReceiverConfig) *Receiver {
	r := &Receiver{cfg: cfg}
	h := newHub(*cfg.Sessions, nil, cfg.Log)
	h.intake = true
	r.receiver.Number, r.receiver.Roles, r.receiver.Carry = cfg.Number, cfg.Roles, cfg.Carry
	h.Receiver = &r.receiver
	h.Open = cfg.Open
	h.SwitchChanged = func(*api.SwitchChanged) { cfg.Changed() }
	h.PortChanged = func(*api.PortChanged) {}
	h.FlowRemoved = func(*api.FlowRemoved) {}
	h.SwitchError = func(*api.SwitchError) {}
	h.OpenRecovery(cfg.Memory)
	r.hub = h
	return r
}

// Switches returns, in order, the switches whose packets may be sent here.
func (r *Receiver) Switches() []flow.DPID {
	var list []flow.DPID
	for sw, s := range r.hub.Up.All() {
		if s.Receives() {
			list = append(list, sw)
		}
	}
	slices.Sort(list)
	return list
}

// Reached returns the limits of the configuration that were reached lately, and the ports
// whose packets are limited now.
func (r *Receiver) Reached(now int64) []*api.LimitReached {
	list := r.hub.reached.List(now)
	for _, p := range r.hub.Limits("") {
		list = append(list, &api.LimitReached{Key: "intake.flood_rate", Limit: uint64(p.Limit), Who: "port " + p.Dpid + "/" + flow.Port(p.Port).String(), Times: p.Shed,
			Last: time.Unix(0, now).UTC().Format(time.RFC3339)})
	}
	return list
}

// Register registers the metrics.
func (r *Receiver) Register(m session.Metrics) {
	r.hub.register(m)
	m.CounterFunc("unwanted_total", "Packet-ins that were for somebody else.", func() float64 { return float64(r.receiver.Strangers.Load()) }, "what", "number")
	m.CounterFunc("unwanted_total", "Packet-ins that were for somebody else.", func() float64 { return float64(r.receiver.Probes.Load()) }, "what", "probe")
}

// Serve accepts switches until ctx ends. It calls ready once it listens.
func (r *Receiver) Serve(ctx context.Context, m session.Metrics, ready func() error) error {
	var pair *keypair.Pair
	secrets, pair, err := r.cfg.Sessions.openSecrets()
	if err != nil {
		return err
	}
	registerSecrets(m, secrets, pair)
	listeners, err := listen(r.cfg.Sessions.Listen, secrets, listenLocal)
	if err != nil {
		return fmt.Errorf("intake: %w", err)
	}
	if err := ready(); err != nil {
		return err
	}
	return r.hub.serve(ctx, listeners)
}

// Package southbound holds the OpenFlow sessions of the switches: it turns
// their messages into events and packet-ins, and decisions into messages. It is
// the only service that imports openflow. Only intake, which shares its
// sessions, and the list of services import it.
package southbound

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/services/southbound/mastership"
	"github.com/weft-sdn/weft/services/southbound/recovery"
	"github.com/weft-sdn/weft/services/southbound/session"
)

// Spec declares the service.
func Spec() weft.Spec { return SpecOn(listenLocal) }

// SpecOn declares the service on a network other than this machine's: listen
// opens an address there, as net.Listen does. It is for networks in memory.
func SpecOn(listen func(network, address string) (net.Listener, error)) weft.Spec {
	return weft.Spec{
		Name: "southbound",
		Doc:  "holds the OpenFlow sessions of the switches",
		Serves: weft.Methods(api.ListSwitches, api.ListPorts, api.ReadFlows, api.ReadGroups, api.ReadMeters, api.ReadPortStats, api.ReadTableStats, api.Apply, api.Send, api.EchoSwitches, api.OrderBeats, api.ListBeats, api.ListLimits, api.ForgetSwitch,
			api.ReadMultipart, api.ModifyPort, api.SendExperimenter),
		Publishes: weft.Subjects(api.SwitchChangedEvent, api.PortChangedEvent, api.FlowRemovedEvent, api.SwitchErrorEvent, api.SwitchForgottenEvent, api.FloodChangedEvent, api.BeatChangedEvent),
		Buckets:   []string{"mastership"},
		Rebuilt:   []string{"mastership"},
		Pipeline:  true,
		Standby:   true,
		Class:     weft.RealTime,
		Scale:     weft.PerPartition,
		Config:    defaults(),
		Live: []string{"handshake_timeout", "echo_interval", "dead_after", "write_timeout", "confirm_timeout", "new_sessions_per_second", "max_sessions",
			"port_events_per_second", "flood_rate", "flood_factor", "flood_floor", "flood_meters", "probe_rate", "realtime_first",
			"lease_time", "lease_renew", "standbys", "standby", "instance", "switches", "elsewhere", "hold_others"},
		Run: func(ctx context.Context, env *weft.Env) error { return run(ctx, env, listen) },
	}
}

func run(ctx context.Context, env *weft.Env, open func(network, address string) (net.Listener, error)) error {
	cfg := env.Config.(*Config)
	book, err := openLedger(env)
	if err != nil {
		return err
	}
	m := mastership.New(book, cfg.terms(), cfg.newTenure(), env.Log)
	m.Fresh = book.fresh
	m.Others = func() []string { return weft.StandbyPeers(env) }
	m.Ask = func(ctx context.Context, instance string, question []byte) ([]byte, error) {
		return weft.AskPeer(ctx, env, instance, question)
	}
	weft.AnswerPeers(env, m.Asked)
	h := newHub(*cfg, m.Fence, env.Log)
	h.Open = func(sw flow.DPID, later func(*flow.Decision)) session.Pipeline {
		return weft.OpenPipeline(env, sw, later)
	}
	h.SwitchChanged = publisher(env, h, api.SwitchChangedEvent)
	h.PortChanged = publisher(env, h, api.PortChangedEvent)
	h.FlowRemoved = publisher(env, h, api.FlowRemovedEvent)
	h.SwitchError = publisher(env, h, api.SwitchErrorEvent)
	h.FloodChanged = publisher(env, h, api.FloodChangedEvent)
	h.Confirmed = func(c *flow.Confirmation) { weft.ReportConfirmation(env, c) }
	h.beatChanged = publisher(env, h, api.BeatChangedEvent)
	h.onHigherGeneration = h.higherGenerationHandler(m)
	memory, err := weft.Scratch(env, "packet-ins", recovery.Size)
	if err != nil {
		env.Log.Warn("cannot open the loss counter; losses after a crash will not be counted", "error", err)
	}
	h.OpenRecovery(memory)
	h.register(env.Metric)
	weft.ReportLimits(env, h.reached.List)
	weft.OnConfig(env, func(_ context.Context, old, c *Config) error {
		h.configure(c)
		if p, err := c.partition(); err == nil && !(slices.Equal(old.Switches, c.Switches) && maps.EqualFunc(old.Elsewhere, c.Elsewhere, slices.Equal[[]string])) {
			h.repartition(p, time.Now())
		}
		m.SetTerms(c.terms(), c.holder())
		return nil
	})
	registerMastership(m, env.Metric)

	ask := queries{h}
	weft.Handle(env, api.ListSwitches, h.listSwitches)
	weft.Handle(env, api.ListPorts, ask.listPorts)
	weft.Handle(env, api.ReadFlows, ask.readFlows)
	weft.Handle(env, api.ReadGroups, ask.readGroups)
	weft.Handle(env, api.ReadMeters, ask.readMeters)
	weft.Handle(env, api.ReadPortStats, ask.readPortStats)
	weft.Handle(env, api.ReadTableStats, ask.readTableStats)
	weft.Handle(env, api.Apply, h.Apply)
	weft.Handle(env, api.Send, h.Send)
	weft.Handle(env, api.EchoSwitches, h.EchoSwitches)
	weft.Handle(env, api.OrderBeats, h.OrderBeats)
	weft.Handle(env, api.ListBeats, h.ListBeats)
	weft.Handle(env, api.ReadMultipart, ask.readMultipart)
	weft.Handle(env, api.ModifyPort, ask.modifyPort)
	weft.Handle(env, api.SendExperimenter, ask.sendExperimenter)
	weft.Handle(env, api.ListLimits, ask.listLimits)
	h.forgotten = publisher(env, h, api.SwitchForgottenEvent)
	weft.Handle(env, api.ForgetSwitch, func(_ context.Context, req *api.ForgetSwitchRequest) (*api.ForgetSwitchResponse, error) {
		sw, err := flow.ParseDPID(req.GetDpid())
		if err != nil {
			return nil, api.Errorf(codes.InvalidArgument, "%w", err)
		}
		resp := h.forget(sw)
		h.forgotten(&api.SwitchForgotten{Dpid: sw.String()})
		return resp, nil
	})

	secrets, pair, err := cfg.openSecrets()
	if err != nil {
		return err
	}
	registerSecrets(env.Metric, secrets, pair)
	listeners, err := listen(cfg.listenAt(), secrets, open)
	if err != nil {
		return err
	}
	// From here on it holds sessions with switches. If the plan has a standby,
	// this process may be it, and waits here as long as another process is
	// master.
	return h.run(ctx, m, listeners, func(ctx context.Context) error { return weft.Ready(ctx, env) })
}

// publisher returns a function that publishes events unless this process is
// known to have lost the mastership.
func publisher[E any](env *weft.Env, h *hub, subject api.Subject[E]) func(*E) {
	return func(e *E) {
		if !h.silent.Load() {
			weft.Publish(env, subject, e)
		}
	}
}

// storedLedger keeps the tenure in the mastership's bucket.
type storedLedger struct{ bucket weft.Bucket }

func openLedger(env *weft.Env) (*storedLedger, error) {
	bucket, err := weft.State(env, "mastership")
	return &storedLedger{bucket}, err
}

// The keys of the mastership's bucket.
const (
	leaseKey = "lease"
	epochKey = "epoch" // the last epoch, from versions without a lease
	proofKey = "proof" // written to see whether the store takes writes
)

func (l *storedLedger) Read(ctx context.Context) (mastership.Tenure, uint64, error) {
	value, rev, err := l.bucket.Get(ctx, leaseKey)
	if err != nil || rev == 0 {
		return mastership.Tenure{}, 0, err
	}
	t, err := mastership.ReadTenure(value)
	return t, rev, err
}

func (l *storedLedger) Swap(ctx context.Context, t mastership.Tenure, over uint64) (uint64, bool, error) {
	value, err := json.Marshal(t)
	if err != nil {
		return 0, false, err
	}
	rev, err := l.bucket.Update(ctx, leaseKey, value, over)
	if errors.Is(err, weft.ErrRevision) {
		return 0, false, nil
	}
	return rev, err == nil, err
}

func (l *storedLedger) Prove(ctx context.Context) error {
	_, err := l.bucket.Put(ctx, proofKey, nil)
	return err
}

// fresh returns the least epoch for a new tenure: higher than any that a
// version without a lease has used, and, in case the store is lost, than any of
// an earlier second.
func (l *storedLedger) fresh(ctx context.Context) (uint64, error) {
	epoch := uint64(time.Now().Unix())
	last, _, err := l.bucket.Get(ctx, epochKey)
	if err == nil && len(last) == 8 {
		epoch = max(epoch, binary.BigEndian.Uint64(last)+1)
	}
	return epoch, err
}

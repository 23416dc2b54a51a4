// Package discovery is the service that finds the links between switches, by
// signed LLDP probes and port status, and the role of every port: edge, link,
// or none yet. It is the first stage of the pipeline.
//
// A signed probe proves that it left a certain port within the last second. It
// does not prove that a cable connects the ports: hosts may forward probes to
// each other. That gives them away, unless they do it at wire speed and are
// silent otherwise; link_ports, new_links and host_memory of the configuration
// are for these. See suspect for the refusals.
//
// Only the list of services imports it; only this file imports weft.
package discovery

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math/big"
	"sync"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name:       "discovery",
		Doc:        "finds the links between switches and the roles of their ports",
		Serves:     weft.Methods(api.ListLinks, api.ListPortRoles, api.AllowLink, api.SetLink),
		Calls:      weft.Methods(api.Send, api.SetStanding, api.EchoSwitches),
		Subscribes: weft.Subjects(api.SwitchChangedEvent, api.SwitchForgottenEvent, api.PortChangedEvent, api.FlowsObservedEvent, api.PortUsedEvent, api.SwitchErrorEvent, api.CircuitPortChangedEvent),
		Optional:   []string{"intake", "l2vpn"},
		Publishes:  weft.Subjects(api.LinkChangedEvent, api.PortRoleChangedEvent, api.RolesSettledEvent, api.ProbeReturnedEvent),
		Buckets:    []string{"keys", "ports", "allowed", "settings"},
		Rebuilt:    []string{"ports", "keys"},
		Stage:      true,
		Class:      weft.RealTime,
		Scale:      weft.Single,
		Config:     DefaultConfig(),
		Run:        run,
	}
}

func run(ctx context.Context, env *weft.Env) error {
	cfg := env.Config.(*Config)
	key, err := probeKey(ctx, env, cfg)
	if err != nil {
		return err
	}
	past, err := weft.State(env, "ports")
	if err != nil {
		return err
	}
	kept := &persister{store: past}
	seed, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return fmt.Errorf("discovery: random numbers: %w", err)
	}
	e := newEngine(engineConfig{
		config: cfg, key: key, now: steadyClock(weft.Now(env)), figures: newMetrics(env.Metric), log: env.Log,
		send: func(ctx context.Context, d *flow.Decision) (failed map[flow.DPID]bool, err error) {
			r, err := weft.Call(ctx, env, api.Send, d)
			for _, f := range r.GetFailures() {
				if sw, err := flow.ParseDPID(f.GetDpid()); err == nil {
					if failed == nil {
						failed = map[flow.DPID]bool{}
					}
					failed[sw] = true
				}
			}
			return failed, err
		},
		echo: func(ctx context.Context, dpids []string) (map[flow.DPID]int64, error) {
			r, err := weft.Call(ctx, env, api.EchoSwitches, &api.EchoSwitchesRequest{Dpids: dpids, DeadlineUs: uint64(echoPatience.Microseconds())})
			return r.Trips(dpids), err
		},
		publish: func(ev event) {
			if ev.link != nil {
				weft.Publish(env, api.LinkChangedEvent, ev.link)
			}
			if ev.role != nil {
				weft.Publish(env, api.PortRoleChangedEvent, ev.role)
			}
			if ev.settled != nil {
				weft.Publish(env, api.RolesSettledEvent, ev.settled)
			}
		},
		save: kept.save, alive: kept.storeSign,
	}, seed.Uint64())
	alive, err := kept.load(ctx, e.remember, func(key string, err error) {
		env.Log.Warn("ports of an earlier run not read", "key", key, "error", err)
	})
	if err != nil {
		return err
	}
	e.topo.trust(e.now(), alive+trustFor)
	allowed, err := weft.State(env, "allowed")
	if err != nil {
		return err
	}
	allow := &allowances{store: allowed, e: e}
	if err := allow.load(ctx); err != nil {
		return fmt.Errorf("discovery: read the links that are allowed: %w", err)
	}
	stated, err := weft.State(env, "settings")
	if err != nil {
		return err
	}
	set := &settings{store: stated, e: e}
	if err := set.load(ctx); err != nil {
		return fmt.Errorf("discovery: read the settings of links: %w", err)
	}
	k := &baselineSender{log: env.Log,
		setFlows: func(ctx context.Context, req *api.SetStandingRequest) (*api.SetStandingResponse, error) {
			return weft.Call(ctx, env, api.SetStanding, req)
		},
		confirmed: func(sw flow.DPID) { e.change(func(now int64, t *topology) { t.confirmTrap(now, sw) }) },
	}
	gauges(env.Metric, e)

	weft.Stage(env, func(sw flow.DPID) weft.StageFunc { return e.open(sw) })
	weft.On(env, api.SwitchChangedEvent, func(_ context.Context, m *api.SwitchChanged) {
		sw, err := flow.ParseDPID(m.GetSwitch().GetDpid())
		if err != nil {
			env.Log.Error("switch without identity", "error", err)
			return
		}
		if !m.Switch.GetConnected() {
			k.stopSwitch(sw)
			e.change(func(now int64, t *topology) { t.disconnect(now, sw) })
			return
		}
		hybrid, err := cfg.hybrid(sw, m.Switch)
		if err != nil {
			env.Log.Error("description of a hybrid node not understood: all its ports may become links", "dpid", sw, "error", err)
		}
		e.change(func(now int64, t *topology) { t.connect(now, sw, hybrid, m.Ports) })
		k.startSwitch(ctx, sw, hybrid != nil)
	})
	weft.On(env, api.FlowsObservedEvent, func(_ context.Context, m *api.FlowsObserved) {
		if sw, err := flow.ParseDPID(m.GetDpid()); err == nil && m.GetOwner() == flow.OwnerDiscovery.String() {
			k.resend(sw)
		}
	})
	weft.On(env, api.SwitchForgottenEvent, func(_ context.Context, m *api.SwitchForgotten) {
		if sw, err := flow.ParseDPID(m.GetDpid()); err == nil {
			e.change(func(now int64, t *topology) { t.forgetSwitch(now, sw) })
		}
	})
	weft.On(env, api.PortChangedEvent, func(_ context.Context, m *api.PortChanged) {
		if sw, err := flow.ParseDPID(m.GetPort().GetDpid()); err == nil {
			e.change(func(now int64, t *topology) { t.changePort(now, sw, m.Port, m.Removed) })
		}
	})
	weft.On(env, api.SwitchErrorEvent, func(_ context.Context, m *api.SwitchError) {
		if sw, err := flow.ParseDPID(m.GetDpid()); err == nil && m.GetPort() != 0 {
			e.change(func(now int64, t *topology) {
				t.recordRefusal(now, flow.Location{Switch: sw, Port: flow.Port(m.Port)}, m.Text)
			})
		}
	})
	weft.On(env, api.CircuitPortChangedEvent, func(_ context.Context, m *api.CircuitPortChanged) {
		e.change(func(now int64, t *topology) {
			t.setCustomer(now, m.GetAt().Flow(), uint16(m.GetVlan()), m.GetGone(), m.GetOam())
		})
	})
	weft.On(env, api.PortUsedEvent, func(_ context.Context, m *api.PortUsed) {
		if sw, err := flow.ParseDPID(m.GetDpid()); err == nil {
			e.recordUse(flow.Location{Switch: sw, Port: flow.Port(m.GetPort())})
		}
	})
	weft.Handle(env, api.ListLinks, func(context.Context, *api.ListLinksRequest) (*api.ListLinksResponse, error) {
		return e.links(), nil
	})
	weft.Handle(env, api.ListPortRoles, func(context.Context, *api.ListPortRolesRequest) (*api.ListPortRolesResponse, error) {
		return e.ports(), nil
	})
	weft.Handle(env, api.AllowLink, allow.set)
	weft.Handle(env, api.SetLink, set.set)
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	var publishing sync.WaitGroup
	publishing.Go(func() {
		e.returns.run(ctx, func(m *api.ProbeReturned) { weft.Publish(env, api.ProbeReturnedEvent, m) })
	})
	e.run(ctx)
	publishing.Wait()
	k.close()
	return nil
}

// probeKey returns the key that signs probes: the configured one, else that of
// the earlier run, else a new random one. To change it, delete the key lldp
// from the bucket discovery.keys and restart.
func probeKey(ctx context.Context, env *weft.Env, cfg *Config) ([]byte, error) {
	if cfg.Key != "" {
		return hex.DecodeString(cfg.Key)
	}
	b, err := weft.State(env, "keys")
	if err != nil {
		return nil, err
	}
	key, _, err := b.Get(ctx, "lldp")
	if err != nil {
		return nil, fmt.Errorf("discovery: read the key of the probes: %w", err)
	}
	if len(key) == keySize {
		return key, nil
	}
	key = make([]byte, keySize)
	rand.Read(key)
	if _, err := b.Put(ctx, "lldp", key); err != nil {
		return nil, fmt.Errorf("discovery: keep the key of the probes: %w", err)
	}
	return key, nil
}

// steadyClock returns a clock that starts at the time now and never jumps.
func steadyClock(now time.Time) func() int64 {
	start := time.Now()
	base := now.UnixNano()
	return func() int64 { return base + int64(time.Since(start)) }
}

func newMetrics(m weft.Metrics) metrics {
	f := metrics{
		sent:     m.Counter("probes_sent_total", "Probes handed to the southbound."),
		received: m.Counter("probes_received_total", "Probes that arrived and were accepted."),
		failed:   m.Counter("probes_failed_total", "Probes that the southbound could not send."),
		skipped:  m.Counter("probes_skipped_total", "Probes left out because earlier ones of the switch were still being sent."),
	}
	for r := accepted + 1; r < refusals; r++ {
		f.refused[r] = m.Counter("refused_total", "LLDP and BDDP frames refused.", "reason", r.String())
	}
	return f
}

func gauges(m weft.Metrics, e *engine) {
	for s := oneWay; s <= held; s++ {
		m.Gauge("links", "Links in one direction.", func() float64 {
			return float64(e.count(func(t *topology) int { return t.countLinks(s) }))
		}, "state", s.String())
	}
	for r := flow.RoleUnsettled; r <= flow.RoleBlocked; r++ {
		m.Gauge("ports", "Ports of connected switches.", func() float64 {
			return float64(e.count(func(t *topology) int { return t.countPorts(r) }))
		}, "role", r.String())
	}
	m.Gauge("silence_seconds", "How long a link that port status guards may be silent until it is taken to be down.", func() float64 {
		return time.Duration(e.count(func(t *topology) int { return int(t.guardedSilence()) })).Seconds()
	})
	m.Gauge("events_waiting", "Events that subscribers have not taken yet.", func() float64 {
		return float64(e.count(func(t *topology) int { return len(t.events) }))
	})
}

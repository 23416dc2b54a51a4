// Package intake is the packet-in receiver. It takes packets straight from the
// switches, over connections of its own beside those of the southbound, and runs
// the stages for them: the switch itself sends each kind of event to the right
// controller (paper 001 §1). While it is there to take packets, the entries that
// services want on switches name its number. The southbound keeps LLDP, port
// status and everything else, and carries out the decisions. Nobody imports it
// but the list of services; it shares the session code with the southbound.
package intake

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/services/southbound"
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name:      "intake",
		Doc:       "takes packets straight from switches, over connections of its own",
		Calls:     weft.Methods(api.Send, api.DirectPackets),
		Reads:     nib.Roles,
		Publishes: weft.Subjects(api.PortUsedEvent),
		Optional:  []string{"discovery"},
		Beside:    []string{"discovery"},
		Class:     weft.Latency,
		Scale:     weft.PerPartition,
		Config:    defaults(),
		Run:       run,
	}
}

func run(ctx context.Context, env *weft.Env) error {
	cfg := env.Config.(*Config)
	if len(cfg.Listen) == 0 {
		return weft.Serve(ctx, env)
	}
	ports := newRoles(func(at flow.Location) {
		weft.Publish(env, api.PortUsedEvent, &api.PortUsed{Dpid: at.Switch.String(), Port: uint32(at.Port)})
	}, env.Log)
	weft.OnChange(env, nib.Roles, ports.networkChanged)

	c := newSender(func(ctx context.Context, d *flow.Decision) (*api.ApplyResult, error) {
		return weft.Call(ctx, env, api.Send, d)
	}, env.Log)
	h := &holder{
		number: uint32(cfg.Number), run: uint64(time.Now().UnixNano()), lease: cfg.Lease,
		direct: func(ctx context.Context, req *api.DirectPacketsRequest) (*api.DirectPacketsResponse, error) {
			return weft.Call(ctx, env, api.DirectPackets, req)
		},
		changed: make(chan struct{}, 1), log: env.Log,
	}
	memory, err := weft.Scratch(env, "packet-ins", southbound.EstateSize)
	if err != nil {
		env.Log.Warn("cannot open the loss counter; losses after a crash will not be counted", "error", err)
	}
	in := southbound.NewReceiver(southbound.ReceiverConfig{
		Sessions: cfg.sessions(), Number: uint16(cfg.Number), Log: env.Log, Memory: memory,
		Open: func(sw flow.DPID, later func(*flow.Decision)) southbound.Pipeline {
			return weft.OpenPipeline(env, sw, later)
		},
		Roles: ports.open, Carry: c.enqueue, Changed: h.notify,
	})
	h.switches = in.Switches
	register(env.Metric, in, c)
	weft.ReportLimits(env, func(now int64) []*api.LimitReached { return append(in.Reached(now), c.reached.List(now)...) })

	// The connections end last, after their packets have been carried out.
	carried, stopCarrying := context.WithCancel(context.WithoutCancel(ctx))
	held, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer stopCarrying()
	defer hangUp()
	var g errgroup.Group
	g.Go(func() error { c.run(carried); return nil })
	g.Go(func() error {
		defer stopCarrying()
		return in.Serve(held, env.Metric, func() error {
			if err := weft.Ready(ctx, env); err != nil {
				return err
			}
			g.Go(func() error {
				defer hangUp()
				h.keep(ctx)
				return nil
			})
			return nil
		})
	})
	return g.Wait()
}

func register(m weft.Metrics, in *southbound.Receiver, c *sender) {
	in.Register(m)
	m.Gauge("taken", "Switches whose packets can be sent here.", func() float64 { return float64(len(in.Switches())) })
	m.CounterFunc("carried_total", "Calls by which decisions went to the southbound.", func() float64 { return float64(c.calls.Load()) })
	m.CounterFunc("operations_failed_total", "Operations that the southbound could not send.", func() float64 { return float64(c.failed.Load()) })
	m.CounterFunc("decisions_shed_total", "Decisions that did not reach the southbound.", func() float64 { return float64(c.shed.full.Load()) }, "reason", "queue_full")
	m.CounterFunc("decisions_shed_total", "Decisions that did not reach the southbound.", func() float64 { return float64(c.shed.away.Load()) }, "reason", "away")
}

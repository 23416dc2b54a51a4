// Package nat is the service of address translation between networks inside and
// the outside, at a port of a switch: the connection tracking of that switch
// translates, by entries that stand whatever the traffic, so that connections
// outlive the controller. It is the stage of the pipeline before forwarding: it
// answers for the addresses of gateways and brings to a gateway's switch what
// hosts elsewhere send to it.
//
// Only the list of services imports it; only this file imports weft.
package nat

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"weft"
	"weft/api"
	"weft/flow"
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name:       "nat",
		Doc:        "translates addresses between inside and outside by the switch's connection tracking",
		Serves:     weft.Methods(api.SetNat, api.DeleteNat, api.ListNats),
		Calls:      weft.Methods(api.Send, api.SetStanding, api.ReadFlows),
		Subscribes: weft.Subjects(api.SwitchChangedEvent, api.FlowsObservedEvent, api.HostChangedEvent),
		Buckets:    []string{"gateways", "hosts"},
		Stage:      true,
		Class:      weft.Latency,
		Scale:      weft.PerPartition,
		Config:     DefaultConfig(),
		Run:        run,
	}
}

// settleHosts is for how long after the start the hosts that an earlier run
// knew are believed in.
const settleHosts = time.Minute

func run(ctx context.Context, env *weft.Env) error {
	cfg := env.Config.(*Config)
	kept, err := weft.State(env, "gateways")
	if err != nil {
		return err
	}
	keptHosts, err := weft.State(env, "hosts")
	if err != nil {
		return err
	}
	hosts, s := newResidents(), &shelf{store: keptHosts}
	if s.revisions, err = hosts.load(ctx, keptHosts); err != nil {
		return err
	}
	b := newBook(cfg, kept, hosts)
	if err := b.load(ctx, func(key string, err error) {
		env.Log.Warn("gateway of an earlier run not read", "key", key, "error", err)
	}); err != nil {
		return err
	}
	env.Metric.Gauge("gateways", "Gateways.", func() float64 { return float64(b.size()) })
	env.Metric.Gauge("stray_packets", "Packets to or from a gateway that were refused since the service started.", func() float64 { return float64(b.strays.Load()) })
	k := weft.KeepStanding(env, flow.OwnerNAT, b.want)
	weft.Stage(env, func(flow.DPID) weft.StageFunc { return b.packet })
	weft.On(env, api.SwitchChangedEvent, func(_ context.Context, e *api.SwitchChanged) {
		b.switchChanged(e)
		k.SwitchChanged(e)
	})
	weft.On(env, api.FlowsObservedEvent, func(_ context.Context, e *api.FlowsObserved) { k.FlowsObserved(e) })
	weft.On(env, api.HostChangedEvent, func(_ context.Context, e *api.HostChanged) {
		if changed := b.hostChanged(e); len(changed) > 0 {
			k.Changed(changed...)
		}
	})
	serve(env, b, k)
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { k.Run(ctx) })
	work.Go(func() { attend(ctx, env, b, k, s) })
	work.Go(func() { watch(ctx, env, b) })
	<-ctx.Done()
	return nil
}

// serve answers what is asked of gateways.
func serve(env *weft.Env, b *book, k *weft.Standing) {
	settle := func(ctx context.Context, changed []flow.DPID) {
		if len(changed) == 0 {
			return
		}
		k.Changed(changed...)
		ctx, cancel := context.WithTimeout(ctx, b.cfg.Deadline)
		defer cancel()
		if err := k.Settle(ctx); err != nil {
			env.Log.Warn("gateways are not in force on all switches yet", "error", err)
		}
	}
	weft.Handle(env, api.SetNat, func(ctx context.Context, r *api.SetNatRequest) (*api.NatGateway, error) {
		changed, err := b.set(ctx, r.GetGateway())
		if err != nil {
			return nil, err
		}
		settle(ctx, changed)
		list := b.list(r.Gateway.Name, now(), k.Status)
		if len(list) == 0 {
			return nil, api.Errorf(codes.Aborted, "gateway %s: somebody else has deleted it meanwhile", r.Gateway.Name)
		}
		return list[0], nil
	})
	weft.Handle(env, api.DeleteNat, func(ctx context.Context, r *api.DeleteNatRequest) (*api.DeleteNatResponse, error) {
		deleted, changed, err := b.remove(ctx, r.GetName())
		if err != nil {
			return nil, err
		}
		settle(ctx, changed)
		return &api.DeleteNatResponse{Deleted: deleted}, nil
	})
	weft.Handle(env, api.ListNats, func(_ context.Context, r *api.ListNatsRequest) (*api.ListNatsResponse, error) {
		return &api.ListNatsResponse{Gateways: b.list(r.GetName(), now(), k.Status)}, nil
	})
}

// attend asks for next hops, takes their answers and keeps the hosts inside.
func attend(ctx context.Context, env *weft.Env, b *book, k *weft.Standing, s *shelf) {
	tick := time.NewTicker(b.cfg.AskInterval)
	defer tick.Stop()
	former := time.After(settleHosts)
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-b.news:
			sw, changed, err := b.learnt(ctx, a.gateway, a.hop, a.mac)
			if err != nil {
				env.Log.Warn("next hop not kept", "gateway", a.gateway, "error", err)
			} else if changed {
				env.Log.Info("next hop found", "gateway", a.gateway, "address", a.hop, "mac", a.mac)
				k.Changed(sw)
			}
		case <-former:
			if b.forget() {
				k.Changed()
			}
		case <-tick.C:
			d := &flow.Decision{}
			if b.ask(now(), d); !d.Empty() {
				if _, err := call(ctx, env, api.Send, d); err != nil && ctx.Err() == nil {
					env.Log.Debug("next hops not asked for", "error", err)
				}
			}
			if err := b.keepHosts(ctx, s); err != nil && ctx.Err() == nil {
				env.Log.Warn("hosts inside not kept", "error", err)
			}
		}
	}
}

// watch reads from the gateways' switches what was refused for want of a port,
// and tells of it.
func watch(ctx context.Context, env *weft.Env, b *book) {
	tick := time.NewTicker(b.cfg.Poll)
	defer tick.Stop()
	counters := map[string]weft.Counter{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, sw := range b.sites() {
			resp, err := call(ctx, env, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw.String(), Owner: flow.OwnerNAT.String()})
			if err != nil {
				continue // the switch has gone; the next turn reads what it has counted meanwhile
			}
			for _, r := range b.counted(sw, resp.Flows, now()) {
				c := counters[r.gateway]
				if c == nil {
					c = env.Metric.Counter("exhausted_total", "Packets dropped because no address and port were free.", "gateway", r.gateway)
					counters[r.gateway] = c
				}
				c.Add(float64(r.packets))
				env.Log.Warn("no free address and port for new connections; widen the pool or its ports", "gateway", r.gateway, "dpid", sw, "packets", r.packets)
			}
		}
	}
}

// call is Call that takes 2 s at most.
func call[Req, Resp any](ctx context.Context, env *weft.Env, m api.Method[Req, Resp], req *Req) (*Resp, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return weft.Call(ctx, env, m, req)
}

func now() int64 { return time.Now().UnixNano() }

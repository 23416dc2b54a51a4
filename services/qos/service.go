// Package qos is the service that limits, marks and queues traffic: policies
// become flow entries and meters of the switches, queues become rows of their
// databases.
//
// Only the list of services imports it; only this file imports weft.
package qos

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	kit "github.com/weft-sdn/weft/policy"
)

// Spec declares the service.
func Spec() weft.Spec {
	return kit.Declare(weft.Spec{
		Name:    "qos",
		Doc:     "limits, marks and queues traffic by meters and queues of the switches",
		Serves:  weft.Methods(api.QosGetStatus, api.QosSetQueues, api.QosDeleteQueues, api.QosListQueues),
		Calls:   weft.Methods(api.ReadFlows, api.ReadMeters, api.ListPorts),
		Buckets: []string{"queues"},
		Config:  DefaultConfig(),
		Live:    []string{"*"},
		Run:     run,
	}, new(store).kind())
}

func run(ctx context.Context, env *weft.Env) error {
	keptQueues, err := weft.State(env, "queues")
	if err != nil {
		return err
	}
	b := newStore(env.Config.(*Config))
	runs := map[bool]weft.Counter{
		true:  env.Metric.Counter("queue_changes_total", "Tries to configure the queues of a port.", "result", "done"),
		false: env.Metric.Counter("queue_changes_total", "Tries to configure the queues of a port.", "result", "failed"),
	}
	peers := network{env, b}
	q := newPorts(keptQueues, time.Now, func(ctx context.Context, m *api.QosQueues) error {
		err := peers.bring(ctx, m)
		if ctx.Err() == nil {
			runs[err == nil].Add(1)
		}
		return err
	}, func(key string, err error) {
		env.Log.Warn("queues of an earlier run not read", "key", key, "error", err)
	})
	if err := errors.Join(kit.Serve(ctx, env, b.policies), q.queues.Load(ctx)); err != nil {
		return err
	}
	env.Metric.Gauge("entries", "Flow entries that policies take on all switches.", func() float64 { n, _ := b.sizes(); return float64(n) })
	env.Metric.Gauge("switches_refused", "Switches that cannot enforce policies.", func() float64 { _, n := b.sizes(); return float64(n) })

	weft.ReportLimits(env, b.reached.List)
	weft.OnChange(env, nib.Switches, func(c nib.Change) {
		for _, s := range c.Switches() {
			if s.Is != nil && s.Is.Is.Switch.Connected {
				q.retry(s.Is.Is.Switch.Dpid)
			}
		}
	})
	weft.OnConfig(env, func(_ context.Context, _, c *Config) error {
		b.cfg.Store(c)
		b.policies.Recompute() // another bound of entries
		q.retry("")            // another way to the databases
		return nil
	})
	weft.Handle(env, api.QosGetStatus, func(ctx context.Context, r *api.QosGetStatusRequest) (*api.QosStatus, error) {
		ctx, cancel := context.WithTimeout(ctx, b.cfg.Load().Deadline)
		defer cancel()
		return b.status(ctx, r.GetPolicy(), peers, b.policies.Flows().Status)
	})
	serveQueues(env, b, q)
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { q.run(ctx) })
	work.Go(func() { q.queues.Follow(ctx) })
	b.policies.Run(ctx)
	return nil
}

// serveQueues answers the calls about queues.
func serveQueues(env *weft.Env, b *store, q *ports) {
	wait := func(ctx context.Context, key string) {
		ctx, cancel := context.WithTimeout(ctx, b.cfg.Load().Deadline)
		defer cancel()
		q.settle(ctx, key)
	}
	weft.Handle(env, api.QosSetQueues, func(ctx context.Context, r *api.QosSetQueuesRequest) (*api.QosQueues, error) {
		key, err := q.set(ctx, r.GetQueues())
		if err != nil {
			return nil, err
		}
		wait(ctx, key)
		if list := q.list(key); len(list) == 1 {
			return list[0], nil
		}
		return nil, api.Errorf(codes.Aborted, "queues of %s: somebody else has taken them away meanwhile", key)
	})
	weft.Handle(env, api.QosDeleteQueues, func(ctx context.Context, r *api.QosDeleteQueuesRequest) (*api.QosDeleteQueuesResponse, error) {
		key, there, err := q.remove(ctx, r.GetDpid(), r.GetPort())
		if err != nil {
			return nil, err
		}
		wait(ctx, key)
		return &api.QosDeleteQueuesResponse{Deleted: there}, nil
	})
	weft.Handle(env, api.QosListQueues, func(context.Context, *api.QosListQueuesRequest) (*api.QosListQueuesResponse, error) {
		return &api.QosListQueuesResponse{Ports: q.list("")}, nil
	})
}

// network calls the southbound, and the databases of switches.
type network struct {
	env  *weft.Env
	book *store
}

// ReadFlows is part of Switches.
func (n network) ReadFlows(ctx context.Context, sw flow.DPID) ([]*api.FlowEntry, error) {
	resp, err := weft.Call(ctx, n.env, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw.String(), Owner: flow.OwnerQoS.String()})
	return resp.GetFlows(), err
}

// ReadMeters is part of Switches.
func (n network) ReadMeters(ctx context.Context, sw flow.DPID) ([]*api.Meter, error) {
	resp, err := weft.Call(ctx, n.env, api.ReadMeters, &api.ReadMetersRequest{Dpid: sw.String()})
	return resp.GetMeters(), err
}

// bring configures the queues of a port.
func (n network) bring(ctx context.Context, m *api.QosQueues) error {
	sw, err := flow.ParseDPID(m.Dpid)
	if err != nil {
		return err
	}
	n.book.mu.Lock()
	info := n.book.net.Info(sw)
	n.book.mu.Unlock()
	if !info.GetConnected() {
		return api.Errorf(codes.Unavailable, "switch %s is not connected", m.Dpid)
	}
	var address netip.Addr // none of a socket within the machine
	if at, err := netip.ParseAddrPort(info.Address); err == nil {
		address = at.Addr()
	}
	cfg := n.book.cfg.Load()
	target, ok := cfg.database(sw, address)
	if !ok {
		return api.Errorf(codes.FailedPrecondition, "it is not known where the database of switch %s is; set qos.ovsdb or qos.ovsdb_switches", m.Dpid)
	}
	ports, err := weft.Call(ctx, n.env, api.ListPorts, &api.ListPortsRequest{Dpid: m.Dpid})
	if err != nil {
		return err
	}
	for _, p := range ports.Ports {
		if p.Port == m.Port {
			if byRoot(target) {
				return askRoot(ctx, m, p.Name, address)
			}
			return bring(ctx, vsctlOf(cfg, target), m, p.Name)
		}
	}
	return api.Errorf(codes.NotFound, "switch %s has no port %d", m.Dpid, m.Port)
}

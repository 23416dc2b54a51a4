// Package stats reads the counters of switches, as often as the size of the
// network allows, and keeps the last values and rates. Nobody imports it but
// the list of services.
package stats

import (
	"context"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name:       "stats",
		Doc:        "reads the switches' counters and keeps rates",
		Serves:     weft.Methods(api.ListPortStats, api.ListTableStats, api.ListFlowStats),
		Calls:      weft.Methods(api.ReadPortStats, api.ReadTableStats, api.ReadFlows),
		Reads:      nib.Switches,
		Subscribes: weft.Subjects(api.SwitchForgottenEvent),
		Class:      weft.Compute,
		Scale:      weft.PerPartition,
		Config:     defaults(),
		Live:       []string{"interval", "max_interval", "per_switch", "flows_every", "per_entry", "slow_factor", "deadline", "parallel"},
		Run:        run,
	}
}

func run(ctx context.Context, env *weft.Env) error {
	p := NewPoller(env.Config.(*Config), southbound{env}, Meters{
		Counter: func(name, help string, labels ...string) Counter { return env.Metric.Counter(name, help, labels...) },
		Gauge:   env.Metric.Gauge,
		Histogram: func(name, help string, bounds []float64, labels ...string) Observer {
			return env.Metric.Histogram(name, help, bounds, labels...)
		},
	})
	weft.OnChange(env, nib.Switches, func(c nib.Change) {
		for _, e := range c.Connections() {
			p.SwitchChanged(e)
		}
	})
	weft.On(env, api.SwitchForgottenEvent, p.SwitchForgotten)
	weft.OnConfig(env, func(_ context.Context, _, c *Config) error {
		p.Reconfigure(c)
		return nil
	})
	weft.Handle(env, api.ListPortStats, p.ListPortStats)
	weft.Handle(env, api.ListTableStats, p.ListTableStats)
	weft.Handle(env, api.ListFlowStats, p.ListFlowStats)
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	p.Serve(ctx)
	return nil
}

// southbound is the Network that calls the southbound service.
type southbound struct{ env *weft.Env }

func (s southbound) ReadPorts(ctx context.Context, sw flow.DPID) ([]*api.PortStats, error) {
	resp, err := weft.Call(ctx, s.env, api.ReadPortStats, &api.ReadPortStatsRequest{Dpid: sw.String()})
	return resp.GetPorts(), err
}

func (s southbound) ReadTables(ctx context.Context, sw flow.DPID) ([]*api.TableStats, error) {
	resp, err := weft.Call(ctx, s.env, api.ReadTableStats, &api.ReadTableStatsRequest{Dpid: sw.String()})
	return resp.GetTables(), err
}

func (s southbound) ReadFlows(ctx context.Context, sw flow.DPID) ([]*api.FlowEntry, error) {
	resp, err := weft.Call(ctx, s.env, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw.String()})
	return resp.GetFlows(), err
}

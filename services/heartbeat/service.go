// Package heartbeat asks every switch for a sign of life, once to a hundred times
// a second, measures how long that takes and reports switches that do not answer
// in time. Nobody imports it but the list of services.
package heartbeat

import (
	"context"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name:       "heartbeat",
		Doc:        "asks switches for signs of life and measures the answers",
		Serves:     weft.Methods(api.ListHeartbeats),
		Calls:      weft.Methods(api.EchoSwitches),
		Subscribes: weft.Subjects(api.SwitchChangedEvent),
		Publishes:  weft.Subjects(api.HeartbeatChangedEvent),
		Class:      weft.RealTime,
		Scale:      weft.PerPartition,
		Config:     defaults(),
		Live:       []string{"*"},
		Run:        run,
	}
}

func run(ctx context.Context, env *weft.Env) error {
	m := newMonitor(*env.Config.(*Config), env.Log)
	m.ask = func(ctx context.Context, dpids []string, deadline time.Duration) ([]*api.SwitchEcho, error) {
		resp, err := weft.Call(ctx, env, api.EchoSwitches, &api.EchoSwitchesRequest{Dpids: dpids, DeadlineUs: uint64(deadline.Microseconds())})
		return resp.GetEchoes(), err
	}
	m.publish = func(e *api.HeartbeatChanged) { weft.Publish(env, api.HeartbeatChangedEvent, e) }
	latency := env.Metric.Histogram("latency_seconds", "From when a beat was due to when the switch's answer was there.",
		[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1})
	beats := env.Metric.Counter("beats_total", "Beats that were due.")
	missed := env.Metric.Counter("missed_total", "Beats that were not answered before their deadline.")
	m.figures = figures{latency: latency.Observe, beats: beats.Add, missed: missed.Add}
	for _, s := range []state{waiting, alive, late, lost} {
		env.Metric.Gauge("switches", "Connected switches, by how they answer.", func() float64 { return float64(m.count(s)) }, "state", s.String())
	}
	weft.On(env, api.SwitchChangedEvent, func(_ context.Context, e *api.SwitchChanged) { m.switchChanged(e.GetSwitch(), time.Now()) })
	weft.OnConfig(env, func(_ context.Context, _, c *Config) error {
		m.configure(*c)
		return nil
	})
	weft.Handle(env, api.ListHeartbeats, m.list)
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	m.run(ctx)
	return nil
}

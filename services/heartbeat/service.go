// Package heartbeat has every switch asked for a sign of life, once to a hundred
// times a second, measures how long that takes and reports switches that do not
// answer in time. The southbound asks, by a standing order. Nobody imports it but
// the list of services.
package heartbeat

import (
	"context"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name:       "heartbeat",
		Doc:        "has switches asked for signs of life and measures the answers",
		Serves:     weft.Methods(api.ListHeartbeats),
		Calls:      weft.Methods(api.OrderBeats, api.ListBeats),
		Subscribes: weft.Subjects(api.BeatChangedEvent),
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
	m.order = func(ctx context.Context, r *api.OrderBeatsRequest) (*api.BeatCounts, error) {
		resp, err := weft.Call(ctx, env, api.OrderBeats, r)
		return resp.GetCounts(), err
	}
	m.ask = func(ctx context.Context, dpid string) (*api.ListBeatsResponse, error) {
		return weft.Call(ctx, env, api.ListBeats, &api.ListBeatsRequest{Dpid: dpid})
	}
	m.publish = func(e *api.HeartbeatChanged) { weft.Publish(env, api.HeartbeatChangedEvent, e) }
	latency := env.Metric.Histogram("latency_seconds", "From when a beat was due to when the switch's answer was there, in time or not.", api.BeatBounds[:])
	beats := env.Metric.Counter("beats_total", "Beats that were due.")
	missed := env.Metric.Counter("missed_total", "Beats that were not answered before their deadline.")
	m.figures = figures{latency: latency.Observe, beats: beats.Add, missed: missed.Add}
	for _, s := range []string{waiting, alive, late, lost} {
		env.Metric.Gauge("switches", "Connected switches, by how they answer.", func() float64 { return float64(m.count(s)) }, "state", s)
	}
	weft.On(env, api.BeatChangedEvent, func(_ context.Context, e *api.BeatChanged) { m.beatChanged(e) })
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

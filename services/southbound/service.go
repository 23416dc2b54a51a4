// Package southbound holds the OpenFlow sessions of the switches: it turns
// their messages into events and packet-ins, and decisions into messages. It
// is the only service that imports openflow. Nobody imports it but the list of
// services.
package southbound

import (
	"context"
	"encoding/binary"
	"time"

	"weft"
	"weft/api"
	"weft/flow"
)

// Spec declares the service.
func Spec() weft.Spec {
	return weft.Spec{
		Name: "southbound",
		Doc:  "holds the OpenFlow sessions of the switches",
		Serves: weft.Methods(api.ListSwitches, api.ListPorts, api.ReadFlows, api.ReadGroups, api.ReadMeters, api.ReadPortStats, api.ReadTableStats, api.Apply, api.Send, api.EchoSwitches, api.ListLimits,
			api.ReadMultipart, api.ModifyPort, api.SendExperimenter),
		Publishes: weft.Subjects(api.SwitchChangedEvent, api.PortChangedEvent, api.FlowRemovedEvent, api.SwitchErrorEvent, api.FloodChangedEvent),
		Buckets:   []string{"mastership"},
		Pipeline:  true,
		Class:     weft.RealTime,
		Scale:     weft.PerPartition,
		Config:    defaults(),
		Live: []string{"handshake_timeout", "echo_interval", "dead_after", "write_timeout", "confirm_timeout", "new_sessions_per_second", "max_sessions",
			"port_events_per_second", "flood_rate", "flood_factor", "flood_floor", "flood_meters", "probe_rate"},
		Run: run,
	}
}

func run(ctx context.Context, env *weft.Env) error {
	cfg := env.Config.(*Config)
	epoch, err := nextEpoch(ctx, env)
	if err != nil {
		return err
	}
	h := newHub(*cfg, epoch, env.Log)
	h.open = func(sw dpid, later func(*flow.Decision)) pipeline { return weft.OpenPipeline(env, sw, later) }
	h.switchChanged = func(e *api.SwitchChanged) { weft.Publish(env, api.SwitchChangedEvent, e) }
	h.portChanged = func(e *api.PortChanged) { weft.Publish(env, api.PortChangedEvent, e) }
	h.flowRemoved = func(e *api.FlowRemoved) { weft.Publish(env, api.FlowRemovedEvent, e) }
	h.switchError = func(e *api.SwitchError) { weft.Publish(env, api.SwitchErrorEvent, e) }
	h.floodChanged = func(e *api.FloodChanged) { weft.Publish(env, api.FloodChangedEvent, e) }
	h.total.register(env.Metric, h)
	weft.OnConfig(env, func(_ context.Context, _, c *Config) error {
		h.cfg.Store(c)
		return nil
	})

	weft.Handle(env, api.ListSwitches, h.listSwitches)
	weft.Handle(env, api.ListPorts, h.listPorts)
	weft.Handle(env, api.ReadFlows, h.readFlows)
	weft.Handle(env, api.ReadGroups, h.readGroups)
	weft.Handle(env, api.ReadMeters, h.readMeters)
	weft.Handle(env, api.ReadPortStats, h.readPortStats)
	weft.Handle(env, api.ReadTableStats, h.readTableStats)
	weft.Handle(env, api.Apply, h.apply)
	weft.Handle(env, api.Send, h.send)
	weft.Handle(env, api.EchoSwitches, h.echoSwitches)
	weft.Handle(env, api.ReadMultipart, h.readMultipart)
	weft.Handle(env, api.ModifyPort, h.modifyPort)
	weft.Handle(env, api.SendExperimenter, h.sendExperimenter)
	weft.Handle(env, api.ListLimits, h.listLimits)

	secrets, pair, err := cfg.openSecrets()
	if err != nil {
		return err
	}
	secrets.register(env.Metric, pair)
	listeners, err := listen(cfg.Listen, secrets)
	if err != nil {
		return err
	}
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	return h.serve(ctx, listeners)
}

// nextEpoch returns the number that fences off earlier runs: larger than any
// that this store has seen and, should the store be lost, than any of an
// earlier second. It is the generation id of the role requests
// (OpenFlow 1.3.5 §6.3.6).
func nextEpoch(ctx context.Context, env *weft.Env) (uint64, error) {
	bucket, err := weft.State(env, "mastership")
	if err != nil {
		return 0, err
	}
	last, _, err := bucket.Get(ctx, "epoch")
	if err != nil {
		return 0, err
	}
	epoch := uint64(time.Now().Unix())
	if len(last) == 8 {
		epoch = max(epoch, binary.BigEndian.Uint64(last)+1)
	}
	_, err = bucket.Put(ctx, "epoch", binary.BigEndian.AppendUint64(nil, epoch))
	return epoch, err
}

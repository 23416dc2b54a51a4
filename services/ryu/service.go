// Package ryu is the REST interface of the Ryu controller, for programs that
// were written for it: ofctl_rest, rest_topology, ws_topology, rest_conf_switch,
// rest_firewall, rest_router and rest_qos. Nobody imports it but the list of services.
package ryu

import (
	"cmp"
	"context"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/auditlog"
	"github.com/weft-sdn/weft/nib"
)

// Process describes the process that the service runs in.
type Process struct {
	Name  string // names its file of the audit log
	Audit string // directory of the audit log; empty for none
}

// Spec declares the service.
func Spec(p Process) weft.Spec {
	return weft.Spec{
		Name: "ryu",
		Doc:  "offers the REST interface of Ryu",
		Calls: weft.Methods(api.ReadMultipart, api.ModifyPort, api.SendExperimenter, api.Apply,
			api.AddFirewallRules, api.DeleteFirewallRules, api.ListFirewallRules, api.SetFirewallDefault, api.GetFirewallStatus,
			api.QosSetQueues, api.QosDeleteQueues, api.QosListQueues,
			api.AddRouterAddress, api.DeleteRouterAddress, api.AddRouterRoute, api.DeleteRouterRoute, api.ListRouters),
		Optional: []string{"firewall", "qos", "router"},
		Reads:    reads,
		Buckets:  []string{"conf", "firewall"},
		Listens:  true,
		Class:    weft.Compute,
		Scale:    weft.PerPartition,
		Config:   defaults(),
		Run:      func(ctx context.Context, env *weft.Env) error { return run(ctx, env, p) },
	}
}

// reads is what the service reads of the network.
const reads = nib.Switches | nib.Ports | nib.Links | nib.Hosts

func run(ctx context.Context, env *weft.Env, p Process) error {
	cfg := env.Config.(*Config)
	stream := newStream(cfg.EventQueue, cfg.MaxEventClients)
	weft.OnChange(env, reads, func(c nib.Change) { announce(c, stream.publish) })
	if cfg.Listen == "" {
		return weft.Serve(ctx, env)
	}
	owners, err := newOwners(cfg)
	if err != nil {
		return err
	}
	bucket, err := weft.State(env, "conf")
	if err != nil {
		return err
	}
	conf, err := openConf(ctx, bucket)
	if err != nil {
		return err
	}
	if bucket, err = weft.State(env, "firewall"); err != nil {
		return err
	}
	firewall, err := openFirewall(ctx, bucket)
	if err != nil {
		return err
	}
	s := &server{config: *cfg, owners: owners, switches: switches{network{env}, func() view { return view{weft.NIB(env)} }}, stream: stream, conf: conf, firewall: firewall, log: env.Log}
	s.gateways = &gateways{service: network{env}}
	s.commands = commands{&s.switches, cfg.ReportRefusals, env.Log}
	s.qos = &qos{commands: &s.commands, queue: network{env}, conf: conf, last: map[flow.DPID]map[uint16]uint32{}}
	firewall.filter, firewall.tell = network{env}, s.commands.unconfirmed
	requests := map[bool]weft.Counter{
		true:  env.Metric.Counter("requests_total", "Requests, by whether they succeeded.", "result", "ok"),
		false: env.Metric.Counter("requests_total", "Requests, by whether they succeeded.", "result", "failed"),
	}
	s.count = func(ok bool) { requests[ok].Add(1) }
	closed := env.Metric.Counter("connections_closed_total", "Connections that were closed because there were too many.")
	s.noRoom = func() {
		closed.Add(1)
		stream.reached.Reach(time.Now().UnixNano(), "ryu.max_connections", cfg.MaxConnections, "clients")
	}
	weft.ReportLimits(env, stream.reached.List)
	unaudited := env.Metric.Counter("audit_failed_total", "Changes that could not be written to the audit log.")
	s.audit = &auditlog.Log{
		Dir: p.Audit, Name: cmp.Or(p.Name, "controller") + ".ryu", Size: auditSize, Files: auditFiles,
		Failed: func(err error) {
			unaudited.Add(1)
			env.Log.Error("a change could not be written to the audit log", "error", err)
		},
	}
	if err := s.audit.Open(); err != nil {
		return err
	}
	defer s.audit.Close()
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	if err := weft.Ready(ctx, env); err != nil {
		return err
	}
	return s.serve(ctx, listener)
}

// network is the other services as this one calls them.
type network struct{ env *weft.Env }

func (n network) read(ctx context.Context, req *api.ReadMultipartRequest) (*api.ReadMultipartResponse, error) {
	return weft.Call(ctx, n.env, api.ReadMultipart, req)
}

func (n network) apply(ctx context.Context, d *flow.Decision) (*api.ApplyResult, error) {
	return weft.Call(ctx, n.env, api.Apply, d)
}

func (n network) modifyPort(ctx context.Context, req *api.ModifyPortRequest) (*api.ApplyResult, error) {
	return weft.Call(ctx, n.env, api.ModifyPort, req)
}

func (n network) sendExperimenter(ctx context.Context, req *api.SendExperimenterRequest) (*api.ApplyResult, error) {
	return weft.Call(ctx, n.env, api.SendExperimenter, req)
}

func (n network) addRules(ctx context.Context, req *api.AddFirewallRulesRequest) (*api.AddFirewallRulesResponse, error) {
	return weft.Call(ctx, n.env, api.AddFirewallRules, req)
}

func (n network) deleteRules(ctx context.Context, req *api.DeleteFirewallRulesRequest) (*api.DeleteFirewallRulesResponse, error) {
	return weft.Call(ctx, n.env, api.DeleteFirewallRules, req)
}

func (n network) listRules(ctx context.Context, req *api.ListFirewallRulesRequest) (*api.ListFirewallRulesResponse, error) {
	return weft.Call(ctx, n.env, api.ListFirewallRules, req)
}

func (n network) setDefault(ctx context.Context, req *api.SetFirewallDefaultRequest) (*api.SetFirewallDefaultResponse, error) {
	return weft.Call(ctx, n.env, api.SetFirewallDefault, req)
}

func (n network) firewallStatus(ctx context.Context, req *api.GetFirewallStatusRequest) (*api.FirewallStatus, error) {
	return weft.Call(ctx, n.env, api.GetFirewallStatus, req)
}

func (n network) setQueues(ctx context.Context, req *api.QosSetQueuesRequest) (*api.QosQueues, error) {
	return weft.Call(ctx, n.env, api.QosSetQueues, req)
}

func (n network) deleteQueues(ctx context.Context, req *api.QosDeleteQueuesRequest) (*api.QosDeleteQueuesResponse, error) {
	return weft.Call(ctx, n.env, api.QosDeleteQueues, req)
}

func (n network) listQueues(ctx context.Context, req *api.QosListQueuesRequest) (*api.QosListQueuesResponse, error) {
	return weft.Call(ctx, n.env, api.QosListQueues, req)
}

func (n network) addAddress(ctx context.Context, req *api.AddRouterAddressRequest) (*api.AddRouterAddressResponse, error) {
	return weft.Call(ctx, n.env, api.AddRouterAddress, req)
}

func (n network) deleteAddress(ctx context.Context, req *api.DeleteRouterAddressRequest) (*api.DeleteRouterAddressResponse, error) {
	return weft.Call(ctx, n.env, api.DeleteRouterAddress, req)
}

func (n network) addRoute(ctx context.Context, req *api.AddRouterRouteRequest) (*api.AddRouterRouteResponse, error) {
	return weft.Call(ctx, n.env, api.AddRouterRoute, req)
}

func (n network) deleteRoute(ctx context.Context, req *api.DeleteRouterRouteRequest) (*api.DeleteRouterRouteResponse, error) {
	return weft.Call(ctx, n.env, api.DeleteRouterRoute, req)
}

func (n network) listRouters(ctx context.Context, req *api.ListRoutersRequest) (*api.ListRoutersResponse, error) {
	return weft.Call(ctx, n.env, api.ListRouters, req)
}

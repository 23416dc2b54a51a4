package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/lab/traffic"
)

// demoFeature is a part of the controller that --features shows.
type demoFeature struct {
	name, what string
	do         func(context.Context) (figure string, err error)
}

// features shows what is beside forwarding, a step for each.
type features struct{ *Demo }

// allFeatures lists what --features can show, in the order in which it does.
func (d *Demo) allFeatures() []demoFeature {
	f := features{d}
	return []demoFeature{
		{"firewall", "firewall: a rule that denies, and its end", f.showFirewall},
		{"balancer", "balancer: a virtual IP over three servers", f.showBalancer},
		{"scp", "scp: 5G network functions find each other", f.showSCP},
		{"carrier", "carrier: hybrid nodes, a circuit through them", f.showCarrier},
		{"nat", "nat: out by an address of the gateway's, and in", f.showNAT},
		{"router", "router: between two subnets at different switches", f.showRouter},
		{"qos", "qos: a host limited to 10 Mbit/s", f.showQoS},
		{"tenants", "tenants: two networks with the same addresses", f.showTenants},
		{"heartbeat", "heartbeat: signs of life of the switches", f.showHeartbeats},
		{"overload", "overload: a host floods, others go on", f.showOverload},
		{"ryu", "ryu: Ryu's REST", f.showRyu},
		{"tls", "tls: switches and clients with certificates", f.showTLS},
		{"tokens", "tokens: roles, and the audit log", f.showTokens},
		{"traces", "traces: the way of packet-ins through the stages", f.showTraces},
		{"config", "config: changed and put back under traffic", f.showConfig},
		{"health", "health: everything looked at", f.showHealth},
	}
}

func (d *Demo) featureNames() []string {
	var names []string
	for _, f := range d.allFeatures() {
		names = append(names, f.name)
	}
	return names
}

// chooseFeatures reads --features: all, or a list of names.
func (d *Demo) chooseFeatures(list string) error {
	names := d.featureNames()
	d.shows = map[string]bool{}
	for name := range strings.SplitSeq(list, ",") {
		switch name = strings.TrimSpace(name); {
		case name == "all":
			for _, n := range names {
				d.shows[n] = true
			}
		case slices.Contains(names, name):
			d.shows[name] = true
		default:
			return fmt.Errorf("--features %q; allowed: all, %s", name, strings.Join(names, ", "))
		}
	}
	if d.shows["scp"] {
		set, err := features{d}.scpSettings()
		if err != nil {
			return err
		}
		d.further = append(d.further, set...)
	}
	if d.shows["ryu"] {
		var err error
		d.ryu, err = freeport.Loopback()
		return err
	}
	return nil
}

// featureSteps are the steps of the features that were asked for.
func (d *Demo) featureSteps() (steps []demoStep) {
	for _, f := range d.allFeatures() {
		if d.shows[f.name] {
			steps = append(steps, demoStep{f.what, f.do})
		}
	}
	return steps
}

// weft runs a command of the program against the demo's controller, says so,
// and returns what it prints. In its arguments the demo's directory is given in
// full; what it shows is what one would type.
func (d *Demo) weft(ctx context.Context, args ...string) (string, error) {
	fmt.Fprintf(d.out, "         $ weft %s\n", strings.Join(args, " "))
	out, err := d.command(ctx, nil, args...)
	if err != nil {
		return out, fmt.Errorf("weft %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// undo runs a command that takes away what a step has made, unless the step has
// done so itself.
func (d *Demo) undo(ctx context.Context, args ...string) {
	_, _ = d.command(context.WithoutCancel(ctx), nil, args...) // it is an error if nothing is left
}

// command runs the program with further variables in its environment. Its error
// is what the program has written on stderr.
func (d *Demo) command(ctx context.Context, env []string, args ...string) (string, error) {
	exe, err := companion.Find("weft")
	if err != nil {
		return "", err
	}
	var out, errs strings.Builder
	c := exec.CommandContext(ctx, exe, args...)
	c.Stdout, c.Stderr = &out, &errs
	for _, v := range os.Environ() { // the user's own controller is another one
		if !strings.HasPrefix(v, "WEFT_") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(c.Env, "WEFT_SERVER="+d.server(), "WEFT_CA="+d.ca)
	if d.tokenFile != "" {
		c.Env = append(c.Env, "WEFT_TOKEN_FILE="+d.tokenFile)
	}
	c.Env = append(c.Env, env...)
	if err := c.Run(); err != nil {
		if text := strings.TrimSpace(errs.String()); text != "" {
			err = errors.New(text)
		}
		return out.String(), err
	}
	return out.String(), nil
}

// host returns a host of the lab by its place in the topology, from 0.
func (d *Demo) host(i int) (topology.Host, error) {
	if hosts := d.Lab.Topology().Hosts; i < len(hosts) {
		return hosts[i], nil
	}
	return topology.Host{}, fmt.Errorf("the network has %d hosts, and this needs %d", len(d.Lab.Topology().Hosts), i+1)
}

// hosts returns the first n hosts of the lab.
func (d *Demo) hosts(n int) ([]topology.Host, error) {
	if _, err := d.host(n - 1); err != nil {
		return nil, err
	}
	return d.Lab.Topology().Hosts[:n], nil
}

// answered pings n times and returns how many were answered.
func (d *Demo) answered(ctx context.Context, from, to string, n int) (int, error) {
	r, err := d.Lab.Ping(ctx, from, to, traffic.PingOptions{Count: n, Interval: 50 * time.Millisecond})
	return r.Received, err
}

// until asks again and again until the answer is true.
func until(ctx context.Context, limit time.Duration, what string, is func() (bool, error)) error {
	for end := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		ok, err := is()
		switch {
		case ok && err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(end) && err != nil:
			return fmt.Errorf("%s: %w", what, err)
		case time.Now().After(end):
			return fmt.Errorf("after %v: not %s", limit, what)
		}
	}
}

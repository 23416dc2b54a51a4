// Package test runs the whole system on real networks: controllers in process,
// Open vSwitch, namespaces, traffic. It needs root and Open vSwitch, and fails
// without.
package test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/lab/keeper"

	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/services/balancer"
	"github.com/weft-sdn/weft/services/chain"
	"github.com/weft-sdn/weft/services/discovery"
	"github.com/weft-sdn/weft/services/firewall"
	"github.com/weft-sdn/weft/services/flowrules"
	"github.com/weft-sdn/weft/services/forwarding"
	"github.com/weft-sdn/weft/services/heartbeat"
	"github.com/weft-sdn/weft/services/hosts"
	"github.com/weft-sdn/weft/services/nat"
	"github.com/weft-sdn/weft/services/paths"
	"github.com/weft-sdn/weft/services/qos"
	"github.com/weft-sdn/weft/services/router"
	"github.com/weft-sdn/weft/services/ryu"
	"github.com/weft-sdn/weft/services/scp"
	"github.com/weft-sdn/weft/services/southbound"
	"github.com/weft-sdn/weft/services/stats"
	"github.com/weft-sdn/weft/services/tenants"
	"github.com/weft-sdn/weft/wefttest"
)

func TestMain(m *testing.M) {
	keeper.RunIfAsked()
	status := m.Run()
	testprogram.Remove()
	os.Exit(status)
}

// modes are the ways in which services are connected; all must behave alike:
// the plans single and split.
var modes = []string{"single", "split"}

// controller is a running controller.
type controller struct {
	t        *testing.T
	env      *weft.Env
	address  string
	registry []prometheus.Gatherer // of each process
	store    local.Store
	nodes    []*deploy.Node // the processes
	known    []weft.Spec    // all services, of which options.only leaves some out
	stop     func()
}

// options say what a controller is like.
type options struct {
	plan    string      // one of modes; empty: that of the environment, or else split
	store   local.Store // nil: a fresh one
	address string      // HOST:PORT; empty: a free one
	set     []string
	only    []string // names of the services to run; empty: all
}

// start runs a controller until the test ends or stop is called.
func start(t *testing.T, o options) *controller {
	t.Helper()
	c := &controller{t: t, store: o.store, address: o.address}
	if c.store == nil {
		c.store = wefttest.NewStore()
	}
	if c.address == "" {
		c.address = freeAddress(t)
	}
	set := append([]string{"southbound.listen=[\"tcp:" + c.address + "\"]"}, o.set...)
	got := make(chan *weft.Env, 1)
	specs := []weft.Spec{southbound.Spec(), discovery.Spec(), hosts.Spec(), firewall.Spec(), paths.Spec(), flowrules.Spec(), scp.Spec(), balancer.Spec(), router.Spec(), nat.Spec(), forwarding.Spec(), stats.Spec(), heartbeat.Spec(), qos.Spec(), tenants.Spec(), chain.Spec(), ryu.Spec(ryu.Process{}), probe(got)}
	if c.known = specs; len(o.only) > 0 {
		specs = slices.Clone(specs)
		specs = slices.DeleteFunc(specs, func(s weft.Spec) bool { return s.Name != "probe" && !slices.Contains(o.only, s.Name) })
	}
	level := slog.LevelWarn
	if os.Getenv("WEFT_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: level}))
	p := split(specs)
	if o.plan == "single" || o.plan == "" && os.Getenv(planVariable) == "single" {
		p = single(specs)
	}
	p.Partial = len(specs) < len(c.known)
	ctx, cancel := context.WithCancel(context.Background())
	ended := c.run(ctx, p, set, log)
	select {
	case c.env = <-got:
	case err := <-ended:
		t.Fatalf("controller: %v", err)
	}
	var stopped atomic.Bool
	c.stop = func() {
		if stopped.Swap(true) {
			return
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("controller: %v", err)
		}
	}
	t.Cleanup(c.stop)
	return c
}

// probe is a service that lets a test call all others.
func probe(got chan<- *weft.Env) weft.Spec {
	return weft.Spec{
		Name: "probe", Doc: "lets a test call the services",
		Calls: weft.Methods(api.ListSwitches, api.ListPorts, api.ReadFlows, api.ReadGroups, api.ListLinks, api.ListPortRoles, api.ListHosts,
			api.FindHost, api.FindPath, api.GetTree, api.ListRoutes, api.GetFlooding, api.AddFlows, api.DeleteFlows, api.ListFlows, api.ListSync,
			api.SetVip, api.DeleteVip, api.ListVips, api.SetMember, api.DeleteMember, api.DrainMember, api.ListConnections, api.ListPairs,
			api.GetScp, api.ListScpPairs, api.SetScpPolicy, api.DeleteScpPolicy, api.ListScpPolicies, api.DrainProducer,
			api.QosSetPolicy, api.QosDeletePolicy, api.QosListPolicies, api.QosGetStatus, api.QosSetQueues, api.QosDeleteQueues, api.QosListQueues,
			api.SetTenant, api.DeleteTenant, api.ListTenants, api.SetNetwork, api.DeleteNetwork, api.ListNetworks, api.GetTenantsStatus,
			api.AddFirewallRules, api.DeleteFirewallRules, api.ListFirewallRules, api.SetFirewallDefault, api.GetFirewallStatus, api.CheckFirewall,
			api.SetNat, api.DeleteNat, api.ListNats,
			api.AddRouterAddress, api.DeleteRouterAddress, api.AddRouterRoute, api.DeleteRouterRoute, api.ListRouters,
			api.SetChain, api.DeleteChain, api.ListChains,
			api.ListLimits, api.ListHeartbeats, api.ListPortStats, api.ListFlowStats),
		Run: func(ctx context.Context, env *weft.Env) error {
			if err := weft.Ready(ctx, env); err != nil {
				return err
			}
			got <- env
			<-ctx.Done()
			return nil
		},
	}
}

// call calls a service.
func call[Req, Resp any](c *controller, m api.Method[Req, Resp], req *Req) *Resp {
	c.t.Helper()
	resp, err := weft.Call(context.Background(), c.env, m, req)
	if err != nil {
		c.t.Fatalf("%s: %v", m.Name, err)
	}
	return resp
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	fmt.Fprint(os.Stderr, "    ", string(b))
	return len(b), nil
}

// up brings a lab up for a controller, and down when the test ends.
func up(t *testing.T, spec string, c *controller) *lab.Lab {
	t.Helper()
	topo, err := topology.Resolve(spec)
	if err != nil {
		t.Fatal(err)
	}
	return bring(t, topo, c)
}

// bring is up for a topology made in Go.
func bring(t *testing.T, topo *topology.Topology, c *controller) *lab.Lab {
	t.Helper()
	name := strings.ToLower(fmt.Sprintf("t%d", time.Now().UnixNano()%1e9))
	l, err := lab.Up(context.Background(), topo, lab.Options{Name: name, Temporary: true, Controllers: []string{"tcp:" + c.address}, KeeperCommand: []string{os.Args[0]}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// explain prints, when the test has failed, what the controller counted.
func explain(c *controller) {
	if !c.t.Failed() {
		return
	}
	for _, f := range c.gather() {
		for _, m := range f.Metric {
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if v != 0 {
				c.t.Log(f.GetName(), m.Label, v)
			}
		}
	}
}

// eventually waits until f holds.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(20 * time.Millisecond) {
		if f() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", testwait.Limit, what)
		}
	}
}

// settled waits until all switches and links of the lab are known, paths lead
// over them, and the broadcast tree is in force.
func settled(c *controller, l *lab.Lab) {
	c.t.Helper()
	topo := l.Topology()
	eventually(c.t, "all switches and links discovered", func() bool {
		up := 0
		for _, s := range call(c, api.ListSwitches, &api.ListSwitchesRequest{}).Switches {
			if s.Connected {
				up++
			}
		}
		links := 0
		for _, l := range call(c, api.ListLinks, &api.ListLinksRequest{}).Links {
			if l.State == "up" {
				links++
			}
		}
		return up == len(topo.Switches) && links == 2*len(topo.Links)
	})
	// Discovery tells of a link before paths, which gathers what comes, has it.
	eventually(c.t, "paths computed over all links", func() bool {
		return c.metric("weft_paths_links") >= float64(2*len(topo.Links))
	})
	eventually(c.t, "broadcast tree in force", func() bool {
		f, tree := call(c, api.GetFlooding, &api.GetFloodingRequest{}), call(c, api.GetTree, &api.GetTreeRequest{})
		return f.Committed == f.Wanted && f.Wanted > 0 && len(f.Ports) == 2*(len(topo.Switches)-1) && maps.Equal(portsOf(f.Ports), portsOf(tree.Ports))
	})
	eventually(c.t, "ports of all hosts settled", func() bool {
		edges := 0
		for _, p := range call(c, api.ListPortRoles, &api.ListPortRolesRequest{}).Ports {
			if p.Role == "edge" {
				edges++
			}
		}
		return edges >= len(topo.Hosts)
	})
}

// portsOf returns a list of ports as a set.
func portsOf(list []*api.Location) map[flow.Location]bool {
	set := map[flow.Location]bool{}
	for _, at := range list {
		set[at.Flow()] = true
	}
	return set
}

// patience is how long an answer is waited for that is to come: with the switches
// of several tests on a few processors it may be late, and is not lost for that.
const patience = testwait.Limit

// patientLinks is the setting of tests in which nothing is to change: no link is taken
// for silent because a busy machine gives nobody the time to look at its probes.
const patientLinks = "discovery.timeout=2m"

// pingAll pings all pairs and fails if anything is lost.
func pingAll(t *testing.T, l *lab.Lab, v6 bool) {
	t.Helper()
	results, err := l.PingAll(context.Background(), l.AllPairs(v6), traffic.PingOptions{IPv6: v6, Count: 2, Interval: 50 * time.Millisecond, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Lost() > 0 || r.Error != "" {
			t.Errorf("%s -> %s (IPv6 %v): %d of %d lost %s", r.From, r.To, v6, r.Lost(), r.Sent, r.Error)
		}
	}
}

// mended waits until all pairs reach each other after a failure: routes change
// some milliseconds after the controller shows what failed, and the switches'
// caches follow after a moment.
func mended(t *testing.T, l *lab.Lab) {
	t.Helper()
	eventually(t, "all hosts reach each other another way", func() bool {
		results, err := l.PingAll(context.Background(), l.AllPairs(false), traffic.PingOptions{Count: 1})
		return err == nil && !slices.ContainsFunc(results, func(r traffic.PingResult) bool { return r.Lost() > 0 || r.Error != "" })
	})
	pingAll(t, l, false)
}

// programmed waits until the switches have just the entries of the routes that
// the controller lists, and no longer those of former ones.
func programmed(c *controller, l *lab.Lab) {
	c.t.Helper()
	var last string
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Log(last)
		}
	})
	eventually(c.t, "the entries of all routes on the switches, and no others", func() bool {
		hops := map[string]int{}
		for _, r := range call(c, api.ListRoutes, &api.ListRoutesRequest{}).Routes {
			for _, h := range r.Hops {
				hops[h.Dpid]++
			}
		}
		for _, s := range l.Topology().Switches {
			sw := s.DPID.String()
			if n := len(call(c, api.ReadFlows, &api.ReadFlowsRequest{Dpid: sw, Owner: "routes"}).Flows); n != hops[sw] {
				last = fmt.Sprintf("switch %s has %d entries of routes, which cross it %d times", s.Name, n, hops[sw])
				return false
			}
		}
		last = ""
		return true
	})
}

func TestPingAll(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"linear:3", "demo"} {
		for _, m := range modes {
			t.Run(spec+"/"+m, func(t *testing.T) {
				c := start(t, options{plan: m})
				l := up(t, spec, c)
				settled(c, l)
				pingAll(t, l, false)
				pingAll(t, l, true)
				explain(c)
			})
		}
	}
}

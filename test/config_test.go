package test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab/traffic"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/services/discovery"
	"github.com/weft-sdn/weft/services/firewall"
	"github.com/weft-sdn/weft/services/flowrules"
	"github.com/weft-sdn/weft/services/forwarding"
	"github.com/weft-sdn/weft/services/hosts"
	"github.com/weft-sdn/weft/services/paths"
	"github.com/weft-sdn/weft/services/southbound"
	"github.com/weft-sdn/weft/services/stats"
	"github.com/weft-sdn/weft/wefttest"
)

// configured is a controller whose configuration is changed while it runs: the
// services in one node, or each in its own.
type configured struct {
	*controller
	node *deploy.Node // one of them
}

// startConfigured starts one on a store as weft up does: with the configuration
// given, unless another has been applied over it. More services may run besides
// those of forwarding.
func startConfigured(t *testing.T, store local.Store, address, given string, more ...weft.Spec) *configured {
	t.Helper()
	c := &configured{controller: &controller{t: t, store: store, address: address}}
	got := make(chan *weft.Env, 1)
	specs := []weft.Spec{southbound.Spec(), discovery.Spec(), hosts.Spec(), firewall.Spec(), paths.Spec(), flowrules.Spec(), forwarding.Spec(), stats.Spec()}
	specs = append(specs, more...)
	asks := probe(got)
	asks.Calls = slices.DeleteFunc(asks.Calls, func(m weft.Method) bool { // of services that do not run here
		service, _, _ := strings.Cut(m.MethodName(), ".")
		return !slices.ContainsFunc(specs, func(s weft.Spec) bool { return s.Name == service })
	})
	specs = append(specs, asks)
	c.known = specs
	p := split(specs)
	if os.Getenv(planVariable) == "single" {
		p = single(specs)
	}
	doc, err := plan.ParseConfig("given", []byte(given))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	configs, err := config.Open(ctx, store)
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := configs.Choose(ctx, config.Given{Sections: doc.Sections, Source: "file", Named: true})
	if err != nil {
		t.Fatal(err)
	}
	directory, err := members.OpenDirectory(ctx, store)
	if err == nil {
		err = directory.Take(ctx, p.WithConfig(chosen.Sections), specs)
	}
	if err == nil {
		err = configs.Start(ctx, chosen, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	level := slog.LevelWarn
	if os.Getenv("WEFT_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: level}))
	ended := make(chan error, len(p.Workers))
	for i := range p.Workers {
		n := c.controller.node(ctx, p.Workers[i].Name, specs, nil, log)
		c.node = n
		go func() { ended <- n.Run(ctx) }()
	}
	var stopped atomic.Bool
	c.stop = func() {
		if stopped.Swap(true) {
			return
		}
		cancel()
		var errs []error
		for range p.Workers {
			errs = append(errs, <-ended)
		}
		if err := errors.Join(errs...); err != nil {
			t.Errorf("controller: %v", err)
		}
	}
	t.Cleanup(c.stop)
	select {
	case c.env = <-got:
	case <-time.After(testwait.Limit):
		t.Fatal("the controller does not start")
	}
	return c
}

// apply applies a configuration.
func (c *configured) apply(text string) (*api.ApplyConfigResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return c.node.ApplyConfig(ctx, &api.ApplyConfigRequest{Text: text, Source: "a test", LimitMs: 30_000})
}

func (c *configured) mustApply(text string) *api.ApplyConfigResponse {
	c.t.Helper()
	m, err := c.apply(text)
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// epochs returns which run of each service is at work.
func (c *configured) epochs() map[string]uint64 {
	c.t.Helper()
	d, err := members.OpenDirectory(context.Background(), c.store)
	if err != nil {
		c.t.Fatal(err)
	}
	entries, err := d.Entries(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	all := map[string]uint64{}
	for _, e := range entries {
		for _, s := range e.Services {
			all[s.Name] = s.Epoch
		}
	}
	return all
}

// restarted returns the services that have been started again since.
func (c *configured) restarted(since map[string]uint64) (names []string) {
	c.t.Helper()
	now := c.epochs()
	for _, name := range slices.Sorted(maps.Keys(since)) {
		if now[name] != since[name] {
			names = append(names, name)
		}
	}
	return names
}

// TestConfigChangesUnderTraffic changes the configuration of a controller of
// real switches while hosts ping each other: nothing is lost but by what a
// change is about, only services that it is about are started again, a
// configuration that does not work is put back, and the last good one outlasts
// the controller.
func TestConfigChangesUnderTraffic(t *testing.T) {
	t.Parallel()
	store, address := wefttest.NewStore(), freeAddress(t)
	given := "southbound: {listen: [\"tcp:" + address + "\"]}\n"
	c := startConfigured(t, store, address, given)
	l := up(t, "linear:3", c.controller)
	settled(c.controller, l)
	pingAll(t, l, false)

	// A change that has nothing to do with packets, under traffic.
	pinging, stopPinging := context.WithCancel(context.Background())
	defer stopPinging()
	var answered atomic.Int64
	pinged := make(chan traffic.PingResult, 1)
	go func() {
		r, err := l.Ping(pinging, "h1", "h3", traffic.PingOptions{Count: -1, Interval: 10 * time.Millisecond, Timeout: patience,
			Reply: func(string, string, int, time.Duration) { answered.Add(1) }})
		if err != nil {
			r.Error = err.Error()
		}
		pinged <- r
	}()
	hear := func() {
		t.Helper()
		from := answered.Load()
		eventually(t, "packets are answered", func() bool { return answered.Load() > from+20 })
	}
	hear()
	before := c.epochs()
	m := c.mustApply(given + "stats: {interval: 1s, metric_switches: 10}\nhosts: {age: 5m}\n")
	var said []string
	for _, x := range m.Changes {
		said = append(said, fmt.Sprintf("%s.%s %s", x.Section, x.Key, x.Effect))
	}
	if got := strings.Join(said, ", "); got != "hosts.age live, stats.interval restart, stats.metric_switches restart" {
		t.Errorf("changes: %s", got)
	}
	if again := c.restarted(before); !slices.Equal(again, []string{"stats"}) {
		t.Errorf("started again: %v", again)
	}
	hear()
	before = c.epochs()
	c.mustApply(given + "stats: {interval: 2s, metric_switches: 10}\nhosts: {age: 20m, limit: 1000}\n")
	if again := c.restarted(before); len(again) > 0 {
		t.Errorf("started again, though all can be taken over: %v", again)
	}
	hear()

	// One that forwarding is started again for: its entries stay.
	good := given + "stats: {interval: 2s}\nforwarding: {floods_per_second: 300, idle_timeout: 1m}\n"
	before = c.epochs()
	c.mustApply(good)
	if again := c.restarted(before); !slices.Equal(again, []string{"forwarding", "stats"}) {
		t.Errorf("started again: %v", again)
	}
	hear()

	// One with which the southbound cannot start: somebody has the address.
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	bad := "southbound: {listen: [\"tcp:" + taken.Addr().String() + "\"]}\nstats: {interval: 9s}\n"
	if m, err := c.apply(bad); err == nil || !strings.Contains(err.Error(), "address already in use") || !strings.Contains(err.Error(), "the former one is back in force") {
		t.Errorf("a configuration that cannot work: %v, %v", m, err)
	}
	hear()
	stopPinging()
	if r := <-pinged; r.Lost() > 0 || r.Error != "" {
		t.Errorf("%d of %d packets lost %s, at most %v ms in a row", r.Lost(), r.Sent, r.Error, r.Outage)
	}
	settled(c.controller, l)
	pingAll(t, l, false)

	// What is wrong is refused as a whole.
	if _, err := c.apply(given + "stats: {interval: 3s}\nforwarding: {mode: magic}\n"); err == nil || !strings.Contains(err.Error(), "configuration:3: service forwarding: mode") {
		t.Errorf("a wrong one: %v", err)
	}
	shows := func(c *configured, want, state string) {
		t.Helper()
		m, err := c.node.GetConfig(context.Background(), &api.GetConfigRequest{})
		if err != nil || m.Text != want || m.State != state {
			t.Errorf("in force: %v, %v; want %s", m, err, want)
		}
	}
	shows(c, good, "in-force")

	// The last good one is that of the next run, and so is the history.
	c.stop()
	c = startConfigured(t, store, address, given)
	shows(c, good, "in-force")
	settled(c.controller, l)
	pingAll(t, l, false)
	back, err := c.node.RollbackConfig(context.Background(), &api.RollbackConfigRequest{Number: 1, LimitMs: 30_000})
	if err != nil || back.State != "in-force" {
		t.Fatalf("rolled back: %v, %v", back, err)
	}
	eventually(t, "all pairs reach each other", func() bool {
		r, err := l.PingAll(context.Background(), l.AllPairs(false), traffic.PingOptions{Count: 1})
		return err == nil && !slices.ContainsFunc(r, func(p traffic.PingResult) bool { return p.Lost() > 0 })
	})

	// Another file counts more than what was applied over the former one.
	c.stop()
	changed := given + "stats: {interval: 7s}\n"
	c = startConfigured(t, store, address, changed)
	if m, err := c.node.GetConfig(context.Background(), &api.GetConfigRequest{}); err != nil || m.Hash != hashOf(t, changed) {
		t.Errorf("in force: %v, %v", m, err)
	}
	settled(c.controller, l)
	explain(c.controller)
}

func hashOf(t *testing.T, text string) string {
	t.Helper()
	d, err := plan.ParseConfig("text", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return plan.Hash(d.Sections)
}

// TestFirewallRulesOfTheConfig has rules in the configuration beside those of the
// API: applying another one replaces its own and touches nothing else.
func TestFirewallRulesOfTheConfig(t *testing.T) {
	t.Parallel()
	store, address := wefttest.NewStore(), freeAddress(t)
	given := "southbound: {listen: [\"tcp:" + address + "\"]}\n"
	c := startConfigured(t, store, address, given)
	l := up(t, "linear:2", c.controller)
	settled(c.controller, l)
	pingAll(t, l, false)
	h1, err := l.Host("h1")
	if err != nil {
		t.Fatal(err)
	}
	h2, err := l.Host("h2")
	if err != nil {
		t.Fatal(err)
	}
	reach := func(want bool) {
		t.Helper()
		eventually(t, fmt.Sprintf("h1 reaches h2: %v", want), func() bool {
			r, err := l.Ping(context.Background(), "h1", "h2", traffic.PingOptions{Count: 2, Timeout: 300 * time.Millisecond})
			return err == nil && (r.Received == r.Sent) == want && (r.Received > 0) == want
		})
	}
	ids := func() (list []string) {
		for _, r := range call(c.controller, api.ListFirewallRules, &api.ListFirewallRulesRequest{}).Rules {
			list = append(list, r.Id)
		}
		slices.Sort(list)
		return list
	}
	call(c.controller, api.AddFirewallRules, &api.AddFirewallRulesRequest{Rules: []*api.FirewallRule{
		{Id: "mine", Action: "deny", Priority: 5, Match: map[string]string{"tcp_dst": "9"}},
	}})
	deny := given + fmt.Sprintf("firewall:\n  rules:\n  - {id: apart, action: deny, priority: 100, match: {eth_type: \"0x0800\", ipv4_src: %s, ipv4_dst: %s}}\n", h1.IPv4.Addr(), h2.IPv4.Addr())
	before := c.epochs()
	m := c.mustApply(deny)
	if len(m.Changes) != 1 || m.Changes[0].Effect != "live" || m.Changes[0].Key != "rules[apart]" {
		t.Errorf("changes: %v", m.Changes)
	}
	if again := c.restarted(before); len(again) > 0 {
		t.Errorf("started again: %v", again)
	}
	reach(false)
	if got := ids(); !slices.Equal(got, []string{"config:apart", "mine"}) {
		t.Errorf("rules: %v", got)
	}
	if _, err := weft.Call(context.Background(), c.env, api.DeleteFirewallRules, &api.DeleteFirewallRulesRequest{Ids: []string{"config:apart"}}); err == nil {
		t.Error("a rule of the configuration was deleted by the API")
	}
	c.stop()
	c = startConfigured(t, store, address, given)
	settled(c.controller, l)
	reach(false)
	if _, err := c.node.RollbackConfig(context.Background(), &api.RollbackConfigRequest{}); err != nil {
		t.Fatal(err)
	}
	reach(true)
	if got := ids(); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("rules: %v", got)
	}
	if _, err := c.apply(given + "firewall:\n  rules:\n  - {id: a, action: allow}\n  - {id: b, action: drop}\n"); err == nil || !strings.Contains(err.Error(), "configuration:5: service firewall: rules[1]: action \"drop\"") {
		t.Errorf("a wrong rule: %v", err)
	}
}

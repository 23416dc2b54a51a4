package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/plan"
)

// tuned is a configuration with keys that a running service takes over.
type tuned struct {
	Pace  int         `yaml:"pace"`
	Rules []tunedRule `yaml:"rules"`
	Fixed int         `yaml:"fixed"`
	Token string      `yaml:"token"`
}

type tunedRule struct {
	Name   string `yaml:"name"`
	Action string `yaml:"action"`
}

func (t *tuned) Validate() error {
	if t.Pace < 0 {
		return fmt.Errorf("pace: %d: want 0 or more", t.Pace)
	}
	for i, r := range t.Rules {
		if r.Action != "allow" && r.Action != "deny" {
			return fmt.Errorf("rules[%d].action: %q: want allow or deny", i, r.Action)
		}
	}
	return nil
}

// configurables declares services that take configurations over, restart, or
// have none.
func configurables() []weft.Spec {
	return []weft.Spec{
		{Name: "live", Config: &tuned{Pace: 1}, Live: []string{"pace", "rules"}},
		{Name: "fixed", Config: &tuned{Pace: 1}},
		{Name: "other", Config: &tuned{Pace: 1}, Live: []string{"*"}},
		{Name: "plain"},
	}
}

// configured is a cluster of configurables that note what they are given.
type configCluster struct {
	*cluster
	mu    sync.Mutex
	taken []string // by live and other: old -> new
}

const configuredPlan = "{name: a, events: grpc, workers: {w0: {services: [live, plain]}, w1: {services: [fixed, other]}}}"

// newConfigCluster starts one. A pace of 13 is refused by all; with one of 14 a
// service ends as soon as it runs; with one of 15 it does not set itself up.
func newConfigCluster(t *testing.T, text string) *configCluster {
	t.Helper()
	c := &configCluster{}
	take := func(a *actor, name string) {
		weft.OnConfig(a.env, func(_ context.Context, old, new *tuned) error {
			if new.Pace == 13 {
				return errors.New("13 brings bad luck")
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.taken = append(c.taken, fmt.Sprintf("%s %d -> %d", name, old.Pace, new.Pace))
			return nil
		})
	}
	c.cluster = newCluster(t, configurables(), map[string]func(*actor){
		"live":  func(a *actor) { take(a, "live") },
		"other": func(a *actor) { take(a, "other") },
		"fixed": func(a *actor) {
			switch a.env.Config.(*tuned).Pace {
			case 13:
				panic("13 brings bad luck")
			case 15:
				<-a.ctx.Done()
			}
		},
	})
	c.cluster.apply(text)
	c.startAll()
	return c
}

func (c *configCluster) took() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.taken)
}

func (c *configCluster) started(name string) int {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	return c.starts[name]
}

func (c *configCluster) give(text string) (*api.ApplyConfigResponse, error) {
	return c.process("w0").node.ApplyConfig(c.t.Context(), &api.ApplyConfigRequest{Text: text, Source: "a test", LimitMs: 5000})
}

func (c *configCluster) mustGive(text string) *api.ApplyConfigResponse {
	c.t.Helper()
	m, err := c.give(text)
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

func (c *configCluster) shown() *api.Configuration {
	c.t.Helper()
	m, err := c.process("w1").node.GetConfig(c.t.Context(), &api.GetConfigRequest{})
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// states returns the states of the history, the newest first.
func (c *configCluster) states() string {
	c.t.Helper()
	m, err := c.process("w1").node.ListConfigs(c.t.Context(), &api.ListConfigsRequest{})
	if err != nil {
		c.t.Fatal(err)
	}
	var list []string
	for _, x := range m.Configurations {
		list = append(list, fmt.Sprintf("%d %s", x.Number, x.State))
	}
	return strings.Join(list, ", ")
}

func effects(m *api.ApplyConfigResponse) string {
	var list []string
	for _, x := range m.Changes {
		list = append(list, fmt.Sprintf("%s.%s %q -> %q %s", x.Section, x.Key, x.Old, x.New, x.Effect))
	}
	return strings.Join(list, "; ")
}

func TestConfigIsAppliedAsADifference(t *testing.T) {
	c := newConfigCluster(t, configuredPlan)
	text := "live: {pace: 2, rules: [{name: a, action: allow}]}\nfixed: {fixed: 3}\n"
	dry, err := c.process("w1").node.ApplyConfig(t.Context(), &api.ApplyConfigRequest{Text: text, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	want := `live.pace "1" -> "2" live; live.rules[a] "" -> "{name: a, action: allow}" live; fixed.fixed "0" -> "3" restart`
	if got := effects(dry); got != want || dry.State != "would-apply" {
		t.Errorf("a dry run says %s, %s\nwant %s", dry.State, got, want)
	}
	if len(c.took()) > 0 || c.shown().Number != 0 || c.states() != "" {
		t.Errorf("a dry run has changed something: %v, %v, %q", c.took(), c.shown(), c.states())
	}
	m := c.mustGive(text)
	if effects(m) != want || m.State != "in-force" || m.Number != 2 {
		t.Errorf("applied: %v", m)
	}
	if got := fmt.Sprint(c.took()); got != "[live 1 -> 2]" {
		t.Errorf("taken over: %s", got)
	}
	for name, n := range map[string]int{"live": 1, "fixed": 2, "other": 1, "plain": 1} {
		if c.started(name) != n {
			t.Errorf("%s has been started %d times, want %d", name, c.started(name), n)
		}
	}
	// The same in other words changes nothing.
	again := c.mustGive("# nothing new\nfixed:\n  fixed: 3\nlive:\n  rules:\n  - action: allow\n    name: a\n  pace: 2\n")
	if again.Number != 2 || len(again.Changes) > 0 || c.states() != "2 in-force, 1 good" {
		t.Errorf("the same again: %v, %s", again, c.states())
	}
	// A rule is changed, one is new.
	m = c.mustGive("live: {pace: 2, rules: [{name: b, action: deny}, {name: a, action: deny}]}\nfixed: {fixed: 3}\n")
	if got, want := effects(m), `live.rules[a].action "allow" -> "deny" live; live.rules[b] "" -> "{name: b, action: deny}" live`; got != want {
		t.Errorf("changes %s\nwant    %s", got, want)
	}
	back, err := c.process("w1").node.RollbackConfig(t.Context(), &api.RollbackConfigRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if back.Number != 4 || c.shown().Text != text || c.states() != "4 in-force, 3 good, 2 good, 1 good" {
		t.Errorf("rolled back: %v, %v, %s", back, c.shown(), c.states())
	}
	if _, err := c.process("w1").node.RollbackConfig(t.Context(), &api.RollbackConfigRequest{Number: 1}); err != nil {
		t.Fatal(err)
	}
	if got := c.shown(); got.Hash != plan.Hash(nil) || c.started("fixed") != 3 || c.started("other") != 1 {
		t.Errorf("rolled back to the beginning: %v; fixed started %d times, other %d", got, c.started("fixed"), c.started("other"))
	}
	if _, err := c.process("w1").node.RollbackConfig(t.Context(), &api.RollbackConfigRequest{Number: 99}); api.KindOf(err) != codes.NotFound {
		t.Errorf("rolled back to nothing: %v", err)
	}
}

// Whatever way a service cannot do with its configuration, the former one is
// back in force, everything runs, and the error says why.
func TestConfigThatFailsIsPutBack(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ name, text, want string }{
		{"refused while it runs", "live: {pace: 13}\nother: {pace: 5}\n", "service live does not take it over: 13 brings bad luck"},
		{"panics at start", "fixed: {pace: 13}\nlive: {pace: 5}\n", "panic in Run: 13 brings bad luck"},
		{"does not set itself up", "fixed: {pace: 15}\n", "not set up after"},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newConfigCluster(t, configuredPlan)
			good := "live: {pace: 2}\nother: {pace: 2}\nfixed: {pace: 2}\n"
			c.mustGive(good)
			plain := c.started("plain")
			limit := uint32(5000)
			if x.want == "not set up after" {
				limit = 30_000
			}
			_, err := c.process("w0").node.ApplyConfig(t.Context(), &api.ApplyConfigRequest{Text: x.text, LimitMs: limit})
			if err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "the former one is back in force") {
				t.Fatalf("%v; want %q", err, x.want)
			}
			c.settled()
			if c.shown().Text != good || c.states() != "3 failed, 2 in-force, 1 good" {
				t.Errorf("in force: %v; %s", c.shown(), c.states())
			}
			for _, name := range []string{"live", "other", "fixed"} {
				c.runs(name, 1)
			}
			last := map[string]string{}
			for _, line := range c.took() {
				name, what, _ := strings.Cut(line, " ")
				last[name] = what
			}
			for name, what := range last {
				if !strings.HasSuffix(what, "-> 2") {
					t.Errorf("%s runs with something else: %v", name, c.took())
				}
			}
			if c.started("plain") != plain {
				t.Error("a service without a configuration has been started again")
			}
			if got := c.process("w0").metric(t, "weft_config_failures_total", ""); got != 1 {
				t.Errorf("%v failures are counted", got)
			}
			c.mustGive("live: {pace: 4}\n") // and it goes on
		})
	}
}

func TestConfigThatIsWrongIsRefused(t *testing.T) {
	c := newConfigCluster(t, configuredPlan)
	for text, want := range map[string]string{
		"live: {pase: 2}\nfixed: {pace: many}\n":                 "configuration:1: unknown key live.pase; allowed: fixed, pace, rules, token; did you mean pace?\nconfiguration:2: fixed.pace: want a whole number",
		"live:\n  rules:\n  - {name: a, action: drop}\n":         `configuration:3: service live: rules[0].action: "drop": want allow or deny`,
		"lives: {pace: 1}\n":                                     "did you mean live?",
		"plain: {pace: 1}\n":                                     "nothing to configure",
		"pipeline: [live]\n":                                     "line 1: pipeline is a key of the plan",
		"live: {token: <secret>}\n":                              "live.token: <secret> stands for a secret that was not shown",
		"live: &x {pace: 1}\nfixed: *x\n":                        "a configuration has no anchors, aliases",
		"- 1\n":                                                  "want keys with values",
		strings.Repeat("[", 1000):                                "nested too deeply",
		"live:\n  pace: 1\n---\nlive: 3\n":                       "2 YAML documents",
		"live: {rules: [" + strings.Repeat("x,", 200_000) + "]}": "octets; a configuration has at most",
	} {
		if m, err := c.give(text); api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, %v\nwant %q", text, m, err, want)
		}
	}
	if c.states() != "" || len(c.took()) > 0 {
		t.Errorf("something has been applied: %s, %v", c.states(), c.took())
	}
}

func TestSecretsOfConfigsAreNotShown(t *testing.T) {
	c := newConfigCluster(t, configuredPlan)
	m := c.mustGive("live: {token: swordfish, pace: 2} # swordfish\n")
	if strings.Contains(fmt.Sprint(m, c.shown()), "swordfish") {
		t.Errorf("%v %v", m, c.shown())
	}
	if text := c.shown().Text; !strings.Contains(text, "token: \"<secret>\"") || !strings.Contains(text, "pace: 2") {
		t.Errorf("shown: %s", text)
	}
}

// Two at once: one is applied, the other is told so or is applied after it.
func TestConfigsAreAppliedOneAtATime(t *testing.T) {
	c := newConfigCluster(t, configuredPlan)
	var all sync.WaitGroup
	var mu sync.Mutex
	applied := 0
	for i := range 6 {
		all.Go(func() {
			node := c.process(fmt.Sprintf("w%d", i%2)).node
			_, err := node.ApplyConfig(t.Context(), &api.ApplyConfigRequest{Text: fmt.Sprintf("live: {pace: %d}\n", i+20)})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				applied++
			case api.KindOf(err) != codes.Aborted:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if applied == 0 || strings.Count(c.states(), "in-force") != 1 {
		t.Errorf("%d applied; %s", applied, c.states())
	}
	m := c.shown()
	if _, err := c.process("w0").node.ApplyConfig(t.Context(), &api.ApplyConfigRequest{Text: "live: {pace: 3}\n", MadeFrom: m.Number + 1}); api.KindOf(err) != codes.Aborted {
		t.Errorf("made from another one: %v", err)
	}
	if _, err := c.process("w0").node.ApplyConfig(t.Context(), &api.ApplyConfigRequest{Text: "live: {pace: 3}\n", MadeFrom: m.Number}); err != nil {
		t.Error(err)
	}
}

// The process that applies a configuration is killed before it is known to be
// good; its next run puts the last good one back.
func TestConfigIsDroppedWhenItsProcessDies(t *testing.T) {
	t.Parallel()
	c := newConfigCluster(t, configuredPlan)
	c.mustGive("live: {pace: 2}\n")
	go func() { // it waits for fixed, which never comes up
		_, _ = c.process("w0").node.ApplyConfig(context.Background(), &api.ApplyConfigRequest{Text: "fixed: {pace: 15}\nlive: {pace: 9}\n", LimitMs: 60_000})
	}()
	c.eventually("it is on trial", func() bool { return strings.HasPrefix(c.states(), "3 applying") })
	c.eventually("the service is being started", func() bool { return c.started("fixed") == 2 })
	c.kill(c.process("w0"))
	c.start("w0")
	c.eventually("it is dropped", func() bool { return c.states() == "3 dropped, 2 in-force, 1 good" })
	c.eventually("all runs with the last good one", func() bool {
		current, _, err := c.directory().Current(t.Context())
		return err == nil && !current.Trial && plan.Hash(current.InForce().Config) == c.shown().Hash
	})
	c.settled()
	took := []string{fmt.Sprintf("live x -> %d", c.run("live").env.Config.(*tuned).Pace)} // at its start, and what it has taken over since
	for _, line := range c.took() {
		if strings.HasPrefix(line, "live") {
			took = append(took, line)
		}
	}
	if !strings.HasSuffix(took[len(took)-1], "-> 2") {
		t.Errorf("live runs with something else: %v", took)
	}
}

// Which configuration counts when a plan is applied, or a controller started.
func TestWhichConfigCounts(t *testing.T) {
	c := newConfigCluster(t, strings.TrimSuffix(configuredPlan, "}")+", config: {live: {pace: 2}}}")
	applyPlan := func(text string) {
		t.Helper()
		if _, err := c.process("w0").node.ApplyPlan(t.Context(), &api.ApplyPlanRequest{Text: text}); err != nil {
			t.Fatal(err)
		}
		c.settled()
	}
	with := func(config string) string {
		return strings.TrimSuffix(configuredPlan, "}") + ", balance: switch, config: " + config + "}"
	}
	shows := func(want string) {
		t.Helper()
		current, _, err := c.directory().Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := plan.ConfigYAML(current.InForce().Config); err != nil || string(got) != want || c.shown().Text != want {
			t.Errorf("in force: %s, %v; shown: %s", got, err, c.shown().Text)
		}
	}
	c.mustGive("live:\n  pace: 3\n")
	applyPlan(with("{live: {pace: 2}}")) // another plan with the configuration that was given before
	shows("live:\n  pace: 3\n")
	applyPlan(configuredPlan) // one that says nothing
	shows("live:\n  pace: 3\n")
	applyPlan(with("{live: {pace: 4}}")) // one with another
	shows("live:\n  pace: 4\n")
	if got := c.states(); got != "3 in-force, 2 good, 1 good" {
		t.Error(got)
	}
	applyPlan(configuredPlan) // what was given is not given any more
	shows("{}\n")
}

// The figures of Prometheus, in every process.
func TestConfigFigures(t *testing.T) {
	c := newConfigCluster(t, configuredPlan)
	before := time.Now().Add(-time.Second)
	m := c.mustGive("other: {pace: 2}\n")
	for _, name := range []string{"w0", "w1"} {
		p := c.process(name)
		if p.metric(t, "weft_config_info", m.Hash) != 1 {
			t.Errorf("%s does not have hash %s", name, m.Hash)
		}
		if at := p.metric(t, "weft_config_applied_timestamp_seconds", ""); at < float64(before.Unix()) || at > float64(time.Now().Unix()+1) {
			t.Errorf("%s: applied at %v", name, at)
		}
	}
}

package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/plan"
)

// movables declares services of every scale.
func movables() []weft.Spec {
	return []weft.Spec{
		{Name: "single", Config: &named{Name: "a"}},
		{Name: "per", Scale: weft.PerPartition},
		{Name: "many", Scale: weft.Any, Config: &named{Name: "a"}},
		{Name: "listening", Scale: weft.Any, Listens: true},
		{Name: "idle", Scale: weft.Any},
	}
}

// placed is a plan of workers with the given services.
func placed(services ...string) string {
	text := "{name: a, events: grpc, workers: {"
	for i, s := range services {
		if s == "" {
			s = "idle"
		}
		text += fmt.Sprintf("w%d: {services: [%s]}, ", i, s)
	}
	return text + "}}"
}

func TestMovesOverlapOrDoNot(t *testing.T) {
	c := newCluster(t, movables(), nil)
	all := "single, per, many, listening"
	c.apply(placed(all, "", "idle"))
	c.startAll()
	for _, p := range []string{placed("", all, ""), placed("", "", all), placed(all, "", ""), placed("single", "per, many", "listening")} {
		c.apply(p)
		c.startAll()
	}
	for name, most := range map[string]int{"single": 1, "per": 1, "listening": 1, "many": 2} {
		if c.most[name] != most {
			t.Errorf("%d runs of %s at once, want %d", c.most[name], name, most)
		}
	}
}

// TestMovesInQuickSuccession applies plans faster than they are carried out: a
// service of which there is one must not run twice in between.
func TestMovesInQuickSuccession(t *testing.T) {
	c := newCluster(t, movables(), nil)
	c.apply(placed("single, listening", "", "per"))
	c.startAll()
	for _, name := range c.names() { // they do not learn of it at the same time
		c.process(name).gate.lag.Store(int64(20 * time.Millisecond))
	}
	r := rand.New(rand.NewPCG(1, 2))
	places := []string{"single", "per", "listening"}
	for range 100 {
		at := make([]string, 3)
		for _, s := range places {
			i := r.IntN(3)
			at[i] = strings.TrimPrefix(at[i]+", "+s, ", ")
		}
		c.apply(placed(at...))
		time.Sleep(time.Duration(r.IntN(15)) * time.Millisecond)
	}
	for _, name := range c.names() {
		c.process(name).gate.lag.Store(0)
	}
	c.apply(placed("single, listening", "", "per"))
	c.settled()
	for _, name := range places {
		if c.most[name] != 1 {
			t.Errorf("%d runs of %s at once", c.most[name], name)
		}
		c.runs(name, 1)
	}
}

func TestSettingsRestartOnlyWhatTheyConcern(t *testing.T) {
	c := newCluster(t, movables(), nil)
	text := "{name: a, events: grpc, workers: {w0: {services: [single, per]}, w1: {services: [many, idle]}}, config: {single: {name: %s, inner: {deep: 1}}, many: {name: a, inner: {deep: 2}}}}"
	c.apply(fmt.Sprintf(text, "a"))
	c.startAll()
	time.Sleep(600 * time.Millisecond) // a service that is taken for changed would have been restarted
	c.apply(fmt.Sprintf(text, "b"))
	c.settled()
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, want := range map[string]int{"single": 2, "per": 1, "many": 1, "idle": 1} {
		if c.starts[name] != want {
			t.Errorf("%s has been started %d times, want %d", name, c.starts[name], want)
		}
	}
	if name := c.live["single"][0].env.Config.(*named).Name; name != "b" {
		t.Errorf("it runs with %q", name)
	}
}

func TestProcessLeavesAndPlanForgetsIt(t *testing.T) {
	c := newCluster(t, movables(), nil)
	c.apply(placed("single", "per", "many"))
	c.startAll()
	if err := c.leave(c.process("w0")); err != nil {
		t.Error(err)
	}
	if entries, _ := c.directory().Entries(t.Context()); slices.ContainsFunc(entries, func(e *members.Entry) bool { return e.Process == "w0" }) {
		t.Error("its entry is still there")
	}
	c.apply("{name: a, events: grpc, workers: {w1: {services: [per, single]}}}") // w2 vanishes
	c.settled()
	c.runs("many", 0)
	c.runs("single", 1)
	if w := c.process("w2"); w.err != nil {
		t.Error(w.err)
	}
}

// TestTakesOverFromTheDead checks that a process nobody has spoken to before
// its end does not keep its services for ever.
func TestTakesOverFromTheDead(t *testing.T) {
	c := newCluster(t, movables(), nil)
	c.apply(placed("single", ""))
	c.startAll()
	w0 := c.process("w0")
	w0.gate.kill()
	_ = c.leave(w0) // its entry stays
	c.apply(placed("", "single"))
	if p := c.run("single"); p.process != "w1" {
		t.Errorf("it runs in %s", p.process)
	}
}

// TestDoesNotTakeOverFromTheFrozen checks that a service of which there is one
// is not started as long as its process may come back.
func TestDoesNotTakeOverFromTheFrozen(t *testing.T) {
	c := newCluster(t, movables(), nil)
	c.apply(placed("single", ""))
	c.startAll()
	c.process("w0").gate.freeze()
	c.apply(placed("", "single"))
	time.Sleep(1500 * time.Millisecond)
	if p := c.run("single"); p.process != "w0" {
		t.Errorf("it runs in %s", p.process)
	}
	c.process("w0").gate.thaw()
	c.settled()
	if c.most["single"] != 1 {
		t.Error("two at once")
	}
}

// TestEntryThatWasTakenOutComesBack checks that a process that somebody took for
// dead takes part again, and hears what is told from then on.
func TestEntryThatWasTakenOutComesBack(t *testing.T) {
	h := newHeard()
	c := newCluster(t, telling(), map[string]func(*actor){"hosts": h.subscribe})
	c.apply("{name: a, events: grpc, workers: {a: {services: [southbound]}, b: {services: [hosts]}}}")
	c.startAll()
	sb := c.run("southbound")
	n := 0
	c.eventually("b hears", func() bool { // once its peer has learnt that it subscribes
		moment(sb, n)
		n++
		return len(h.of("b")) >= 100
	})
	c.bury("b")
	c.settled()
	switchIs(sb, "1", true)
	c.eventually("b hears again", func() bool { return slices.Contains(h.of("b"), "switch 1 up") })
}

func TestUselessPlanInTheStore(t *testing.T) {
	c := newCluster(t, movables(), nil)
	first := c.apply(placed("single", "per"))
	c.startAll()
	b, err := c.store.Bucket(t.Context(), "deploy.plan")
	if err != nil {
		t.Fatal(err)
	}
	bad := func(text string) []byte {
		data, err := json.Marshal(members.Current{Generation: first.Generation + 1, Plan: text})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for _, data := range [][]byte{
		[]byte("{"), []byte("null"), bad("workers: ["), bad("workers: {w0: {services: [single]}}\nconfig: {single: {unknown: 1}}"),
		bad("workers: {w0: {services: [idle]}, w5: {services: [many], settings: {many: {name: [1]}}}}"),
	} {
		if _, err := b.Put(t.Context(), "current", data); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.runs("single", 1)
	c.runs("per", 1)
	good, err := json.Marshal(members.Current{Generation: first.Generation + 2, Plan: "workers: {w0: {services: [per]}, w1: {services: [single]}}"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), "current", good); err != nil {
		t.Fatal(err)
	}
	c.eventually("the next good plan is carried out", func() bool { return c.run("single").process == "w1" && c.run("per").process == "w0" })
}

func TestApplyPlan(t *testing.T) {
	c := newCluster(t, movables(), nil)
	c.apply(placed("single", "per"))
	c.startAll()
	n := c.process("w0").node
	for _, text := range []string{"", "workers: 1", "workers: {a: {services: [nobody]}}", placed("single", "single"), "{name: a, workers: {w0: {services: [single]}}, config: {single: {name: [1]}}}"} {
		if _, err := n.ApplyPlan(t.Context(), &api.ApplyPlanRequest{Text: text}); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("%q: %v", text, err)
		}
	}
	if resp, err := n.ApplyPlan(t.Context(), &api.ApplyPlanRequest{Text: placed("per", "single"), DryRun: true}); err != nil || len(resp.GetChanges()) == 0 || resp.GetGeneration() != 1 {
		t.Errorf("dry run: %v, %v", resp, err)
	}
	if resp, err := n.ApplyPlan(t.Context(), &api.ApplyPlanRequest{Text: placed("per", "single")}); err != nil || resp.GetGeneration() != 2 {
		t.Errorf("%v, %v", resp, err)
	}
	c.settled()
	if p := c.run("single"); p.process != "w1" {
		t.Errorf("it runs in %s", p.process)
	}
}

func TestSucceed(t *testing.T) {
	specs := []weft.Spec{{Name: "southbound", Pipeline: true, Scale: weft.PerPartition}, {Name: "a", Scale: weft.Any}, {Name: "b", Scale: weft.Any}}
	parse := func(text string) *plan.Plan {
		p, err := plan.Parse("test", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	current, err := members.Succeed(nil, parse("workers: {all: {services: [southbound, a, b]}}"), specs)
	if err != nil || current.Generation != 1 || current.ProcessOf("all") != "all" {
		t.Fatal(current, err)
	}
	for i, step := range []struct {
		plan string
		want map[string]string // process of each instance
	}{
		{"workers: {sb: {services: [southbound]}, rest: {services: [a, b]}}", map[string]string{"sb": "all", "rest": "rest"}},
		{"workers: {x: {services: [a]}, sb: {services: [southbound, b]}}", map[string]string{"sb": "all", "x": "rest"}},
		{"workers: {all: {services: [a]}, sb: {services: [southbound]}, y: {services: [b], replicas: 2}}", map[string]string{"sb": "all", "all": "rest", "y-1": "y-1", "y-2": "y-2"}},
		{"workers: {one: {services: [southbound, a, b]}}", map[string]string{"one": "all"}},
	} {
		next, err := members.Succeed(current, parse(step.plan), specs)
		if err != nil || next.Generation != uint64(i+2) {
			t.Fatal(next, err)
		}
		seen := map[string]bool{}
		for _, in := range next.InForce().Instances() {
			if got := next.ProcessOf(in.Name); got != step.want[in.Name] {
				t.Errorf("step %d: %s is %s, want %s", i, in.Name, got, step.want[in.Name])
			} else if seen[got] {
				t.Errorf("step %d: %s twice", i, got)
			}
			seen[next.ProcessOf(in.Name)] = true
		}
		current = next
	}
}

func TestNodeLeavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	var calls atomic.Int64
	c := newCluster(t, callers(), map[string]func(*actor){"hosts": func(p *actor) { findHost(p); calls.Add(1) }})
	c.apply("{name: a, events: grpc, workers: {a: {services: [hosts]}, b: {services: [gateway]}}}")
	c.startAll()
	if err := find(context.Background(), c.run("gateway"), "m"); err != nil {
		t.Error(err)
	}
	for _, name := range c.names() {
		if err := c.leave(c.process(name)); err != nil {
			t.Error(err)
		}
	}
	c.eventually("all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before+1 })
}

package deploy_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
)

// slowPlan is autoscaledPlan, in which nothing is removed during a test.
var slowPlan = strings.Replace(autoscaledPlan, "cooldown: 1s", "cooldown: 1h", 1)

// loaded are figures of stages under a load for which three replicas are wanted.
func loaded() []*api.ProcessWork {
	return []*api.ProcessWork{{
		Process: "stages", Worker: "stages", Ready: true, Processors: 1,
		Work: []*api.Work{{Service: "hosts", Work: local.StageWork, Arrivals: 6400, Measured: 100, Seconds: 0.2, SecondsSquares: 0.0004, RateNow: 1000, Rate: 1000}},
	}}
}

// inForce returns the plan in force.
func (c *cluster) inForce() *members.Current {
	c.t.Helper()
	current, _, err := c.directory().Current(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	return current
}

// TestTwoScalers: of several processes that decide at once, by one plan, the plan
// of one comes into force; the others say why theirs does not.
func TestTwoScalers(t *testing.T) {
	c := newCluster(t, staged(), stageSetup())
	current := c.apply(slowPlan)
	c.startAll()
	names := []string{"other", "switches", "stages"}
	decisions := make([]*api.ScalingDecision, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		node := c.process(name).node
		all.Go(func() { decisions[i] = node.DecideBy(t.Context(), current, "stages", loaded()) })
	}
	all.Wait()
	done := 0
	for i, d := range decisions {
		switch {
		case d == nil || d.From != 1 || d.To != 3 || d.Reason == "":
			t.Errorf("%s decides %+v, want from 1 to 3", names[i], d)
		case d.Error == "":
			done++
		case !strings.Contains(d.Error, "another plan") && !strings.Contains(d.Error, "not in force any more"):
			t.Errorf("%s: %s", names[i], d.Error)
		}
	}
	if now := c.inForce(); done != 1 || now.Generation != current.Generation+1 || now.InForce().Worker("stages").Replicas != 3 {
		t.Errorf("%d plans came into force, now %d with %d replicas", done, now.Generation, now.InForce().Worker("stages").Replicas)
	}
	if why := c.inForce().Why; !strings.Contains(why, "1000/s of 2 ms each") {
		t.Errorf("the plan in force says that it is because of %q", why)
	}
	c.startAll()
}

// TestPlanWithinDecision: a plan that an operator applies while a decision is
// made stays in force; the next decision is by that plan.
func TestPlanWithinDecision(t *testing.T) {
	c := newCluster(t, staged(), stageSetup())
	old := c.apply(slowPlan)
	c.startAll()
	node := c.process("other").node
	if _, err := node.ApplyPlan(t.Context(), &api.ApplyPlanRequest{Text: strings.Replace(slowPlan, "max: 3", "max: 2", 1)}); err != nil {
		t.Fatal(err)
	}
	if d := node.DecideBy(t.Context(), old, "stages", loaded()); d == nil || d.To != 3 || !strings.Contains(d.Error, "not in force any more") {
		t.Errorf("by the old plan: %+v", d)
	}
	now := c.inForce()
	if w := now.InForce().Worker("stages"); w.Replicas != 1 || w.Autoscale.Max != 2 || now.Why != "" {
		t.Fatalf("%d of up to %d replicas because of %q", w.Replicas, w.Autoscale.Max, now.Why)
	}
	if d := node.DecideBy(t.Context(), now, "stages", loaded()); d == nil || d.To != 2 || d.Error != "" {
		t.Errorf("by the new plan: %+v", d)
	}
	c.startAll()
}

// TestNeverReadyReplica: replicas that do not start are not added without end,
// and those that there are answer.
func TestNeverReadyReplica(t *testing.T) {
	c := newCluster(t, staged(), stageSetup())
	current := c.apply(slowPlan)
	c.startAll()
	node := c.process("other").node
	s := open(c.run("southbound"), 1)
	if d := node.DecideBy(t.Context(), current, "stages", loaded()); d == nil || d.Error != "" {
		t.Fatalf("%+v", d)
	}
	// Nobody starts stages-2 and stages-3.
	c.eventually("the decider sees that replicas are not ready", func() bool {
		s.send(16)
		time.Sleep(10 * time.Millisecond)
		m, err := node.GetScaling(t.Context(), &api.GetScalingRequest{})
		return err == nil && len(m.Workers) == 1 && m.Workers[0].Replicas == 3 && m.Workers[0].Ready == 1
	})
	for range 3 {
		if d := node.DecideBy(t.Context(), c.inForce(), "stages", loaded()); d != nil {
			t.Errorf("%+v, want nothing", d)
		}
	}
	c.eventually("every packet is answered", func() bool { return s.answered() >= s.sent })
	if n := c.inForce().InForce().Worker("stages").Replicas; n != 3 {
		t.Errorf("%d replicas are wanted, want 3", n)
	}
}

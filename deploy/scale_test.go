package deploy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/plan"
)

// scaled is a plan of a session's process and so many replicas of all stages.
const scaled = "{name: a, events: grpc, workers: {switches: {services: [southbound]}, stages: {services: [%s], replicas: %d, autoscale: {max: 4}}}}"

func scaledPlan(replicas int) string {
	return fmt.Sprintf(scaled, strings.Join(stageNames, ", "), replicas)
}

// TestReplicasOnly applies plans that differ in the number of replicas while
// packets come: each is answered once and in order, nothing else is started
// again, and each plan is carried out.
func TestReplicasOnly(t *testing.T) {
	c := newCluster(t, staged(), stageSetup())
	c.apply(scaledPlan(1))
	c.startAll()
	s := open(c.run("southbound"), 1)
	node := c.process("switches").node
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				s.send(16)
				time.Sleep(time.Millisecond)
			}
		}
	}()
	var slowest time.Duration
	generation := uint64(1)
	for _, n := range []int{2, 3, 2, 4, 1} {
		for i := 2; i <= n; i++ { // as a process that the supervisor has just started
			if name := fmt.Sprintf("stages-%d", i); c.process(name) == nil {
				c.start(name)
			}
		}
		began := time.Now()
		resp, err := node.ApplyPlan(context.Background(), &api.ApplyPlanRequest{Text: scaledPlan(n), MadeFrom: generation})
		if err != nil {
			t.Fatal(err)
		}
		if len(resp.Changes) != 1 || !strings.HasPrefix(resp.Changes[0], "~ worker stages: replicas ") {
			t.Errorf("changes %q, want the replicas only", resp.Changes)
		}
		generation = resp.Generation
		c.settled()
		slowest = max(slowest, time.Since(began))
		c.runs("forwarding", n)
	}
	close(stop)
	<-stopped
	s.complete(c)
	t.Logf("the slowest of 5 plans was carried out in %v", slowest)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.starts["southbound"] != 1 {
		t.Errorf("southbound was started %d times", c.starts["southbound"])
	}
	// One instance is never started again; others as often as they were added.
	if c.starts["forwarding"] != 1+1+1+2 {
		t.Errorf("forwarding was started %d times, want 5", c.starts["forwarding"])
	}
}

// TestPlanMadeFrom: of two plans that are made from one, the second is refused;
// a plan that is made from none leaves the number of autoscaled replicas.
func TestPlanMadeFrom(t *testing.T) {
	c := newCluster(t, staged(), stageSetup())
	c.apply(scaledPlan(2))
	c.startAll()
	node := c.process("switches").node
	ctx := context.Background()
	first, err := node.ApplyPlan(ctx, &api.ApplyPlanRequest{Text: scaledPlan(3), MadeFrom: 1})
	if err != nil || first.Generation != 2 {
		t.Fatalf("%v, %v", first, err)
	}
	_, err = node.ApplyPlan(ctx, &api.ApplyPlanRequest{Text: scaledPlan(1), MadeFrom: 1})
	if api.KindOf(err) != codes.Aborted || !strings.Contains(err.Error(), "plan 1 is not in force any more") {
		t.Errorf("made from a plan that is not in force: %v", err)
	}
	resp, err := node.ApplyPlan(ctx, &api.ApplyPlanRequest{Text: strings.Replace(scaledPlan(2), "name: a", "name: b", 1)})
	if err != nil || len(resp.Changes) != 1 {
		t.Fatalf("%v, %v", resp, err)
	}
	current, _, err := c.directory().Current(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if p := current.InForce(); p.Name != "b" || p.Worker("stages").Replicas != 3 {
		t.Errorf("plan %s with %d replicas, want b with 3, as before", p.Name, p.Worker("stages").Replicas)
	}
	if text, err := current.InForce().YAML(); err != nil {
		t.Error(err)
	} else if _, err := plan.Parse("plan", text); err != nil {
		t.Error(err)
	}
	c.startAll()
}

package deploy_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

func TestPlanHistory(t *testing.T) {
	c := newCluster(t, movables(), nil)
	c.apply(placed("single", "per"))
	c.startAll()
	n := c.process("w0").node
	list := func() []*api.Plan {
		t.Helper()
		m, err := n.ListPlans(t.Context(), &api.ListPlansRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return m.Plans
	}
	if l := list(); len(l) != 1 || l[0].State != "in-force" || l[0].Generation != 1 || l[0].Source != "the start" || l[0].Text != "" {
		t.Errorf("at the start: %v", l)
	}
	if _, err := n.RollbackPlan(t.Context(), &api.RollbackPlanRequest{}); api.KindOf(err) != codes.FailedPrecondition {
		t.Errorf("with one plan only: %v", err)
	}
	if _, err := n.ApplyPlan(t.Context(), &api.ApplyPlanRequest{Text: placed("per", "single")}); err != nil {
		t.Fatal(err)
	}
	c.settled()
	if l := list(); len(l) != 2 || l[0].State != "in-force" || l[0].Generation != 2 || l[0].Applied == "" || l[1].State != "former" || l[1].Generation != 1 {
		t.Errorf("after another one: %v", l)
	}
	one, err := n.GetPlan(t.Context(), &api.GetPlanRequest{Generation: 1})
	if err != nil || one.State != "former" || !strings.Contains(one.Text, "workers:") {
		t.Errorf("plan 1: %v, %v", one, err)
	}
	for _, generation := range []uint64{7, 1 << 63} {
		if _, err := n.GetPlan(t.Context(), &api.GetPlanRequest{Generation: generation}); api.KindOf(err) != codes.NotFound {
			t.Errorf("plan %d: %v", generation, err)
		}
		if _, err := n.RollbackPlan(t.Context(), &api.RollbackPlanRequest{Generation: generation}); api.KindOf(err) != codes.NotFound {
			t.Errorf("back to %d: %v", generation, err)
		}
	}
	if m, err := n.RollbackPlan(t.Context(), &api.RollbackPlanRequest{DryRun: true}); err != nil || len(m.Changes) == 0 || m.Generation != 2 || len(list()) != 2 {
		t.Errorf("tried: %v, %v", m, err)
	}
	if m, err := n.RollbackPlan(t.Context(), &api.RollbackPlanRequest{Generation: 2}); err != nil || len(m.Changes) != 0 || len(list()) != 2 {
		t.Errorf("back to the one in force: %v, %v", m, err)
	}
	if m, err := n.RollbackPlan(t.Context(), &api.RollbackPlanRequest{}); err != nil || m.Generation != 3 {
		t.Errorf("back: %v, %v", m, err)
	}
	c.settled()
	if p := c.run("single"); p.process != "w0" {
		t.Errorf("it runs in %s", p.process)
	}
	if l := list(); len(l) != 3 || l[0].Source != "roll-back to 1" || l[0].State != "in-force" {
		t.Errorf("after the way back: %v", l)
	}
}

// TestPlanHistoryKeepsTheConfiguration: a configuration that was applied since
// stays in force, and is no plan of the history.
func TestPlanHistoryKeepsTheConfiguration(t *testing.T) {
	c := newCluster(t, movables(), nil)
	c.apply(placed("single", "per"))
	c.startAll()
	n := c.process("w0").node
	if _, err := n.ApplyPlan(t.Context(), &api.ApplyPlanRequest{Text: placed("per", "single")}); err != nil {
		t.Fatal(err)
	}
	c.settled()
	if m, err := n.ApplyConfig(t.Context(), &api.ApplyConfigRequest{Text: "single: {name: new}\n"}); err != nil || m.State != "in-force" {
		t.Fatalf("%v, %v", m, err)
	}
	if _, err := n.RollbackPlan(t.Context(), &api.RollbackPlanRequest{}); err != nil {
		t.Fatal(err)
	}
	c.settled()
	m, err := n.ListPlans(t.Context(), &api.ListPlansRequest{})
	if err != nil || len(m.Plans) != 3 {
		t.Errorf("%v, %v", m, err)
	}
	if p, err := n.GetPlan(t.Context(), &api.GetPlanRequest{}); err != nil || !strings.Contains(p.Text, "name: new") {
		t.Errorf("the plan in force: %v, %v", p, err)
	}
}

func TestPlanHistoryIsBounded(t *testing.T) {
	c := newCluster(t, movables(), nil)
	c.apply(placed("single", "per"))
	c.startAll()
	n := c.process("w0").node
	for i := range 55 {
		if _, err := n.ApplyPlan(t.Context(), &api.ApplyPlanRequest{Text: strings.Replace(placed("single", "per"), "name: a", fmt.Sprintf("name: a%d", i), 1)}); err != nil {
			t.Fatal(err)
		}
	}
	m, err := n.ListPlans(t.Context(), &api.ListPlansRequest{})
	if err != nil || len(m.Plans) != 50 || m.Plans[0].Name != "a54" || m.Plans[49].Name != "a5" {
		t.Errorf("%d plans, %v", len(m.GetPlans()), err)
	}
}

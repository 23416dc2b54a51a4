package planner

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/planning"
	"github.com/weft-sdn/weft/deploy/plans"
)

func builtIn(t *testing.T, name string) string {
	t.Helper()
	b, err := plans.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// newPlanner looks at plans beside single, which is in force.
func newPlanner(t *testing.T) *planning.Planner {
	inForce := builtIn(t, "single")
	return &planning.Planner{Specs: AllSpecs(), InForce: func(context.Context, *api.GetPlanRequest) (*api.Plan, error) {
		return &api.Plan{Text: inForce, Generation: 1}, nil
	}}
}

func TestShowPlan(t *testing.T) {
	p := newPlanner(t)
	m, err := p.ShowPlan(t.Context(), &api.ShowPlanRequest{Text: builtIn(t, "split")})
	if err != nil || m.Name != "split" || len(m.Workers) < 2 || len(m.Traffic) == 0 || m.Drawing == "" {
		t.Fatalf("got %v, %v", m, err)
	}
	for _, w := range m.Workers {
		if len(w.Services) == 0 || len(w.Processes) != int(w.Replicas+w.Standby) {
			t.Errorf("worker %v", w)
		}
	}
	if m, err = p.ShowPlan(t.Context(), &api.ShowPlanRequest{}); err != nil || len(m.Workers) != 1 {
		t.Errorf("the plan in force: %v, %v", m, err)
	}
	p.InForce = nil
	if _, err = p.ShowPlan(t.Context(), &api.ShowPlanRequest{}); api.KindOf(err) != codes.FailedPrecondition {
		t.Errorf("without a plan: %v", err)
	}
}

func TestCheckPlan(t *testing.T) {
	p := newPlanner(t)
	m, err := p.CheckPlan(t.Context(), &api.CheckPlanRequest{Text: builtIn(t, "split")})
	if err != nil || !m.Ok || len(m.Problems) != 0 {
		t.Errorf("split: %v, %v", m, err)
	}
	m, err = p.CheckPlan(t.Context(), &api.CheckPlanRequest{Text: "name: x\nworkers:\n  a: {services: [hosts, nonsense]}\n"})
	if err != nil || m.Ok || len(m.Problems) == 0 {
		t.Fatalf("a wrong plan: %v, %v", m, err)
	}
	var found bool
	for _, problem := range m.Problems {
		found = found || problem.Line == 3 && strings.Contains(problem.Message, "nonsense")
	}
	if !found {
		t.Errorf("problems %v; want nonsense in line 3", m.Problems)
	}
}

func TestDiffPlans(t *testing.T) {
	p := newPlanner(t)
	m, err := p.DiffPlans(t.Context(), &api.DiffPlansRequest{Text: builtIn(t, "split")})
	if err != nil || m.Old != "single" || m.New != "split" || len(m.Changes) == 0 {
		t.Fatalf("got %v, %v", m, err)
	}
	fates := map[string]int{}
	for _, one := range m.Processes {
		fates[one.Fate]++
		if one.Fate == "stay" && len(one.Ends) == 0 {
			t.Errorf("the one process keeps all: %v", one)
		}
	}
	if fates["stay"] != 1 || fates["start"] == 0 || fates["stop"] != 0 {
		t.Errorf("fates %v; want that the one process stays and others start", fates)
	}
	same, err := p.DiffPlans(t.Context(), &api.DiffPlansRequest{Text: builtIn(t, "split"), OldText: builtIn(t, "split")})
	if err != nil || len(same.Changes) != 0 {
		t.Errorf("the same plan: %v, %v", same, err)
	}
	for key, fate := range map[string]string{"nice: 1": "stay", "memory: 512MiB": "restart", "env: {A: b}": "restart"} {
		m, err = p.DiffPlans(t.Context(), &api.DiffPlansRequest{Text: builtIn(t, "single") + "    " + key + "\n"})
		if err != nil || len(m.Processes) != 1 || m.Processes[0].Fate != fate {
			t.Errorf("%s: %v, %v; want %s", key, m, err, fate)
		}
	}
	for _, r := range []*api.DiffPlansRequest{{}, {Text: "workers: 3"}, {Text: builtIn(t, "split"), OldText: "workers: 3"}} {
		if _, err := p.DiffPlans(t.Context(), r); api.KindOf(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", r, err)
		}
	}
}

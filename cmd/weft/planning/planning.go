// Package planning looks at plans for those who decide about them: it checks, shows,
// compares and explains them, and says what would become of every process if another
// took the place of the one in force. The northbound and the command both call it.
// Nothing is changed. It also reads files of networks for clients.
package planning

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/plan/partition"
)

// Planner looks at plans for the services of a build.
type Planner struct {
	Specs []weft.Spec
	// InForce returns the plan in force; nil: there is none.
	InForce func(context.Context, *api.GetPlanRequest) (*api.Plan, error)
	// Network returns the network of a text: a topology, or a form. It reads no file.
	Network func(text string) (*partition.Graph, error)
	// Crossings returns what goes between the services now; nil: that is not known.
	Crossings func(context.Context, *api.ListCrossingsRequest) (*api.ListCrossingsResponse, error)

	making    sync.Mutex // is held while a plan is made for a client
	importing sync.Mutex // is held while a file of a client is read
}

// Answers returns what the planner answers of the gateway's methods.
func (p *Planner) Answers() []api.Answer {
	return []api.Answer{
		api.AnswerBy(api.ShowPlan, p.ShowPlan), api.AnswerBy(api.CheckPlan, p.CheckPlan),
		api.AnswerBy(api.DiffPlans, p.DiffPlans), api.AnswerBy(api.ExplainPlan, p.ExplainPlan),
		api.AnswerBy(api.ImportLab, p.ImportLab),
	}
}

// What plans are called in errors.
const (
	source  = "plan" // that a client gives
	inForce = "plan in force"
)

// text returns what a client gives, or the text of the plan in force.
func (p *Planner) text(ctx context.Context, text string) (Text, error) {
	if text != "" {
		return Text{source, []byte(text)}, nil
	}
	if p.InForce == nil {
		return Text{}, api.Errorf(codes.FailedPrecondition, "the controller runs in one process without a plan: give the text of one")
	}
	m, err := p.InForce(ctx, &api.GetPlanRequest{})
	if err != nil {
		return Text{}, err
	}
	return Text{inForce, []byte(m.Text)}, nil
}

// read reads a plan. What is wrong with one that a client gives is the client's
// mistake.
func (p *Planner) read(t Text) (*plan.Plan, error) {
	if t.Source == inForce {
		read, err := plan.Parse(t.Source, t.Text)
		if err != nil {
			return nil, api.Errorf(codes.Internal, "%w", err)
		}
		return read, nil
	}
	read, err := Read(t.Source, t.Text, p.Specs)
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%w", err)
	}
	if n := len(read.Instances()); n > clientProcesses {
		return nil, api.Errorf(codes.InvalidArgument, "plan: %d processes; a controller looks at plans of at most %d beside its work: use weft plan", n, clientProcesses)
	}
	return read, nil
}

// CheckPlan reports what is wrong with a plan.
func (p *Planner) CheckPlan(_ context.Context, r *api.CheckPlanRequest) (*api.CheckPlanResponse, error) {
	_, err := Read(source, []byte(r.GetText()), p.Specs)
	m := &api.CheckPlanResponse{Ok: err == nil}
	if err != nil {
		for _, one := range Problems(source, err) {
			m.Problems = append(m.Problems, &api.PlanProblem{Line: uint32(one.Line), Message: one.Message})
		}
	}
	return m, nil
}

// ShowPlan returns a plan as it can be drawn.
func (p *Planner) ShowPlan(ctx context.Context, r *api.ShowPlanRequest) (*api.ShowPlanResponse, error) {
	text, err := p.text(ctx, r.GetText())
	if err != nil {
		return nil, err
	}
	shown, err := p.read(text)
	if err != nil {
		return nil, err
	}
	m := &api.ShowPlanResponse{
		Name: shown.Name, Transport: shown.Transport, Events: shown.Events, Balance: shown.Balance, Drawing: shown.Text(p.Specs),
	}
	for i := range shown.Workers {
		w := &shown.Workers[i]
		one := &api.PlanWorker{
			Name: w.Name, Services: w.Services, Replicas: uint32(w.Replicas), Standby: uint32(w.Standby), Partition: w.Partition,
			Class: w.Class, Machine: w.Machine, Cpus: w.CPUs, CpuQuota: w.CPUQuota, Memory: uint64(w.Memory),
		}
		for _, instance := range w.Instances() {
			one.Processes = append(one.Processes, instance.Name)
		}
		m.Workers = append(m.Workers, one)
	}
	for _, t := range shown.Traffic(p.Specs) {
		m.Traffic = append(m.Traffic, &api.PlanTraffic{From: t.From, To: t.To, Transport: t.Transport, Calls: t.Calls, Events: t.Events})
	}
	return m, nil
}

// DiffPlans returns what changes if a plan takes the place of another.
func (p *Planner) DiffPlans(ctx context.Context, r *api.DiffPlansRequest) (*api.DiffPlansResponse, error) {
	if r.GetText() == "" {
		return nil, api.Errorf(codes.InvalidArgument, "text: want the new plan, as YAML")
	}
	after, err := p.read(Text{source, []byte(r.Text)})
	if err != nil {
		return nil, err
	}
	old, err := p.text(ctx, r.OldText)
	if err != nil {
		return nil, err
	}
	before, err := p.read(old)
	if err != nil {
		return nil, err
	}
	rates, err := p.rates(ctx, old)
	if err != nil {
		return nil, err
	}
	u, err := changes(p.Specs, before, after, rates)
	if err != nil {
		return nil, api.Errorf(codes.Internal, "%w", err)
	}
	if r.Weigh {
		err = p.made(ctx, r.Basis, func(ctx context.Context, from Sources, options *pflag.FlagSet) (err error) {
			u, err = diff(ctx, from, old, Text{source, []byte(r.Text)}, options, rates)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	m := &api.DiffPlansResponse{}
	if err := message(u, m); err != nil {
		return nil, err
	}
	for i, c := range u.Changes {
		m.Changes[i].Text = c.String()
	}
	if m.Processes, err = p.fates(before, after); err != nil {
		return nil, api.Errorf(codes.Internal, "%w", err)
	}
	return m, nil
}

// rates returns how many messages a second there are between services, if the old
// plan is the one at work.
func (p *Planner) rates(ctx context.Context, old Text) (map[wayOf]float64, error) {
	if old.Source != inForce || p.Crossings == nil {
		return nil, nil
	}
	now, err := p.Crossings(ctx, &api.ListCrossingsRequest{})
	if err != nil {
		return nil, err
	}
	rates := map[wayOf]float64{}
	for _, c := range now.Crossings {
		rates[wayOf{c.From, c.To, c.Kind}] += c.PerS
	}
	return rates, nil
}

// fates says what becomes of each process.
func (p *Planner) fates(before, after *plan.Plan) ([]*api.PlanProcess, error) {
	now, err := members.Succeed(nil, before, p.Specs)
	if err != nil {
		return nil, err
	}
	then, err := members.Succeed(now, after, p.Specs)
	if err != nil {
		return nil, err
	}
	by := map[string]*api.PlanProcess{}
	was := map[string]plan.Instance{}
	var list []*api.PlanProcess
	for _, i := range before.Instances() {
		was[i.Name] = i
		by[i.Name] = &api.PlanProcess{Process: i.Name, Fate: "stop", Ends: i.Services}
		list = append(list, by[i.Name])
	}
	for _, i := range after.Instances() {
		process := then.ProcessOf(i.Name)
		one := by[process]
		if one == nil {
			list = append(list, &api.PlanProcess{Process: process, Fate: "start", Instance: i.Name, Begins: i.Services})
			continue
		}
		one.Fate, one.Instance = "stay", i.Name
		a, b := before.Worker(was[process].Worker), after.Worker(i.Worker)
		if a.Memory != b.Memory || !maps.Equal(a.Env, b.Env) { // memory is told by GOMEMLIMIT, too
			one.Fate = "restart"
		}
		one.Begins, one.Ends = without(i.Services, was[process].Services), without(was[process].Services, i.Services)
	}
	slices.SortStableFunc(list, func(a, b *api.PlanProcess) int { return strings.Compare(a.Process, b.Process) })
	return list, nil
}

// without returns the elements of a list that are not in another.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

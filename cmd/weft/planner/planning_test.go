package planner

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/planning"
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
	return &planning.Planner{Specs: AllSpecs(), Network: cli.NetworkOf, InForce: func(context.Context, *api.GetPlanRequest) (*api.Plan, error) {
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

// madeText returns a plan as weft plan make writes it.
func madeText(t *testing.T, args ...string) string {
	t.Helper()
	cmd := planMakeCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(append([]string{"--network", "fattree:k=4", "--servers", "2", "--runs", "2", "--steps", "2000", "--packet-ins", "1000"}, args...))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// printed puts what a command prints as JSON into a message.
func printed(t *testing.T, m proto.Message, cmd *cobra.Command, args ...string) {
	t.Helper()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(append(args, "-o", "json"))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(out.Bytes(), m); err != nil {
		t.Fatalf("%v: %s", err, out.Bytes())
	}
}

// TestExplainPlan: a client is told what the command says, of the same plan.
func TestExplainPlan(t *testing.T) {
	p := newPlanner(t)
	text := madeText(t, "--pin", "gateway=s2")
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := &api.ExplainPlanResponse{}
	printed(t, want, planExplainCommand(), file)
	got, err := p.ExplainPlan(t.Context(), &api.ExplainPlanRequest{Text: text})
	if err != nil || !proto.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	one, err := p.ExplainPlan(t.Context(), &api.ExplainPlanRequest{Text: text, Shard: "gateway", Basis: &api.PlanBasis{PacketIns: 5000}})
	if err != nil || len(one.Shards) != 1 || !strings.Contains(one.Shards[0].Why, "pinned to s2") || one.Cost <= want.Cost {
		t.Errorf("the gateway under more load: %v, %v", one, err)
	}
	basis := &api.PlanBasis{
		Network: "switches:\n  - {name: s1, dpid: 1}\n  - {name: s2, dpid: 2}\nlinks:\n  - {a: s1, b: s2}\n",
		Servers: "servers:\n  s: {cpu: 4, memory: 8GiB}\n",
	}
	if one, err = p.ExplainPlan(t.Context(), &api.ExplainPlanRequest{Basis: basis}); err != nil || one.Plan != "single" || len(one.Servers) != 1 {
		t.Errorf("the plan in force on one server: %v, %v", one, err)
	}

	for want, r := range map[string]*api.ExplainPlanRequest{
		"give basis":                 {},
		"files of clients":           {Text: text, Basis: &api.PlanBasis{Network: "/etc/passwd"}},
		"give its text":              {Text: strings.Replace(text, `--servers="2"`, `--servers="/etc/passwd"`, 1)},
		"take --current":             {Text: strings.Replace(text, `--servers="2"`, `--servers="2" --current="x.yaml"`, 1)},
		"give a number":              {Text: strings.Replace(text, `--servers="2"`, `--servers="2" --partitions="auto"`, 1)},
		"at most 256":                {Text: text, Basis: &api.PlanBasis{Network: "ring:n=257"}},
		"at most 2000000":            {Text: strings.Replace(text, `--steps="2000"`, `--steps="1000000000"`, 1)},
		"--runs 1000000000: want":    {Text: strings.Replace(text, `--runs="2"`, `--runs="1000000000"`, 1)},
		"want at most 1024":          {Text: strings.Replace(text, `--servers="2"`, `--servers="2" --replicas="forwarding=1000000000"`, 1)},
		"no shard":                   {Text: text, Shard: "telepathy"},
		"nonsense":                   {Text: strings.Replace(text, "gateway", "nonsense", 2)},
		"servers: want 1 to":         {Text: text, Basis: &api.PlanBasis{Servers: "1000000000"}},
		"switches in a ring: want 3": {Text: text, Basis: &api.PlanBasis{Network: "ring:n=1000000"}},
		"profile:1: ":                {Text: text, Basis: &api.PlanBasis{Profile: "x: ["}},
		"graphml:/etc/passwd":        {Text: text, Basis: &api.PlanBasis{Network: "graphml:/etc/passwd"}},
		"cannot be read":             {Text: strings.Replace(text, `--servers="2"`, `--telepathy="2"`, 1)},
		"network:2: ":                {Text: text, Basis: &api.PlanBasis{Network: "switches: [{name: s1, dpid: 1}]\nlinks: [{a: s1, b: s2}]"}},
	} {
		if m, err := p.ExplainPlan(t.Context(), r); api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v, %v", want, m, err)
		}
	}
}

// TestDiffPlansWeighs: the moves are weighed as by the command.
func TestDiffPlansWeighs(t *testing.T) {
	p := newPlanner(t)
	texts := []string{madeText(t), madeText(t, "--isolate", "process", "--pin", "gateway=s2", "--pin", "discovery=s1")}
	var files []string
	for i, text := range texts {
		files = append(files, filepath.Join(t.TempDir(), fmt.Sprintf("%d.yaml", i)))
		if err := os.WriteFile(files[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := &api.DiffPlansResponse{}
	printed(t, want, planDiffCommand(), files...)
	got, err := p.DiffPlans(t.Context(), &api.DiffPlansRequest{OldText: texts[0], Text: texts[1], Weigh: true})
	if err != nil || !got.Weighed || got.Update == nil || len(got.Changes) == 0 {
		t.Fatalf("got %v, %v", got, err)
	}
	for i, c := range got.Changes {
		if c.Text == "" {
			t.Errorf("change %d has no text", i)
		}
		c.Text = ""
	}
	got.Processes = nil // the command does not say what becomes of them
	if !proto.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if got, err = p.DiffPlans(t.Context(), &api.DiffPlansRequest{Text: texts[1], Weigh: true}); err != nil || got.Weighed || got.WhyNot == "" {
		t.Errorf("of a plan that nobody made: %v, %v", got, err)
	}
}

// TestOnePlanAtATime: clients do not make a controller compute for them without
// bound.
func TestOnePlanAtATime(t *testing.T) {
	p := newPlanner(t)
	text := madeText(t)
	ended, end := context.WithCancel(t.Context())
	end()
	if m, err := p.ExplainPlan(ended, &api.ExplainPlanRequest{Text: text}); err == nil {
		t.Errorf("for a client that is gone: %v", m)
	}
	refused := make(chan error, 8)
	for range cap(refused) {
		go func() {
			_, err := p.ExplainPlan(t.Context(), &api.ExplainPlanRequest{Text: text})
			refused <- err
		}()
	}
	for range cap(refused) {
		if err := <-refused; err != nil && api.KindOf(err) != codes.ResourceExhausted {
			t.Error(err)
		}
	}
}

// TestCosts: another plan's costs are those of what goes otherwise.
func TestCosts(t *testing.T) {
	p := newPlanner(t)
	p.Crossings = func(context.Context, *api.ListCrossingsRequest) (*api.ListCrossingsResponse, error) {
		return &api.ListCrossingsResponse{Crossings: []*api.Crossing{
			{From: "forwarding", To: "paths", Kind: "call", Name: "paths.GetPath", PerS: 10},
			{From: "forwarding", To: "paths", Kind: "call", Name: "paths.FindPath", PerS: 2},
		}}, nil
	}
	m, err := p.DiffPlans(t.Context(), &api.DiffPlansRequest{Text: builtIn(t, "split")})
	if err != nil || m.OldSize.GetProcesses() != 1 || m.NewSize.GetProcesses() < 3 || m.NewSize.Memory <= m.OldSize.Memory || !strings.Contains(m.Figures, "Rates are of this controller") {
		t.Fatalf("got %v, %v", m, err)
	}
	if x := m.Crossings[0]; x.From != "forwarding" || x.To != "paths" || x.Kind != "call" || x.Old != "inproc" || x.New != "grpc" || !x.Known || x.Us < 1 || x.PerS != 12 {
		t.Errorf("what costs most: %v", x)
	}
	for _, x := range m.Crossings {
		by := "grpc"
		if x.Kind == "event" {
			by = "nats"
		}
		if x.From == x.To || x.Old == x.New || x.New != by {
			t.Errorf("%v", x)
		}
	}
	back, err := p.DiffPlans(t.Context(), &api.DiffPlansRequest{OldText: builtIn(t, "split"), Text: builtIn(t, "single")})
	if err != nil || len(back.Crossings) != len(m.Crossings) {
		t.Fatalf("back: %v, %v", back, err)
	}
	for _, x := range back.Crossings {
		if x.Us >= 0 || x.PerS != 0 || x.New != "inproc" {
			t.Errorf("back: %v", x)
		}
	}
}

// A file of another tool comes back as a lab file, once what it leaves open is answered.
func TestImportLab(t *testing.T) {
	p := &planning.Planner{}
	file := []byte("topology:\n  nodes: {srl1: {kind: nokia_srlinux}, s1: {kind: ovs-bridge}}\n  links: [{endpoints: [\"srl1:e1\", \"s1:p1\"]}]\n")
	m, err := p.ImportLab(t.Context(), &api.ImportLabRequest{Name: "a.clab.yml", File: file})
	if err != nil || m.Lab != "" || len(m.Questions) != 1 || m.Questions[0].Key != "nokia_srlinux" || m.Questions[0].Line != 2 || !slices.Equal(m.Questions[0].Nodes, []string{"srl1"}) {
		t.Fatalf("%v, %v", m, err)
	}
	m, err = p.ImportLab(t.Context(), &api.ImportLabRequest{Name: "a.clab.yml", File: file, Answers: map[string]string{"nokia_srlinux": "host"}})
	if want := "name: a\nswitches:\n  - {name: s1}\nhosts:\n  - {name: srl1, switch: s1}\n"; err != nil || m.Lab != want {
		t.Errorf("%v, %v", m, err)
	}
	for want, r := range map[string]*api.ImportLabRequest{
		"at most 2097152":      {File: make([]byte, 2<<20+1)},
		"answers: \"a=b\"":     {Answers: map[string]string{"a": "b"}},
		"f:1: XML of \"html\"": {Name: "f", File: []byte("<html/>")},
	} {
		if m, err := p.ImportLab(t.Context(), r); api.KindOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v, %v", want, m, err)
		}
	}
}

package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/cmd/weft/planning"
	"github.com/weft-sdn/weft/cmd/weft/profiler"
	"github.com/weft-sdn/weft/plan"
)

// options are the flags of weft plan verify.
type options struct {
	seconds float64
	margin  float64
	profile string
}

// The slices into which the time is divided: their number, and their longest.
const (
	sliceCount   = 10
	longestSlice = 10 * time.Second
)

// Command is `weft plan verify`.
func Command() *cobra.Command {
	var r cli.Remote
	var o options
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "verify [PLAN]",
		Short: "Compare what was predicted of the plan in force with what a running controller does",
		Long: `Measure a running controller for a while, and say of the plan in force what the
model of weft plan make predicts at the load that there is, and what was measured:
the share of a processor and the memory of each worker, the share and the latency
of each stage of packet-ins, and how often packet-ins, calls and events cross to
another process, and how long that takes. Each measurement has its 95 % interval.
A prediction outside of it differs, and it is said why: by which figure of the
profile. Where fewer events were seen than an interval needs, that is said (too
few: 3 of 30), and nothing is compared.

Predictions are by the profile of PLAN, if it is the file in force and was made
by weft plan make --profile, or by --profile, else by the built-in one, which
was measured on another machine. What the profile lacks is not predicted. The
time of processors is sampled meanwhile, which costs the controller some percent.

Exit status: 0 if everything that could be compared is within its interval, 1 if
something differs, or nothing could be compared.`,
		Example: `  weft plan verify
  weft plan verify plan.yaml --seconds 120 -o json
  weft profile --base idle.yaml > busy.yaml
  weft plan verify --profile busy.yaml --margin 0.15`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.seconds < 1 || o.seconds > 3600:
				return cli.Usagef(cmd, "--seconds %g: want 1 to 3600", o.seconds)
			case o.margin < 0 || o.margin > 1:
				return cli.Usagef(cmd, "--margin %g: want a share from 0 to 1, such as 0.15", o.margin)
			}
			report, err := o.run(cmd, &r, args)
			if err != nil {
				return err
			}
			if err := out.Print(cmd, report, report.table); err != nil {
				return err
			}
			return report.verdict()
		},
	}
	f := cmd.Flags()
	f.Float64Var(&o.seconds, "seconds", 60, "how long to measure")
	f.Float64Var(&o.margin, "margin", 0, "share of what was measured by which a prediction may be off, where the interval is narrower")
	f.StringVar(&o.profile, "profile", "", "profile to predict by (default that of PLAN, else the built-in one)")
	cmd.MarkFlagFilename("profile", "yaml", "yml")
	out.Flag(cmd)
	r.Flags(cmd)
	return cmd
}

// run measures the controller and compares.
func (o *options) run(cmd *cobra.Command, r *cli.Remote, args []string) (*Report, error) {
	head := planning.Head{}
	var given *plan.Plan
	if len(args) > 0 {
		var err error
		if given, head, err = planner.ReadHead(args[0]); err != nil {
			return nil, err
		}
	}
	profile, from, err := readProfile(cmp.Or(o.profile, head.Profile))
	if err != nil {
		return nil, err
	}
	span := time.Duration(o.seconds * float64(time.Second))
	r.Timeout += 2*span + 10*time.Second
	c, done, err := r.Dial(cmd)
	if err != nil {
		return nil, err
	}
	defer done()
	specs := planner.AllSpecs()
	p, _, err := inForce(c, specs)
	if err != nil {
		return nil, err
	}
	if given != nil {
		if changes := plan.Diff(given.KeepScale(p), p); len(changes) > 0 {
			return nil, fmt.Errorf("%s is not the plan in force (%s): apply it, or leave it out", args[0], changes[0])
		}
	}
	found, err := measure(cmd, c, p, span)
	if err != nil {
		return nil, err
	}
	load, err := found.load(specs)
	if err != nil {
		return nil, err
	}
	compared := &comparison{specs: specs, profile: profile, found: found, load: load, says: plan.Predict(p, specs, profile, load), margin: o.margin}
	return compared.report(Report{Plan: p.Name, Profile: from}), nil
}

// readProfile reads a profile; the empty path is the built-in one.
func readProfile(path string) (*plan.Profile, string, error) {
	if path == "" {
		p, err := plan.DefaultProfile()
		return p, "built-in", err
	}
	p, err := profiler.ReadProfile(path)
	return p, path, err
}

// inForce returns the plan that the controller carries out, and its generation, or what stands
// for one, and 0, if it is one process without a plan.
func inForce(c *cli.Controller, specs []weft.Spec) (p *plan.Plan, generation uint64, err error) {
	m, err := c.GetPlan(c.Ctx, &api.GetPlanRequest{})
	remote := (*cli.RemoteError)(nil)
	switch {
	case err == nil:
		p, err = plan.Parse("plan of the controller", []byte(m.Text))
		return p, m.Generation, err
	case !errors.As(err, &remote) || remote.Kind != codes.FailedPrecondition:
		return nil, 0, err
	}
	work, err := c.TakeProfile(c.Ctx, &api.TakeProfileRequest{Milliseconds: 100, WithoutMemory: true})
	if err != nil {
		return nil, 0, err
	}
	return alone(specs, work), 0, nil
}

// alone is the plan of a controller in one process without one: the services that
// run, without those to which switches connect beside the southbound, as weft plan
// make has them unless asked to.
func alone(specs []weft.Spec, work *api.TakeProfileResponse) *plan.Plan {
	p := &plan.Plan{Name: alonePlan, Workers: []plan.Worker{{Name: "controller", Replicas: 1}}}
	for _, one := range work.GetProcesses() {
		for _, name := range one.Services {
			if !slices.ContainsFunc(specs, func(s weft.Spec) bool { return s.Name == name && s.Beside != nil }) {
				p.Workers[0].Services = append(p.Workers[0].Services, name)
			}
		}
	}
	return p
}

// measure looks at the controller, slice by slice.
func measure(cmd *cobra.Command, c *cli.Controller, p *plan.Plan, span time.Duration) (*measured, error) {
	found, err := begin(c, p)
	if err != nil {
		return nil, err
	}
	work, err := c.GetWork(c.Ctx, &api.GetWorkRequest{})
	if err != nil {
		return nil, err
	}
	found.stagesBefore(work)
	n := max(sliceCount, int((span+longestSlice-1)/longestSlice))
	began := time.Now()
	if err := found.count(c, n, func(i int) error {
		slice := max(span/time.Duration(n), 100*time.Millisecond)
		memory := i%(n/neededSlices) == 0 // each costs a garbage collection
		profile, err := c.TakeProfile(c.Ctx, &api.TakeProfileRequest{Milliseconds: uint32(slice.Milliseconds()), WithoutMemory: !memory})
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "measured %v of %v\n", time.Since(began).Round(time.Second), span.Round(time.Second))
		return found.profile(profile)
	}); err != nil {
		return nil, err
	}
	if work, err = c.GetWork(c.Ctx, &api.GetWorkRequest{}); err != nil {
		return nil, err
	}
	found.stages(work)
	return found, nil
}

// begin returns what is measured of a plan, with the processes that there are.
func begin(c *cli.Controller, p *plan.Plan) (*measured, error) {
	found := newMeasured(p)
	workers, err := c.ListWorkers(c.Ctx, &api.ListWorkersRequest{})
	if err != nil {
		return nil, err
	}
	return found, found.instances(workers)
}

// count counts what crosses between processes in each of n slices, which during makes last, and
// then the switches.
func (m *measured) count(c *cli.Controller, n int, during func(i int) error) error {
	crossings, err := c.ListCrossings(c.Ctx, &api.ListCrossingsRequest{})
	if err == nil {
		err = m.messages(crossings, 0)
	}
	if err != nil {
		return err
	}
	last := time.Now()
	for i := range n {
		if err := during(i); err != nil {
			return err
		}
		if crossings, err = c.ListCrossings(c.Ctx, &api.ListCrossingsRequest{}); err != nil {
			return err
		}
		now := time.Now()
		if err := m.messages(crossings, now.Sub(last).Seconds()); err != nil {
			return err
		}
		last = now
	}
	m.latencies(crossings)
	list, err := c.ListSwitches(c.Ctx, &api.ListSwitchesRequest{})
	m.switches = list.GetSwitches()
	return err
}

// verdict is the error of a report in which something differs.
func (r *Report) verdict() error {
	switch {
	case r.Compared == 0:
		return errors.New("nothing could be compared: measure for longer, under load, and by a profile that has what is needed")
	case r.Differ > 0:
		return fmt.Errorf("%d of %d differ from what was predicted", r.Differ, r.Compared)
	}
	return nil
}

// table writes the report for people, and below what differs and why.
func (r *Report) table(t *cli.Table) {
	fmt.Fprintf(t, "plan %s by profile %s: %d switches, %.4g packet-ins and %.3g changes a second, over %.3g s\n", r.Plan, r.Profile, r.Switches, r.PacketIns, r.Changes, r.Seconds)
	t.Row("WHAT", "UNIT", "PREDICTED", "MEASURED", "+-", "VERDICT")
	written := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.4g", *v)
	}
	for _, row := range r.Rows {
		t.Row(row.What, row.Unit, written(row.Predicted), written(row.Measured), written(row.CI95), row.Verdict)
	}
	for _, row := range r.Rows {
		if row.Why != "" {
			fmt.Fprintf(t, "%s: %s\n", row.What, strings.TrimSpace(row.Why))
		}
	}
}

package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/cmd/weft/planning"
	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/plan"
)

// followOptions are the flags of weft plan follow.
type followOptions struct {
	bounds
	windows  []string
	seconds  float64
	interval time.Duration
	patience time.Duration
	count    int
}

// FollowCommand is `weft plan follow`.
func FollowCommand() *cobra.Command {
	var r cli.Remote
	var o followOptions
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "follow PLAN",
		Short: "Make a plan anew as the load changes, and propose or apply the moves",
		Long: `Measure a running controller again and again, make the plan in force anew for the
load that there is, and say which shards would move, what that gains, and why it is
done or left. PLAN is the plan in force, a file made by weft plan make: its head says
for which network, by which profile and on which servers. Moves away from what runs
cost, as with weft plan make --current.

With --dry-run nothing is changed. Without it moves are applied within bounds: that
save a share of the latency between servers (--gain), as many an hour (--moves), at
some times of the day (--window). PLAN then becomes what is in force. After each
step it is measured again: if packet-ins wait longer for messages between processes
than before, by a tenth, the plan before is put back, and that step is not tried
again. It follows for as long as it runs, or --count looks.`,
		Example: `  weft plan follow plan.yaml --dry-run
  weft plan follow plan.yaml --dry-run --count 1 --seconds 60 -o json
  weft plan follow plan.yaml --moves 4 --gain 0.1 --window 22:00-05:00`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			return o.follow(cmd, &r, &out, args[0])
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.dry, "dry-run", false, "say what would be done, and change nothing")
	f.Float64Var(&o.gain, "gain", 0.05, "share of the latency between servers that moves must save")
	f.IntVar(&o.moves, "moves", 4, "how many shards may move in an hour")
	f.StringSliceVar(&o.windows, "window", nil, "when shards may move, such as 22:00-05:00, in local time; may be repeated (default always)")
	f.Float64Var(&o.seconds, "seconds", 30, "how long to measure for each look")
	f.DurationVar(&o.interval, "interval", 5*time.Minute, "time between two looks")
	f.DurationVar(&o.patience, "wait", time.Minute, "how long processes may take to carry out a plan")
	f.IntVar(&o.count, "count", 0, "how many looks (default until it is ended)")
	out.Flag(cmd)
	r.Flags(cmd)
	return cmd
}

// check judges the flags, and reads the windows.
func (o *followOptions) check() error {
	switch {
	case !(o.gain >= 0 && o.gain <= 1):
		return fmt.Errorf("--gain %g: want a share from 0 to 1, such as 0.05", o.gain)
	case o.moves < 1:
		return fmt.Errorf("--moves %d: want at least 1; --dry-run moves nothing", o.moves)
	case o.seconds < 1 || o.seconds > 3600:
		return fmt.Errorf("--seconds %g: want 1 to 3600", o.seconds)
	case o.interval < time.Second || o.interval > 24*time.Hour:
		return fmt.Errorf("--interval %v: want 1s to 24h", o.interval)
	case o.count < 0:
		return fmt.Errorf("--count %d: want at least 0", o.count)
	}
	for _, text := range o.windows {
		from, to, ok := strings.Cut(text, "-")
		a, bad := time.Parse("15:04", from)
		b, wrong := time.Parse("15:04", to)
		if !ok || bad != nil || wrong != nil || a.Equal(b) {
			return fmt.Errorf("--window %q: want two times of the day, such as 22:00-05:00", text)
		}
		midnight, _ := time.Parse("15:04", "00:00")
		o.within = append(o.within, window{a.Sub(midnight), b.Sub(midnight)})
	}
	return nil
}

// follow looks until it is ended.
func (o *followOptions) follow(cmd *cobra.Command, r *cli.Remote, out *cli.Output, file string) error {
	ctx, stop := cli.Signals(cmd)
	defer stop()
	source, text, err := planner.PlanText(file)
	if err != nil {
		return err
	}
	given, err := plan.Parse(source, text)
	if err != nil {
		return err
	}
	span := time.Duration(o.seconds * float64(time.Second))
	specs := planner.AllSpecs()
	f := &follower{bounds: o.bounds, now: time.Now, running: planning.Text{Source: source, Text: text}}
	f.look = func(context.Context) (seen, error) { return lookOnce(cmd, r, given, span) }
	f.next = func(ctx context.Context, running planning.Text, load planning.Load) (planning.Text, *planning.Update, error) {
		return planning.Next(ctx, planner.Sources(cmd), running, load)
	}
	f.put = func(ctx context.Context, text planning.Text) error {
		p, err := plan.Parse(text.Source, text.Text)
		if err != nil {
			return err
		}
		c, done, err := r.Dial(cmd)
		if err != nil {
			return err
		}
		defer done()
		yaml, err := p.YAML()
		if err != nil {
			return err
		}
		m, err := c.ApplyPlan(c.Ctx, &api.ApplyPlanRequest{Text: string(yaml)})
		if err != nil {
			return err
		}
		given = p
		if err := asowner.WriteFile(file, text.Text, 0o644); err != nil {
			return fmt.Errorf("%s: the plan in force is not written there: %w", file, err)
		}
		return planner.AwaitPlan(ctx, c, m.Generation, o.patience, cmd.ErrOrStderr())
	}
	c, done, err := r.Dial(cmd)
	if err != nil {
		return err
	}
	p, err := inForce(c, specs)
	done()
	if err != nil {
		return err
	}
	if changes := plan.Diff(given, p); len(changes) > 0 {
		return fmt.Errorf("%s is not the plan in force (%s): apply it first", file, changes[0])
	}
	for n := 1; ; n++ {
		s, err := f.step(ctx)
		if err != nil {
			return err
		}
		if err := out.Print(cmd, s, s.table); err != nil {
			return err
		}
		if n == o.count {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.interval):
		}
	}
}

// lookOnce measures the load of a controller, and what its messages between processes
// cost.
func lookOnce(cmd *cobra.Command, r *cli.Remote, p *plan.Plan, span time.Duration) (seen, error) {
	timeout := r.Timeout
	r.Timeout += 2*span + 10*time.Second
	defer func() { r.Timeout = timeout }()
	c, done, err := r.Dial(cmd)
	if err != nil {
		return seen{}, err
	}
	defer done()
	found := newMeasured(p)
	workers, err := c.ListWorkers(c.Ctx, &api.ListWorkersRequest{})
	if err == nil {
		err = found.instances(workers)
	}
	if err != nil {
		return seen{}, err
	}
	last := time.Now()
	var crossings *api.ListCrossingsResponse
	for i := range sliceCount + 1 {
		if i > 0 {
			select {
			case <-c.Ctx.Done():
				return seen{}, c.Ctx.Err()
			case <-time.After(span / sliceCount):
			}
		}
		if crossings, err = c.ListCrossings(c.Ctx, &api.ListCrossingsRequest{}); err != nil {
			return seen{}, err
		}
		now := time.Now()
		if err := found.messages(crossings, now.Sub(last).Seconds()); err != nil {
			return seen{}, err
		}
		last = now
	}
	found.latencies(crossings)
	list, err := c.ListSwitches(c.Ctx, &api.ListSwitchesRequest{})
	if err != nil {
		return seen{}, err
	}
	found.switches = list.GetSwitches()
	return found.looked()
}

// looked returns the load, and what messages between processes cost a packet-in.
func (m *measured) looked() (seen, error) {
	load, err := m.load(planner.AllSpecs())
	if err != nil {
		return seen{}, err
	}
	s := seen{load: planning.Load{PacketIns: load.PacketIns(), Changes: load.Changes}}
	if s.load.PacketIns < fewestPacketIns {
		return s, errors.New("no packet-ins come: a plan can follow a load only where there is one")
	}
	for way, rates := range m.rates {
		s.crossing += ofSlices(rates).value * ofBuckets(m.latency[way]).value / s.load.PacketIns
	}
	return s, nil
}

// fewestPacketIns is how many a second there must be to make a plan for.
const fewestPacketIns = 1

// table writes a step for people.
func (s Step) table(t *cli.Table) {
	fmt.Fprintf(t, "%s  %.4g packet-ins/s, %.4g us of messages between processes each\n", cli.When(s.Time), s.PacketIns, s.CrossingUs)
	for _, m := range s.Moves {
		fmt.Fprintf(t, "  %s: %s -> %s (%s)\n", m.Shard, m.From, m.To, m.Why)
	}
	fmt.Fprintf(t, "  %s: %s\n", s.Verdict, s.Why)
}

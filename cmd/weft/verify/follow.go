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
again. It follows for as long as it runs, or --count looks; a look that fails is said
and left out. It ends where somebody else has applied another plan.`,
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

// followed is the plan that is followed.
type followed struct {
	*plan.Plan
	file string
}

// is returns the plan in force, and its generation: an error if it is not the one that is followed,
// but for how many replicas autoscaled workers have.
func (f *followed) is(c *cli.Controller) (p *plan.Plan, generation uint64, err error) {
	if p, generation, err = inForce(c, planner.AllSpecs()); err != nil {
		return nil, 0, err
	}
	if changes := plan.Diff(f.KeepScale(p), p); len(changes) > 0 {
		return nil, 0, &otherPlan{fmt.Sprintf("%s is not the plan in force (%s): apply it first, or follow the one that is", f.file, changes[0])}
	}
	return p, generation, nil
}

// otherPlan is the error of a controller that has another plan than the one that is followed.
type otherPlan struct{ text string }

func (e *otherPlan) Error() string { return e.text }

// follow looks until it is ended.
func (o *followOptions) follow(cmd *cobra.Command, r *cli.Remote, out *cli.Output, file string) error {
	ctx, stop := cli.Signals(cmd)
	defer stop()
	source, text, err := planner.PlanText(file)
	if err != nil {
		return err
	}
	given := &followed{file: file}
	if given.Plan, err = plan.Parse(source, text); err != nil {
		return err
	}
	span := time.Duration(o.seconds * float64(time.Second))
	from, assumed := planner.Sources(cmd), map[string]bool{}
	say := from.Assumed
	from.Assumed = func(line string) { // at the first look
		if !assumed[line] {
			assumed[line] = true
			say(line)
		}
	}
	f := &follower{bounds: o.bounds, now: time.Now, running: planning.Text{Source: source, Text: text}}
	f.look = func(context.Context) (seen, error) { return lookOnce(cmd, r, given, span) }
	f.next = func(ctx context.Context, running planning.Text, load planning.Load) (planning.Text, *planning.Update, error) {
		return planning.Next(ctx, from, running, load)
	}
	f.put = func(ctx context.Context, text planning.Text) error { return o.put(cmd, r, given, text) }
	for n := 1; ; n++ {
		cmd.SetContext(ctx) // without what the look before has put there
		s, err := f.step(ctx)
		missed, other := (*lookError)(nil), (*otherPlan)(nil)
		switch {
		case ctx.Err() != nil: // somebody has ended it
			return nil
		case err == nil:
			err = out.Print(cmd, s, s.table)
		case n > 1 && errors.As(err, &missed) && !errors.As(err, &other):
			fmt.Fprintf(cmd.ErrOrStderr(), "weft: %v; the next look is in %v\n", err, o.interval)
			err = nil
		}
		if err != nil || n == o.count {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.interval):
		}
	}
}

// put brings a plan into force in place of the one that is followed, and follows it then.
func (o *followOptions) put(cmd *cobra.Command, r *cli.Remote, given *followed, text planning.Text) error {
	p, err := plan.Parse(text.Source, text.Text)
	if err != nil {
		return err
	}
	c, done, err := r.Dial(cmd)
	if err != nil {
		return err
	}
	defer done()
	is, generation, err := given.is(c)
	if err != nil {
		return err
	}
	yaml, err := p.KeepScale(is).YAML()
	if err != nil {
		return err
	}
	m, err := c.ApplyPlan(c.Ctx, &api.ApplyPlanRequest{Text: string(yaml), MadeFrom: generation})
	if err != nil {
		return err
	}
	given.Plan = p
	if err := asowner.WriteFile(given.file, text.Text, 0o644); err != nil {
		return fmt.Errorf("%s: the plan in force is not written there: %w", given.file, err)
	}
	return planner.AwaitPlan(cmd.Context(), c, m.Generation, o.patience, cmd.ErrOrStderr())
}

// lookOnce measures the load of a controller, and what its messages between processes
// cost.
func lookOnce(cmd *cobra.Command, r *cli.Remote, given *followed, span time.Duration) (seen, error) {
	of := *r
	of.Timeout += 2*span + 10*time.Second
	c, done, err := of.Dial(cmd)
	if err != nil {
		return seen{}, err
	}
	defer done()
	p, _, err := given.is(c)
	if err != nil {
		return seen{}, err
	}
	found, err := begin(c, p)
	if err != nil {
		return seen{}, err
	}
	if err := found.count(c, sliceCount, func(int) error {
		select {
		case <-c.Ctx.Done():
			return c.Ctx.Err()
		case <-time.After(span / sliceCount):
			return nil
		}
	}); err != nil {
		return seen{}, err
	}
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

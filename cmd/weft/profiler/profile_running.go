package profiler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/internal/document"
	"github.com/weft-sdn/weft/internal/quantile"
	"github.com/weft-sdn/weft/plan"
)

// profileSlice is how long processes are looked at with one request.
const profileSlice = 5 * time.Second

// profileFormats are the forms in which a profile is printed.
var profileFormats = []string{"yaml", "json", "table"}

// profileOptions are the flags of weft profile.
type profileOptions struct {
	seconds float64
	bases   []string
	format  string
}

func Command() *cobra.Command {
	var r cli.Remote
	var o profileOptions
	cmd := &cobra.Command{
		Use:   "profile",
		Short: "Measure what a running controller's services take, for weft plan make",
		Long: `Measure where a running controller's time and memory go, in one process or many,
and what its services send each other, and write it as a profile for weft plan
make. The controller takes a profile of the processor's time meanwhile, which
costs it some percent; at other times nothing of this costs anything.

Each sample is the service's whose code is innermost on the stack; what is
OpenFlow's is southbound's; the rest, such as garbage collection, is the base
cost of a process. The memory of a service is what it has in use of the heap,
times two for what the collector lets lie, the rest of the resident set is the
process's.

One measurement cannot tell what is there always from what packet-ins cost, and
that from what changes of the topology cost. Measure a controller at rest first,
then under packet-ins, then while links fail, each time with what is known
already by --base. What has not been measured is said to be missing: write it by
hand, or measure it. Delays of transports are measured between the processes
that there are: for all of them run a plan with several, as weft up split.`,
		Example: `  weft profile > idle.yaml                                # at rest
  weft profile --base idle.yaml > busy.yaml               # under packet-ins
  weft profile --base busy.yaml --seconds 60 > all.yaml   # and while links fail
  weft plan make --network fattree:k=4 --profile all.yaml --servers 2`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(profileFormats, o.format) {
				return cli.Usagef(cmd, "output %q; allowed: %s", o.format, strings.Join(profileFormats, ", "))
			}
			if o.seconds < 0.2 || o.seconds > 3600 {
				return cli.Usagef(cmd, "--seconds %g: want 0.2 to 3600", o.seconds)
			}
			return o.run(cmd, &r)
		},
	}
	f := cmd.Flags()
	f.Float64Var(&o.seconds, "seconds", 30, "how long to measure")
	f.StringArrayVar(&o.bases, "base", nil, "profile measured before, of the same controller, for what this one cannot tell; may be repeated")
	f.StringVarP(&o.format, "output", "o", "yaml", strings.Join(profileFormats[:2], ", ")+" or table")
	cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(profileFormats, cobra.ShellCompDirectiveNoFileComp))
	cmd.MarkFlagFilename("base", "yaml", "yml")
	r.Flags(cmd)
	return cmd
}

func (o *profileOptions) run(cmd *cobra.Command, r *cli.Remote) error {
	var bases []*plan.Profile
	for _, path := range o.bases {
		b, err := ReadProfile(path)
		if err != nil {
			return err
		}
		bases = append(bases, b)
	}
	span := time.Duration(o.seconds * float64(time.Second))
	r.Timeout += span
	c, done, err := r.Dial(cmd)
	if err != nil {
		return err
	}
	defer done()
	s := newSamples()
	for left := span; left > 0; {
		slice := min(left, profileSlice)
		if left-slice < time.Second { // no short one at the end
			slice = left
		}
		left -= slice
		m, err := c.TakeProfile(c.Ctx, &api.TakeProfileRequest{Milliseconds: uint32(slice.Milliseconds()), WithoutMemory: left > 0})
		if err != nil {
			return err
		}
		if err := s.add(m); err != nil {
			return err
		}
		if span > 2*time.Second {
			fmt.Fprintf(cmd.ErrOrStderr(), "measured %v of %v\n", (span - left).Round(time.Second), span.Round(time.Second))
		}
	}
	switches, err := c.ListSwitches(c.Ctx, &api.ListSwitchesRequest{})
	if err != nil {
		return err
	}
	p, err := s.profile(len(switches.GetSwitches()))
	if err != nil {
		return err
	}
	p.Derive(bases...)
	for _, why := range s.failed() {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s\n", why)
	}
	o.tell(cmd, p)
	return o.print(cmd, p, s.about(c.Ctx, c, o))
}

// tell says what is missing.
func (o *profileOptions) tell(cmd *cobra.Command, p *plan.Profile) {
	var services []string
	for _, d := range p.Services {
		services = append(services, d.Service)
	}
	list := p.Missing(services, true, true)
	count := map[string]int{}
	for _, key := range list {
		count[key[strings.LastIndexByte(key, '.')+1:]]++
	}
	how := []struct{ key, text string }{
		{"idle", "measure the controller at rest and give that with --base"},
		{"per_packet", "measure under packet-ins, with --base of a profile at rest"},
		{"per_change", "measure while links fail, with --base of profiles at rest and under packet-ins"},
		{"memory", "measure it, or write it by hand"},
	}
	for _, h := range how {
		if n := count[h.key]; n > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s is missing of %d: %s\n", h.key, n, h.text)
		}
	}
	if len(p.Delays) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "no delays of transports: the controller is one process; measure weft up split, or write them by hand")
	}
}

func (o *profileOptions) print(cmd *cobra.Command, p *plan.Profile, about []string) error {
	text := p.YAML(about...)
	switch o.format {
	case "json":
		v, mistakes, _ := document.Read(text, cli.FileLimits("profile"))
		if len(mistakes) > 0 {
			return fmt.Errorf("encode the output: %w", mistakes[0].In("profile"))
		}
		text = append(v.JSON(), '\n')
	case "table":
		return (&cli.Output{Format: "table"}).Print(cmd, nil, func(t *cli.Table) { profileTable(t, p) })
	}
	_, err := cmd.OutOrStdout().Write(text)
	return err
}

// profileTable lists a profile for people.
func profileTable(t *cli.Table, p *plan.Profile) {
	show := func(f plan.Figure, scale float64, form string) string {
		if !f.Known {
			return "missing"
		}
		return fmt.Sprintf(form, f.Value*scale)
	}
	t.Row("SERVICE", "CPU %", "IDLE %", "PER PACKET us", "PER CHANGE ms", "MEMORY MiB", "PACKETS/s")
	row := func(name string, d plan.Demand) {
		packets := ""
		if d.Packets.Known {
			packets = fmt.Sprintf("%.0f", d.Packets.Value)
		}
		t.Row(name, show(d.CPU, 100, "%.2f"), show(d.Idle, 100, "%.2f"), show(d.PerPacket, 1e6, "%.2f"), show(d.PerChange, 1e3, "%.2f"), show(d.Memory, 1.0/(1<<20), "%.1f"), packets)
	}
	row("(process)", p.Process)
	for _, d := range p.Services {
		row(d.Service, d)
	}
	fmt.Fprintln(t)
	t.Row("FROM", "TO", "CALLS/s", "EVENTS/s")
	for _, r := range p.Rates {
		t.Row(r.From, r.To, fmt.Sprintf("%.2f", r.Calls), fmt.Sprintf("%.2f", r.Events))
	}
	if len(p.Delays) > 0 {
		fmt.Fprintln(t)
		t.Row("TRANSPORT", "ON ONE MACHINE us", "BETWEEN MACHINES us")
		for _, d := range p.Delays {
			t.Row(d.Transport, show(d.Local, 1e6, "%.0f"), show(d.Remote, 1e6, "%.0f"))
		}
	}
	fmt.Fprintf(t, "\n%s\n", p)
}

// about returns what is written above a profile.
func (s *samples) about(ctx context.Context, c *cli.Controller, o *profileOptions) []string {
	command := []string{"weft profile", fmt.Sprintf("--seconds %g", o.seconds)}
	for _, b := range o.bases {
		command = append(command, "--base "+b)
	}
	version := "unknown"
	if info, err := c.GetInfo(ctx, &api.GetInfoRequest{}); err == nil {
		version = info.Version
	}
	return []string{
		"A measured profile of a controller: what its services take, for weft plan make.",
		fmt.Sprintf("Measured by: %s; %d processes of version %s, %d processors.", strings.Join(command, " "), len(s.processes), version, s.processors),
	}
}

// ReadProfile reads a profile from a file.
func ReadProfile(path string) (*plan.Profile, error) {
	text, err := asowner.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the profile: %w", err)
	}
	return plan.ParseProfile(path, text)
}

// sortedDelays returns the medians of delays by transport.
func sortedDelays(local, remote map[string][]float64) []plan.Delay {
	var list []plan.Delay
	for _, name := range plan.Transports() {
		d := plan.Delay{Transport: name, Local: median(local[name]), Remote: median(remote[name])}
		if d.Local.Known || d.Remote.Known {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b plan.Delay) int { return cmp.Compare(a.Transport, b.Transport) })
	return list
}

func median(list []float64) plan.Figure {
	if len(list) == 0 {
		return plan.Figure{}
	}
	return plan.Measured(quantile.Median(list))
}

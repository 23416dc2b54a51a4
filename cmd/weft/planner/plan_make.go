package planner

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/profiler"
	"github.com/weft-sdn/weft/internal/document"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/plan/partition"
)

// makeOptions are the flags of weft plan make, which explain and diff have, too.
type makeOptions struct {
	cut                     partitionFlags // its together and apart are of switches
	profile, servers        string
	runs, steps             int
	name                    string
	services                []string
	packetIns, changes      float64
	isolate, transport      string
	headroom                float64
	delay                   string
	heartbeat, probe        string
	replicas, pins, domains []string
	perPartition            []string
	plain                   bool
	apart, together         []string
	current                 string
	pause, session, horizon float64
	bandwidth               float64
}

func (o *makeOptions) flags(f *pflag.FlagSet) {
	move := plan.DefaultMoveCost()
	p := &o.cut
	f.StringVar(&p.network, "network", "", "the network: "+cli.NetworkForms())
	f.StringVar(&o.profile, "profile", "", "profile written by weft profile (default one that was measured with the simulated network, not with yours)")
	f.StringVar(&o.servers, "servers", "1", "file with the servers, or a number of equal shares of this machine")
	f.StringVar(&p.partitions, "partitions", "1", "how many partitions, or auto: as few as converge about as fast as any number, which is measured")
	f.StringVar(&p.method, "method", partition.Auto, "how the network is cut: structure (whole pods, whole spokes), cut (little weight between partitions), or auto")
	f.StringArrayVar(&p.together, "switches-together", nil, "switches that have to share a partition, as s1,s2; may be repeated")
	f.StringArrayVar(&p.apart, "switches-apart", nil, "switches no two of which may share a partition; may be repeated")
	f.StringSliceVar(&p.borders, "borders", nil, "the only switches that may join partitions, as 'c*' (default any)")
	f.StringArrayVar(&p.fix, "fix", nil, "switches that have to be in a partition, as east=s1,s2; may be repeated")
	f.StringSliceVar(&p.names, "names", nil, "names of the partitions (default p1, p2, …)")
	f.Float64Var(&p.tolerance, "tolerance", 0.05, "share by which the heaviest partition may be above the mean load")
	f.Uint64Var(&p.seed, "seed", 1, "picks one of many searches; the same gives the same plan")
	p.choose.flags(f)
	f.IntVar(&o.runs, "runs", 0, "independent searches for a placement (default by the size)")
	f.IntVar(&o.steps, "steps", 0, "moves tried in each (default by the size)")
	f.StringVar(&o.name, "name", "made", "name of the plan")
	f.StringSliceVar(&o.services, "services", nil, "services that are to run (default those of the built-in plan single)")
	f.Float64Var(&o.packetIns, "packet-ins", -1, "packet-ins per second of the whole network (default as many as the profile was measured with)")
	f.Float64Var(&o.changes, "changes", -1, fmt.Sprintf("changes of the topology per second (default %g)", plan.DefaultChanges))
	f.Lookup("changes").DefValue, f.Lookup("packet-ins").DefValue = "0", "0" // shows none: their texts say it
	f.StringVar(&o.isolate, "isolate", "", "how compute-class services are kept from others: server, process or none (default server, with one server process)")
	f.StringVar(&o.transport, "transport", "", "transport between workers: grpc, ws, rest, shm or nats (default grpc)")
	f.Float64Var(&o.headroom, "headroom", plan.DefaultHeadroom, "share of every server that is left free")
	f.StringVar(&o.delay, "delay", "", "time of a request between machines, there and back, such as 300us, if the profile does not say it")
	f.StringVar(&o.heartbeat, "heartbeat-deadline", "10ms", "what crossing servers may add to a heartbeat")
	f.StringVar(&o.probe, "probe-deadline", "50ms", "what crossing servers may add to a probe of a link")
	f.StringSliceVar(&o.replicas, "replicas", nil, "replicas of a service, each on its own server, as forwarding=2")
	f.StringArrayVar(&o.pins, "pin", nil, "server of a service or shard, as discovery=s1 or southbound/p2=s2; may be repeated")
	f.StringArrayVar(&o.apart, "apart", nil, "services or shards that share no server, as stats,gateway; may be repeated")
	f.StringArrayVar(&o.together, "together", nil, "services or shards that share a server; may be repeated")
	f.StringSliceVar(&o.perPartition, "per-partition", nil, "services that each partition is to have for itself, such as firewall, besides southbound and heartbeat")
	f.BoolVar(&o.plain, "plain", false, "switches connect without TLS to servers that have an address, for networks that are yours alone")
	f.StringArrayVar(&o.domains, "power", nil, "power domain of a partition's switches, as p1=A; may be repeated")
	f.StringVar(&o.current, "current", "", "plan that runs now, made by weft plan make: moves away from it cost")
	f.Float64Var(&o.pause, "move-pause", move.Pause, "how long, in seconds, a service is away that moves (an assumption)")
	f.Float64Var(&o.session, "move-session", move.Session, "how much longer for each switch that connects anew (an assumption)")
	f.Float64Var(&o.bandwidth, "move-bandwidth", move.Bandwidth, "octets of state per second from server to server (an assumption)")
	f.Float64Var(&o.horizon, "move-horizon", move.Horizon, "seconds in which a new placement has to pay its moves back")
}

func planMakeCommand() *cobra.Command {
	var o makeOptions
	cmd := &cobra.Command{
		Use:   "make --network NETWORK",
		Short: "Compute a plan: partitions of a network, and which service runs where",
		Long: `Compute a plan for a network and write it as YAML. The network is cut into
partitions; each service has a share, a shard, for each partition, or one for
all; and the shards are placed on servers such that as few events as possible
cross servers, no server has more than it can take, heartbeats and probes of links keep
their deadlines, replicas are apart, and services that compute have servers of
their own. What services take, the profile says (weft profile).

Servers are a file, or a number: so many equal shares of this machine.

  servers:
    s1: {cpu: 4, memory: 8GiB, domain: A, address: 10.0.0.1}
    s2: {cpu: 4, memory: 8GiB, domain: B, address: 10.0.0.2}
    s3: {cpu: 1, memory: 1GiB, cpus: "1"}

cpu is in processors, domain the power supply. Workers of a server with an
address are for weft worker on that machine; one without is this machine, of
which cpus, if given, are the processors that its workers are bound to.

Comments at the head of the plan say by which command it was made, and where
its workers are: weft plan explain and weft plan diff read them.`,
		Example: `  weft plan make --network fattree:k=4 --servers 2 > plan.yaml
  weft check plan.yaml
  weft up plan.yaml
  weft plan make --network site.yaml --profile all.yaml --servers servers.yaml --partitions auto --pin gateway=s1 > plan.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			made, err := o.make(cmd)
			if err != nil {
				return err
			}
			text, err := made.Plan.YAML()
			if err != nil {
				return err
			}
			head := madeHead(cmd, &o, made)
			if _, err := cmd.OutOrStdout().Write(append([]byte(head), text...)); err != nil {
				return err
			}
			for _, line := range madeSummary(made) {
				fmt.Fprintln(cmd.ErrOrStderr(), line)
			}
			return nil
		},
	}
	o.flags(cmd.Flags())
	cmd.MarkFlagRequired("network")
	cmd.MarkFlagFilename("profile", "yaml", "yml")
	return cmd
}

// make computes the plan that the flags ask for, and tells on stderr what it
// assumes.
func (o *makeOptions) make(cmd *cobra.Command) (*plan.Made, error) {
	network, err := cli.ReadNetwork(o.cut.network)
	if err != nil {
		return nil, err
	}
	profile, err := o.readProfile(cmd)
	if err != nil {
		return nil, err
	}
	servers, err := o.readServers()
	if err != nil {
		return nil, err
	}
	options := plan.MakeOptions{
		Name: o.name, Services: o.services, PerPartition: o.perPartition, Plain: o.plain, Seed: o.cut.seed, Runs: o.runs, Steps: o.steps, PacketIns: o.packetIns, Changes: o.changes,
		Isolate: o.isolate, Transport: o.transport, Headroom: o.headroom, Move: o.move(),
		Pins: map[string]string{}, Domains: map[string]string{}, Replicas: map[string]int{},
	}
	if err := o.read(&options); err != nil {
		return nil, cli.Usagef(cmd, "%v", err)
	}
	if len(o.services) == 0 {
		usual, err := ReadPlan("single")
		if err != nil {
			return nil, err
		}
		options.Services = usual.Services()
	}
	if options.Cut, err = o.partition(cmd, network); err != nil {
		return nil, err
	}
	if o.current != "" {
		if options.Current, err = currentPlaces(cmd, o.current); err != nil {
			return nil, err
		}
	}
	ctx, stop := cli.Signals(cmd)
	defer stop()
	return plan.Make(ctx, AllSpecs(), network, profile, servers, options)
}

func (o *makeOptions) move() plan.MoveCost {
	return plan.MoveCost{Pause: o.pause, Session: o.session, Bandwidth: o.bandwidth, Horizon: o.horizon}
}

// read reads the flags that are texts of a form.
func (o *makeOptions) read(to *plan.MakeOptions) error {
	pairs := func(flag string, list []string, set func(name, value string) error) error {
		for _, pair := range list {
			name, value, ok := strings.Cut(pair, "=")
			if !ok || name == "" || value == "" {
				return fmt.Errorf("--%s %q: want NAME=VALUE", flag, pair)
			}
			if err := set(name, value); err != nil {
				return fmt.Errorf("--%s %q: %w", flag, pair, err)
			}
		}
		return nil
	}
	into := func(m map[string]string) func(name, value string) error {
		return func(name, value string) error {
			if old, ok := m[name]; ok && old != value {
				return fmt.Errorf("it is %s already; give it once", old)
			}
			m[name] = value
			return nil
		}
	}
	if err := pairs("pin", o.pins, into(to.Pins)); err != nil {
		return err
	}
	if err := pairs("power", o.domains, into(to.Domains)); err != nil {
		return err
	}
	if err := pairs("replicas", o.replicas, func(name, value string) error {
		n, err := strconv.Atoi(value)
		to.Replicas[name] = n
		return err
	}); err != nil {
		return err
	}
	for _, set := range o.apart {
		to.Apart = append(to.Apart, strings.Split(set, ","))
	}
	for _, set := range o.together {
		to.Together = append(to.Together, strings.Split(set, ","))
	}
	for _, d := range []struct {
		flag, text string
		to         *float64
	}{{"heartbeat-deadline", o.heartbeat, &to.HeartbeatDeadline}, {"probe-deadline", o.probe, &to.ProbeDeadline}} {
		span, err := time.ParseDuration(d.text)
		if err != nil || span <= 0 {
			return fmt.Errorf("--%s %q: want a time above 0, such as 10ms", d.flag, d.text)
		}
		*d.to = float64(span) / float64(time.Microsecond)
	}
	return nil
}

// readProfile reads the profile, or that which is built in.
func (o *makeOptions) readProfile(cmd *cobra.Command) (*plan.Profile, error) {
	var p *plan.Profile
	var err error
	if o.profile == "" {
		p, err = plan.DefaultProfile()
		fmt.Fprintf(cmd.ErrOrStderr(), "no --profile: using the built-in one, measured with %v; weft profile measures your controller\n", p)
	} else {
		p, err = profiler.ReadProfile(o.profile)
	}
	if err != nil || o.delay == "" {
		return p, err
	}
	span, err := time.ParseDuration(o.delay)
	if err != nil || span < 0 {
		return nil, cli.Usagef(cmd, "--delay %q: want a time such as 300us", o.delay)
	}
	for _, name := range plan.Transports() {
		i := slices.IndexFunc(p.Delays, func(d plan.Delay) bool { return d.Transport == name })
		if i < 0 {
			p.Delays = append(p.Delays, plan.Delay{Transport: name})
			i = len(p.Delays) - 1
		}
		p.Delays[i].Remote = plan.Measured(span.Seconds())
	}
	return p, nil
}

// readServers reads the servers of a file, or makes shares of this machine.
func (o *makeOptions) readServers() ([]plan.Server, error) {
	if n, err := strconv.Atoi(o.servers); err == nil {
		memory, err := machineMemory()
		if err != nil {
			return nil, fmt.Errorf("%w; write the servers into a file instead", err)
		}
		return plan.LocalServers(n, float64(runtime.NumCPU()), memory)
	}
	text, err := document.ReadFile(o.servers)
	if err != nil {
		return nil, fmt.Errorf("read the servers: %w", err)
	}
	return plan.ParseServers(o.servers, text)
}

// machineMemory returns how much memory this machine has.
func machineMemory() (plan.Bytes, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("the memory of this machine is not known: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
			if kib, err := strconv.ParseUint(f[1], 10, 50); err == nil {
				return plan.Bytes(kib) << 10, nil
			}
		}
	}
	return 0, fmt.Errorf("the memory of this machine is not known: /proc/meminfo has no MemTotal")
}

// partition cuts the network into partitions. A number that was chosen stands in
// the flags afterwards.
func (o *makeOptions) partition(cmd *cobra.Command, g *partition.Graph) (*partition.Result, error) {
	p := &o.cut
	options, err := p.options(g)
	if err != nil {
		return nil, cli.Usagef(cmd, "%v", err)
	}
	if p.partitions == "auto" {
		ctx, stop := cli.Signals(cmd)
		defer stop()
		say := func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
		choice, err := choosePartitions(ctx, g, options, p.choose, say)
		if err != nil {
			return nil, err
		}
		p.partitions = strconv.Itoa(choice.Partitions)
	}
	if options.Partitions, err = strconv.Atoi(p.partitions); err != nil {
		return nil, cli.Usagef(cmd, "--partitions %q: want a number, or auto", p.partitions)
	}
	cut, err := partition.Partition(g, options)
	if err != nil {
		return nil, err
	}
	if err := partition.Check(g, options, cut); err != nil {
		return nil, fmt.Errorf("the partitions are not what was asked for, which is a mistake in weft: %w", err)
	}
	return &cut, nil
}

// madeHead returns the comments at the head of a plan that was made.
func madeHead(cmd *cobra.Command, o *makeOptions, made *plan.Made) string {
	var b strings.Builder
	b.WriteString("# Made by: " + madeCommand(cmd, o) + "\n")
	for _, s := range made.Servers {
		var workers []string
		for _, w := range made.Plan.Workers {
			if made.Where[w.Name] == s.Name {
				workers = append(workers, w.Name)
			}
		}
		fmt.Fprintf(&b, "# Server %s: %s\n", s.Name, strings.Join(workers, " "))
	}
	for _, line := range madeSummary(made) {
		b.WriteString("# " + line + "\n")
	}
	return b.String()
}

// madeCommand returns the command line with the flags that were given; for
// auto it has the number of partitions that was chosen.
func madeCommand(cmd *cobra.Command, o *makeOptions) string {
	words := []string{"weft plan make"}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			switch f.Name {
			case "network", "profile", "servers", "current":
				if abs, err := filepath.Abs(v); err == nil && isFile(v) {
					v = abs
				}
			case "partitions":
				v = o.cut.partitions
			}
			words = append(words, "--"+f.Name+"="+strconv.Quote(v))
		}
	})
	return strings.Join(words, " ")
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// madeSummary says what a plan costs and how full the servers are.
func madeSummary(made *plan.Made) (lines []string) {
	s := made.Solution
	gap := fmt.Sprintf("at most %.1f %% above the least (bound %.6g)", 100*s.Gap(), s.Bound)
	if s.Proven {
		gap = "the least that there is, proven"
	}
	lines = append(lines, fmt.Sprintf("%s in %s on %s; crossing servers costs %.6g us of latency a second, %s", cli.Number(made.Shards, "shard", "shards"), cli.Number(made.Plan.Instances(), "process", "processes"), cli.Number(made.Servers, "server", "servers"), s.Cost, gap))
	if within := made.Within(); within > 0 {
		lines = append(lines, fmt.Sprintf("crossing from process to process on one server: %.6g us a second, not part of that", within))
	}
	for _, l := range made.Loads() {
		lines = append(lines, fmt.Sprintf("%s: %.2f of %.2f processors, %.0f of %.0f MiB, %s, %s", l.Server, l.CPU, l.CPUMost, float64(l.Memory)/(1<<20), float64(l.MemMost)/(1<<20), cli.Several(uint32(l.Shards), "shard", "shards"), cli.Several(uint32(l.Processes), "process", "processes")))
	}
	return append(lines, made.Notes...)
}

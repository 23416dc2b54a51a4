package planning

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/plan/partition"
)

// Sources are where that is read from which a plan is made.
type Sources struct {
	Specs []weft.Spec
	// Network returns a network by its name.
	Network func(name string) (*partition.Graph, error)
	// File returns the text of a profile, or of servers.
	File func(name string) ([]byte, error)
	// Plan returns a plan as it is written, and what to call it in errors.
	Plan func(name string) (source string, text []byte, err error)
	// Partitions returns how many partitions a network is to have, if the options
	// leave it open.
	Partitions func(context.Context, *partition.Graph, partition.Options, Choose) (int, error)
	// Assumed is given each assumption, in words.
	Assumed func(line string)
	// Most bounds what a plan is made of; nil: nothing does.
	Most *Most
}

// Most is how much there may be of what a plan is made of.
type Most struct{ Switches, Links, Servers, Partitions, Steps int }

// allows returns an error if there is more of something than allowed.
func allows(what string, number, most int) error {
	if number <= most {
		return nil
	}
	return fmt.Errorf("%d %s: a controller makes plans of at most %d beside its work; use weft plan", number, what, most)
}

// OptionError is an option that says nothing that could be done.
type OptionError struct{ error }

func (e OptionError) Unwrap() error { return e.error }

func optionErrorf(format string, args ...any) error { return OptionError{fmt.Errorf(format, args...)} }

// What bounds the work for a placement: searches, and replicas, each of which is on
// its own server.
const (
	mostRuns     = 10_000
	mostReplicas = 1024
)

// Options are the flags of weft plan make, which explain and diff have, too.
type Options struct {
	Cut                     Cut // its together and apart are of switches
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

// Flags adds the flags of weft plan make.
func (o *Options) Flags(f *pflag.FlagSet) {
	move := plan.DefaultMoveCost()
	p := &o.Cut
	f.StringVar(&p.Network, "network", "", networkUsage)
	f.StringVar(&o.profile, "profile", "", "profile written by weft profile (default one that was measured with the simulated network, not with yours)")
	f.StringVar(&o.servers, "servers", "1", "file with the servers, or a number of equal shares of this machine")
	f.StringVar(&p.Partitions, "partitions", "1", "how many partitions, or auto: as few as converge about as fast as any number, which is measured")
	f.StringVar(&p.method, "method", partition.Auto, "how the network is cut: structure (whole pods, whole spokes), cut (little weight between partitions), or auto")
	f.StringArrayVar(&p.together, "switches-together", nil, "switches that have to share a partition, as s1,s2; may be repeated")
	f.StringArrayVar(&p.apart, "switches-apart", nil, "switches no two of which may share a partition; may be repeated")
	f.StringSliceVar(&p.borders, "borders", nil, "the only switches that may join partitions, as 'c*' (default any)")
	f.StringArrayVar(&p.fix, "fix", nil, "switches that have to be in a partition, as east=s1,s2; may be repeated")
	f.StringSliceVar(&p.names, "names", nil, "names of the partitions (default p1, p2, …)")
	f.Float64Var(&p.tolerance, "tolerance", 0.05, "share by which the heaviest partition may be above the mean load")
	f.Uint64Var(&p.seed, "seed", 1, "picks one of many searches; the same gives the same plan")
	p.Choose.flags(f)
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

// Make computes the plan that the options ask for.
func (o *Options) Make(ctx context.Context, from Sources) (*plan.Made, error) {
	network, err := from.Network(o.Cut.Network)
	if err != nil {
		return nil, err
	}
	profile, err := o.readProfile(from)
	if err != nil {
		return nil, err
	}
	servers, err := o.readServers(from)
	if err != nil {
		return nil, err
	}
	if from.Most != nil {
		err := errors.Join(
			allows("switches", len(network.Switches), from.Most.Switches), allows("links", len(network.Links), from.Most.Links),
			allows("servers", len(servers), from.Most.Servers), allows("steps of a search", o.steps, from.Most.Steps),
		)
		if err != nil {
			return nil, err
		}
	}
	options := plan.MakeOptions{
		Name: o.name, Services: o.services, PerPartition: o.perPartition, Plain: o.plain, Seed: o.Cut.seed, Runs: o.runs, Steps: o.steps, PacketIns: o.packetIns, Changes: o.changes,
		Isolate: o.isolate, Transport: o.transport, Headroom: o.headroom, Move: o.move(),
		Pins: map[string]string{}, Domains: map[string]string{}, Replicas: map[string]int{},
	}
	if err := o.read(&options); err != nil {
		return nil, OptionError{err}
	}
	if len(o.services) == 0 {
		text, err := plans.Read("single")
		if err != nil {
			return nil, err
		}
		usual, err := plan.Parse("single.yaml", text)
		if err != nil {
			return nil, err
		}
		options.Services = usual.Services()
	}
	if options.Cut, err = o.partition(ctx, from, network); err != nil {
		return nil, err
	}
	if o.current != "" {
		if options.Current, err = currentPlaces(ctx, from, o.current); err != nil {
			return nil, err
		}
	}
	return plan.Make(ctx, from.Specs, network, profile, servers, options)
}

func (o *Options) move() plan.MoveCost {
	return plan.MoveCost{Pause: o.pause, Session: o.session, Bandwidth: o.bandwidth, Horizon: o.horizon}
}

// read reads the flags that are texts of a form.
func (o *Options) read(to *plan.MakeOptions) error {
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
		if err == nil && n > mostReplicas {
			err = fmt.Errorf("want at most %d", mostReplicas)
		}
		to.Replicas[name] = n
		return err
	}); err != nil {
		return err
	}
	if o.isolate != "" && !slices.Contains(plan.Isolations(), o.isolate) {
		return fmt.Errorf("--isolate %q: want one of %s", o.isolate, strings.Join(plan.Isolations(), ", "))
	}
	if o.transport != "" && !slices.Contains(plan.Transports(), o.transport) {
		return fmt.Errorf("--transport %q: want one of %s", o.transport, strings.Join(plan.Transports(), ", "))
	}
	if o.runs < 0 || o.runs > mostRuns {
		return fmt.Errorf("--runs %d: want 0 to %d", o.runs, mostRuns)
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
func (o *Options) readProfile(from Sources) (*plan.Profile, error) {
	var p *plan.Profile
	var err error
	if o.profile == "" {
		p, err = plan.DefaultProfile()
		from.Assumed(fmt.Sprintf("no --profile: using the built-in one, measured with %v; weft profile measures your controller", p))
	} else {
		var text []byte
		if text, err = from.File(o.profile); err != nil {
			return nil, fmt.Errorf("--profile %q: want a file of weft profile: %w", o.profile, err)
		}
		p, err = plan.ParseProfile(o.profile, text)
	}
	if err != nil || o.delay == "" {
		return p, err
	}
	span, err := time.ParseDuration(o.delay)
	if err != nil || span < 0 {
		return nil, optionErrorf("--delay %q: want a time such as 300us", o.delay)
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
func (o *Options) readServers(from Sources) ([]plan.Server, error) {
	if n, err := strconv.Atoi(o.servers); err == nil {
		memory, err := machineMemory()
		if err != nil {
			return nil, fmt.Errorf("%w; write the servers into a file instead", err)
		}
		return plan.LocalServers(n, float64(runtime.NumCPU()), memory)
	}
	text, err := from.File(o.servers)
	if err != nil {
		return nil, fmt.Errorf("--servers %q: want a number of shares of this machine, or a file of servers: %w", o.servers, err)
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
func (o *Options) partition(ctx context.Context, from Sources, g *partition.Graph) (*partition.Result, error) {
	p := &o.Cut
	options, err := p.Options(g)
	if err != nil {
		return nil, OptionError{err}
	}
	if p.Partitions == "auto" {
		number, err := from.Partitions(ctx, g, options, p.Choose)
		if err != nil {
			return nil, err
		}
		p.Partitions = strconv.Itoa(number)
	}
	if options.Partitions, err = strconv.Atoi(p.Partitions); err != nil {
		return nil, optionErrorf("--partitions %q: want a number, or auto", p.Partitions)
	}
	if from.Most != nil {
		if err := allows("partitions", options.Partitions, from.Most.Partitions); err != nil {
			return nil, err
		}
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

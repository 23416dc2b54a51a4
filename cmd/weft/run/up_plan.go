package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/deploy"
	"github.com/weft-sdn/weft/deploy/certs"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/deploy/supervisor"
	"github.com/weft-sdn/weft/internal/rootpart"
	"github.com/weft-sdn/weft/internal/wholefile"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/services"
	"github.com/weft-sdn/weft/services/gateway"
	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/grpc"
)

// upPlan brings a plan into force and keeps its processes until ctx ends.
func upPlan(ctx context.Context, cmd *cobra.Command, o *UpOptions, name string) error {
	p, set, err := o.planned(cmd, name)
	if err != nil {
		return err
	}
	dir, err := DataPath(o.DataDir)
	if err != nil {
		return err
	}
	k, all, err := o.keeper(cmd, dir)
	if err != nil {
		return err
	}
	k.set = set
	made, err := makeDataDirectory(dir)
	defer made.removeEmpty()
	if err != nil {
		return err
	}
	return k.up(ctx, cmd, p, all, func() (*plan.Plan, error) { return k.enforce(ctx, p, all) })
}

// keeper returns the supervisor's side of a plan in a directory, as the flags
// say, and the services of this build.
func (o *UpOptions) keeper(cmd *cobra.Command, dir string) (*keeper, []weft.Spec, error) {
	level, _, err := o.checkFlags(cmd)
	if err != nil {
		return nil, nil, err
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
	k := &keeper{log: log, dir: dir, certs: o.certs, set: o.Set, logLevel: level, profile: o.profile, trace: o.trace, quiet: o.quiet, interrupts: o.interrupts}
	return k, services.All(gateway.Process{}), nil
}

// up opens the bus that a plan names, brings the plan that enforce returns into
// force, and keeps its processes until ctx ends.
func (k *keeper) up(ctx context.Context, cmd *cobra.Command, p *plan.Plan, all []weft.Spec, enforce func() (*plan.Plan, error)) error {
	if err := k.open(ctx, p); err != nil {
		return err
	}
	defer k.store.Close()
	p, err := enforce()
	if err != nil {
		return err
	}
	return errors.Join(k.run(ctx, func() {
		if !k.quiet {
			fmt.Fprintln(cmd.OutOrStdout(), k.readyLine(p, all))
		}
	}), k.store.Close())
}

// keeper is the supervisor's side of a plan: it holds the bus and keeps the
// processes that the plan gives to this machine.
type keeper struct {
	log      *slog.Logger
	dir      string
	certs    string
	set      []string
	logLevel slog.Level
	profile  string
	trace    traceOptions
	quiet    bool

	interrupts *interrupts // nil: in a test

	store     *bus.Store
	external  *plan.Bus // nil: the bus is ours
	directory *members.Directory
	keeper    *supervisor.Supervisor
	identity  *certs.Identity

	mu      sync.Mutex // guards what follows
	current *members.Current
	entries map[string]*members.Entry
	wake    chan struct{}
	probes  map[string]*probe
}

// probe is a connection for signs of life of one run of a process.
type probe struct {
	incarnation uint64
	conn        transport.Conn
}

// open opens the bus: the plan's, or one of our own that listens where it did
// before, so that processes that have outlived an earlier supervisor find it.
func (k *keeper) open(ctx context.Context, p *plan.Plan) (err error) {
	if k.identity, err = loadIdentity(k.certs, "supervisor"); err != nil {
		return err
	}
	c := bus.Config{Directory: k.dir, Rebuilt: deploy.Rebuilt(services.All(gateway.Process{})), Log: k.log.With("service", "bus")}
	if p.Bus.URL != "" {
		k.external = &p.Bus
		c = bus.Config{URL: p.Bus.URL, Credentials: p.Bus.Credentials, Replicas: p.Bus.Replicas, Manifests: filepath.Join(k.dir, "manifests"), Rebuilt: c.Rebuilt, Log: c.Log}
		if k.identity != nil && strings.HasPrefix(p.Bus.URL, "tls:") {
			c.TLS = k.identity.Client()
		}
	} else {
		c.Listen = "127.0.0.1:0"
		if port, err := os.ReadFile(k.portFile()); err == nil && freePort(string(port)) {
			c.Listen = string(port)
		}
	}
	if k.store, err = bus.Open(ctx, c); err != nil {
		return err
	}
	if k.external == nil {
		address := strings.TrimPrefix(k.store.Access().URL, "nats://")
		err = errors.Join(wholefile.Write(k.portFile(), []byte(address), 0o600), wholefile.Write(k.secretFile(), []byte(k.store.Access().Token), 0o600))
	}
	k.store.Replicate(c.Replicas)
	if err == nil {
		k.directory, err = members.OpenDirectory(ctx, k.store)
	}
	if err != nil {
		return errors.Join(err, k.store.Close())
	}
	return nil
}

func (k *keeper) portFile() string   { return filepath.Join(k.dir, "bus.address") }
func (k *keeper) secretFile() string { return filepath.Join(k.dir, "bus.secret") }

// freePort reports whether an address can be listened on.
func freePort(address string) bool {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// enforce brings the plan into force, unless it is, with the configuration that
// counts, and returns it.
func (k *keeper) enforce(ctx context.Context, p *plan.Plan, all []weft.Spec) (*plan.Plan, error) {
	configs, err := config.Open(ctx, k.store)
	if err != nil {
		return nil, err
	}
	chosen, err := configs.Choose(ctx, config.GivenBy(p))
	if err != nil {
		return nil, err
	}
	if p = chosen.In(p); chosen.Kept() {
		if err := config.CheckPlan(p, all, overrides(k.set)...); err != nil {
			return nil, fmt.Errorf("%w\nconfiguration %d was applied while the controller ran (%s) and does not fit the plan now; give the plan a config of its own", err, chosen.Number, chosen.Source)
		}
	}
	k.log.Info("configuration in force: " + chosen.Why)
	old, revision, err := k.directory.Current(ctx)
	if err != nil {
		return nil, err
	}
	next, other := old, old == nil || len(plan.Diff(old.InForce(), p)) > 0
	if other {
		if next, err = members.Succeed(old, p, all); err != nil {
			return nil, err
		}
	}
	if err := deploy.Startable(next, machineName(), secureIn(k.certs)); err != nil {
		return nil, err
	}
	if other {
		if err := k.directory.Put(ctx, next, revision); err != nil {
			return nil, err
		}
	}
	return p, configs.Start(ctx, chosen, time.Now())
}

// run keeps the processes until ctx ends, and then ends them.
func (k *keeper) run(ctx context.Context, ready func()) (err error) {
	k.entries, k.probes, k.wake = map[string]*members.Entry{}, map[string]*probe{}, make(chan struct{}, 1)
	var hurry <-chan struct{}
	if k.interrupts != nil {
		k.interrupts.keeps.Store(true) // until the processes have ended, this one stays
		hurry = k.interrupts.hurry
	}
	k.keeper, err = supervisor.New(supervisor.Config{
		Hurry:     hurry,
		Directory: workersDirectory(k.dir), RootPart: rootpart.Path(), Log: k.log, Probe: k.probe, ProbeEvery: 250 * time.Millisecond, UnresponsiveAfter: 2 * time.Second,
	})
	if err != nil {
		return err
	}
	watchCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	work.Go(func() {
		if err := k.keeper.Run(watchCtx); err != nil && watchCtx.Err() == nil {
			k.log.Error("supervisor", "error", err)
		}
	})
	work.Go(func() {
		err := k.directory.Follow(watchCtx, func(c *members.Current) {
			k.mu.Lock()
			announce(k.log, k.current, c)
			k.current = c
			k.mu.Unlock()
			k.poke()
		}, func(process string, e *members.Entry) {
			k.mu.Lock()
			if e == nil {
				delete(k.entries, process)
			} else {
				k.entries[process] = e
			}
			k.mu.Unlock()
			k.poke()
		})
		if err != nil && watchCtx.Err() == nil {
			k.log.Error("the bus can no longer be watched; the processes go on as they are", "error", err)
		}
	})
	first := !slices.ContainsFunc(k.keeper.Status(), func(s supervisor.Status) bool { return s.PID != 0 })
	changes := k.keeper.Watch(watchCtx)
	told := map[string]string{}
	var applied uint64
	for {
		k.mu.Lock()
		current := k.current
		k.mu.Unlock()
		if current != nil && current.Generation != applied {
			k.store.Replicate(current.InForce().Bus.Replicas)
			if err := k.keeper.Set(ctx, k.processes(current)); err != nil && ctx.Err() == nil {
				k.log.Error("not all processes have started; they are tried again", "error", err)
			}
			applied = current.Generation
		}
		if ready != nil && k.complete() {
			ready()
			ready, first = nil, false
		}
		select {
		case <-ctx.Done():
			return k.keeper.Close()
		case <-k.wake:
		case list := <-changes:
			k.tell(ctx, list, told)
			if err := k.failed(list); first && err != nil {
				return errors.Join(k.keeper.Close(), err)
			}
		}
	}
}

// failed returns why a process cannot carry out the plan: it keeps ending by
// itself before it has; nil if there is none. A controller that is only now being
// started ends with that, as one without a plan does.
func (k *keeper) failed(list []supervisor.Status) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range list {
		if s.State != supervisor.BackingOff || s.LastExit == nil || s.LastExit.LastWords == "" {
			continue
		}
		if e := k.entries[s.Name]; e == nil || e.PID != s.LastExit.PID || e.Generation == 0 {
			return errors.New(strings.TrimPrefix(s.LastExit.LastWords, "weft: "))
		}
	}
	return nil
}

func (k *keeper) poke() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// complete reports whether all processes have carried out the plan.
func (k *keeper) complete() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == nil {
		return false
	}
	for _, i := range k.current.InForce().Instances() {
		e := k.entries[k.current.ProcessOf(i.Name)]
		if e == nil || e.Generation != k.current.Generation {
			return false
		}
	}
	return true
}

// processes returns the processes of this machine.
func (k *keeper) processes(c *members.Current) []supervisor.Process {
	exe := program()
	var list []supervisor.Process
	for _, i := range c.InForce().Instances() {
		w := c.InForce().Worker(i.Worker)
		if w.Machine != "" && w.Machine != machineName() {
			continue
		}
		name := c.ProcessOf(i.Name)
		access := k.store.Access()
		args := []string{"worker", "--process", name, "--bus", access.URL, "--data-dir", k.dir, "--log-level", strings.ToLower(k.logLevel.String())}
		if k.external == nil {
			args = append(args, "--bus-token-file", k.secretFile())
		} else if k.external.Credentials != "" {
			args = append(args, "--bus-credentials", k.external.Credentials)
		}
		if os.Geteuid() == 0 {
			args = append(args, "--user", "root")
		}
		if k.certs != "" {
			args = append(args, "--certs", k.certs)
		}
		for _, s := range k.set {
			args = append(args, "--set", s)
		}
		args = append(args, k.trace.args()...)
		if k.profile != "" {
			args = append(args, "--cpu-profile", k.profile+"."+name)
		}
		var env []string
		for _, key := range slices.Sorted(maps.Keys(w.Env)) {
			env = append(env, key+"="+w.Env[key])
		}
		if w.Memory > 0 && w.Env["GOMEMLIMIT"] == "" {
			env = append(env, fmt.Sprintf("GOMEMLIMIT=%d", int64(w.Memory)/10*9))
		}
		list = append(list, supervisor.Process{
			Name: name, Path: exe, Args: args, Env: env, Nice: w.Nice, CPUs: w.CPUs, Memory: int64(w.Memory),
			CPUQuota: w.CPUQuota, RealTime: w.Class == weft.RealTime.String(),
		})
	}
	return list
}

// probe asks a process for a sign of life.
func (k *keeper) probe(ctx context.Context, process string) error {
	k.mu.Lock()
	e, p := k.entries[process], k.probes[process]
	k.mu.Unlock()
	if e == nil {
		return errors.New("it has not said where it listens yet")
	}
	if p == nil || p.incarnation != e.Incarnation {
		conn, err := k.dial(ctx, e)
		if err != nil {
			return err
		}
		p = &probe{e.Incarnation, conn}
		k.mu.Lock()
		if old := k.probes[process]; old != nil {
			defer old.conn.Close()
		}
		k.probes[process] = p
		k.mu.Unlock()
	}
	_, err := p.conn.Call(ctx, members.PingMethod, nil)
	if err != nil && transport.ErrorOf(err).Code != transport.DeadlineExceeded { // one that is late may answer the next
		k.mu.Lock()
		if k.probes[process] == p {
			delete(k.probes, process)
		}
		k.mu.Unlock()
		_ = p.conn.Close()
	}
	return err
}

func (k *keeper) dial(ctx context.Context, e *members.Entry) (transport.Conn, error) {
	t := grpc.New(nil)
	if k.identity != nil {
		t = grpc.New(k.identity.Client())
	}
	return t.Dial(ctx, e.Addresses["grpc"])
}

// tell writes down what has become of the processes, and takes the entries of
// those out that are no longer wanted and have ended.
func (k *keeper) tell(ctx context.Context, list []supervisor.Status, told map[string]string) {
	seen := map[string]bool{}
	for _, s := range list {
		seen[s.Name] = true
		kept := members.Kept{State: string(s.State), PID: s.PID, Restarts: s.Restarts}
		if s.LastExit != nil {
			kept.LastExit = s.LastExit.Text
		}
		for _, u := range s.Unapplied {
			kept.Unapplied = append(kept.Unapplied, u.Limit+": "+u.Reason)
		}
		if text := fmt.Sprint(kept); told[s.Name] != text {
			told[s.Name] = text
			k.write(ctx, s.Name, &kept)
		}
	}
	for name := range told {
		if !seen[name] {
			delete(told, name)
			k.write(ctx, name, nil)
			if err := k.directory.Remove(ctx, name); err != nil && ctx.Err() == nil {
				k.log.Warn("entry of a process that has ended is not removed", "process", name, "error", err)
			}
		}
	}
}

func (k *keeper) write(ctx context.Context, process string, kept *members.Kept) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := k.directory.Tell(ctx, k.store, process, kept); err != nil && ctx.Err() == nil {
		k.log.Warn("state of a process is not written down", "process", process, "error", err)
	}
}

// readyLine says what runs and where.
func (k *keeper) readyLine(p *plan.Plan, all []weft.Spec) string {
	k.mu.Lock()
	processes := len(k.entries)
	k.mu.Unlock()
	parts := []string{fmt.Sprintf("weft %s is up; plan %s, %d processes", Build().Version, p.Name, processes)}
	for _, w := range p.Workers {
		for i := range all {
			if !slices.Contains(w.Services, all[i].Name) {
				continue
			}
			if config, err := config.Effective(p, w.Name, &all[i], overrides(k.set)...); err == nil { // CheckPlan has looked
				parts = append(parts, listening(config)...)
			}
		}
	}
	return strings.Join(append(parts, "bus "+k.store.Access().URL, "state in "+k.dir), "; ")
}

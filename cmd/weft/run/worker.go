package run

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/planning"
	"github.com/weft-sdn/weft/deploy"
	"github.com/weft-sdn/weft/deploy/apps"
	"github.com/weft-sdn/weft/deploy/certs"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/internal/auditlog"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/services"
	"github.com/weft-sdn/weft/services/gateway"
	"github.com/weft-sdn/weft/transport"
	"github.com/weft-sdn/weft/transport/grpc"
	onePort "github.com/weft-sdn/weft/transport/port"
	"github.com/weft-sdn/weft/transport/rest"
	"github.com/weft-sdn/weft/transport/shm"
	"github.com/weft-sdn/weft/transport/ws"
)

// workerOptions are the flags of weft worker.
type workerOptions struct {
	process  string
	bus      string
	token    string
	creds    string
	listen   string
	certs    string
	set      []string
	logLevel string
	profile  string
	trace    traceOptions
	dataDir  string
	user     string
	patience time.Duration
}

func WorkerCommand() *cobra.Command {
	var o workerOptions
	cmd := &cobra.Command{
		Use:   "worker --process NAME --bus URL",
		Short: "Run one process of a plan",
		Long: `Run one process of a plan. weft up PLAN does this for all workers of its own
machine; by hand it is for those that the plan gives to another machine
(machine: NAME), or for a machine under somebody else's supervision.

The process finds the plan in force and all others by the bus: the address that
weft up prints, or an external NATS. What it runs, the plan says; when another
plan is applied, services come and go while it runs. Without certificates
(weft certs) everything stays on this machine.`,
		Example: `  weft worker --process routing-1 --bus nats://127.0.0.1:4222 --bus-token-file /var/lib/weft/bus.secret
  weft worker --process routing-1 --bus tls://bus.example.org:4222 --certs /etc/weft/certs --listen 192.0.2.7:7000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := o.check(cmd); err != nil {
				return err
			}
			if err := leaveRoot(o.user, o.dataDir, "worker "+o.process, o.part()); err != nil {
				return err
			}
			inheritPart()
			easeTimers()
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends the process at once
			return advise(work(ctx, cmd, &o))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.process, "process", "", "name of the process: that of its instance in the plan")
	f.StringVar(&o.bus, "bus", "", "URL of the bus: nats://HOST:PORT or tls://HOST:PORT")
	f.StringVar(&o.token, "bus-token-file", "", "file with the bus's secret")
	f.StringVar(&o.creds, "bus-credentials", "", "NATS credentials file, for an external bus")
	f.StringVar(&o.listen, "listen", "", "HOST:PORT at which other processes reach this one (default the plan's)")
	f.StringVar(&o.certs, "certs", "", "directory with certificates made by weft certs")
	f.StringArrayVar(&o.set, "set", nil, "set one key, as service.key=value; may be repeated")
	f.StringVar(&o.logLevel, "log-level", "info", "what to log on stderr: debug, info, warn or error")
	f.StringVar(&o.profile, "cpu-profile", "", "write a profile of the processor's time to FILE when the process stops")
	f.StringVar(&o.dataDir, "data-dir", "", "directory in which the gateway, if it comes to run here, keeps its audit log (default /var/lib/weft as root, else ~/.local/state/weft)")
	f.StringVar(&o.user, "user", "", userHelp)
	o.trace.flags(f)
	f.DurationVar(&o.patience, "wait", 5*time.Minute, "how long to wait for the bus, and then for a plan")
	cmd.MarkFlagRequired("process")
	cmd.MarkFlagRequired("bus")
	cmd.MarkFlagDirname("certs")
	cmd.MarkFlagFilename("bus-token-file")
	return cmd
}

// part returns what the part that stays root knows, if root has started the
// process by hand: it takes the settings of queues and of namespaces from --set only.
func (o *workerOptions) part() (c partConfig) {
	if os.Geteuid() == 0 {
		c.read(&plan.Plan{}, o.set)
	}
	return c
}

// check returns the level of the log, or what is wrong with flags or with the limits of this
// process.
func (o *workerOptions) check(cmd *cobra.Command) (level slog.Level, err error) {
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return level, cli.Usagef(cmd, "--log-level %q; allowed: debug, info, warn, error", o.logLevel)
	}
	if o.process == "" || o.bus == "" {
		return level, cli.Usagef(cmd, "--process and --bus want values: the name of an instance in the plan, and a URL such as nats://127.0.0.1:4222")
	}
	if err := o.trace.check(); err != nil {
		return level, cli.Usagef(cmd, "%v", err)
	}
	return level, enoughFiles()
}

// work runs a process of a plan until ctx ends.
func work(ctx context.Context, cmd *cobra.Command, o *workerOptions) error {
	level, err := o.check(cmd)
	if err != nil {
		return err
	}
	data, err := DataPath(o.dataDir)
	if err != nil {
		return err
	}
	kept := &keptLog{to: cmd.ErrOrStderr(), process: o.process, directory: workersDirectory(data)}
	log := slog.New(slog.NewTextHandler(kept, &slog.HandlerOptions{Level: level})).With("process", o.process)
	tuneMemory()
	if o.profile != "" {
		stop, err := startProfile(o.profile)
		if err != nil {
			return err
		}
		defer stop()
	}
	identity, err := loadIdentity(o.certs, o.process)
	if err != nil {
		return err
	}
	token, err := secretIn(o.token)
	if err != nil {
		return err
	}
	busConfig := bus.Config{URL: o.bus, Token: token, Credentials: o.creds, Log: log}
	if identity != nil && strings.HasPrefix(o.bus, "tls:") {
		busConfig.TLS = identity.Client()
	}
	opening, cancel := context.WithTimeout(ctx, o.patience)
	store, err := openStore(opening, busConfig)
	cancel()
	if err != nil {
		return err
	}
	defer store.Close()
	joining, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	var current *members.Current
	err = keepTrying(joining, notThere, func() (err error) { current, err = inForce(joining, store); return err })
	if err != nil {
		return err
	}
	store.Replicate(current.InForce().Bus.Replicas)
	listen := o.listen
	if listen == "" {
		listen = current.ListenOf(o.process)
	}
	tracer, end, err := o.trace.open(ctx, o.process)
	if err != nil {
		return err
	}
	defer end()
	var node *deploy.Node
	if err := keepTrying(joining, notThere, func() (err error) {
		node, err = o.join(joining, log, kept, store, identity, tracer, listen)
		return err
	}); err != nil {
		return err
	}
	return errors.Join(node.Run(ctx), store.Close())
}

// openStore opens the store, trying again until ctx ends: the bus may be
// starting.
func openStore(ctx context.Context, c bus.Config) (store *bus.Store, err error) {
	err = keepTrying(ctx, func(error) bool { return true }, func() (err error) { store, err = bus.Open(ctx, c); return err })
	return store, err
}

// keepTrying does something until it succeeds, fails for a reason that does not pass,
// or ctx ends. Its error is then the last that says more than that it took too
// long.
func keepTrying(ctx context.Context, passing func(error) bool, try func() error) error {
	var why error
	for began := time.Now(); ; {
		err := try()
		if err == nil || !passing(err) {
			return err
		}
		if why == nil || !errors.Is(err, context.DeadlineExceeded) {
			why = err
		}
		if backoff.Sleep(ctx, 100*time.Millisecond) != nil {
			return fmt.Errorf("%w (waited %v)", why, time.Since(began).Round(100*time.Millisecond))
		}
	}
}

// notThere reports whether an error says that the bus, or the plan, is not there
// yet.
func notThere(err error) bool {
	kind := api.KindOf(err)
	return errors.Is(err, errNoPlan) || errors.Is(err, context.DeadlineExceeded) || kind == codes.Unavailable || kind == codes.DeadlineExceeded
}

// errNoPlan says that nobody has brought a plan into force.
var errNoPlan = errors.New("there is no plan on the bus yet; start one with weft up PLAN")

// inForce returns the plan in force.
func inForce(ctx context.Context, store *bus.Store) (*members.Current, error) {
	directory, err := members.OpenDirectory(ctx, store)
	if err != nil {
		return nil, err
	}
	current, _, err := directory.Current(ctx)
	if err != nil {
		return nil, err
	}
	if current == nil {
		return nil, errNoPlan
	}
	return current, nil
}

// join makes the node of a process.
func (o *workerOptions) join(ctx context.Context, log *slog.Logger, kept *keptLog, store *bus.Store, identity *certs.Identity, tracer local.Tracer, listen string) (*deploy.Node, error) {
	data, err := DataPath(o.dataDir)
	if err != nil {
		return nil, err
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var node *deploy.Node
	planner := &planning.Planner{
		Specs: services.All(gateway.Process{}), Network: cli.NetworkOf,
		InForce: func(ctx context.Context, r *api.GetPlanRequest) (*api.Plan, error) { return node.GetPlan(ctx, r) },
		Crossings: func(ctx context.Context, r *api.ListCrossingsRequest) (*api.ListCrossingsResponse, error) {
			return node.ListCrossings(ctx, r)
		},
	}
	all := services.All(gateway.Process{
		Version: Build().Version, Started: time.Now(), Name: o.process, Audit: auditDirectory(data),
		Metrics: promhttp.HandlerFor(prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return node.Gather() }), promhttp.HandlerOpts{}),
		Node:    func() gateway.Node { return deploy.Control{Node: node} },
		Answers: planner.Answers,
	})
	var server, client *tls.Config
	if identity != nil {
		server, client = identity.Server(), identity.Client()
	}
	natsLink := store.Transport()
	natsName := fmt.Sprintf("%s-%d-%d", o.process, os.Getpid(), time.Now().UnixNano())
	changes := &appChanges{log: log, file: auditlog.Log{
		Dir: auditDirectory(data), Name: o.process + ".apps", Size: 8 << 20, Files: 8,
		Failed: func(err error) { log.Error("a change could not be written to the audit log", "error", err) },
	}}
	c := deploy.NodeConfig{
		Changed: changes.add,
		Scratch: scratchDirectory(data),
		Process: o.process, Version: Build().Version, Specs: all, Store: store, Registry: metrics, Gatherer: metrics, Tracer: tracer, Log: log, Logs: kept.read,
		Transports: map[string]transport.Transport{
			"grpc": grpc.New(client), "ws": ws.New(client), "rest": rest.New(client), "shm": shm.New(client), "nats": natsLink,
		},
		Listen: func(h transport.Handler) (map[string]string, io.Closer, error) {
			out, err := node.Apps(client)
			if err != nil {
				return nil, nil, err
			}
			p, err := onePort.Listen(listen, onePort.Config{TLS: server, Handler: h, HTTP: workerHTTP(node, out, metrics), GRPC: out.Register})
			if err != nil {
				return nil, nil, err
			}
			l, err := natsLink.Listen(natsName, deploy.FromBus(h))
			if err != nil {
				return nil, nil, errors.Join(err, p.Close())
			}
			memory, err := shm.New(server).Listen(fmt.Sprintf("unix:@weft-shm-%d-%d", os.Getpid(), time.Now().UnixNano()), h)
			if err != nil {
				return nil, nil, errors.Join(err, l.Close(), p.Close())
			}
			addresses := map[string]string{"grpc": p.Address(), "ws": p.Address(), "rest": p.Address(), "shm": memory.Address(), "nats": l.Address()}
			all := closers{memory, l, p}
			if server == nil { // then all is on this machine, where there is a shorter way
				local, err := onePort.Listen("unix:@weft-"+natsName, onePort.Config{Handler: h})
				if err != nil {
					return nil, nil, errors.Join(err, all.Close())
				}
				addresses[members.LocalAddress] = local.Address()
				all = append(closers{local}, all...)
			}
			return addresses, all, nil
		},
	}
	c.Settings, c.Secure = overrides(o.set), secureIn(o.certs)
	if identity != nil {
		c.Allow = deploy.AllowDeclared(all)
	}
	node, err = deploy.Join(ctx, c)
	return node, err
}

// workerHTTP returns what answers requests over HTTP that are no other
// process's: those of apps and clients, of Prometheus and of probes.
func workerHTTP(node *deploy.Node, out *apps.Server, metrics *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", out.HTTP())
	mux.Handle("GET /metrics", out.Protect(promhttp.HandlerFor(metrics, promhttp.HandlerOpts{})))
	mux.Handle("GET /healthz", out.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := node.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})))
	return mux
}

// closers closes several things, in order.
type closers []io.Closer

func (list closers) Close() error {
	var errs []error
	for _, c := range list {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// secretIn reads the secret in a file, empty if there is none.
func secretIn(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := asowner.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("secret of the bus: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

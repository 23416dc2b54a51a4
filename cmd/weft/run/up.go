package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/planning"
	"github.com/weft-sdn/weft/deploy"
	"github.com/weft-sdn/weft/deploy/local"
	"github.com/weft-sdn/weft/internal/rootpart"
	"github.com/weft-sdn/weft/services"
	"github.com/weft-sdn/weft/services/gateway"
	"github.com/weft-sdn/weft/services/ryu"
	"github.com/weft-sdn/weft/services/southbound"
)

// UpOptions are the flags of weft up.
type UpOptions struct {
	Config   string
	Services []string
	Listen   []string
	HTTP     string
	ryu      string
	DataDir  string
	Set      []string
	LogLevel string
	quiet    bool
	profile  string
	certs    string
	user     string
	trace    traceOptions

	interrupts *interrupts // nil: in a test
}

func UpCommand() *cobra.Command {
	var o UpOptions
	cmd := &cobra.Command{
		Use:   "up [PLAN]",
		Short: "Run the controller: in one process, or as a plan says",
		Long: `Run the controller, with its durable state in a directory of its own, until it
is interrupted (SIGINT or SIGTERM; at a second one it does not wait for what
takes time). Switches connect to it by OpenFlow; the northbound is on one HTTP
port.

Without PLAN everything runs in this process. With PLAN, the name of a built-in
plan (weft plan list) or a file, this process becomes the supervisor of the
plan's processes: it starts them, starts again what dies, and holds the bus by
which they find each other. weft get workers shows them, weft apply moves them
to another plan while they run. Should the supervisor die, they go on; started
again on the same data directory, with or without PLAN, it takes them over.

Every service has settings. They come from a file, with a section per service,
and from --set; weft check FILE checks a file. A file looks like this:

  southbound:
    listen: [tls:0.0.0.0:6653]
    certificate: /etc/weft/certs/controller.crt
    key: /etc/weft/certs/controller.key
    authority: /etc/weft/certs/ca.crt
  forwarding:
    mode: proactive
    subnets:
      - {gateway: 10.0.1.1/24}
      - {gateway: 10.0.2.1/24}
  gateway:
    listen: 0.0.0.0:8181
    token_file: /etc/weft/token

While it runs, weft config apply changes the configuration. What was applied so
counts at the next start as well, unless the file has changed since; the log
says which configuration is in force, and why.

Started as root, the controller becomes another user: --user, or the owner of the
data directory, or the user weft, or 64653. It then owns the data directory, and
must be able to read the files that are named here. A small process stays root: it
gives processes the limits of the plan and makes queues, and nothing else.

With --services only those services run. Calls of others to the ones left out
fail, so this is for parts that stand by themselves, such as learning switches:
--services southbound,forwarding --set forwarding.mode=learning`,
		Example: `  weft up
  weft up split
  weft up --config weft.yaml --set forwarding.mode=proactive
  weft up --listen 0.0.0.0:6653 --set southbound.plain=true --http 127.0.0.1:9000
  weft up --user weft --config /etc/weft/weft.yaml
  weft up --services southbound,forwarding --set forwarding.mode=learning`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args); err != nil {
				return err
			}
			part, err := o.part(args)
			if err == nil {
				err = leaveRoot(o.user, o.DataDir, "up", part)
			}
			if err != nil {
				return err
			}
			inheritPart()
			i, ctx, stop := newInterrupts(dieOf)
			defer stop()
			o.interrupts = i
			if len(args) > 0 {
				return advise(upPlan(ctx, cmd, &o, args[0]))
			}
			return advise(Up(ctx, cmd, &o))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Config, "config", "", "configuration file (YAML)")
	f.StringSliceVar(&o.Services, "services", nil, "run only these services")
	f.StringArrayVar(&o.Listen, "listen", nil, "where switches connect: HOST:PORT, tcp:HOST:PORT, tls:HOST:PORT or unix:PATH; may be repeated (default tcp:127.0.0.1:6653)")
	f.StringVar(&o.HTTP, "http", "", "HOST:PORT of the northbound; adds the gateway to --services (default 127.0.0.1:8181)")
	f.StringVar(&o.ryu, "ryu", "", "HOST:PORT of the REST interface of Ryu, such as 127.0.0.1:8080; adds ryu to --services (default off)")
	f.StringVar(&o.DataDir, "data-dir", "", "directory of the durable state (default /var/lib/weft as root, else ~/.local/state/weft)")
	f.StringArrayVar(&o.Set, "set", nil, "set one key, as service.key=value; may be repeated")
	f.StringVar(&o.LogLevel, "log-level", "info", "what to log on stderr: debug, info, warn or error")
	f.BoolVar(&o.quiet, "quiet", false, "print and log warnings and errors only")
	f.StringVar(&o.profile, "cpu-profile", "", "write a profile of the processor's time to FILE, for go tool pprof, when the controller stops")
	f.StringVar(&o.certs, "certs", "", "directory with certificates of the plan's processes, made by weft certs")
	f.StringVar(&o.user, "user", "", userHelp)
	o.trace.flags(f)
	cmd.MarkFlagFilename("config", "yaml", "yml")
	cmd.MarkFlagDirname("certs")
	cmd.MarkFlagDirname("data-dir")
	cmd.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// Up runs the controller until ctx ends: it builds in order and stops in
// reverse.
func Up(ctx context.Context, cmd *cobra.Command, o *UpOptions) error {
	level, listen, err := o.checkFlags(cmd)
	if err != nil {
		return err
	}
	kept := &keptLog{to: cmd.ErrOrStderr()}
	log := slog.New(slog.NewTextHandler(kept, &slog.HandlerOptions{Level: level}))
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	dir, err := DataPath(o.DataDir)
	if err != nil {
		return err
	}
	if list, err := survivors(dir); err != nil {
		return err
	} else if len(list) > 0 {
		return o.takeOver(ctx, cmd, dir, list)
	}
	var node *deploy.Node
	all := services.All(gateway.Process{
		Audit:   auditDirectory(dir),
		Version: Build().Version, Started: time.Now(),
		Metrics: promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}),
		Node:    func() gateway.Node { return deploy.Control{Node: node} },
		Answers: (&planning.Planner{Specs: services.All(gateway.Process{}), Network: cli.NetworkOf}).Answers,
	})
	a, err := o.alone(all, listen)
	if err != nil {
		return err
	}
	made, err := makeDataDirectory(dir)
	defer made.removeEmpty()
	if err != nil {
		return err
	}
	tuneMemory()
	if o.profile != "" {
		stop, err := startProfile(o.profile)
		if err != nil {
			return err
		}
		defer stop()
	}
	store, err := bus.Open(ctx, bus.Config{Directory: dir, Rebuilt: deploy.Rebuilt(all), Log: log.With("service", "bus")})
	if err != nil {
		return err
	}
	defer store.Close()
	tracer, end, err := o.trace.open(ctx, "all")
	if err != nil {
		return err
	}
	defer end()
	if node, err = a.join(ctx, store, metrics, tracer, log, kept, dir); err != nil {
		return err
	}
	if !o.quiet {
		go func() {
			if ready(ctx, node) {
				fmt.Fprintln(cmd.OutOrStdout(), readyLine(node.Worker(), dir))
			}
		}()
	}
	err = node.Run(ctx)
	return errors.Join(err, store.Close())
}

// check returns what a controller would refuse to start with, before anything is made and
// before it becomes another user.
func (o *UpOptions) check(cmd *cobra.Command, args []string) error {
	_, listen, err := o.checkFlags(cmd)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		_, _, err := o.planned(cmd, args[0])
		return err
	}
	dir, err := DataPath(o.DataDir)
	if err != nil {
		return err
	}
	if list, err := survivors(dir); err != nil || len(list) > 0 {
		return err // they are taken over, with settings of theirs
	}
	_, err = o.alone(services.All(gateway.Process{}), listen)
	return err
}

// DataPath returns the directory of the durable state, which need not exist.
func DataPath(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	if os.Geteuid() == 0 || rootpart.Path() != "" {
		return "/var/lib/weft", nil
	}
	if state := os.Getenv("XDG_STATE_HOME"); state != "" {
		return filepath.Join(state, "weft"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no home directory for the durable state (%w); name a directory with --data-dir", err)
	}
	return filepath.Join(home, ".local", "state", "weft"), nil
}

// auditDirectory returns where, in the directory of the durable state, the audit
// log of the northbound is.
func auditDirectory(data string) string { return filepath.Join(data, "audit") }

// scratchDirectory returns where, in the directory of the durable state, processes
// keep the memory that outlives them.
func scratchDirectory(data string) string { return filepath.Join(data, "scratch") }

// readyLine says what runs and where.
func readyLine(w *local.Worker, dir string) string {
	parts := []string{"weft " + Build().Version + " is up"}
	parts = append(parts, listening(w.Effective("southbound"))...)
	parts = append(parts, listening(w.Effective("gateway"))...)
	parts = append(parts, listening(w.Effective("ryu"))...)
	return strings.Join(append(parts, "state in "+dir), "; ")
}

// listening says where a service with a configuration listens, for those that
// people have to find.
func listening(config any) []string {
	switch c := config.(type) {
	case *southbound.Config:
		return []string{"OpenFlow on " + strings.Join(c.Listen, ", ")}
	case *gateway.Config:
		if c.Certificate != "" {
			return []string{"northbound on https://" + c.Listen}
		}
		return []string{"northbound on http://" + c.Listen}
	case *ryu.Config:
		if c.Listen != "" {
			return []string{"Ryu's REST on http://" + c.Listen}
		}
	}
	return nil
}

// AddServices adds the services of another module to Weft's, before any command
// runs.
func AddServices(others []weft.Spec) { services.Add(others...) }

package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/plan"
)

// planPutOptions are the flags of weft plan put.
type planPutOptions struct {
	bus, token, creds, certs string
	patience                 time.Duration
}

// putPlan is the answer of weft plan put.
type putPlan struct {
	Plan       string   `json:"plan"`
	Generation uint64   `json:"generation"`
	Changes    []string `json:"changes"`
}

func PlanPutCommand() *cobra.Command {
	var o planPutOptions
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "put PLAN",
		Short: "Put a plan into force on a bus, for workers under an orchestrator",
		Long: `Put a plan into force on a bus, a built-in one or that of a file. This is for
workers that an orchestrator starts, where there is no weft up to do it: what
weft export writes has a job that runs it once. Of the plan that is in force
already, nothing changes. A controller that runs is better moved by weft apply,
which waits until the plan is carried out.`,
		Example: `  weft plan put plan.yaml --bus tls://nats:4222 --certs /etc/weft/certs
  weft plan put scale --bus nats://127.0.0.1:4222 --bus-token-file /var/lib/weft/bus.secret`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := planner.ReadPlan(args[0])
			if err != nil {
				return err
			}
			if err := planner.Fits(p); err != nil {
				return err
			}
			ctx := cmd.Context()
			if ctx == nil {
				ctx = context.Background()
			}
			ctx, cancel := context.WithTimeout(ctx, o.patience)
			defer cancel()
			done, err := o.put(ctx, p)
			if err != nil {
				return err
			}
			return out.Print(cmd, done, func(t *cli.Table) {
				for _, change := range done.Changes {
					fmt.Fprintln(t, change)
				}
				if len(done.Changes) == 0 {
					fmt.Fprintf(t, "plan %s is in force already, generation %d\n", done.Plan, done.Generation)
				} else {
					fmt.Fprintf(t, "plan %s is in force, generation %d\n", done.Plan, done.Generation)
				}
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.bus, "bus", "", "URL of the bus: nats://HOST:PORT or tls://HOST:PORT")
	f.StringVar(&o.token, "bus-token-file", "", "file with the bus's secret")
	f.StringVar(&o.creds, "bus-credentials", "", "NATS credentials file, for an external bus")
	f.StringVar(&o.certs, "certs", "", "directory with certificates made by weft certs; that of "+planner.SupervisorName+" is used")
	f.DurationVar(&o.patience, "wait", 2*time.Minute, "how long to wait for the bus")
	cmd.MarkFlagRequired("bus")
	cmd.MarkFlagDirname("certs")
	cmd.MarkFlagFilename("bus-token-file")
	out.Flag(cmd)
	return cmd
}

// put brings the plan into force, unless it is.
func (o *planPutOptions) put(ctx context.Context, p *plan.Plan) (*putPlan, error) {
	identity, err := loadIdentity(o.certs, planner.SupervisorName)
	if err != nil {
		return nil, err
	}
	token, err := secretIn(o.token)
	if err != nil {
		return nil, err
	}
	c := bus.Config{URL: o.bus, Token: token, Credentials: o.creds, Replicas: p.Bus.Replicas}
	if identity != nil && strings.HasPrefix(o.bus, "tls:") {
		c.TLS = identity.Client()
	}
	store, err := openStore(ctx, c)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	directory, err := members.OpenDirectory(ctx, store)
	if err != nil {
		return nil, err
	}
	old, revision, err := directory.Current(ctx)
	if err != nil {
		return nil, err
	}
	done := &putPlan{Plan: p.Name, Changes: []string{}}
	if old != nil {
		for _, change := range plan.Diff(old.InForce(), p) {
			done.Changes = append(done.Changes, fmt.Sprint(change))
		}
		if len(done.Changes) == 0 {
			done.Generation = old.Generation
			return done, nil
		}
	} else {
		done.Changes = append(done.Changes, fmt.Sprintf("there was no plan; now %d processes are wanted", len(p.Instances())))
	}
	next, err := members.Succeed(old, p, planner.AllSpecs())
	if err != nil {
		return nil, err
	}
	done.Generation = next.Generation
	return done, directory.Put(ctx, next, revision)
}

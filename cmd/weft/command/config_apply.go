package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func configApplyCommand() *cobra.Command {
	var r cli.Remote
	var out cli.Output
	var a applying
	var madeFrom uint64
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Bring a configuration into force while the controller runs",
		Long: `Bring a configuration into force while the controller runs, as a difference to
the one in force: the changes are listed, by service and key, each with what
becomes of it.

  live     the running service takes it over
  restart  the service is started again; what others want of it meanwhile waits

A service without changes is not touched. If one does not come up with the
configuration within --limit, the former one is put back, and the command fails
with the reason. --dry-run only lists the changes.`,
		Example: `  weft config apply weft.yaml --dry-run
  weft config apply weft.yaml
  weft config apply weft.yaml --made-from 7 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.check(cmd); err != nil {
				return err
			}
			text, err := readConfig(args[0]) // here, for the lines are those of the file
			if err != nil {
				return err
			}
			return a.run(cmd, &r, &out, func(c *cli.Controller) (*api.ApplyConfigResponse, error) {
				return c.ApplyConfig(c.Ctx, &api.ApplyConfigRequest{
					Text: text, DryRun: a.dry, Source: filepath.Base(args[0]), MadeFrom: madeFrom, LimitMs: a.limitMs(),
				})
			})
		},
	}
	cmd.Flags().Uint64Var(&madeFrom, "made-from", 0, "fail if another configuration than this number is in force by now")
	a.flags(cmd)
	r.Flags(cmd)
	out.Flag(cmd)
	return cmd
}

// applying is how a configuration is applied.
type applying struct {
	dry   bool
	limit time.Duration
}

func (a *applying) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.dry, "dry-run", false, "only list what would change")
	cmd.Flags().DurationVar(&a.limit, "limit", 20*time.Second, "how long services may take to come up with it before the former one is put back")
}

// check reports a limit that makes no sense.
func (a *applying) check(cmd *cobra.Command) error {
	if a.limit < time.Millisecond || a.limit > 10*time.Minute {
		return cli.Usagef(cmd, "--limit %v; want 1ms to 10m", a.limit)
	}
	return nil
}

func (a *applying) limitMs() uint32 { return uint32(max(a.limit.Milliseconds(), 1)) }

// run applies a configuration, prints what changes, and waits for what becomes
// of it.
func (a *applying) run(cmd *cobra.Command, r *cli.Remote, out *cli.Output, apply func(*cli.Controller) (*api.ApplyConfigResponse, error)) error {
	if err := a.check(cmd); err != nil {
		return err
	}
	if least := 2*a.limit + 10*time.Second; r.Timeout < least {
		r.Timeout = least // the former one may have to be put back, too
	}
	c, done, err := r.Dial(cmd)
	if err != nil {
		return err
	}
	defer done()
	m, err := apply(c)
	if err != nil {
		return err
	}
	if m.State == "applying" { // the gateway is being started again
		if m.State, err = await(c, m.Number); err != nil {
			return err
		}
	}
	return out.Print(cmd, m, func(t *cli.Table) {
		for _, x := range m.Changes {
			fmt.Fprintln(t, changeLine(x))
		}
		for _, note := range m.Notes {
			fmt.Fprintln(t, "note: "+note)
		}
		switch {
		case a.dry && len(m.Changes) > 0:
			fmt.Fprintln(t, "nothing has been changed: --dry-run")
		case len(m.Changes) == 0:
			fmt.Fprintln(t, "nothing changes: it says the same as the configuration in force")
		default:
			fmt.Fprintf(t, "configuration %d is in force; hash %s\n", m.Number, m.Hash)
		}
	})
}

// changeLine says what changes, and what becomes of it.
func changeLine(x *api.ConfigChange) string {
	or := func(s string) string {
		if s == "" {
			return "none"
		}
		return s
	}
	sign := "~"
	switch {
	case x.Old == "":
		sign = "+"
	case x.New == "":
		sign = "-"
	}
	where := ""
	if x.Worker != "" {
		where = " in worker " + x.Worker
	}
	effect := "taken over while it runs"
	if x.Effect == "restart" {
		effect = "service " + x.Section + " is started again"
	}
	return fmt.Sprintf("%s %s.%s%s: %s -> %s (%s)", sign, x.Section, x.Key, where, or(x.Old), or(x.New), effect)
}

// await waits until a configuration is no longer on trial. The gateway may be
// away for a moment.
func await(c *cli.Controller, number uint64) (state string, err error) {
	for {
		ctx, cancel := context.WithTimeout(c.Ctx, 2*time.Second)
		m, err := c.GetConfig(ctx, &api.GetConfigRequest{Number: number})
		cancel()
		switch {
		case err == nil && m.State == "failed":
			return m.State, fmt.Errorf("configuration %d has failed, and the former one is back in force: %s", number, m.Error)
		case err == nil && m.State == "dropped":
			return m.State, errors.New(m.Error)
		case err == nil && m.State != "applying":
			return m.State, nil
		}
		select {
		case <-c.Ctx.Done():
			return "", fmt.Errorf("what has become of configuration %d is not known; if the gateway listens elsewhere now, ask it there: weft config history --server URL", number)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

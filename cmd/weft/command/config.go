package command

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/internal/document"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Look at the configuration, change it while the controller runs, and put it back",
		Long: `Look at the configuration, change it while the controller runs, and put it back.

A configuration is a YAML file with a section for each service, as weft up
--config reads it; docs/configuration.md lists the keys. Applied to a running
controller it takes effect as a difference: a service takes over what it can
while it runs, is started again if it cannot, and is not touched if its section
says the same as before. What the file leaves out has its default.

If a service does not come up with the new configuration, the former one is put
back. The last good one also counts when the controller is started again, unless
it is started with a file that has changed since.`,
		Example: `  weft config check weft.yaml
  weft config apply weft.yaml --dry-run
  weft config apply weft.yaml
  weft config history
  weft config rollback`,
	}
	cmd.AddCommand(configShowCommand(), configCheckCommand(), configApplyCommand(), configHistoryCommand(), configRollbackCommand())
	return cmd
}

func configShowCommand() *cobra.Command {
	var r cli.Remote
	var out cli.Output
	var running bool
	var file string
	var number uint64
	cmd := &cobra.Command{
		Use:   "show [--running | --file FILE | --number N]",
		Short: "Print the configuration in force, one of the history, or that of a file",
		Long: `Print the configuration that a running controller has in force, one of its
history, or that of a file, checked. Secrets are printed as <secret>.`,
		Example: `  weft config show
  weft config show > weft.yaml
  weft config show --number 3
  weft config show --file weft.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file != "" {
				if running || number > 0 {
					return cli.Usagef(cmd, "--file is a configuration by itself; leave --running and --number out")
				}
				return showFile(cmd, &out, file)
			}
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			m, err := c.GetConfig(c.Ctx, &api.GetConfigRequest{Number: number})
			if err != nil {
				return err
			}
			return out.Print(cmd, m, func(t *cli.Table) {
				fmt.Fprintf(t, "# %s, %s; hash %s\n", numbered(m), m.State, m.Hash)
				for _, o := range m.Overrides {
					fmt.Fprintf(t, "# the command line counts more: %s\n", o)
				}
				fmt.Fprint(t, m.Text)
			})
		},
	}
	cmd.Flags().BoolVar(&running, "running", false, "the configuration in force (the default)")
	cmd.Flags().StringVar(&file, "file", "", "that of a file; no controller is asked")
	cmd.Flags().Uint64Var(&number, "number", 0, "one of the history")
	cmd.MarkFlagFilename("file", "yaml", "yml")
	r.Flags(cmd)
	out.Flag(cmd)
	return cmd
}

// numbered says which configuration one is.
func numbered(m *api.Configuration) string {
	if m.Number == 0 {
		return m.Source
	}
	return fmt.Sprintf("configuration %d (%s)", m.Number, m.Source)
}

func configHistoryCommand() *cobra.Command {
	var r cli.Remote
	var out cli.Output
	cmd := &cobra.Command{
		Use:     "history",
		Short:   "List the configurations that have been in force, or were to be",
		Example: "  weft config history -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			m, err := c.ListConfigs(c.Ctx, &api.ListConfigsRequest{})
			if err != nil {
				return err
			}
			return out.Print(cmd, m, func(t *cli.Table) {
				t.Row("NUMBER", "STATE", "HASH", "APPLIED", "FROM", "ERROR")
				for _, x := range m.Configurations {
					t.Row(x.Number, x.State, x.Hash, x.Applied, x.Source, x.Error)
				}
			})
		},
	}
	r.Flags(cmd)
	out.Flag(cmd)
	return cmd
}

func configCheckCommand() *cobra.Command {
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a configuration without starting or asking anything",
		Long: `Check a configuration without starting or asking anything. Every mistake is
reported as FILE:LINE: what is wrong, what is allowed, and what may be meant.`,
		Example: "  weft config check weft.yaml -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			res, err := checkedConfig(args[0])
			if err != nil {
				return err
			}
			err = out.Print(cmd, res, func(t *cli.Table) {
				if res.OK {
					fmt.Fprintf(t, "%s: a configuration without mistakes\n", res.File)
				}
				for _, p := range res.Problems {
					fmt.Fprintln(t, p.In(res.File))
				}
			})
			return errors.Join(err, cli.Mistakes(len(res.Problems)))
		},
	}
	out.Flag(cmd)
	return cmd
}

// checkedConfig checks a file that is to be a configuration.
func checkedConfig(path string) (planner.CheckResult, error) {
	res, err := planner.CheckFile(path)
	switch unknown := (*planner.UnknownFile)(nil); {
	case errors.As(err, &unknown):
		return res, fmt.Errorf("open %s: no such file", path)
	case err != nil:
		return res, err
	case res.Kind == "plan":
		return res, fmt.Errorf("%s is a plan, as it has workers; check it with weft check, apply it with weft apply", path)
	case res.Kind == "topology":
		return res, fmt.Errorf("%s is a topology, as it has switches, links or hosts in a list; bring it up with weft lab up", path)
	}
	return res, nil
}

// readConfig reads a file that is a configuration without mistakes.
func readConfig(path string) (string, error) {
	res, err := checkedConfig(path)
	if err != nil {
		return "", err
	}
	if !res.OK {
		var errs []error
		for _, p := range res.Problems {
			errs = append(errs, errors.New(p.In(path)))
		}
		return "", errors.Join(append(errs, cli.Mistakes(len(errs)))...)
	}
	text, err := document.ReadFile(path)
	return string(text), err
}

// showFile prints a file that is a configuration without mistakes.
func showFile(cmd *cobra.Command, out *cli.Output, path string) error {
	text, err := readConfig(path)
	if err != nil {
		return err
	}
	return out.Print(cmd, &api.Configuration{Text: text, Source: path}, func(t *cli.Table) { fmt.Fprint(t, text) })
}

func configRollbackCommand() *cobra.Command {
	var r cli.Remote
	var out cli.Output
	var a applying
	cmd := &cobra.Command{
		Use:   "rollback [N]",
		Short: "Apply an earlier configuration anew",
		Long: `Apply configuration N of the history anew, or the good one before the one in
force. It gets a number of its own.`,
		Example: `  weft config rollback --dry-run
  weft config rollback 3`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var number uint64
			if len(args) > 0 {
				var err error
				if number, err = strconv.ParseUint(args[0], 10, 64); err != nil || number == 0 {
					return cli.Usagef(cmd, "configuration %q; want a number of weft config history", args[0])
				}
			}
			return a.run(cmd, &r, &out, func(c *cli.Controller) (*api.ApplyConfigResponse, error) {
				return c.RollbackConfig(c.Ctx, &api.RollbackConfigRequest{Number: number, DryRun: a.dry, LimitMs: a.limitMs()})
			})
		},
	}
	a.flags(cmd)
	r.Flags(cmd)
	out.Flag(cmd)
	return cmd
}

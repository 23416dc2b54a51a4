package command

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"
)

// labSetup is what came of setting a node up.
type labSetup struct {
	Node    string `json:"node"`
	Machine string `json:"machine,omitempty"`
	Command string `json:"command"`
	Output  string `json:"output"`
	Error   string `json:"error,omitempty"`
}

func labSetupCommand() *cobra.Command {
	var name, output string
	cmd := &cobra.Command{
		Use:   "setup [NODE...]",
		Short: "Set the nodes of a lab up by the commands of its file",
		Long: `Run in each node of a lab what its file says as x-setup, a line for a shell, or in
those that are named: by this machine, or over ssh by the machines that a lab is spread
over. Nodes are set up side by side, each within a minute. The exit status is not zero
if a command fails; run it again then: commands should bear that.`,
		Example: `  weft lab setup
  weft lab setup h1 h2 --name net -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := labCheckOutput(output); err != nil {
				return err
			}
			l, far, err := labAnywhere(name)
			if err != nil {
				return err
			}
			exec := func(ctx context.Context, s topology.Setup) (string, error) {
				return l.Exec(ctx, s.Node, "sh", "-c", s.Command)
			}
			var text []byte
			if far != nil {
				text = []byte(far.File)
				exec = func(ctx context.Context, s topology.Setup) (string, error) {
					return far.Exec(ctx, s.Node, "sh", "-c", s.Command)
				}
			} else if text, err = l.Text(); err != nil {
				return err
			}
			list, err := topology.SetupsOf(text, args)
			if err != nil {
				return err
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			results := make([]labSetup, len(list))
			lab.SetUp(ctx, list, func(ctx context.Context, at int) {
				r := &results[at]
				*r = labSetup{Node: list[at].Node, Command: list[at].Command}
				if far != nil {
					r.Machine = far.Mapping.MachineOf(r.Node)
				}
				var err error
				if r.Output, err = exec(ctx, list[at]); err != nil {
					r.Error = err.Error()
				}
			})
			err = labPrint(cmd.OutOrStdout(), output, results, func(w *labTable) {
				w.row("NODE", "MACHINE", "RESULT")
				for _, r := range results {
					w.row(r.Node, r.Machine, labSetupResult(r))
				}
			})
			if slices.ContainsFunc(results, func(r labSetup) bool { return r.Error != "" }) {
				err = errors.Join(err, errors.New("some nodes are not set up"))
			}
			return err
		},
	}
	labNameFlag(cmd, &name)
	labOutputFlag(cmd, &output)
	return cmd
}

func labSetupResult(r labSetup) string {
	if r.Error != "" {
		return "failed: " + cli.Plain(r.Error)
	}
	said := strings.TrimSpace(r.Output)
	return strings.TrimSpace("done " + cli.Plain(said[strings.LastIndexByte(said, '\n')+1:]))
}

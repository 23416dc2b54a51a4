package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/lab"
)

func labPruneCommand() *cobra.Command {
	var output string
	var dry bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Take down what is left of labs that nobody owns any more",
		Long: `Take down what is left of labs that nobody owns any more: labs half made whose
maker has ended, labs of tests and measurements that were killed, and processes
and network namespaces of labs whose directory is gone. Labs that are up stay up.`,
		Example: `  weft lab prune --dry-run
  weft lab prune -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := labCheckOutput(output); err != nil {
				return err
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			progress := cli.NewProgress(cmd.ErrOrStderr())
			defer progress.Stop()
			progress.Doing("looking for what labs have left")
			var orphans []lab.Orphan
			var err error
			if dry {
				orphans, err = lab.Orphans()
			} else {
				orphans, err = lab.Prune(ctx)
			}
			if err != nil {
				return err
			}
			progress.Stop()
			return labPrint(cmd.OutOrStdout(), output, orphans, func(w *labTable) {
				if len(orphans) == 0 {
					fmt.Fprintln(w, "nothing is left of any lab")
					return
				}
				w.row("LAB", "PROCESSES", "NAMESPACES", "WHY")
				for _, o := range orphans {
					w.row(o.Lab, len(o.Processes), len(o.Namespaces), o.Why)
				}
			})
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list them, and change nothing")
	labOutputFlag(cmd, &output)
	return cmd
}

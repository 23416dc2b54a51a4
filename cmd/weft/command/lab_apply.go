package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/lab/testbed"
)

func labApplyCommand() *cobra.Command {
	var name, output string
	var dryRun bool
	var source labSource
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Make a running lab what its changed file says",
		Long: `Make a running lab what its changed topology file says. Only what differs is
touched: nodes, hosts and links that are added, deleted or changed; other links carry
on without loss. What the file leaves open, such as ports and addresses, stays as
it is in the lab.

Routers and hybrid nodes are told what changes of their routing while they run. A
switch that cannot become what the file says, as one of another kind, is deleted and
made anew alone; what is printed says so. What this machine lacks is said before
anything is touched. If it fails, or is ended, apply the file again: that completes it.`,
		Example: `  weft lab apply triangle.yaml --dry-run
  weft lab apply triangle.yaml
  weft lab apply changed.yaml --name triangle -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := labCheckOutput(output); err != nil {
				return err
			}
			text, err := source.labFile(cmd, args[0])
			if err != nil {
				return err
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			progress := cli.NewProgress(cmd.ErrOrStderr())
			defer progress.Stop()
			d, err := labApply(ctx, args[0], text, name, dryRun, progress.Doing)
			if err != nil {
				return err
			}
			progress.Stop()
			return labPrint(cmd.OutOrStdout(), output, d, func(w *labTable) { labDifference(w, d, dryRun) })
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the lab (default: that of the file's name)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what differs, and touch nothing")
	source.answersFlag(cmd)
	labOutputFlag(cmd, &output)
	return cmd
}

// labApply applies a changed file to a lab, on this machine or on several.
func labApply(ctx context.Context, file string, text []byte, name string, dryRun bool, doing func(string)) (*topology.Difference, error) {
	if file == "-" {
		file = "standard input"
	}
	if far, err := labAppliedFar(file, text, name); far != "" || err != nil {
		if err != nil {
			return nil, err
		}
		return testbed.Apply(ctx, far, file, text, testbed.ApplyOptions{DryRun: dryRun, Progress: func(machine, what string) {
			doing("machine " + machine + ": " + what)
		}})
	}
	return lab.Apply(ctx, file, text, lab.ApplyOptions{Name: name, DryRun: dryRun, Progress: func(s lab.Step) {
		if !s.Done {
			doing(s.Item.String())
		}
	}})
}

// labAppliedFar returns the name of the lab on several machines that a file is applied to; empty
// if it is none.
func labAppliedFar(file string, text []byte, name string) (string, error) {
	names, err := testbed.Names()
	if err != nil || len(names) == 0 {
		return "", err
	}
	if name == "" {
		t, err := topology.Parse(file, text)
		if err != nil {
			return "", err
		}
		name = t.Name
	}
	if !slices.Contains(names, name) {
		return "", nil
	}
	return name, nil
}

func labDifference(w *labTable, d *topology.Difference, dryRun bool) {
	will := ""
	if dryRun {
		will = "to be "
	}
	if d.None() {
		fmt.Fprintf(w, "lab %s is what the file says\n", d.Lab)
	}
	for _, i := range d.Deleted {
		fmt.Fprintf(w, "%s %s: %sdeleted\n", i.Kind, i.Name, will)
	}
	for _, i := range d.Added {
		fmt.Fprintf(w, "%s %s: %sadded\n", i.Kind, i.Name, will)
	}
	for _, e := range d.Changed {
		fmt.Fprintf(w, "%s %s: %s %schanged from %s to %s", e.Kind, e.Name, e.What, will, e.From, e.To)
		if e.Anew != "" {
			fmt.Fprintf(w, ", for which it is %smade anew: %s", will, e.Anew)
		}
		fmt.Fprintln(w)
	}
}

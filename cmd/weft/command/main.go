// Package command is the program weft: the controller and everything around it. The
// commands that run it are in run, those about plans in planner, those that set entries and
// policies in policy; cli is what all share. Those that talk to a running controller use
// its northbound API only. The commands of the laboratory are weft-bench's, which weft
// starts for them.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
	"github.com/weft-sdn/weft/cmd/weft/node"
	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/cmd/weft/policy"
	"github.com/weft-sdn/weft/cmd/weft/profiler"
	"github.com/weft-sdn/weft/cmd/weft/run"
	"github.com/weft-sdn/weft/cmd/weft/store"
	"github.com/weft-sdn/weft/cmd/weft/trace"
	"github.com/weft-sdn/weft/cmd/weft/verify"
	"github.com/weft-sdn/weft/lab/topology"
)

// Main runs the command line and returns the exit status: 0, 1 if the command
// failed, 2 if it was called wrongly. The services of others are further ones, of
// another module: its program has them beside Weft's, and plans, configuration
// and checks know them.
func Main(args []string, stdout, stderr io.Writer, others ...weft.Spec) int {
	if isLaboratory(args) {
		return handOver(args, stdout, stderr)
	}
	run.AddServices(others)
	return execute(args, stdout, stderr, laboratory()...)
}

// MainWith is Main of a program that has the commands of the laboratory itself.
func MainWith(laboratory []*cobra.Command, args []string, stdout, stderr io.Writer, others ...weft.Spec) int {
	run.AddServices(others)
	return execute(args, stdout, stderr, laboratory...)
}

func execute(args []string, stdout, stderr io.Writer, laboratory ...*cobra.Command) int {
	root := rootCommand(laboratory...)
	if len(args) == 1 && (args[0] == "--version" || args[0] == "-v") { // cobra would say: weft version X
		fmt.Fprintln(stdout, "weft", root.Version)
		return 0
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	usage := (*cli.UsageError)(nil)
	if text := err.Error(); !errors.As(err, &usage) && strings.HasPrefix(text, "required flag") {
		err = &cli.UsageError{Err: cli.InWords(cmd, nil, err), Command: cmd.CommandPath()}
	}
	said := cli.Readable(cmd, strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted"))
	for line := range strings.Lines(said) {
		fmt.Fprintf(stderr, "weft: %s\n", cli.Plain(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", " ")))
	}
	if isMisuse(err) {
		return 2
	}
	return 1
}

// isMisuse reports whether an error is of a command called wrongly: of its words and flags,
// or a plan or topology that they name and that does not exist. What is wrong with a flag
// begins with the flag.
func isMisuse(err error) bool {
	if strings.HasPrefix(err.Error(), "--") {
		return true
	}
	usage, noPlan, noFile, spec := (*cli.UsageError)(nil), (*planner.UnknownPlan)(nil), (*planner.UnknownFile)(nil), (*topology.SpecError)(nil)
	return errors.As(err, &usage) || errors.As(err, &noPlan) || errors.As(err, &noFile) || errors.As(err, &spec)
}

func rootCommand(laboratory ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:   "weft",
		Short: "Weft is an SDN controller",
		Long: `Weft is an SDN controller for OpenFlow 1.3 and 1.0 networks, with a laboratory
of real switches to try it in.`,
		Example: `  weft up                                  # run the controller
  weft lab up demo                         # bring up a network of real switches
  weft get switches                        # look at it
  weft trace 10.0.0.1 10.0.0.8             # follow a packet through the flow tables`,
		Version:       run.Build().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cli.WrapFlags(root)
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Run:"},
		&cobra.Group{ID: "talk", Title: "Talk to a running controller:"},
		&cobra.Group{ID: workGroup, Title: "Workbench:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("run", run.UpCommand(), run.WorkerCommand(), planner.ApplyCommand(), configCommand(), planner.PlanCommand(run.PlanPutCommand(), verify.Command(), verify.FollowCommand()), planner.CheckCommand(), planner.SizeCommand())
	add("talk", get.Command(), get.PathCommand(), trace.Command(), get.ExplainCommand(), switchCommand(), linkCommand())
	add("talk", policy.Commands()...)
	add("talk", get.EventsCommand(), tokenCommand(), profiler.Command(), store.Command(), supportCommand())
	add(workGroup, labCommand(), node.Command(), planner.CertsCommand(), exportCommand())
	root.AddCommand(run.VersionCommand(), run.RootPartCommand())
	root.AddCommand(laboratory...)
	policy.Derive(root, api.Methods())
	cli.Strict(root)
	return root
}

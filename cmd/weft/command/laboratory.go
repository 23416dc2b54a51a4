package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/internal/companion"
)

// workGroup is the group of the commands of the workbench.
const workGroup = "work"

// benchProgram is the program that has the commands of the laboratory.
const benchProgram = "weft-bench"

// laboratory returns the commands that weft lists and weft-bench carries out.
func laboratory() []*cobra.Command {
	var list []*cobra.Command
	for _, c := range []struct{ name, group, short string }{
		{"bench", workGroup, "Measure a controller with simulated or real switches"},
		{"demo", workGroup, "Show the controller at work on a network of real switches"},
		{"experiment", workGroup, "Repeat the measurements of the papers"},
		{"nf", workGroup, "Run a network function: of a simulated 5G core, or an intrusion detection"},
		{"man", "", "Write the manual pages of all commands"},
	} {
		list = append(list, &cobra.Command{
			Use: c.name, Short: c.short, GroupID: c.group, DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, args []string) error {
				return startBench(append([]string{c.name}, args...), cmd.OutOrStdout(), cmd.ErrOrStderr())
			},
		})
	}
	return list
}

// isLaboratory reports whether a command line is one for weft-bench: that of a
// command of the laboratory, help for it, or its completion.
func isLaboratory(args []string) bool {
	least := 1
	if len(args) > 0 {
		switch args[0] {
		case "help":
			args = args[1:]
		case cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
			args, least = args[1:], 2 // a word alone is still being completed
		}
	}
	return len(args) >= least && slices.ContainsFunc(laboratory(), func(c *cobra.Command) bool { return c.Name() == args[0] })
}

// startBench becomes weft-bench with a command line: same process, same files,
// and its exit status is that of this process. Where the output is not that of
// the process, weft-bench runs as a child.
func startBench(args []string, stdout, stderr io.Writer) error {
	program, err := companion.Find(benchProgram)
	if err != nil {
		return fmt.Errorf("weft %s: %w", args[0], err)
	}
	if stdout == os.Stdout && stderr == os.Stderr {
		return fmt.Errorf("start %s: %w", program, syscall.Exec(program, append([]string{benchProgram}, args...), os.Environ()))
	}
	c := exec.Command(program, args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, stdout, stderr
	return c.Run()
}

// handOver runs a command line by weft-bench and returns its exit status.
func handOver(args []string, stdout, stderr io.Writer) int {
	err := startBench(args, stdout, stderr)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintf(stderr, "weft: %v\n", err)
		return 1
	}
	return 0
}

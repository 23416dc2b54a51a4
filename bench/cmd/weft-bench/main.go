// Command weft-bench is the laboratory: benchmarks, the demo, experiments, the
// functions of a simulated 5G core, and what draws. It is weft with these commands;
// weft starts it for them.
package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/bench/cmd/weft-bench/bench"
	"github.com/weft-sdn/weft/bench/cmd/weft-bench/demo"
	"github.com/weft-sdn/weft/bench/cmd/weft-bench/experiment"
	"github.com/weft-sdn/weft/bench/cmd/weft-bench/man"
	"github.com/weft-sdn/weft/bench/cmd/weft-bench/nf"
	"github.com/weft-sdn/weft/bench/experiments/hydra"
	"github.com/weft-sdn/weft/cmd/weft/command"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs a command line and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	var others []weft.Spec
	if os.Getenv(hydra.SpinVariable) != "" {
		others = append(others, hydra.Spin())
	}
	commands := []*cobra.Command{bench.Command(), demo.Command(), experiment.Command(), nf.Command(), man.Command(), drawSizeCommand()}
	return command.MainWith(commands, args, stdout, stderr, others...)
}

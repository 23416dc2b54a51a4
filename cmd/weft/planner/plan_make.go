package planner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/planning"
	"github.com/weft-sdn/weft/internal/document"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/plan/partition"
)

func planMakeCommand() *cobra.Command {
	var o planning.Options
	cmd := &cobra.Command{
		Use:   "make --network NETWORK",
		Short: "Compute a plan: partitions of a network, and which service runs where",
		Long: `Compute a plan for a network and write it as YAML. The network is cut into
partitions; each service has a share, a shard, for each partition, or one for
all; and the shards are placed on servers such that as few events as possible
cross servers, no server has more than it can take, heartbeats and probes of links keep
their deadlines, replicas are apart, and services that compute have servers of
their own. What services take, the profile says (weft profile).

Servers are a file, or a number: so many equal shares of this machine.

  servers:
    s1: {cpu: 4, memory: 8GiB, domain: A, address: 10.0.0.1}
    s2: {cpu: 4, memory: 8GiB, domain: B, address: 10.0.0.2}
    s3: {cpu: 1, memory: 1GiB, cpus: "1"}

cpu is in processors, domain the power supply. Workers of a server with an
address are for weft worker on that machine; one without is this machine, of
which cpus, if given, are the processors that its workers are bound to.

Comments at the head of the plan say by which command it was made, and where
its workers are: weft plan explain and weft plan diff read them.`,
		Example: `  weft plan make --network fattree:k=4 --servers 2 > plan.yaml
  weft check plan.yaml
  weft up plan.yaml
  weft plan make --network site.yaml --profile all.yaml --servers servers.yaml --partitions auto --pin gateway=s1 > plan.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := cli.Signals(cmd)
			defer stop()
			made, err := o.Make(ctx, Sources(cmd))
			if err != nil {
				return wronglyCalled(cmd, err)
			}
			text, err := made.Plan.YAML()
			if err != nil {
				return err
			}
			head := madeHead(cmd, &o, made)
			if _, err := cmd.OutOrStdout().Write(append([]byte(head), text...)); err != nil {
				return err
			}
			for _, line := range madeSummary(made) {
				fmt.Fprintln(cmd.ErrOrStderr(), line)
			}
			return nil
		},
	}
	o.Flags(cmd.Flags())
	sayNetworks(cmd)
	cmd.MarkFlagRequired("network")
	cmd.MarkFlagFilename("profile", "yaml", "yml")
	return cmd
}

// Sources reads what a command names: built-in plans, files, and generators of
// networks. What is assumed it writes on stderr.
func Sources(cmd *cobra.Command) planning.Sources {
	say := func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
	return planning.Sources{
		Specs: AllSpecs(), Network: cli.ReadNetwork, File: document.ReadFile, Plan: PlanText,
		Partitions: func(ctx context.Context, g *partition.Graph, o partition.Options, c planning.Choose) (int, error) {
			choice, err := choosePartitions(ctx, g, o, c, say)
			if err != nil {
				return 0, err
			}
			return choice.Partitions, nil
		},
		Assumed: func(line string) { say("%s", line) },
	}
}

// wronglyCalled returns an error, as that of a command called wrongly if an
// option is wrong.
func wronglyCalled(cmd *cobra.Command, err error) error {
	if wrong := (planning.OptionError{}); errors.As(err, &wrong) {
		return cli.Usagef(cmd, "%w", err)
	}
	return err
}

// madeHead returns the comments at the head of a plan that was made.
func madeHead(cmd *cobra.Command, o *planning.Options, made *plan.Made) string {
	var b strings.Builder
	b.WriteString("# Made by: " + madeCommand(cmd, o) + "\n")
	for _, s := range made.Servers {
		var workers []string
		for _, w := range made.Plan.Workers {
			if made.Where[w.Name] == s.Name {
				workers = append(workers, w.Name)
			}
		}
		fmt.Fprintf(&b, "# Server %s: %s\n", s.Name, strings.Join(workers, " "))
	}
	for _, line := range madeSummary(made) {
		b.WriteString("# " + line + "\n")
	}
	return b.String()
}

// madeCommand returns the command line with the flags that were given; for
// auto it has the number of partitions that was chosen.
func madeCommand(cmd *cobra.Command, o *planning.Options) string {
	words := []string{"weft plan make"}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			switch f.Name {
			case "network", "profile", "servers", "current":
				if abs, err := filepath.Abs(v); err == nil && isFile(v) {
					v = abs
				}
			case "partitions":
				v = o.Cut.Partitions
			}
			words = append(words, "--"+f.Name+"="+strconv.Quote(v))
		}
	})
	return strings.Join(words, " ")
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// madeSummary says what a plan costs and how full the servers are.
func madeSummary(made *plan.Made) (lines []string) {
	s := made.Solution
	gap := fmt.Sprintf("at most %.1f %% above the least (bound %.6g)", 100*s.Gap(), s.Bound)
	if s.Proven {
		gap = "the least that there is, proven"
	}
	lines = append(lines, fmt.Sprintf("%s in %s on %s; crossing servers costs %.6g us of latency a second, %s", cli.Number(made.Shards, "shard", "shards"), cli.Number(made.Plan.Instances(), "process", "processes"), cli.Number(made.Servers, "server", "servers"), s.Cost, gap))
	if within := made.Within(); within > 0 {
		lines = append(lines, fmt.Sprintf("crossing from process to process on one server: %.6g us a second, not part of that", within))
	}
	for _, l := range made.Loads() {
		lines = append(lines, fmt.Sprintf("%s: %.2f of %.2f processors, %.0f of %.0f MiB, %s, %s", l.Server, l.CPU, l.CPUMost, float64(l.Memory)/(1<<20), float64(l.MemMost)/(1<<20), cli.Several(uint32(l.Shards), "shard", "shards"), cli.Several(uint32(l.Processes), "process", "processes")))
	}
	return append(lines, made.Notes...)
}

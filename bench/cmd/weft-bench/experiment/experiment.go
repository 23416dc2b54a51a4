// Package experiment is the commands weft experiment: the measurements of the
// papers, run, reported and served.
//
// Only cmd/weft-bench imports it.
package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/hydra"
	"github.com/weft-sdn/weft/bench/experiments/msn"
	"github.com/weft-sdn/weft/bench/experiments/nf"
	"github.com/weft-sdn/weft/bench/experiments/oshi"
	"github.com/weft-sdn/weft/bench/experiments/scp"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/run"
)

// Command is `weft experiment`.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "experiment",
		GroupID: "work",
		Short:   "Repeat the measurements of the papers",
		Long: `Repeat the measurements of the papers on Weft. Every experiment takes samples,
draws them, and puts what the paper claims beside what was measured.`,
		Example: `  weft experiment list
  weft experiment run msn-first-packet --quick
  weft experiment run msn-resilience --transport ws -o json
  weft experiment report
  weft experiment serve`,
	}
	cmd.AddCommand(experimentListCommand(), experimentRunCommand(), experimentReportCommand(), experimentServeCommand())
	return cmd
}

// allExperiments returns the experiments of all papers, in the order of lists.
func allExperiments() []experiments.Experiment {
	return slices.Concat(msn.All(), hydra.All(), scp.All(), nf.All(), oshi.All())
}

// experimentEntry is one line of the list.
type experimentEntry struct {
	Name       string   `json:"name"`
	Title      string   `json:"title"`
	Paper      string   `json:"paper"`
	Figure     string   `json:"figure"`
	Claim      string   `json:"claim"`
	Method     string   `json:"method"`
	Runs       int      `json:"runs"`
	QuickRuns  int      `json:"quick_runs"`
	Transports []string `json:"transports"`
}

func experimentListCommand() *cobra.Command {
	var out cli.Output
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the experiments, with what the papers claim and how it is measured (-o json)",
		Example: "  weft experiment list\n  weft experiment list -o yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := struct {
				Experiments []experimentEntry `json:"experiments"`
			}{}
			plain := strings.NewReplacer("\n", " ")
			for _, e := range allExperiments() {
				list.Experiments = append(list.Experiments, experimentEntry{e.Name, e.Title, e.Paper, e.Figure,
					plain.Replace(e.Claim), plain.Replace(e.Method), e.Runs, e.QuickRuns, e.Transports})
			}
			return out.Print(cmd, list, func(t *cli.Table) {
				t.Row("NAME", "FIGURE", "RUNS", "QUICK", "TRANSPORTS", "TITLE")
				for _, e := range list.Experiments {
					t.Row(e.Name, e.Figure, e.Runs, e.QuickRuns, strings.Join(e.Transports, ","), e.Title)
				}
			})
		},
	}
	out.Flag(cmd)
	return cmd
}

// experimentConfig is the flags of weft experiment run.
type experimentConfig struct {
	transports []string
	quick      bool
	fresh      bool
	runs       int
	seed       uint64
	limit      time.Duration
	dir        string
	core       string
	output     string
}

func experimentRunCommand() *cobra.Command {
	var c experimentConfig
	var names []string
	for _, e := range allExperiments() {
		names = append(names, e.Name)
	}
	cmd := &cobra.Command{
		Use:   "run NAME...",
		Short: "Run experiments",
		Long: `Run experiments; "all" runs every one of them. Each leaves in DIR/NAME its
samples (data.csv), a plot (plot.svg, plot.png, plot.pdf), the table that puts
the paper's claim beside Weft's figure (table.txt, table.csv), and all of it for
programs (summary.json), which -o json prints too: one JSON document for each
experiment. Progress goes to stderr.

The cases of an experiment take turns, in rounds: A B C, then C B A. Figures are
medians over the rounds with their 95 % intervals (order statistics). There are two
verdicts: whether the figure reproduces what the paper says, within a tolerance
stated beforehand, or contradicts it; and whether it meets Weft's own mark. Below
six rounds there is neither interval nor verdict. Machine, load and everything that
is set otherwise than a user gets it are in the plot, the table and the summary. On
a machine that was busy before or after, or lost time to the hypervisor, only what
was computed or counted gets a verdict.

A case that fails is in the figures and the summary with its error, and costs the others nothing.
No round begins that would end after --limit. An experiment that was interrupted,
or was not finished within the limit, goes on where it stopped when the same
command is run again, and tries again what has failed; samples taken with other
parameters, or by another build, are not mixed with it: give another --dir then,
or discard them with --fresh.

Those of the MSN, SDN-SCP and OSHI papers need root and Open vSwitch. Exit status 1 if a
case has failed, which the error and the figures name, or an experiment has
measured nothing at all; the others are run nevertheless. A figure that contradicts
the paper, or misses its mark, is no error: the table says so.`,
		Example: `  weft experiment run all --quick
  weft experiment run msn-first-packet msn-resilience msn-scaling
  weft experiment run msn-first-packet --transport grpc --transport rest --runs 10
  weft experiment run msn-resilience --transport nats --quick -o json`,
		Args:      cobra.MinimumNArgs(1),
		ValidArgs: append(names, everything),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == everything {
				args = names
			}
			list, err := experiments.Find(allExperiments(), args)
			if err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			if err := errors.Join(c.check(), c.checkCore(list)); err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			return c.run(cmd, list)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&c.transports, "transport", nil, "between services: "+strings.Join(experiments.Transports(), ", ")+"; may be repeated (default: those of weft experiment list)")
	f.BoolVar(&c.quick, "quick", false, "fewer runs and shorter ones, for a first look")
	f.BoolVar(&c.fresh, "fresh", false, "discard what an earlier run has left")
	f.IntVar(&c.runs, "runs", 0, "rounds, in each of which every case has its turn (default: those of weft experiment list)")
	f.Uint64Var(&c.seed, "seed", 1, "seed of all that is chosen at random")
	f.DurationVar(&c.limit, "limit", 30*time.Minute, "time of each experiment, after which no round begins; 0 is none")
	f.StringVar(&c.core, "core", "", "measure real network functions, which must be installed: open5gs (scp-faults)")
	f.StringVar(&c.dir, "dir", "experiments-data", "directory of the results")
	f.StringVarP(&c.output, "output", "o", "text", "text or json")
	cmd.MarkFlagDirname("dir")
	cmd.RegisterFlagCompletionFunc("transport", cobra.FixedCompletions(experiments.Transports(), cobra.ShellCompDirectiveNoFileComp))
	cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// everything is the name of all experiments.
const everything = "all"

// experimentRunsMost is how many runs there may be: each is new hosts at the
// same ports.
const experimentRunsMost = 100

// check says which flag is wrong.
func (c *experimentConfig) check() error {
	if err := experiments.CheckTransports(c.transports); err != nil {
		return fmt.Errorf("--%w", err)
	}
	if c.runs < 0 || c.runs > experimentRunsMost {
		return fmt.Errorf("--runs %d: want 1 to %d, or 0 for as many as the experiment has by itself", c.runs, experimentRunsMost)
	}
	if c.limit < 0 {
		return fmt.Errorf("--limit %v: want 0 or more", c.limit)
	}
	if c.output != "text" && c.output != "json" {
		return fmt.Errorf("--output %q: want text or json", c.output)
	}
	return nil
}

// checkCore says which experiment has no such core.
func (c *experimentConfig) checkCore(list []experiments.Experiment) error {
	for _, e := range list {
		if c.core != "" && !slices.Contains(e.Cores, c.core) {
			return fmt.Errorf("--core %q: %s has no such core; scp-faults has open5gs", c.core, e.Name)
		}
	}
	return nil
}

// parameters are those of one experiment.
func (c *experimentConfig) parameters(e experiments.Experiment) experiments.Parameters {
	p := experiments.Parameters{Transports: c.transports, Quick: c.quick, Runs: c.runs, Seed: c.seed, Core: c.core, Build: run.Build().Version}
	if len(p.Transports) == 0 {
		p.Transports = e.Transports
	}
	if p.Runs == 0 {
		if p.Runs = e.Runs; c.quick {
			p.Runs = e.QuickRuns
		}
	}
	return p
}

// run runs experiments one after the other.
func (c *experimentConfig) run(cmd *cobra.Command, list []experiments.Experiment) error {
	ctx, stop := cli.Signals(cmd)
	defer stop()
	file, isFile := cmd.ErrOrStderr().(*os.File)
	progress := experiments.NewProgress(cmd.ErrOrStderr(), isFile && cli.Terminal(file))
	printed := false
	var failed []error
	for _, e := range list {
		if c.fresh {
			if err := experiments.Discard(e, c.dir); err != nil {
				return err
			}
		}
		summary, err := experiments.Run(ctx, e, c.parameters(e), c.dir, c.limit, progress)
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if err := c.print(cmd.OutOrStdout(), summary, printed); err != nil {
			return err
		}
		printed = true
		failed = append(failed, summary.Err())
	}
	return errors.Join(failed...)
}

// print prints a summary.
func (c *experimentConfig) print(w io.Writer, s experiments.Summary, another bool) error {
	if c.output == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(s)
	}
	if another {
		fmt.Fprintln(w)
	}
	return s.Text(w)
}

package experiment

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/weft-sdn/weft/bench/experiments/runs"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/run"
)

// experimentSocket is where weft experiment serve listens unless told otherwise.
const experimentSocket = "/run/weft/experiments.sock"

func experimentServeCommand() *cobra.Command {
	var socket, group, dir string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run experiments for the controller's API and its page",
		Long: `Run experiments for the controller's API and its page: the methods of
api/experiments.proto, as JSON over HTTP at a Unix socket. A gateway whose
setting gateway.experiments names the socket offers them at /v1/experiments:
looking needs the role read, running and cancelling admin, and goes into the
audit log. Who may open the socket may do everything: that is its owner, and
--group. A controller that root has started is another user (weft up --user): its
group is the default if root serves.

One run works at a time, a process of its own (weft experiment run); up to 16
wait. Cancelling one ends its processes and takes down its networks. The last
100 runs are kept in DIR/runs, each a folder as weft experiment run makes it,
whatever becomes of the page and of this server; when this server ends, the run
at work is interrupted, and goes on with its samples when it starts again. What
weft experiment run has left in DIR itself is shown, too.

Most experiments need root and Open vSwitch.`,
		Example: `  weft experiment serve --dir /var/lib/weft/experiments
  weft up --set gateway.experiments=` + experimentSocket + `
  weft experiment serve --socket /run/lab/experiments.sock --group 64653`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			if group, err = run.SocketGroup(group); err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			server, err := runs.Open(runs.Options{Dir: dir, All: allExperiments(), Program: []string{self, "experiment", "run"}, Log: log})
			if err != nil {
				return err
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			g, ctx := errgroup.WithContext(ctx)
			g.Go(func() error { return server.Run(ctx) })
			g.Go(func() error { return server.Service(socket, group).Serve(ctx) })
			fmt.Fprintf(cmd.OutOrStdout(), "experiments at %s, results in %s\n", socket, dir)
			return errors.Join(g.Wait(), server.Close())
		},
	}
	f := cmd.Flags()
	f.StringVar(&socket, "socket", experimentSocket, "path of the Unix socket")
	f.StringVar(&group, "group", "", run.SocketGroupHelp)
	f.StringVar(&dir, "dir", "experiments-data", "directory of the results")
	cmd.MarkFlagDirname("dir")
	return cmd
}

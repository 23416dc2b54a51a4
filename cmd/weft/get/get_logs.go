package get

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func getLogs(r *cli.Remote) *cobra.Command {
	var lines uint32
	cmd := cli.Query(r, &cobra.Command{
		Use:   "logs WORKER",
		Short: "Show the last lines that a process of the controller has logged",
		Long: `Show the last lines that a process of the controller has logged: from the file
that the supervisor keeps of it, also if the process has died, or, of one without a
supervisor, those since it started. weft get workers lists the processes; that
of a controller without a plan is called controller.`,
		Example: `  weft get logs routing-1
  weft get logs controller --lines 1000 -o json`,
		Args: cobra.ExactArgs(1),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		m, err := c.ReadWorkerLog(c.Ctx, &api.ReadWorkerLogRequest{Worker: args[0], Lines: lines})
		return cli.View{Value: m, Text: func(t *cli.Table) {
			for _, l := range m.GetLines() {
				if l.Time != "" {
					fmt.Fprint(t, l.Time, "  ")
				}
				fmt.Fprintln(t, cli.Plain(l.Text))
			}
		}}, err
	})
	cmd.Flags().Uint32Var(&lines, "lines", 200, "how many lines, at most 1000")
	return cmd
}

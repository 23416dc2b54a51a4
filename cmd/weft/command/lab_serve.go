package command

import (
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/run"
	"github.com/weft-sdn/weft/lab/serve"
)

func labServeCommand() *cobra.Command {
	o := serve.Options{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Offer this machine's labs to a controller's gateway",
		Long: `Offer the labs of this machine at a Unix socket, as JSON over HTTP: the methods
of Lab in docs/reference/api.md. A gateway whose configuration names the socket
(gateway.lab) passes on what clients ask for at /v1/lab, by their roles.

Whoever may open the socket looks at labs, sets links and measures. What is to
be root on this machine is refused unless --allow names it:

  exec     consoles: commands at a terminal in a node
  capture  what passes an interface of a node
  up       bring labs up, and change them
  down     take labs down
  run      programs in the hosts of labs that are brought up or changed

Labs are those of weft lab up and weft lab list; they go on when the service
ends. Consoles and captures end with it. Needs root.`,
		Example: `  weft lab serve --allow up,down,exec,capture
  weft up --set gateway.lab=/run/weft/lab.sock
  weft lab serve --socket /run/lab/lab.sock --group lab`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return cli.Usagef(cmd, "--allow: %v", err)
			}
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			if o.Group, err = socketGroup(o.Group); err != nil {
				return err
			}
			o.Version, o.Program = run.Build().Version, exe
			o.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			ctx, stop := cli.Signals(cmd)
			defer stop()
			o.Log.Info("labs are served", "socket", o.Socket, "allow", strings.Join(o.Allow, ","))
			return serve.Run(ctx, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Socket, "socket", "/run/weft/lab.sock", "the Unix socket to answer at")
	f.StringVar(&o.Group, "group", "", socketGroupHelp)
	f.StringSliceVar(&o.Allow, "allow", nil, "what else to allow, with commas between: "+strings.Join(serve.Allowances(), ", "))
	cmd.RegisterFlagCompletionFunc("allow", cobra.FixedCompletions(serve.Allowances(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

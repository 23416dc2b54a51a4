package command

import (
	"log/slog"
	"os"
	"path/filepath"
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
of Lab in docs/reference/api.md (make reference). A gateway whose configuration names the socket
(gateway.lab) passes on what clients ask for at /v1/lab, by their roles.

Whoever may open the socket looks at labs, sets links and measures. What is to
be root on this machine is refused unless --allow names it:

  exec     consoles: commands at a terminal in a node
  capture  what passes an interface of a node
  up       bring labs up, and change them
  down     take labs down
  run      programs in the hosts of labs that are brought up or changed

With --ssh-identity and --ssh-known-hosts labs may be brought up on other machines,
too: on those whose keys are in that file, with that identity, which is all of ssh's
configuration that counts. The files are read as root.

Labs are those of weft lab up and weft lab list; they go on when the service
ends. Consoles and captures end with it. Needs root.`,
		Example: `  weft lab serve --allow up,down,exec,capture
  weft up --set gateway.lab=/run/weft/lab.sock
  weft lab serve --allow up,down --ssh-identity /etc/weft/id_ed25519 --ssh-known-hosts /etc/weft/known_hosts
  weft lab serve --socket /run/lab/lab.sock --group lab`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, path := range []*string{&o.Socket, &o.SSHIdentity, &o.SSHKnownHosts} {
				if *path == "" || strings.HasPrefix(*path, "@") { // which is no file
					continue
				}
				whole, err := filepath.Abs(*path)
				if err != nil {
					return err
				}
				*path = whole
			}
			if err := o.Check(); err != nil {
				return cli.Usagef(cmd, "%v", err)
			}
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			if o.Group, err = run.SocketGroup(o.Group); err != nil {
				return err
			}
			o.Version, o.Program = run.Build().Version, exe
			o.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			ctx, stop := cli.Signals(cmd)
			defer stop()
			return serve.Run(ctx, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Socket, "socket", "/run/weft/lab.sock", "the Unix socket to answer at")
	f.StringVar(&o.Group, "group", "", run.SocketGroupHelp)
	f.StringSliceVar(&o.Allow, "allow", nil, "what else to allow, with commas between: "+strings.Join(serve.Allowances(), ", "))
	f.StringVar(&o.SSHIdentity, "ssh-identity", "", "file with ssh's key for other machines (a private key without a passphrase)")
	f.StringVar(&o.SSHKnownHosts, "ssh-known-hosts", "", "file with the keys of the machines on which labs may be brought up")
	cmd.MarkFlagFilename("ssh-identity")
	cmd.MarkFlagFilename("ssh-known-hosts")
	cmd.RegisterFlagCompletionFunc("allow", cobra.FixedCompletions(serve.Allowances(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

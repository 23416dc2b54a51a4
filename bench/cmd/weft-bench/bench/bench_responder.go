package bench

import (
	"bufio"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/bench/sim"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// benchResponderCommand is the process of a bare responder to heartbeats. For
// each line that it reads it prints how many of those that it has asked for were
// due, and how many of them late.
func benchResponderCommand() *cobra.Command {
	var listen string
	var r sim.Responder
	cmd := &cobra.Command{
		Use: "responder", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := cli.Signals(cmd)
			defer stop()
			ln, err := net.Listen("tcp", listen)
			if err != nil {
				return fmt.Errorf("--listen %s: %w", listen, err)
			}
			defer ln.Close()
			tcp, ok := ln.(*net.TCPListener)
			if !ok {
				return errors.New("--listen: no TCP")
			}
			ended := make(chan error, 1)
			go func() { ended <- r.Run(ctx, tcp) }()
			fmt.Fprintf(cmd.OutOrStdout(), "listening on %s\n", ln.Addr())
			for lines := bufio.NewScanner(cmd.InOrStdin()); lines.Scan(); {
				due, late := r.Counts()
				fmt.Fprintln(cmd.OutOrStdout(), due, late)
			}
			stop() // whoever asks has gone
			return <-ended
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "address to listen on")
	cmd.Flags().Float64Var(&r.Rate, "beats", 0, "echo requests per second to each switch")
	return cmd
}

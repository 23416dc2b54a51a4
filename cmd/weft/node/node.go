// Package node is the commands weft node: what runs beside the switch of a
// hybrid IP/SDN node.
//
// Only cmd/weft and its packages import it.
package node

import (
	"errors"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/node"
)

// Command is `weft node`.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Look after the switches of hybrid IP/SDN nodes",
		Long: `Look after the Open vSwitch bridges of hybrid IP/SDN nodes, in which IP routing and
the services of a controller live side by side.`,
		Example: `  weft node run nodes.yaml`,
	}
	cmd.AddCommand(runCommand())
	return cmd
}

func runCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run FILE",
		Short: "Look after the hybrid nodes of this machine",
		Long: `Look after the hybrid nodes of this machine that FILE names, until interrupted:

 - each bridge has the entries that connect its ports with the node's routing,
   from the moment it is there, also after Open vSwitch was restarted, and if
   somebody removes them;
 - an internal port has carrier while its port has.

Other entries are left alone. The lab starts it for its hybrid nodes (weft lab up).
Needs root. FILE is YAML or JSON:

  nodes:
    - name: pe1
      management: /var/run/openvswitch/br0.mgmt
      namespace: ""                      # of the interfaces; empty: this one
      protected: [192.0.2.1/32]          # what customers may not reach
      ports:
        - {port: 1, interface: eth1, internal: 10001, internal_interface: in1}
        - {port: 2, interface: eth2, internal: 10002, internal_interface: in2, customer: true}`,
		Example: `  weft node run nodes.yaml`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := node.ReadConfig(args[0])
			if err != nil {
				return err
			}
			if os.Geteuid() != 0 {
				return errors.New("the bridges of nodes and their interfaces are root's: run this with sudo")
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			node.Run(ctx, c, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
			return nil
		},
	}
}

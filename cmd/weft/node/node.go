// Package node is the commands weft node: what runs beside the switch of a
// hybrid IP/SDN node.
//
// Only cmd/weft and its packages import it.
package node

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
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
	var r cli.Remote
	var alone bool
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Look after the hybrid nodes of this machine",
		Long: `Look after the hybrid nodes of this machine that FILE names, until interrupted:

 - each bridge has the entries that connect its ports with the node's routing,
   from the moment it is there, also after Open vSwitch was restarted, and if
   somebody removes them;
 - an internal port has carrier while its port has.

Nodes with a dpid are reported to a controller about once a second, at --server, with a
token of the role node if it asks for one (weft token create --role node). Of what it
answers this is done, and nothing else: BFD sessions on the ports to other nodes, and
tunnel ports, VXLAN and GRE, to other nodes' loopbacks. Without a controller all goes on
as it was.

Other entries are left alone. The lab starts it for its hybrid nodes (weft lab up).
Needs root. FILE is YAML or JSON:

  nodes:
    - name: pe1
      management: /var/run/openvswitch/br0.mgmt
      namespace: ""                      # of the interfaces; empty: this one
      protected: [192.0.2.1/32]          # what customers may not reach
      ports:
        - {port: 1, interface: eth1, internal: 10001, internal_interface: in1}
        - {port: 2, interface: eth2, internal: 10002, internal_interface: in2, customer: true}
      dpid: 00000000000000a1             # from here on: for reports
      bridge: br0
      database: /var/run/openvswitch/db.sock
      switchd: /var/run/openvswitch/ovs-vswitchd.ctl
      access: [{port: 3, interface: eth3}]
      routing_namespace: ""
      routing: /var/run/frr              # sockets of FRR's daemons
      loopback: 10.255.0.1
      loopback6: fd00:ff::1
      loopbacks: [10.255.0.0/16]         # of all nodes: no tunnel of a customer ends there
      mtu: 1500                          # of IP on all links
      neighbours: 2`,
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
			var report node.Report
			if !alone {
				var done func()
				if report, done, err = reporter(cmd, &r); err != nil {
					return err
				}
				defer done()
			}
			node.Run(ctx, c, report, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
			return nil
		},
	}
	cmd.Flags().BoolVar(&alone, "alone", false, "report to no controller")
	r.Flags(cmd)
	return cmd
}

// reporter returns what reports to a controller, by a new connection after a
// failure, so that one that comes back is found at once, with a token or a
// certificate that was changed; and what ends it. Wrong flags are an error.
func reporter(cmd *cobra.Command, r *cli.Remote) (node.Report, func(), error) {
	if _, err := r.Address(); err != nil {
		return nil, nil, cli.Usagef(cmd, "%v", err)
	}
	end := func() {}
	var c *cli.Controller
	report := func(ctx context.Context, q *api.ReportNodesRequest) (*api.ReportNodesResponse, error) {
		if c == nil {
			var err error
			if c, end, err = r.Dial(cmd); err != nil {
				c, end = nil, func() {}
				return nil, err
			}
		}
		answer, err := c.ReportNodes(ctx, q)
		if err != nil {
			end()
			c, end = nil, func() {}
		}
		return answer, err
	}
	return report, func() { end() }, nil
}

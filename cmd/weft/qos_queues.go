package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
)

func qosQueuesCommand(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queues",
		Short: "Make the queues of ports",
		Long: `Make the queues of ports, into which policies with --queue put packets. They are
rows of the switch's own database (OVSDB), whose address is qos.ovsdb in the
configuration. Open vSwitch applies them by linux-htb, in datapaths that know
queues: the kernel's does, the userspace one does not.`,
		Example: `  weft qos queues set --switch 1 --port 3 --max-rate 100000 --queue 0 --queue 1:20000:50000
  weft qos queues list`,
	}
	cmd.AddCommand(queuesSetCommand(r), queuesDeleteCommand(r), queuesListCommand(r))
	return cmd
}

func queuesSetCommand(r *cli.Remote) *cobra.Command {
	var sw get.DPIDFlag
	var port, rate uint32
	var queues []string
	var out cli.Output
	cmd := &cobra.Command{
		Use:     "set",
		Short:   "Make the queues of a port, or replace them",
		Example: "  weft qos queues set --switch 1 --port 3 --max-rate 100000 --queue 0 --queue 1:20000:50000",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m := &api.QosQueues{Dpid: sw.Text, Port: port, MaxKbps: rate}
			for _, s := range queues {
				q, err := readQueue(s)
				if err != nil {
					return cli.Usagef(cmd, "--queue %v", err)
				}
				m.Queues = append(m.Queues, q)
			}
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			if m, err = c.QosClient.SetQueues(c.Ctx, &api.QosSetQueuesRequest{Queues: m}); err != nil {
				return err
			}
			if err := out.Print(cmd, m, func(t *cli.Table) { queuesTable(t, []*api.QosQueues{m}) }); err != nil || m.State == "configured" {
				return err
			}
			return fmt.Errorf("the queues are kept, but not made yet (%s): %s", m.State, m.Reason)
		},
	}
	cmd.Flags().VarP(&sw, "switch", "s", "the switch")
	cmd.Flags().Uint32Var(&port, "port", 0, "the port")
	cmd.Flags().Uint32Var(&rate, "max-rate", 0, "highest rate of the port, kilobits per second; 0 is its speed")
	cmd.Flags().StringArrayVar(&queues, "queue", nil, "a queue: its number, then :MIN and :MAX in kilobits per second where wanted; may be repeated")
	for _, name := range []string{"switch", "port", "queue"} {
		cmd.MarkFlagRequired(name)
	}
	out.Flag(cmd)
	return cmd
}

// readQueue reads ID[:MIN[:MAX]].
func readQueue(s string) (*api.QosQueue, error) {
	var n [3]uint32
	parts := strings.Split(s, ":")
	for i, part := range parts {
		v, err := strconv.ParseUint(part, 10, 32)
		if i == len(n) || err != nil {
			return nil, fmt.Errorf("%q: want ID, ID:MIN or ID:MIN:MAX, such as 1:20000:50000", s)
		}
		n[i] = uint32(v)
	}
	return &api.QosQueue{Id: n[0], MinKbps: n[1], MaxKbps: n[2]}, nil
}

func queuesDeleteCommand(r *cli.Remote) *cobra.Command {
	var sw get.DPIDFlag
	var port uint32
	var out cli.Output
	cmd := &cobra.Command{
		Use:     "delete",
		Short:   "Take away the queues of a port",
		Example: "  weft qos queues delete --switch 1 --port 3",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			m, err := c.QosClient.DeleteQueues(c.Ctx, &api.QosDeleteQueuesRequest{Dpid: sw.Text, Port: port})
			if err != nil {
				return err
			}
			if err := printDeleted(&out, cmd, m, m.Deleted, fmt.Sprintf("queues of %s/%d", sw.Text, port)); err != nil || m.Deleted {
				return err
			}
			return fmt.Errorf("there were no queues of %s/%d; weft qos queues list shows those that are", sw.Text, port)
		},
	}
	cmd.Flags().VarP(&sw, "switch", "s", "the switch")
	cmd.Flags().Uint32Var(&port, "port", 0, "the port")
	for _, name := range []string{"switch", "port"} {
		cmd.MarkFlagRequired(name)
	}
	out.Flag(cmd)
	return cmd
}

func queuesListCommand(r *cli.Remote) *cobra.Command {
	var out cli.Output
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the queues wanted, and whether the switches have them",
		Example: "  weft qos queues list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, done, err := r.Dial(cmd)
			if err != nil {
				return err
			}
			defer done()
			m, err := c.QosClient.ListQueues(c.Ctx, &api.QosListQueuesRequest{})
			if err != nil {
				return err
			}
			return out.Print(cmd, m, func(t *cli.Table) { queuesTable(t, m.Ports) })
		},
	}
	out.Flag(cmd)
	return cmd
}

func queuesTable(t *cli.Table, list []*api.QosQueues) {
	t.Row("SWITCH", "PORT", "QUEUE", "MIN kbit/s", "MAX kbit/s", "STATE", "REASON")
	for _, p := range list {
		for _, q := range p.Queues {
			t.Row(p.Dpid, p.Port, q.Id, q.MinKbps, q.MaxKbps, p.State, p.Reason)
		}
	}
}

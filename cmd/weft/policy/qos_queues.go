package policy

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
	cmd := &cobra.Command{
		Use:     "set",
		Short:   "Make the queues of a port, or replace them",
		Example: "  weft qos queues set --switch 1 --port 3 --max-rate 100000 --queue 0 --queue 1:20000:50000",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().VarP(&sw, "switch", "s", "the switch")
	cmd.Flags().Uint32Var(&port, "port", 0, "the port")
	cmd.Flags().Uint32Var(&rate, "max-rate", 0, "highest rate of the port, kilobits per second; 0 is its speed")
	cmd.Flags().StringArrayVar(&queues, "queue", nil, "a queue: its number, then :MIN and :MAX in kilobits per second where wanted; may be repeated")
	for _, name := range []string{"switch", "port", "queue"} {
		cmd.MarkFlagRequired(name)
	}
	return cli.Query(r, cmd, func(c *cli.Controller, _ []string) (cli.View, error) {
		m := &api.QosQueues{Dpid: sw.Text, Port: port, MaxKbps: rate}
		for _, s := range queues {
			q, err := readQueue(s)
			if err != nil {
				return cli.View{}, cli.Usagef(cmd, "--queue %v", err)
			}
			m.Queues = append(m.Queues, q)
		}
		m, err := c.SetQueues(c.Ctx, &api.QosSetQueuesRequest{Queues: m})
		if err != nil {
			return cli.View{}, err
		}
		if m.State != "configured" {
			err = fmt.Errorf("the queues are kept, but not made yet (%s): %s", m.State, m.Reason)
		}
		return cli.View{Value: m, Text: func(t *cli.Table) { queuesTable(t, []*api.QosQueues{m}) }, Failed: err}, nil
	})
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
	cmd := &cobra.Command{
		Use:     "delete",
		Short:   "Take away the queues of a port",
		Example: "  weft qos queues delete --switch 1 --port 3",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().VarP(&sw, "switch", "s", "the switch")
	cmd.Flags().Uint32Var(&port, "port", 0, "the port")
	for _, name := range []string{"switch", "port"} {
		cmd.MarkFlagRequired(name)
	}
	return cli.Query(r, cmd, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.DeleteQueues(c.Ctx, &api.QosDeleteQueuesRequest{Dpid: sw.Text, Port: port})
		return cli.Deleted(m, err, fmt.Sprintf("queues of %s/%d", sw.Text, port), "weft qos queues list")
	})
}

func queuesListCommand(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:     "list",
		Short:   "List the queues wanted, and whether the switches have them",
		Example: "  weft qos queues list -o json",
		Args:    cobra.NoArgs,
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListQueues(c.Ctx, &api.QosListQueuesRequest{})
		return cli.View{Value: m, Text: func(t *cli.Table) { queuesTable(t, m.Ports) }}, err
	})
}

func queuesTable(t *cli.Table, list []*api.QosQueues) {
	t.Row("SWITCH", "PORT", "QUEUE", "MIN kbit/s", "MAX kbit/s", "STATE", "REASON")
	for _, p := range list {
		for _, q := range p.Queues {
			t.Row(p.Dpid, p.Port, q.Id, q.MinKbps, q.MaxKbps, p.State, p.Reason)
		}
	}
}

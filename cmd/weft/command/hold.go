package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
)

func hostHoldCommand(r *cli.Remote) *cobra.Command {
	m := &api.HostHold{}
	var at []string
	var off bool
	cmd := cli.Query(r, &cobra.Command{
		Use:   "hold STAGE",
		Short: "Hold hosts until a stage has approved them",
		Long: `Hold hosts until a stage has approved them: no flow entry carries packets from or
to them, and each of their packets is delivered only if the stage says so. While
the stage is away, they stay held. Apps hold hosts by themselves; this is to have
them held before the app is there. Hosts that were approved stay so, unless --off
ends the hold.`,
		Example: `  weft host hold portal
  weft host hold portal --at 1/3 --at 4
  weft host hold portal --off`,
		Args: cobra.ExactArgs(1),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		m.Stage = args[0]
		if off {
			resp, err := c.DeleteHold(c.Ctx, &api.DeleteHoldRequest{Stage: m.Stage})
			if err != nil {
				return cli.View{}, err
			}
			v := cli.View{Value: resp, Text: func(t *cli.Table) {
				if resp.Deleted {
					fmt.Fprintln(t, "hold of", m.Stage, "ended")
				}
			}}
			if !resp.Deleted {
				v.Failed = fmt.Errorf("stage %s holds no hosts; weft host holds shows those that do", m.Stage)
			}
			return v, nil
		}
		for _, text := range at {
			l, err := readPlace(text)
			if err != nil {
				return cli.View{}, fmt.Errorf("--at %w", err)
			}
			m.At = append(m.At, l)
		}
		h, err := c.SetHold(c.Ctx, &api.SetHoldRequest{Hold: m})
		return cli.View{Value: h, Text: func(t *cli.Table) { holdsTable(t, []*api.HostHold{h}) }}, err
	})
	f := cmd.Flags()
	f.StringArrayVar(&at, "at", nil, "hosts at this port or switch only, SWITCH/PORT or SWITCH; may be repeated; none is everywhere")
	f.BoolVar(&off, "off", false, "end the hold, and forget whom the stage has approved")
	cmd.MarkFlagsMutuallyExclusive("off", "at")
	return cmd
}

func hostHoldsCommand(r *cli.Remote) *cobra.Command {
	return cli.Query(r, &cobra.Command{
		Use:     "holds",
		Short:   "List the stages that hold hosts",
		Example: "  weft host holds -o json",
	}, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.ListHolds(c.Ctx, &api.ListHoldsRequest{})
		return cli.View{Value: m, Text: func(t *cli.Table) { holdsTable(t, m.GetHolds()) }}, err
	})
}

func hostApproveCommand(r *cli.Remote) *cobra.Command {
	m := &api.ApproveHostRequest{}
	cmd := cli.Query(r, &cobra.Command{
		Use:     "approve MAC",
		Short:   "Approve a host in the name of a stage that holds it",
		Example: "  weft host approve 02:00:00:00:00:01 --stage portal",
		Args:    cobra.ExactArgs(1),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		m.Mac = args[0]
		resp, err := c.ApproveHost(c.Ctx, m)
		return cli.View{Value: resp, Text: func(t *cli.Table) { fmt.Fprintf(t, "host %s approved by %s\n", m.Mac, m.Stage) }}, err
	})
	approvalFlags(cmd, &m.Stage, &m.Vlan)
	return cmd
}

func hostRevokeCommand(r *cli.Remote) *cobra.Command {
	m := &api.RevokeHostRequest{}
	cmd := cli.Query(r, &cobra.Command{
		Use:     "revoke MAC",
		Short:   "Take the approval of a host back; its routes go",
		Example: "  weft host revoke 02:00:00:00:00:01 --stage portal",
		Args:    cobra.ExactArgs(1),
	}, func(c *cli.Controller, args []string) (cli.View, error) {
		m.Mac = args[0]
		resp, err := c.RevokeHost(c.Ctx, m)
		if err != nil {
			return cli.View{}, err
		}
		v := cli.View{Value: resp, Text: func(t *cli.Table) {
			if resp.Revoked {
				fmt.Fprintf(t, "host %s held by %s again\n", m.Mac, m.Stage)
			}
		}}
		if !resp.Revoked {
			v.Failed = fmt.Errorf("stage %s had not approved host %s", m.Stage, m.Mac)
		}
		return v, nil
	})
	approvalFlags(cmd, &m.Stage, &m.Vlan)
	return cmd
}

func approvalFlags(cmd *cobra.Command, stage *string, vlan *uint32) {
	cmd.Flags().StringVar(stage, "stage", "", "the stage that holds the host")
	cmd.Flags().Uint32Var(vlan, "vlan", 0, "the VLAN of the host, of a virtual network its segment; 0 is untagged")
	_ = cmd.MarkFlagRequired("stage") // it is there
}

// readPlace reads SWITCH/PORT, or SWITCH for all of its ports.
func readPlace(s string) (*api.Location, error) {
	if strings.Contains(s, "/") {
		return readLocation(s)
	}
	d, err := flow.ParseDPID(s)
	if err != nil {
		return nil, fmt.Errorf("%q: want SWITCH/PORT or SWITCH: %w", s, err)
	}
	return &api.Location{Dpid: d.String()}, nil
}

func holdsTable(t *cli.Table, list []*api.HostHold) {
	t.Row("STAGE", "AT", "HELD", "APPROVED", "SINCE")
	for _, h := range list {
		at := make([]string, len(h.GetAt()))
		for i, l := range h.GetAt() {
			at[i] = cli.Place(l)
			if l.GetPort() == 0 {
				at[i] = l.GetDpid()
			}
		}
		if len(at) == 0 {
			at = []string{"everywhere"}
		}
		t.Row(h.GetStage(), strings.Join(at, " "), h.GetHeld(), h.GetApproved(), cli.When(h.GetSince()))
	}
}

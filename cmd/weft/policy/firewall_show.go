package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func firewallListCommand(r *cli.Remote) *cobra.Command {
	req := &api.ListFirewallRulesRequest{}
	cmd := &cobra.Command{
		Use:   "list [ID...]",
		Args:  cobra.ArbitraryArgs,
		Short: "List the rules, in the order in which they are asked",
		Long: `List the rules, in the order in which they are asked. The packets are those that
the controller has judged itself; with --counts, those of the switches' entries
as well. STATE is in force once each switch that the rule is about has confirmed it, or asks
the controller; else it says why it is not.`,
		Example: `  weft firewall list
  weft firewall list --switch 1 --counts
  weft firewall list -o yaml > rules.yaml`,
	}
	f := cmd.Flags()
	f.StringVarP(&req.Dpid, "switch", "s", "", "only rules of this switch")
	f.BoolVar(&req.Counts, "counts", false, "read the switches' counters, too")
	f.Uint32Var(&req.Limit, "limit", 0, "only so many; 0 is all")
	return cli.Query(r, cmd, func(c *cli.Controller, ids []string) (cli.View, error) {
		req.Ids = ids
		m, err := c.ListFirewallRules(c.Ctx, req)
		if err != nil {
			return cli.View{}, err
		}
		if n := len(ids); len(m.Rules) < n && req.Dpid == "" && req.Limit == 0 {
			err = fmt.Errorf("%d of %d rules are not there", n-len(m.Rules), n)
		}
		return cli.View{Value: m, Text: func(t *cli.Table) {
			firewallTable(t, m.Rules)
			if int(m.Total) > len(m.Rules) {
				fmt.Fprintf(t, "\n%d of %d rules\n", len(m.Rules), m.Total)
			}
		}, Failed: err}, nil
	})
}

func firewallTable(t *cli.Table, list []*api.FirewallRule) {
	t.Row("ID", "PRIORITY", "ACTION", "SWITCH", "MATCH", "PACKETS", "STATE", "COMMENT")
	for _, f := range list {
		state := f.State
		if f.State != "in force" && f.Reason != "" {
			state += ": " + f.Reason
		}
		t.Row(f.Id, f.Priority, f.Action, f.Dpid, firewallMatchText(f), f.Packets, state, f.Comment)
	}
}

// firewallMatchText writes what a rule is about.
func firewallMatchText(r *api.FirewallRule) string {
	var parts []string
	if r.Tenant != "" {
		parts = append(parts, "tenant="+r.Tenant)
	}
	if r.Vlan != 0 {
		parts = append(parts, fmt.Sprintf("vlan=%d", r.Vlan))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Match)) {
		parts = append(parts, name+"="+r.Match[name])
	}
	if len(parts) == 0 {
		return "any"
	}
	return strings.Join(parts, ",")
}

func firewallStatusCommand(r *cli.Remote) *cobra.Command {
	req := &api.GetFirewallStatusRequest{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how far each switch does what the rules say",
		Long: `Show how far each switch does what the rules say. Mode compiled: every rule is an
entry; reactive: the first packet of a flow is judged by the controller, which
installs its verdict; controller: the switch has one table, and what is not
certainly denied is judged by the controller.`,
		Example: `  weft firewall status
  weft firewall status --switch 1 -o json`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVarP(&req.Dpid, "switch", "s", "", "only this switch")
	return cli.Query(r, cmd, func(c *cli.Controller, _ []string) (cli.View, error) {
		m, err := c.GetFirewallStatus(c.Ctx, req)
		return cli.View{Value: m, Text: func(t *cli.Table) {
			fmt.Fprintf(t, "%d rules, default %s; by the controller: %d packets allowed, %d denied\n\n", m.Rules, m.DefaultAction, m.Allowed, m.Denied)
			t.Row("SWITCH", "DEFAULT", "MODE", "SYNC", "ENTRIES", "VERDICTS", "REASON")
			for _, s := range m.Switches {
				t.Row(s.Dpid, s.DefaultAction, s.Mode, s.Sync, s.Entries, s.Verdicts, s.Reason)
			}
		}}, err
	})
}

func firewallCheckCommand(r *cli.Remote) *cobra.Command {
	var packet []string
	req := &api.CheckFirewallRequest{}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Ask which rule decides on a packet",
		Long:  `Ask which rule decides on a packet that enters at a switch. Nothing is sent.`,
		Example: `  weft firewall check --packet eth_type=0x0800,ipv4_src=10.0.0.1,ipv4_dst=10.0.0.2,ip_proto=6,tcp_dst=22
  weft firewall check --switch 1 --packet eth_type=0x0806`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVarP(&req.Dpid, "switch", "s", "", "where it enters the network")
	cmd.Flags().StringArrayVar(&packet, "packet", nil, "its header fields, as field=value,...; may be repeated")
	return cli.Query(r, cmd, func(c *cli.Controller, _ []string) (cli.View, error) {
		var err error
		if req.Packet, err = firewallMatch(packet); err != nil {
			return cli.View{}, cli.Usagef(cmd, "--packet: %v", err)
		}
		m, err := c.CheckFirewall(c.Ctx, req)
		return cli.View{Value: m, Text: func(t *cli.Table) {
			by := "the default"
			if m.Rule != nil {
				by = fmt.Sprintf("rule %s (priority %d, %s)", m.Rule.Id, m.Rule.Priority, firewallMatchText(m.Rule))
			}
			fmt.Fprintf(t, "%s, by %s\n", m.Action, by)
		}}, err
	})
}

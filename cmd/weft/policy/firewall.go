package policy

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/flow"
)

// setRules sets rules, and deleteRules deletes them, in one call for many.
func setRules(c *cli.Controller, list []proto.Message) error {
	var rules []*api.FirewallRule
	for _, m := range list {
		rules = append(rules, m.(*api.FirewallRule))
	}
	sum, err := addRules(c, rules, false, false)
	return cmp.Or(err, firewallFailed(sum.GetFailures()))
}

func deleteRules(c *cli.Controller, list []proto.Message) error {
	req := &api.DeleteFirewallRulesRequest{}
	for _, m := range list {
		req.Ids = append(req.Ids, m.(*api.FirewallRule).Id)
	}
	m, err := c.DeleteFirewallRules(c.Ctx, req)
	return cmp.Or(err, firewallFailed(m.GetFailures()))
}

func freshRule(m proto.Message) { m.(*api.FirewallRule).Priority = flow.PriorityOperator }

// isConfigured reports whether a rule is one of the configuration, where it is changed.
func isConfigured(m proto.Message) bool {
	return strings.HasPrefix(m.(*api.FirewallRule).Id, "config:")
}

// addRules adds rules, as many at once as a request may have.
func addRules(c *cli.Controller, rules []*api.FirewallRule, noWait, dry bool) (*api.AddFirewallRulesResponse, error) {
	sum := &api.AddFirewallRulesResponse{}
	for len(rules) > 0 {
		n := min(len(rules), cli.FirewallBatch)
		m, err := c.AddFirewallRules(c.Ctx, &api.AddFirewallRulesRequest{Rules: rules[:n], NoWait: noWait || n < len(rules), DryRun: dry})
		if err != nil {
			return nil, err
		}
		sum.Added, sum.Replaced, sum.Unchanged = sum.Added+m.Added, sum.Replaced+m.Replaced, sum.Unchanged+m.Unchanged
		sum.Ids, sum.Failures = append(sum.Ids, m.Ids...), m.Failures
		sum.Effects, sum.Before = append(sum.Effects, m.Effects...), append(sum.Before, m.Before...)
		rules = rules[n:]
	}
	return sum, nil
}

const firewallFileForm = `The file is YAML or JSON, a list of rules:

  - id: no-ssh
    priority: 500
    action: deny
    match: {tcp_dst: 22}
  - {id: guests, action: deny, vlan: 20, match: {ipv4_dst: 10.0.0.0/8}}

Further keys: dpid, tenant, comment. The priority is 32768 if left out. What
weft firewall list -o yaml prints is understood, too.`

func firewallAddCommand(r *cli.Remote) *cobra.Command {
	var file string
	var sw cli.DPIDFlag
	var allow, deny, noWait, dry bool
	var match []string
	rule := &api.FirewallRule{}
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Add rules, or replace those with the same id",
		Long: `Add rules, or replace those with the same id: one by flags, or many from a file.
All of up to 5000 are checked before any is taken. The answer comes when the
switches have confirmed; it says which have not.

A match is as that of weft flow add, but ports may be ranges, and what a field
implies may be left out: tcp_dst=80 is about IPv4 and IPv6.

` + firewallFileForm,
		Example: `  weft firewall add --id ssh --deny --match tcp_dst=22
  weft firewall add --allow --priority 40000 --match ipv6_src=fd00::/8,udp_dst=5000-5999 --vlan 10
  weft firewall add -f rules.yaml
  weft firewall add -f rules.yaml --dry-run`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVarP(&file, "file", "f", "", "file of rules (YAML or JSON); - is standard input")
	f.StringVar(&rule.Id, "id", "", "id of the rule (default: made up)")
	f.BoolVar(&allow, "allow", false, "let the packets in")
	f.BoolVar(&deny, "deny", false, "keep the packets out")
	f.Uint32VarP(&rule.Priority, "priority", "p", flow.PriorityOperator, "the priority, 0 to 65535")
	f.StringArrayVarP(&match, "match", "m", nil, "the match, as field=value,...; may be repeated; left out, it is about every packet")
	f.VarP(&sw, "switch", "s", "the switch (default: wherever packets enter the network)")
	f.Uint32Var(&rule.Vlan, "vlan", 0, "the VLAN, 1 to 4094")
	f.StringVar(&rule.Tenant, "tenant", "", "the tenant whose packets the rule is about, in all its virtual networks, or in that of --vlan")
	f.StringVar(&rule.Comment, "comment", "", "a comment, for people")
	f.BoolVar(&noWait, "no-wait", false, "do not wait for the switches' confirmation")
	f.BoolVar(&dry, "dry-run", false, "only say what would happen")
	cmd.MarkFlagFilename("file", "yaml", "yml", "json")
	return cli.Query(r, cmd, func(c *cli.Controller, _ []string) (cli.View, error) {
		rules, err := []*api.FirewallRule{rule}, error(nil)
		switch {
		case file != "" && (allow || deny || len(match) > 0 || rule.Id != "" || sw.Text != "" || cmd.Flags().Changed("priority")):
			return cli.View{}, cli.Usagef(cmd, "--file says it all; leave the flags of a rule out")
		case file != "":
			if rules, err = ReadFirewallFile(file, cmd.InOrStdin()); err != nil {
				return cli.View{}, err
			}
		case allow == deny:
			return cli.View{}, cli.Usagef(cmd, "say --allow or --deny, or give a file with --file")
		default:
			if rule.Match, err = splitFields(match); err != nil {
				return cli.View{}, cli.Usagef(cmd, "--match: %v", err)
			}
			rule.Dpid, rule.Action = sw.Text, map[bool]string{true: "allow", false: "deny"}[allow]
		}
		sum, err := addRules(c, rules, noWait, dry)
		if err != nil {
			return cli.View{}, err
		}
		return cli.View{Value: sum, Text: func(t *cli.Table) {
			if dry {
				effectsOfRules(t, sum.Ids, sum.Effects)
			} else if len(sum.Ids) == 1 {
				fmt.Fprintf(t, "rule %s: ", sum.Ids[0])
			}
			fmt.Fprintf(t, "%d added, %d replaced, %d unchanged\n", sum.Added, sum.Replaced, sum.Unchanged)
		}, Failed: firewallFailed(sum.Failures)}, nil
	})
}

// firewallFailed is the error of switches that have not confirmed.
func firewallFailed(list []*api.FirewallFailure) error {
	if len(list) == 0 {
		return nil
	}
	var lines []string
	for _, f := range list {
		lines = append(lines, fmt.Sprintf("switch %s: %s", f.Dpid, f.Text))
	}
	return fmt.Errorf("kept, but %d switches do not do so yet; it is tried again (weft firewall status):\n%s", len(list), strings.Join(lines, "\n"))
}

func firewallDeleteCommand(r *cli.Remote) *cobra.Command {
	var all, dry bool
	var sw cli.DPIDFlag
	cmd := &cobra.Command{
		Use:   "delete [ID...]",
		Args:  cobra.ArbitraryArgs,
		Short: "Delete rules",
		Long:  `Delete rules by their ids; or all, of one switch or altogether.`,
		Example: `  weft firewall delete ssh guests
  weft firewall delete --all --switch 1
  weft firewall delete --all`,
	}
	cmd.Flags().BoolVar(&all, "all", false, "all rules")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would happen; of all rules it lists 1000")
	cmd.Flags().VarP(&sw, "switch", "s", "with --all: only rules of this switch")
	return cli.Query(r, cmd, func(c *cli.Controller, ids []string) (cli.View, error) {
		req := &api.DeleteFirewallRulesRequest{Ids: ids, DryRun: dry}
		switch {
		case all == (len(ids) > 0):
			return cli.View{}, cli.Usagef(cmd, "name rules by their ids, or say --all")
		case sw.Text != "" && !all:
			return cli.View{}, cli.Usagef(cmd, "--switch goes with --all")
		case all:
			req.AllOf = cmp.Or(sw.Text, "all")
		}
		m, err := c.DeleteFirewallRules(c.Ctx, req)
		if err != nil {
			return cli.View{}, err
		}
		if err = firewallFailed(m.Failures); int(m.Deleted) < len(ids) {
			err = fmt.Errorf("%d of %d rules were not there; weft firewall list shows those that are", len(ids)-int(m.Deleted), len(ids))
		}
		return cli.View{Value: m, Text: func(t *cli.Table) {
			if dry {
				effectsOfRules(t, m.Ids, m.Effects)
				return
			}
			fmt.Fprintf(t, "%s deleted\n", cli.Several(m.Deleted, "rule", "rules"))
		}, Failed: err}, nil
	})
}

// effectsOfRules says what would become of rules.
func effectsOfRules(t *cli.Table, ids, effects []string) {
	t.Row("ID", "EFFECT")
	for i, id := range ids {
		if i < len(effects) {
			t.Row(id, effects[i])
		}
	}
}

package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// failMissingRules fails if a rule that is named is not there.
func failMissingRules(_ *cli.Controller, request, answer proto.Message) (failed, err error) {
	req, m := request.(*api.ListFirewallRulesRequest), answer.(*api.ListFirewallRulesResponse)
	if n := len(req.Ids); len(m.Rules) < n && req.Dpid == "" && req.Limit == 0 {
		failed = fmt.Errorf("%d of %d rules are not there", n-len(m.Rules), n)
	}
	return failed, nil
}

func writeRules(t *cli.Table, _, answer proto.Message) {
	writeList(t, answer, "rules")
	if m := answer.(*api.ListFirewallRulesResponse); int(m.Total) > len(m.Rules) {
		fmt.Fprintf(t, "\n%d of %d rules\n", len(m.Rules), m.Total)
	}
}

// ruleState says whether a rule is in force, or why not.
func ruleState(m proto.Message) string {
	r := m.(*api.FirewallRule)
	if r.State != "in force" && r.Reason != "" {
		return r.State + ": " + r.Reason
	}
	return r.State
}

// ruleMatch writes what a rule is about.
func ruleMatch(m proto.Message) string {
	r := m.(*api.FirewallRule)
	var parts []string
	if r.Tenant != "" {
		parts = append(parts, "tenant="+r.Tenant)
	}
	if r.Vlan != 0 {
		parts = append(parts, fmt.Sprintf("vlan=%d", r.Vlan))
	}
	if len(r.Match) > 0 {
		parts = append(parts, fieldsText(r.Match))
	}
	if len(parts) == 0 {
		return "any"
	}
	return strings.Join(parts, ",")
}

// decisionText says what has decided on a packet.
func decisionText(m proto.Message) string {
	r := m.(*api.CheckFirewallResponse).Rule
	if r == nil {
		return "the default"
	}
	return fmt.Sprintf("rule %s (priority %d, %s)", r.Id, r.Priority, ruleMatch(r))
}

func completeActions(cmd *cobra.Command) {
	cmd.ValidArgs = []string{"allow", "deny", "block", "inherit"}
}

// checkDefault turns inherit into no action of a switch's own.
func checkDefault(cmd *cobra.Command, _ []string, request proto.Message) error {
	req := request.(*api.SetFirewallDefaultRequest)
	if req.Action != "inherit" {
		return nil
	}
	if req.Dpid == "" {
		return cli.Usagef(cmd, "inherit goes with --switch")
	}
	req.Action = ""
	return nil
}

func writeDefault(t *cli.Table, request, answer proto.Message) {
	req, m := request.(*api.SetFirewallDefaultRequest), answer.(*api.SetFirewallDefaultResponse)
	action := cmp.Or(req.Action, "inherit")
	if req.DryRun {
		fmt.Fprintf(t, "default: %s would be %s (it is %s)\n", action, m.Effect, cmp.Or(m.Before, "inherit"))
		return
	}
	fmt.Fprintf(t, "default: %s\n", action)
}

func failDefault(_ *cli.Controller, _, answer proto.Message) (failed, err error) {
	return firewallFailed(answer.(*api.SetFirewallDefaultResponse).Failures), nil
}

// fieldsText writes the fields of a match.
func fieldsText(match map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(match)) {
		parts = append(parts, name+"="+match[name])
	}
	return strings.Join(parts, ",")
}

package firewall

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// RuleConfig is a rule of the configuration. Its keys are those of the rules
// that the API takes.
type RuleConfig struct {
	// ID tells it from the others; the API shows it as config:ID.
	ID string `yaml:"id"`
	// Priority is 0 to 65535: the rule of highest priority decides.
	Priority uint16 `yaml:"priority"`
	// Action is allow or deny.
	Action string `yaml:"action"`
	// DPID is the switch on which it holds; empty is everywhere.
	DPID string `yaml:"dpid"`
	// Tenant is whose packets it is about: those of all the tenant's virtual
	// networks, or of the one that VLAN says.
	Tenant string `yaml:"tenant"`
	// VLAN is that of the packets; 0 says nothing.
	VLAN uint16 `yaml:"vlan"`
	// Match is the header fields, as of a flow entry; ports may be ranges.
	Match map[string]string `yaml:"match"`
	// Comment is for people.
	Comment string `yaml:"comment"`
}

// configPrefix begins the ids of the configuration's rules. The configuration
// replaces them as a whole, and nobody else touches them.
const configPrefix = "config:"

// configRules are those of the configuration, as the API has them.
func (c *Config) configRules() []*api.FirewallRule {
	list := make([]*api.FirewallRule, len(c.Rules))
	for i, r := range c.Rules {
		list[i] = &api.FirewallRule{
			Id: configPrefix + r.ID, Priority: uint32(r.Priority), Action: r.Action, Dpid: r.DPID, Tenant: r.Tenant,
			Vlan: uint32(r.VLAN), Match: r.Match, Comment: r.Comment,
		}
	}
	return list
}

// validateRules returns an error that names a wrong rule of the configuration.
func (c *Config) validateRules() error {
	seen := map[string]int{}
	for i, m := range c.configRules() {
		if m.Id == configPrefix {
			return fmt.Errorf("rules[%d]: id: none; give it one", i)
		}
		if first, twice := seen[m.Id]; twice {
			return fmt.Errorf("rules[%d].id: %s is that of rules[%d], too", i, c.Rules[i].ID, first)
		}
		seen[m.Id] = i
		if _, err := newRule(m); err != nil {
			return fmt.Errorf("rules[%d]: %w", i, err)
		}
	}
	return nil
}

// configure replaces the rules of the former configuration. Those made by the API
// stay as they are. The switches follow.
func (b *store) configure(ctx context.Context, c *Config) error {
	want := c.configRules()
	if len(want) > 0 {
		if _, err := b.addRules(ctx, &api.AddFirewallRulesRequest{Rules: want, NoWait: true}); err != nil {
			return err
		}
	}
	_, err := b.deleteRules(ctx, &api.DeleteFirewallRulesRequest{NoWait: true}, func(r *rule) bool {
		return strings.HasPrefix(r.id, configPrefix) && !slices.ContainsFunc(want, func(m *api.FirewallRule) bool { return m.Id == r.id })
	})
	return err
}

func configured(id string) error {
	return api.Errorf(codes.InvalidArgument, "rule %s is one of the configuration; change it there (weft config apply)", id)
}

// addByAPI answers the call for everybody but the configuration.
func (b *store) addByAPI(ctx context.Context, req *api.AddFirewallRulesRequest) (*api.AddFirewallRulesResponse, error) {
	for _, m := range req.Rules {
		if strings.HasPrefix(m.GetId(), configPrefix) {
			return nil, configured(m.Id)
		}
	}
	return b.addRules(ctx, req)
}

// deleteByAPI answers the call for everybody but the configuration.
func (b *store) deleteByAPI(ctx context.Context, req *api.DeleteFirewallRulesRequest) (*api.DeleteFirewallRulesResponse, error) {
	for _, id := range req.Ids {
		if strings.HasPrefix(id, configPrefix) {
			return nil, configured(id)
		}
	}
	only, err := flow.ParseDPID(req.AllOf)
	every := req.AllOf == "all"
	switch {
	case req.AllOf == "":
		return b.deleteRules(ctx, req, func(*rule) bool { return false })
	case err != nil && !every:
		return nil, api.Errorf(codes.InvalidArgument, "all_of: %w; or all, for every rule", err)
	case b.damage() != "": // what it lacks would be left out
		return nil, api.Errorf(codes.FailedPrecondition, "not all rules can be deleted: the store may lack some of them: %s; run weft store repair", b.damage())
	}
	return b.deleteRules(ctx, req, func(r *rule) bool {
		return !strings.HasPrefix(r.id, configPrefix) && (every || r.local && r.sw == only)
	})
}

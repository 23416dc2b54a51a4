package gateway

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// role is how much a client may do. Each includes those before it.
type role int

// The roles; the zero value may do nothing.
const (
	roleNone    role = iota
	roleRead         // look at everything but secrets
	roleOperate      // change the network: entries, policies
	roleAdmin        // change the controller: plan, configuration, tokens
)

var roleNames = [...]string{"none", "read", "operate", "admin"}

// String returns the name of a role.
func (r role) String() string { return roleNames[r] }

// parseRole reads the name of a role that a token may have.
func parseRole(name string) (role, error) {
	for r := roleRead; r <= roleAdmin; r++ {
		if roleNames[r] == name {
			return r, nil
		}
	}
	return roleNone, fmt.Errorf("role %q; allowed: %s", name, strings.Join(roleNames[roleRead:], ", "))
}

// right is what a method asks of its caller.
type right struct {
	needs   role
	changes bool // it changes something, and goes into the audit log
}

// Rights of the three kinds of method, and of the few that read what is secret.
var (
	reads      = right{needs: roleRead}
	operates   = right{needs: roleOperate, changes: true}
	administer = right{needs: roleAdmin, changes: true}
	inspects   = right{needs: roleAdmin}
)

// rights says of every method that clients may call what it asks of them. A
// method that is not here is the administrator's, and a change.
func rights() map[string]right {
	return map[string]right{
		"gateway.GetInfo":        reads,
		"gateway.ListWorkers":    reads,
		"gateway.GetPlan":        inspects, // settings may hold secrets
		"gateway.ApplyPlan":      administer,
		"gateway.GetConfig":      inspects,
		"gateway.ListConfigs":    inspects,
		"gateway.ApplyConfig":    administer,
		"gateway.RollbackConfig": administer,
		"gateway.TakeProfile":    inspects,
		"gateway.GetStore":       reads,
		"gateway.ReadStore":      inspects,
		"gateway.RepairStore":    administer,
		"gateway.CreateToken":    administer,
		"gateway.ListTokens":     inspects,
		"gateway.RevokeToken":    administer,
		"gateway.ListAudit":      inspects,

		"southbound.ListSwitches":   reads,
		"southbound.ListPorts":      reads,
		"southbound.ReadFlows":      reads,
		"southbound.ReadGroups":     reads,
		"southbound.ReadMeters":     reads,
		"southbound.ReadPortStats":  reads,
		"southbound.ReadTableStats": reads,
		"southbound.ListLimits":     reads,
		"southbound.ForgetSwitch":   operates,

		"discovery.ListLinks":     reads,
		"discovery.ListPortRoles": reads,
		"discovery.AllowLink":     operates,

		"hosts.ListHosts":          reads,
		"hosts.FindHost":           reads,
		"hosts.BindHost":           operates,
		"hosts.UnbindHost":         operates,
		"hosts.ListBindings":       reads,
		"hosts.SetPortSecurity":    operates,
		"hosts.DeletePortSecurity": operates,

		"paths.FindPath": reads,
		"paths.GetTree":  reads,

		"forwarding.ListRoutes":  reads,
		"forwarding.GetFlooding": reads,

		"flowrules.AddFlows":    operates,
		"flowrules.DeleteFlows": operates,
		"flowrules.ListFlows":   reads,
		"flowrules.ListSync":    reads,

		"firewall.AddFirewallRules":    operates,
		"firewall.DeleteFirewallRules": operates,
		"firewall.SetFirewallDefault":  operates,
		"firewall.ListFirewallRules":   reads,
		"firewall.CheckFirewall":       reads,
		"firewall.GetFirewallStatus":   reads,

		"balancer.SetVip":          operates,
		"balancer.DeleteVip":       operates,
		"balancer.ListVips":        reads,
		"balancer.SetMember":       operates,
		"balancer.DeleteMember":    operates,
		"balancer.DrainMember":     operates,
		"balancer.ListConnections": reads,

		"nat.SetNat":    operates,
		"nat.DeleteNat": operates,
		"nat.ListNats":  reads,

		"router.AddRouterAddress":    operates,
		"router.DeleteRouterAddress": operates,
		"router.AddRouterRoute":      operates,
		"router.DeleteRouterRoute":   operates,
		"router.ListRouters":         reads,

		"qos.SetPolicy":    operates,
		"qos.DeletePolicy": operates,
		"qos.ListPolicies": reads,
		"qos.GetStatus":    reads,
		"qos.SetQueues":    operates,
		"qos.DeleteQueues": operates,
		"qos.ListQueues":   reads,

		"tenants.SetTenant":        operates,
		"tenants.DeleteTenant":     operates,
		"tenants.ListTenants":      reads,
		"tenants.SetNetwork":       operates,
		"tenants.DeleteNetwork":    operates,
		"tenants.ListNetworks":     reads,
		"tenants.GetTenantsStatus": reads,

		"heartbeat.ListHeartbeats": reads,

		"stats.ListPortStats":  reads,
		"stats.ListTableStats": reads,
		"stats.ListFlowStats":  reads,
	}
}

// rightOf returns what a method asks of its caller.
func rightOf(table map[string]right, method string) right {
	if r, ok := table[method]; ok {
		return r
	}
	return administer
}

// caller is who makes a request.
type caller struct {
	name  string // of the token; configured, or for none loopback or user and its number
	role  role
	local bool   // a user of this machine, without a token
	from  string // address and port
	token *issued
}

// callerKey is the context's key for the caller.
type callerKey struct{}

// callerOf returns who makes a request; one that nobody has let in has no role.
func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// may reports a caller that may not call a method.
func (c caller) may(method string, needs role) error {
	if c.role >= needs {
		return nil
	}
	if c.local {
		return status.Errorf(codes.PermissionDenied, "%s needs the role %s, and %s of this machine has %s: be root or the user who runs the controller, have it name you in gateway.users, or use a token (weft token create --role %s)", method, needs, c.name, c.role, needs)
	}
	return status.Errorf(codes.PermissionDenied, "%s needs the role %s, and the token %s has %s: use another, or have one made (weft token create --role %s)", method, needs, c.name, c.role, needs)
}

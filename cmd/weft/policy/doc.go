// Package policy is the commands for the objects that people make: flow entries, firewall
// rules, virtual IPs, routers, gateways, limits, virtual networks, chains, tunnels and circuits. All have
// the same verbs, and get, delete and apply are written once (object.go).
package policy

import "github.com/spf13/cobra"

// Commands returns the commands of all kinds of objects.
func Commands() []*cobra.Command {
	return []*cobra.Command{flowCommand(), firewallCommand(), balancerCommand(), scpCommand(), natCommand(), routerCommand(), qosCommand(), tenantCommand("tenants"), tenantCommand("tenant"), tunnelCommand(), chainCommand(), l2vpnCommand()}
}

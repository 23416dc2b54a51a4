// Package policy is the commands for the objects that people make: flow entries, firewall
// rules, virtual IPs, routers, gateways, limits, virtual networks, chains, tunnels and circuits. All have
// the same verbs, and get, delete and apply are written once (object.go, typed.go).
package policy

import "github.com/spf13/cobra"

// typedCommands returns the commands of the kinds of objects that are not derived yet.
func typedCommands() []*cobra.Command {
	return []*cobra.Command{}
}

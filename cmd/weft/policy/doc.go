// Package policy is the commands for the objects that people make: flow entries, firewall
// rules, virtual IPs, routers, gateways, limits, virtual networks, chains, tunnels, circuits and bindings of hosts.
// How they look is in the .proto files (api.CommandHelp, api.Flag, api.Table); what these cannot
// say is found in special.go.
package policy

// Package services lists the services of the controller. cmd/weft and tests of
// the whole system import it; it imports the services and nothing of what runs
// them.
package services

import (
	"weft"
	"weft/services/balancer"
	"weft/services/discovery"
	"weft/services/firewall"
	"weft/services/flowrules"
	"weft/services/forwarding"
	"weft/services/gateway"
	"weft/services/heartbeat"
	"weft/services/hosts"
	"weft/services/intake"
	"weft/services/nat"
	"weft/services/paths"
	"weft/services/qos"
	"weft/services/router"
	"weft/services/ryu"
	"weft/services/southbound"
	"weft/services/stats"
	"weft/services/tenants"
)

// All returns every service, in the order in which they start. p is what the
// gateway tells of the process.
func All(p gateway.Process) []weft.Spec {
	return []weft.Spec{
		southbound.Spec(),
		intake.Spec(),
		discovery.Spec(),
		hosts.Spec(),
		firewall.Spec(),
		paths.Spec(),
		balancer.Spec(),
		router.Spec(),
		nat.Spec(),
		forwarding.Spec(),
		flowrules.Spec(),
		stats.Spec(),
		heartbeat.Spec(),
		qos.Spec(),
		tenants.Spec(),
		ryu.Spec(ryu.Process{Name: p.Name, Audit: p.Audit}),
		gateway.Spec(p),
	}
}

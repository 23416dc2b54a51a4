// Package services lists the services of the controller. cmd/weft and tests of
// the whole system import it; it imports the services and nothing of what runs
// them.
package services

import (
	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/services/balancer"
	"github.com/weft-sdn/weft/services/chain"
	"github.com/weft-sdn/weft/services/discovery"
	"github.com/weft-sdn/weft/services/firewall"
	"github.com/weft-sdn/weft/services/flowrules"
	"github.com/weft-sdn/weft/services/forwarding"
	"github.com/weft-sdn/weft/services/gateway"
	"github.com/weft-sdn/weft/services/heartbeat"
	"github.com/weft-sdn/weft/services/hosts"
	"github.com/weft-sdn/weft/services/intake"
	"github.com/weft-sdn/weft/services/l2vpn"
	"github.com/weft-sdn/weft/services/nat"
	"github.com/weft-sdn/weft/services/nodes"
	"github.com/weft-sdn/weft/services/paths"
	"github.com/weft-sdn/weft/services/qos"
	"github.com/weft-sdn/weft/services/router"
	"github.com/weft-sdn/weft/services/ryu"
	"github.com/weft-sdn/weft/services/scp"
	"github.com/weft-sdn/weft/services/southbound"
	"github.com/weft-sdn/weft/services/stats"
	"github.com/weft-sdn/weft/services/tenants"
	"github.com/weft-sdn/weft/services/tunnels"
)

// others are the services of other modules.
var others []weft.Spec

// Add adds services of another module, whose program calls it before anything
// else. A stage among them is given its place by a plan's pipeline.
func Add(specs ...weft.Spec) { others = append(others, specs...) }

// All returns every service, in the order in which they start. p is what the
// gateway tells of the process.
func All(p gateway.Process) []weft.Spec {
	return append([]weft.Spec{
		southbound.Spec(),
		intake.Spec(),
		discovery.Spec(),
		hosts.Spec(),
		firewall.Spec(),
		paths.Spec(),
		scp.Spec(),
		balancer.Spec(),
		router.Spec(),
		nat.Spec(),
		forwarding.Spec(),
		flowrules.Spec(),
		stats.Spec(),
		heartbeat.Spec(),
		qos.Spec(),
		tenants.Spec(),
		nodes.Spec(),
		chain.Spec(),
		tunnels.Spec(),
		l2vpn.Spec(),
		ryu.Spec(ryu.Process{Name: p.Name, Audit: p.Audit}),
		gateway.Spec(p),
	}, others...)
}

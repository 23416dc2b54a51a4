package virtual

import (
	"fmt"
	"time"
)

// layout is a plan, all of which run the same services.
type layout struct{ name, workers, config string }

// layouts are the plans that are applied.
var layouts = []layout{
	{"one", `workers:
  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, heartbeat, firewall, witness]}
`, ""},
	{"standby", `workers:
  switches: {services: [southbound], standby: 1, settings: {southbound: {listen: ["tcp:127.0.0.1:6653"], standby_listen: ["tcp:127.0.0.1:6654"]}}}
  topology: {services: [discovery, hosts]}
  routing: {services: [paths, forwarding], replicas: 2}
  rest: {services: [flowrules, stats, heartbeat, firewall, witness]}
`, ""},
	{"split", `workers:
  edge: {services: [southbound, discovery, hosts], settings: {southbound: {listen: ["tcp:127.0.0.1:6653"]}}}
  routing: {services: [paths, forwarding], replicas: 3}
  rest: {services: [flowrules, stats, heartbeat, firewall, witness]}
`, ""},
	{"halves", `partitions:
  east: {switches: ["1-2"]}
  west: {switches: [rest]}
workers:
  east: {partition: east, services: [southbound, heartbeat], settings: {southbound: {listen: ["tcp:127.0.0.1:6653"]}}}
  west: {partition: west, services: [southbound, heartbeat], settings: {southbound: {listen: ["tcp:127.0.0.1:6654"]}}}
  topology: {services: [discovery, hosts]}
  routing: {services: [paths, forwarding]}
  rest: {services: [flowrules, stats, firewall, witness]}
`, ""},
}

// with returns the text of the plan, with a configuration that is drawn.
func (l layout) with(c *chance) string {
	return fmt.Sprintf("name: %s\nevents: grpc\npartial: true\nbalance: %s\n%sconfig:\n  discovery: {interval: %v}\n  forwarding: {settle: %v}\n%s",
		l.name, pick(c, []string{"flow", "switch", "round-robin", "least"}), l.workers,
		pick(c, []time.Duration{2200 * time.Millisecond, 1500 * time.Millisecond}), pick(c, []time.Duration{200 * time.Millisecond, 500 * time.Millisecond}), l.config)
}
